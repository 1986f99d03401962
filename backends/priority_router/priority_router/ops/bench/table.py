# SPDX-License-Identifier: Apache-2.0
"""The table of arms and classes that measured and simulated runs are shown in.

Law: pure; summaries of rounds in, numbers over the rounds and lines of text out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from priority_router.ops.bench.stats import QUANTILES, ClassSummary, RoundSummary, Spread
from priority_router.ops.bench.wire import Outcome

HEAD: Final = ("arm", "class", "answered", "unanswered", "rows/s", "p50 ms", "p95 ms", "p99 ms", "max ms", "busy")


def over_rounds(summaries: Sequence[RoundSummary]) -> dict[str, Any]:
    """One arm's numbers as median, low and high over its rounds; outcomes and batches are added up."""
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
        "batches": dict(sum((Counter(one.batches) for one in summaries), Counter())),
        "client_cpu": _spread([one.client_cpu for one in summaries]),
        "late_p99_ms": _spread([one.late_p99_ms for one in summaries]),
        "late_max_ms": _spread([one.late_max_ms for one in summaries]),
    }


def _latencies(
    summaries: Sequence[ClassSummary], of: Callable[[ClassSummary], Mapping[str, float]]
) -> dict[str, dict[str, float] | None]:
    return {name: _spread([of(one).get(name) for one in summaries]) for name in QUANTILES}


def _spread(values: Sequence[float | None]) -> dict[str, float] | None:
    known = [value for value in values if value is not None]
    return asdict(Spread.over(known)) if known else None


def lines(arms: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """A line for each class of each arm, and one above them.

    Args:
        arms: what `over_rounds` says of each.
    """
    rows = [list(HEAD)]
    for name, numbers in arms.items():
        for position, (class_name, one) in enumerate(numbers["classes"].items()):
            rows.append(_class_row(name if position == 0 else "", class_name, one))
            rows[-1].append(cell(numbers["busy"], 100, "%") if position == 0 else "")
    return aligned(rows)


def _class_row(arm: str, class_name: str, one: Mapping[str, Any]) -> list[str]:
    outcomes = one["outcomes"]
    refused = [
        f" +{outcomes[outcome.label]} {outcome.label.replace('_', ' ')}"
        for outcome in Outcome
        if outcome not in (Outcome.SUCCESS, Outcome.UNANSWERED) and outcomes[outcome.label]
    ]
    return [
        arm,
        class_name,
        f"{outcomes[Outcome.SUCCESS.label]}{''.join(refused)}",
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


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Cells as lines of columns that begin at one place; all rows have the same number of them."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
