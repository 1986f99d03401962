# SPDX-License-Identifier: Apache-2.0
"""What the measurements say, in one sentence, and no more than they say.

Law: measurements in, findings and text out. What counts as a difference is said in the benchmark's ``paired``. That is
chance within one run; where the machine itself was disturbed there is no verdict.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from priority_router.ops.bench import words
from priority_router.ops.bench.paired import (
    BLOCK_SECONDS,
    LEAST_BLOCKS,
    Comparison,
    block_count,
    compare_latency,
    compare_rows,
)
from priority_router.ops.demo.measurements import Results, ms_per_row
from priority_router.ops.loads import BACKGROUND, ONLINE

JUDGED: Final = "router"
WITHOUT_ROUTER: Final = "levels+hooks"
"""What the router adds is the difference to this arm."""

WITHOUT_LEVELS: Final = "flat"

SHIFT_TO_REPORT: Final = 0.15
"""Rows cost up to a tenth more in batches of one than in full ones, which is no change of the machine."""

LATE_MS_TO_REPORT: Final = 10.0
"""A generator that is later than this adds visibly to what it measures."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The findings behind the sentence.

    Attributes:
        sentence: for people.
        online: by quantile, in ms, the router against the arm without it; empty without a verdict.
        background: rows/s, the router against each other arm that is judged; empty without a verdict.
    """

    sentence: str
    online: Mapping[str, Comparison]
    background: Mapping[str, Comparison]


def judge(results: Results) -> Verdict:
    """Compares the router with the arms without it."""
    if reason := _incomparable(results):
        return Verdict(f"No verdict: {reason}.", {}, {})
    router = results.requests[JUDGED]
    online = compare_latency([results.requests[WITHOUT_ROUTER][ONLINE]], [router[ONLINE]])
    background = {
        arm: compare_rows([results.requests[arm][BACKGROUND]], [router[BACKGROUND]])
        for arm in (WITHOUT_ROUTER, WITHOUT_LEVELS)
        if not shifted(results, arm)
    }
    return Verdict(sentence(online, background), online, background)


def sentence(online: Mapping[str, Comparison], background: Mapping[str, Comparison]) -> str:
    """The findings in words."""
    return f"Against {WITHOUT_ROUTER}, the {JUDGED} {words.latencies(ONLINE, online)}; {_background_words(background)}."


def shifted(results: Results, arm: str) -> str | None:
    """Says so when the machine's speed on an arm was not that of the capacity measurement."""
    now, then = ms_per_row(results.arms[arm]), results.capacity.ms_per_row
    if now is None or abs(now / then - 1) <= SHIFT_TO_REPORT:
        return None
    return (
        f"on {arm} a row took {now:.1f} ms instead of {then:.1f}: the machine's speed changed between the measurements"
    )


def too_late(results: Results, arm: str) -> str | None:
    """Says so when the generator could not keep the schedule on an arm."""
    late = results.arms[arm].late_p99_ms
    if late <= LATE_MS_TO_REPORT:
        return None
    return f"on {arm} requests were sent up to {late:.0f} ms late (p99): too few idle cores"


def _incomparable(results: Results) -> str | None:
    """Why there can be no verdict, or None."""
    for arm in (WITHOUT_ROUTER, JUDGED):
        requests = results.requests[arm][ONLINE]
        if not len(requests.answered):
            return f"no request of class {ONLINE} was answered on {arm}"
        if block_count(requests) < LEAST_BLOCKS:
            return f"{requests.window_s:g} s per arm are too short for one; it takes {LEAST_BLOCKS * BLOCK_SECONDS:g} s"
        if disturbed := shifted(results, arm) or too_late(results, arm):
            return f"{disturbed}; run it again while nothing else runs"
    return None


def _background_words(background: Mapping[str, Comparison]) -> str:
    return f"{BACKGROUND} " + " and ".join(f"{words.rows(one)} against {arm}" for arm, one in background.items())
