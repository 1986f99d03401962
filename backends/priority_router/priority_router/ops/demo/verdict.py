# SPDX-License-Identifier: Apache-2.0
"""What the measurements say, in one sentence, and no more than they say.

Law: measurements in, findings and text out. Two arms saw the same arrivals, so they are compared block by block of
time: blocks are drawn anew, the same for both (a paired block bootstrap; Künsch, Annals of Statistics 17(3), 1989), and
a difference counts when an interval over the draws leaves 0 out. That is chance within one run; where the machine
itself was disturbed there is no verdict.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from priority_router.ops.demo.measurements import Requests, Results, ms_per_row
from priority_router.ops.loads import BACKGROUND, ONLINE

JUDGED: Final = "router"
WITHOUT_ROUTER: Final = "levels+hooks"
"""What the router adds is the difference to this arm."""

WITHOUT_LEVELS: Final = "no-levels"

JUDGED_QUANTILES: Final[Mapping[str, float]] = {"p50": 0.5, "p95": 0.95, "p99": 0.99}

BLOCK_SECONDS: Final = 1.0
"""Much longer than an online request is in the system, so that seconds are nearly independent."""

CONFIDENCE: Final = 0.99
"""Of each interval. Five differences are judged in one sentence, so that one sentence in twenty may claim too much."""

LEAST_SHARE: Final = 0.05
"""Of the earlier number. Smaller differences are left to chance: draws see one run, not how two of one arm differ."""

LEAST_BLOCKS: Final = 10
"""With fewer, draws of them know too little of how seconds differ."""

SHIFT_TO_REPORT: Final = 0.15
"""Rows cost up to a tenth more in batches of one than in full ones, which is no change of the machine."""

LATE_MS_TO_REPORT: Final = 10.0
"""A generator that is later than this adds visibly to what it measures."""

_DRAWS: Final = 2000
_SEED: Final = 1


class Finding(enum.Enum):
    """How the later arm stands to the earlier one."""

    LOWER = "lower"
    HIGHER = "higher"
    SAME = "no difference"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Comparison:
    """One number on two arms.

    Attributes:
        before: on the arm compared with; infinite where too few requests were answered for it to exist.
        after: on the judged arm.
        low: of ``after - before``, the lower end of the interval.
        high: the upper end.
    """

    before: float
    after: float
    low: float
    high: float

    @property
    def finding(self) -> Finding:
        """The claim that the numbers bear."""
        if not np.isfinite(self.before) and not np.isfinite(self.after):
            return Finding.UNKNOWN
        if self.low <= 0 <= self.high or abs(self.after - self.before) < LEAST_SHARE * self.before:
            return Finding.SAME
        return Finding.HIGHER if self.low > 0 else Finding.LOWER

    @property
    def change(self) -> float:
        """The difference as a share of ``before``."""
        return (self.after - self.before) / self.before


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
    online = compare_latency(results.requests[WITHOUT_ROUTER][ONLINE], router[ONLINE])
    background = {
        arm: compare_rows(results.requests[arm][BACKGROUND], router[BACKGROUND])
        for arm in (WITHOUT_ROUTER, WITHOUT_LEVELS)
        if not shifted(results, arm)
    }
    return Verdict(sentence(online, background), online, background)


def sentence(online: Mapping[str, Comparison], background: Mapping[str, Comparison]) -> str:
    """The findings in words."""
    return f"{_online_words(online)}; {_background_words(background)}."


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


def compare_latency(before: Requests, after: Requests) -> dict[str, Comparison]:
    """Quantiles over all requests of a class on two arms with the same arrivals; what has no answer is the slowest."""
    draws = _draws(before)
    earlier, later = (_quantiles(one, draws) for one in (before, after))
    return {name: _comparison(earlier[name], later[name]) for name in JUDGED_QUANTILES}


def compare_rows(before: Requests, after: Requests) -> Comparison:
    """Rows answered per second while arrivals lasted, on two arms with the same arrivals."""
    draws = _draws(before)
    earlier, later = (
        draws @ np.bincount(_blocks(one, one.answered_s), minlength=draws.shape[1]) / one.window_s
        for one in (before, after)
    )
    return _comparison(earlier, later)


def _comparison(before: NDArray[np.float64], after: NDArray[np.float64]) -> Comparison:
    """From the values as measured, which come first, and as drawn."""
    with np.errstate(invalid="ignore"):
        difference = after[1:] - before[1:]
    # Where neither draw has a value anything is possible.
    unknown = np.isnan(difference)
    tail = (1 - CONFIDENCE) / 2
    low = np.quantile(np.where(unknown, -np.inf, difference), tail, method="inverted_cdf")
    high = np.quantile(np.where(unknown, np.inf, difference), 1 - tail, method="inverted_cdf")
    return Comparison(float(before[0]), float(after[0]), float(low), float(high))


def _draws(requests: Requests) -> NDArray[np.int64]:
    """[1 + draws, blocks] how often each block counts: once as measured, then as drawn."""
    blocks = _block_count(requests)
    drawn = np.random.default_rng(_SEED).multinomial(blocks, np.full(blocks, 1 / blocks), size=_DRAWS)
    return np.vstack([np.ones(blocks, np.int64), drawn])


def _block_count(requests: Requests) -> int:
    return max(1, round(requests.window_s / BLOCK_SECONDS))


def _blocks(requests: Requests, at_s: NDArray[np.float64]) -> NDArray[np.int64]:
    """[n] the block of each time."""
    count = _block_count(requests)
    return np.minimum((at_s * count / requests.window_s).astype(np.int64), count - 1)


def _quantiles(requests: Requests, draws: NDArray[np.int64]) -> dict[str, NDArray[np.float64]]:
    """By name the quantile in each draw: [draws], nearest rank, infinite without requests."""
    order = np.argsort(requests.latency_ms)
    ranked = np.append(requests.latency_ms[order], np.inf)
    reached = np.cumsum(draws[:, _blocks(requests, requests.at_s[order])], axis=1)
    # One more, which is infinite, for draws without requests.
    reached = np.column_stack([reached, reached[:, -1:] + 1 if len(order) else np.ones((len(draws), 1), np.int64)])
    wanted = {name: np.ceil(share * (reached[:, -1] - 1) - 1e-9) for name, share in JUDGED_QUANTILES.items()}
    return {name: ranked[(reached >= np.maximum(rank, 1)[:, None]).argmax(axis=1)] for name, rank in wanted.items()}


def _incomparable(results: Results) -> str | None:
    """Why there can be no verdict, or None."""
    for arm in (WITHOUT_ROUTER, JUDGED):
        requests = results.requests[arm][ONLINE]
        if not len(requests.answered):
            return f"no request of class {ONLINE} was answered on {arm}"
        if _block_count(requests) < LEAST_BLOCKS:
            return f"{requests.window_s:g} s per arm are too short for one; it takes {LEAST_BLOCKS * BLOCK_SECONDS:g} s"
        if disturbed := shifted(results, arm) or too_late(results, arm):
            return f"{disturbed}; run it again while nothing else runs"
    return None


def _online_words(online: Mapping[str, Comparison]) -> str:
    findings = {one.finding for one in online.values()}
    how = {
        (True, False): f"makes {ONLINE} requests faster",
        (False, True): f"makes {ONLINE} requests slower",
        (True, True): f"makes some {ONLINE} requests faster and others slower",
        (False, False): f"makes no difference to {ONLINE} requests beyond chance",
    }[Finding.LOWER in findings, Finding.HIGHER in findings]
    numbers = ", ".join(f"{name} {_latency_words(one)}" for name, one in online.items())
    return f"Against {WITHOUT_ROUTER}, the {JUDGED} {how}: {numbers}"


def _latency_words(one: Comparison) -> str:
    before, after = (
        f"{value:.0f} ms" if np.isfinite(value) else "without an answer" for value in (one.before, one.after)
    )
    match one.finding:
        case Finding.UNKNOWN:
            return "has no answer on either"
        case Finding.SAME:
            return f"no difference ({before} and {after})"
    share = f" ({one.change:+.0%})" if np.isfinite(one.change) else ""
    return f"{after} instead of {before}{share}"


def _background_words(background: Mapping[str, Comparison]) -> str:
    return f"{BACKGROUND} " + " and ".join(f"{_rows_words(one)} against {arm}" for arm, one in background.items())


def _rows_words(one: Comparison) -> str:
    if one.finding in (Finding.SAME, Finding.UNKNOWN):
        return f"has no difference in rows/s ({one.after:.1f} and {one.before:.1f})"
    word, of = ("gained", "on") if one.finding is Finding.HIGHER else ("lost", "of")
    share = f" ({abs(one.change):.0%})" if one.before else ""
    return f"{word} {abs(one.after - one.before):.1f} {of} {one.before:.1f} rows/s{share}"
