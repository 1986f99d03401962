# SPDX-License-Identifier: Apache-2.0
"""Results for machines (JSON) and for people (a table and a verdict on each aim).

Law: results in, text out; nothing is measured or printed here.
"""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

import numpy as np

from priority_router import __version__
from priority_router.ops.bench.aims import Verdict, limit_text
from priority_router.ops.bench.arms import ARMS
from priority_router.ops.bench.experiment import Results
from priority_router.ops.bench.scenarios import shortened
from priority_router.ops.bench.stats import QUANTILES, ClassSummary, RoundSummary, Spread, errors_among
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
        "arms": {name: _over_rounds(_summaries(results, name)) for name in _arms(results)},
        "aims": [asdict(verdict) for verdict in results.verdicts()],
        "warnings": warnings(results),
    }


def _arms(results: Results) -> list[str]:
    return [name for name in results.scenario.arms if any(name in finished for finished in results.rounds)]


def _summaries(results: Results, arm: str) -> list[RoundSummary]:
    return [finished[arm] for finished in results.rounds if arm in finished]


def _over_rounds(summaries: Sequence[RoundSummary]) -> dict[str, Any]:
    """One arm's numbers as median, low and high over its rounds; outcomes are added up."""
    classes = {}
    for name in summaries[0].classes:
        of_class = [summary.classes[name] for summary in summaries]
        classes[name] = {
            "outcomes": {o.label: sum(one.outcomes[o.label] for one in of_class) for o in Outcome},
            "rows_per_s": _spread([one.rows_per_s for one in of_class]),
            "latency": _latencies(of_class, lambda one: one.latency),
            "queue_ms": _latencies(of_class, lambda one: one.queue_ms),
        }
    return {
        "classes": classes,
        "busy": _spread([one.busy for one in summaries]),
        "mean_batch": _spread([one.mean_batch for one in summaries]),
        "client_cpu": _spread([one.client_cpu for one in summaries]),
        "late_p99_ms": _spread([one.late_p99_ms for one in summaries]),
    }


def _latencies(
    summaries: Sequence[ClassSummary], of: Callable[[ClassSummary], Mapping[str, float]]
) -> dict[str, dict[str, float] | None]:
    return {name: _spread([of(one).get(name) for one in summaries]) for name in QUANTILES}


def _spread(values: Sequence[float | None]) -> dict[str, float] | None:
    known = [value for value in values if value is not None]
    return asdict(Spread.over(known)) if known else None


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
    rows = [["arm", "class", "answered", "unanswered", "rows/s", "p50 ms", "p95 ms", "p99 ms", "max ms", "busy"]]
    for name in _arms(results):
        numbers = _over_rounds(_summaries(results, name))
        for position, (class_name, one) in enumerate(numbers["classes"].items()):
            rows.append(_class_row(name if position == 0 else "", class_name, one))
            rows[-1].append(cell(numbers["busy"], 100, "%") if position == 0 else "")
    lines += _aligned(rows)
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


def _class_row(arm: str, class_name: str, one: Mapping[str, Any]) -> list[str]:
    outcomes = one["outcomes"]
    refused = errors_among(outcomes)
    answered = f"{outcomes[Outcome.SUCCESS.label]}" + (f" +{refused} refused" if refused else "")
    return [
        arm,
        class_name,
        answered,
        str(outcomes[Outcome.UNANSWERED.label]),
        cell(one["rows_per_s"]),
        *(cell(one["latency"][name]) for name in QUANTILES),
    ]


def cell(spread: Mapping[str, float] | None, scale: float = 1.0, unit: str = "") -> str:
    """Median and, where they differ, lowest and highest of a `Spread` as the JSON has it."""
    if spread is None:
        return "-"
    median, low, high = (short(spread[key] * scale) for key in ("median", "low", "high"))
    return f"{median}{unit}" if low == high else f"{median}{unit} ({low}-{high})"


def short(value: float) -> str:
    """Three digits, and all of those before the point."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def verdict_text(verdict: Verdict) -> str:
    """One aim in one line."""
    limit = limit_text(verdict.at_most, verdict.limit)
    if verdict.reached is None:
        return f"not measured  {verdict.arm}: {verdict.text}, {limit}"
    word = "met   " if verdict.met else "missed"
    reached = verdict.reached
    spread = "" if reached.low == reached.high else f" ({reached.low:.3g}-{reached.high:.3g})"
    return f"{word}  {verdict.arm}: {verdict.text}: {reached.median:.3g}{spread}, {limit}"
