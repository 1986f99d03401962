# SPDX-License-Identifier: Apache-2.0
"""Results for machines (JSON) and for people (a table and a verdict on each aim).

Law: results in, text out; nothing is measured or printed here.
"""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

import numpy as np

from priority_router import __version__
from priority_router.ops.bench import table
from priority_router.ops.bench.aims import Verdict, limit_text
from priority_router.ops.bench.arms import ARMS
from priority_router.ops.bench.experiment import Results
from priority_router.ops.bench.scenarios import shortened
from priority_router.ops.bench.stats import RoundSummary
from priority_router.ops.bench.wire import Outcome

SCHEMA: Final = "priority-router-bench/1"
"""Changes with every change that a reader of the old form would stumble over."""

MIN_SAMPLES_FOR_P99: Final = 100
"""With fewer, the nearest-rank p99 is simply the largest value."""

LATE_SHARE: Final = 0.1
"""A generator is the bottleneck when its p99 lateness is above this share of what a batch takes..."""

LATE_MS: Final = 5.0
"""...or above this, where a batch takes no time; 2 busy cores alone make some ms."""


def as_json(results: Results, command: Sequence[str]) -> dict[str, Any]:
    """Everything about a run, for a file.

    Args:
        results: the run.
        command: the words that started it.
    """
    return {
        "schema": SCHEMA,
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": list(command),
        "versions": {
            "priority_router": __version__,
            "triton": results.triton,
            "python": platform.python_version(),
            "numpy": np.__version__,
        },
        "cores": len(os.sched_getaffinity(0)),
        "seed": results.seed,
        "interrupted": results.interrupted,
        "scenario": {**asdict(results.scenario), "floor_ms": results.scenario.executor.floor_ms},
        "rounds": [{name: summary.as_json() for name, summary in finished.items()} for finished in results.rounds],
        "arms": {name: table.over_rounds(_summaries(results, name)) for name in _arms(results)},
        "aims": [asdict(verdict) for verdict in results.verdicts()],
        "warnings": warnings(results),
    }


def _arms(results: Results) -> list[str]:
    return [name for name in results.scenario.arms if any(name in finished for finished in results.rounds)]


def _summaries(results: Results, arm: str) -> list[RoundSummary]:
    return [finished[arm] for finished in results.rounds if arm in finished]


def warnings(results: Results) -> list[str]:
    """What a reader must know before believing the numbers."""
    scenario = results.scenario
    left_out = shortened(asdict(scenario))
    found = [left_out] if left_out else []
    if results.interrupted:
        found.append("interrupted: the numbers cover the rounds that were complete")
    limit = max(LATE_MS, LATE_SHARE * scenario.executor.full_batch_us / 1e3)
    for name in _arms(results):
        summaries = _summaries(results, name)
        late = max(summary.late_p99_ms for summary in summaries)
        if late > limit:
            found.append(f"{name}: requests were sent up to {late:.1f} ms late (p99); the generator was a bottleneck")
        for class_name in summaries[0].classes:
            fewest = min(summary.classes[class_name].outcomes[Outcome.SUCCESS.label] for summary in summaries)
            if fewest < MIN_SAMPLES_FOR_P99:
                found.append(f"{name}: only {fewest} answers of class {class_name} in a round stand behind its p99")
        failures = [failure for summary in summaries for failure in summary.failures]
        if failures:
            first = failures[0]
            count = sum(int(failure["count"]) for failure in failures)
            found.append(f"{name}: {count} requests failed, for example: {first['text']} (status {first['status']})")
    return found


def as_text(results: Results) -> str:
    """A table of all arms and classes, the aims, and the warnings, for a terminal."""
    scenario = results.scenario
    lines = [f"{scenario.name}: {scenario.meaning}", ""]
    lines += table.lines({name: table.over_rounds(_summaries(results, name)) for name in _arms(results)})
    lines += ["", f"median (lowest-highest) of {_round_count(results)}; latency from the scheduled time"]
    lines += [f"  {name}: {ARMS[name].meaning}" for name in _arms(results)]
    verdicts = results.verdicts()
    if verdicts:
        lines += ["", "aims:", *(f"  {verdict_text(verdict)}" for verdict in verdicts)]
    lines += [f"warning: {text}" for text in warnings(results)]
    return "\n".join(lines)


def _round_count(results: Results) -> str:
    count = sum(bool(finished) for finished in results.rounds)
    return f"{count} round{'' if count == 1 else 's'} of {results.scenario.seconds:g} s"


def verdict_text(verdict: Verdict) -> str:
    """One aim in one line."""
    limit = limit_text(verdict.at_most, verdict.limit)
    if verdict.reached is None:
        return f"not measured  {verdict.arm}: {verdict.text}, {limit}"
    word = "met   " if verdict.met else "missed"
    reached = verdict.reached
    spread = "" if reached.low == reached.high else f" ({reached.low:.3g}-{reached.high:.3g})"
    return f"{word}  {verdict.arm}: {verdict.text}: {reached.median:.3g}{spread}, {limit}"
