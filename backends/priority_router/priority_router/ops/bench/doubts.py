# SPDX-License-Identifier: Apache-2.0
"""What a reader must know before believing the numbers of a run. Law: results in, text out."""

from __future__ import annotations

from dataclasses import asdict
from typing import Final

from priority_router.ops.bench.client_rate import MOST_CPU, of_a_process
from priority_router.ops.bench.experiment import Results
from priority_router.ops.bench.scenarios import shortened
from priority_router.ops.bench.wire import Outcome
from priority_router.ops.loads import ExecutorShape

MIN_SAMPLES_FOR_P99: Final = 100
"""With fewer, the nearest-rank p99 is simply the largest value."""

LATE_SHARE: Final = 0.1
"""A generator is the bottleneck when its p99 lateness is above this share of what a batch takes..."""

LATE_MS: Final = 5.0
"""...or above this, where a batch takes no time; 2 busy cores alone make some ms."""

LEAST_WAITING: Final = 0.05
"""Of the time, in which more requests must be there than the executor takes at once, for priority to matter."""


def warnings(results: Results) -> list[str]:
    """What a reader must know, one line each."""
    scenario = results.scenario
    left_out = shortened(asdict(scenario))
    found = [left_out] if left_out else []
    if results.interrupted:
        found.append("interrupted: the numbers cover the rounds that were complete")
    found += [f"{arm} was left out: {reason}" for arm, reason in results.dropped.items()]
    if results.arms() and scenario.loads and not queued(results):
        found.append("no queue: the executor could nearly always take all that was there, so priority cannot show")
    if results.client and (beyond := results.client.too_much()):
        found.append(beyond)
    for name in results.arms():
        found += _of_arm(results, name)
    return found


def queued(results: Results) -> bool:
    """Whether requests had to wait for each other, on any arm, for a time worth speaking of."""
    shares = [arms[name]["waiting_share"] for arms in results.details for name in arms]
    return any(share is not None and share >= LEAST_WAITING for share in shares)


def late_limit_ms(executor: ExecutorShape) -> float:
    """How late a generator may send (p99) before it is a bottleneck, ms."""
    return max(LATE_MS, LATE_SHARE * executor.full_batch_us / 1e3)


def too_late(results: Results, arm: str) -> str | None:
    """Says so when the generator could not keep the schedule on an arm."""
    limit = late_limit_ms(results.scenario.executor)
    late = max(summary.late_p99_ms for summary in results.summaries(arm))
    if late <= limit:
        return None
    return f"{arm}: requests were sent up to {late:.1f} ms late (p99); the generator was a bottleneck"


def _closed(results: Results, name: str) -> list[str]:
    """Says so where a closed loop was about as fast as its client can be."""
    if results.scenario.loads or results.client is None or results.client.top is None:
        return []
    most = of_a_process(results.client.top, results.client.grpc)
    fastest = max(step.rows_per_s for summary in results.summaries(name) for step in summary.classes.values())
    if fastest <= most:
        return []
    return [
        f"{name}: {fastest:.0f} requests/s are near the {results.client.top.rate:.0f} that its client can do at most"
    ]


def _of_arm(results: Results, name: str) -> list[str]:
    summaries = results.summaries(name)
    late = too_late(results, name)
    found = [late] if late else []
    busiest = max(summary.client_cpu / summary.processes for summary in summaries)
    if results.scenario.loads and busiest > MOST_CPU:
        found.append(f"{name}: a generator process used {busiest:.0%} of a core; give it more with --processes")
    found += _closed(results, name)
    judged = [results.scenario.urgent] if results.scenario.loads else list(summaries[0].classes)
    for class_name in judged:
        outcomes = [summary.classes[class_name].outcomes for summary in summaries]
        unanswered = sum(one[Outcome.UNANSWERED.label] for one in outcomes)
        if results.scenario.loads and unanswered:
            of = sum(sum(one.values()) for one in outcomes)
            found.append(
                f"{name}: {unanswered} of {of} requests of class {class_name} had no reply when the wait was over, so "
                "the latencies of the others are the better ones"
            )
        fewest = min(one[Outcome.SUCCESS.label] for one in outcomes)
        if fewest < MIN_SAMPLES_FOR_P99:
            found.append(f"{name}: only {fewest} answers of class {class_name} in a round stand behind its p99")
    failures = [failure for summary in summaries for failure in summary.failures]
    if failures:
        first = failures[0]
        count = sum(int(failure["count"]) for failure in failures)
        found.append(f"{name}: {count} requests failed, for example: {first['text']} (status {first['status']})")
    return found
