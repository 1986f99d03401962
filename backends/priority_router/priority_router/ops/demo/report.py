# SPDX-License-Identifier: Apache-2.0
"""The demonstration's results as text. Law: results in, text out."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from priority_router.ops.bench.arms import ARMS
from priority_router.ops.bench.stats import RoundSummary, errors_among
from priority_router.ops.bench.wire import Outcome
from priority_router.ops.demo.measurements import Capacity, Classified, Results

SHIFT_TO_REPORT: Final = 0.15
"""Rows cost up to a tenth more in batches of one than in full ones, which is no change of the machine."""

LATE_MS_TO_REPORT: Final = 10.0
"""A generator that is later than this adds visibly to what it measures."""

_ROW = "{:14}{:12}{:>9}{:>9}{:>8}{:>9}{:>10}{:>10}{:>10}"
_TIMES = ("p50_ms", "p95_ms", "p99_ms")


def as_text(results: Results) -> str:
    """Tables of what each class experienced on each arm and of the classified files, and what to beware of."""
    lines = [
        "The same arrivals on each arm; latency in ms from the scheduled time to the reply, of answered requests.",
        "",
        _ROW.format("arm", "class", "answered", "waiting", "failed", "rows/s", "p50", "p95", "p99"),
    ]
    for name, summary in results.arms.items():
        lines += _arm(name, summary)
    lines += ["", "What the executor did:", *(_executor(name, one) for name, one in results.arms.items())]
    lines += ["", *(f"  {name:14}{ARMS[name].meaning}" for name in results.arms)]
    lines += warnings(results)
    lines += ["", "Files classified through the router, class online, while background work was still queued:"]
    lines += [_classified(one) for one in results.classified]
    return "\n".join(lines)


def _arm(name: str, summary: RoundSummary) -> list[str]:
    lines = []
    for position, (class_name, one) in enumerate(summary.classes.items()):
        answered, waiting = one.outcomes[Outcome.SUCCESS.label], one.outcomes[Outcome.UNANSWERED.label]
        failed = errors_among(one.outcomes)
        times = [f"{one.latency[key]:.0f}" if key in one.latency else "-" for key in _TIMES]
        first = name if position == 0 else ""
        lines.append(_ROW.format(first, class_name, answered, waiting, failed, f"{one.rows_per_s:.1f}", *times))
    return lines


def _executor(name: str, summary: RoundSummary) -> str:
    busy = "?" if summary.busy is None else f"{summary.busy:.0%}"
    batch = "?" if summary.mean_batch is None else f"{summary.mean_batch:.1f}"
    return f"  {name:14}busy {busy}, {batch} rows per batch, {ms_per_row(summary) or 0:.1f} ms per row"


def warnings(results: Results) -> list[str]:
    """What a reader must know before believing the numbers."""
    found = []
    for name, summary in results.arms.items():
        found += _shift(name, results.capacity, summary)
        if summary.late_p99_ms > LATE_MS_TO_REPORT:
            found.append(
                f"{name}: requests were sent up to {summary.late_p99_ms:.0f} ms late (p99): too few idle cores"
            )
        found += [f"{name}: {f['count']} failed: {f['text']} (status {f['status']})" for f in summary.failures[:3]]
    return [f"warning: {text}" for text in found]


def _shift(name: str, capacity: Capacity, summary: RoundSummary) -> list[str]:
    now = ms_per_row(summary)
    if now is None or abs(now / capacity.ms_per_row - 1) <= SHIFT_TO_REPORT:
        return []
    return [
        f"{name}: a row took {now:.1f} ms instead of {capacity.ms_per_row:.1f}: the machine's speed changed between "
        "the measurements, compare with care"
    ]


def _classified(one: Classified) -> str:
    return (
        f"  {_short(one.path):44}{one.label:14}{one.score:6.1%}   "
        f"router {one.queue_us / 1e3:5.1f} ms, executor {one.executor_us / 1e3:5.1f} ms"
    )


def _short(path: Path) -> str:
    return path.name if len(path.name) <= 42 else path.name[:20] + "…" + path.name[-20:]
