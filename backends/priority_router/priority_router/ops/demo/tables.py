# SPDX-License-Identifier: Apache-2.0
"""The measured numbers as people read them, the same in text and page. Law: measurements in, words out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from priority_router.ops.bench.arms import ARMS
from priority_router.ops.bench.stats import ClassSummary, RoundSummary, errors_among
from priority_router.ops.bench.wire import Outcome
from priority_router.ops.demo.measurements import Classified, Results, ms_per_row
from priority_router.ops.demo.verdict import JUDGED, WITHOUT_ROUTER, shifted, too_late
from priority_router.ops.loads import ONLINE

OUTCOMES: Final = ("answered", "waiting", "failed", "rows/s")
TIMES: Final = {"p50": "p50_ms", "p95": "p95_ms", "p99": "p99_ms"}
EXECUTOR: Final = ("busy", "rows per batch", "ms per row")

LATENCY_MEANS: Final = (
    "The same arrivals on each arm; latency in ms from the scheduled time to the reply, of answered requests."
)
ROUTER_ADDS: Final = f"What the router adds is the difference between {JUDGED} and {WITHOUT_ROUTER}."

SURE_SCORE: Final = 0.5
"""From here on the model's authors take the most likely type of most files for the answer."""

_LONGEST_NAME: Final = 42
_FAILURES_SHOWN: Final = 3


def of_class(one: ClassSummary) -> Mapping[str, str]:
    """By the names in ``OUTCOMES`` and ``TIMES``; "-" for a time where nothing was answered."""
    return {
        "answered": str(one.outcomes[Outcome.SUCCESS.label]),
        "waiting": str(one.outcomes[Outcome.UNANSWERED.label]),
        "failed": str(errors_among(one.outcomes)),
        "rows/s": f"{one.rows_per_s:.1f}",
        **{name: f"{one.latency[key]:.0f}" if key in one.latency else "-" for name, key in TIMES.items()},
    }


def of_executor(summary: RoundSummary) -> Mapping[str, str]:
    """By the names in ``EXECUTOR``; "?" for what is unknown."""
    cost = ms_per_row(summary)
    return {
        "busy": "?" if summary.busy is None else f"{summary.busy:.0%}",
        "rows per batch": "?" if summary.mean_batch is None else f"{summary.mean_batch:.1f}",
        "ms per row": "?" if cost is None else f"{cost:.1f}",
    }


def of_file(one: Classified) -> Mapping[str, str]:
    """A file's name, label (with a question mark below SURE_SCORE) and score, and its ms in router and executor."""
    return {
        "file": _short(one.path),
        "label": one.label if one.score >= SURE_SCORE else f"{one.label}?",
        "score": f"{one.score:.1%}",
        "router": f"{one.queue_us / 1e3:.1f}",
        "executor": f"{one.executor_us / 1e3:.1f}",
    }


def files_mean(results: Results) -> str:
    """How the files were classified, and what a question mark means where there is one."""
    unsure = any(one.score < SURE_SCORE for one in results.classified)
    means = f" (?: the model is less than {SURE_SCORE:.0%} sure)" if unsure else ""
    return f"through the router, class {ONLINE}, while background work was still queued{means}"


def meanings(results: Results) -> Mapping[str, str]:
    """What each arm is, by its name."""
    return {name: ARMS[name].meaning for name in results.arms}


def warnings(results: Results) -> list[str]:
    """What a reader must know before believing the numbers."""
    found = []
    for name, summary in results.arms.items():
        found += [text for text in (shifted(results, name), too_late(results, name)) if text]
        found += [
            f"{name}: {failure['count']} failed: {failure['text']} (status {failure['status']})"
            for failure in summary.failures[:_FAILURES_SHOWN]
        ]
    return found


def _short(path: Path) -> str:
    name, half = path.name, _LONGEST_NAME // 2 - 1
    return name if len(name) <= _LONGEST_NAME else f"{name[:half]}…{name[-half:]}"
