# SPDX-License-Identifier: Apache-2.0
"""How sure a number is, and a difference between two arms with the same arrivals.

Law: pure. Requests that wait at the same time wait for each other, so seconds and not requests are drawn anew: blocks
of time within each round and, where there are several, rounds too (a block bootstrap; Künsch, Annals of Statistics
17(3), 1989). Two arms are drawn alike, which leaves the arrivals out of their difference.
"""

from __future__ import annotations

import enum
import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from priority_router.ops.bench.requests import Requests

QUANTILES: Final[Mapping[str, float]] = {"p50": 0.5, "p95": 0.95, "p99": 0.99}

BLOCK_SECONDS: Final = 1.0
"""Much longer than an online request is in the system, so that seconds are nearly independent."""

LEAST_SHARE: Final = 0.05
"""Of the earlier number. Smaller differences are left to chance: draws see few runs, not how two of one arm differ."""

LEAST_BLOCKS: Final = 10
"""With fewer, draws of them know too little of how seconds differ."""

JUDGED_CONFIDENCE: Final = 0.99
"""Of the intervals behind a verdict. It judges several differences, so that one in twenty may claim too much."""

SHOWN_CONFIDENCE: Final = 0.95
"""Of the intervals of single numbers."""

_DRAWS: Final = 2000
_SEED: Final = 1
_ROUNDS_SEED: Final = 2
LEAST_ROUNDS: Final = 3
"""From which the rounds alone say how much they differ."""

_STUDENT: Final = {3: 9.925, 4: 5.841, 5: 4.604, 6: 4.032, 7: 3.707, 8: 3.499, 9: 3.355, 10: 3.250}
"""By rounds the quantile of Student's t for JUDGED_CONFIDENCE; of more rounds that of the most."""
_MOST_GROUPS: Final = 4000
"""Latencies that a quantile is looked for among; of more, neighbours in rank are taken together."""

Rounds = Sequence[Requests]
"""One class on one arm: its requests in each round."""


class Finding(enum.Enum):
    """How the later number stands to the earlier one."""

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
class Interval:
    """A number and where it may lie; infinite where requests had no answer."""

    value: float
    low: float
    high: float


def compare_latency(before: Rounds, after: Rounds) -> dict[str, Comparison]:
    """Quantiles over all requests of a class on two arms with the same arrivals; what has no answer is the slowest."""
    draws = _draws(before)
    earlier, later = (_quantiles(one, draws) for one in (before, after))
    return {name: _comparison(earlier[name], later[name]) for name in QUANTILES}


def compare_rows(before: Rounds, after: Rounds) -> Comparison:
    """Rows answered per second while arrivals lasted, on two arms with the same arrivals."""
    draws = _draws(before)
    return _comparison(_rows_per_s(before, draws), _rows_per_s(after, draws))


def compare_in_time(before: Rounds, after: Rounds, target_ms: float | None) -> Comparison:
    """Share of the requests that were answered, within ``target_ms`` where there is one, on two arms."""
    draws = _draws(before)
    return _comparison(_in_time(before, draws, target_ms), _in_time(after, draws, target_ms))


def latency(rounds: Rounds) -> dict[str, Interval]:
    """Quantiles of the latencies of answered requests, ms; infinite without one."""
    found = _quantiles([one.successes() for one in rounds], _draws(rounds))
    return {name: _interval(values) for name, values in found.items()}


def rows_per_s(rounds: Rounds) -> Interval:
    """Rows answered per second while arrivals lasted."""
    return _interval(_rows_per_s(rounds, _draws(rounds)))


def in_time(rounds: Rounds, target_ms: float | None) -> Interval:
    """Share of the requests that were answered, within ``target_ms`` where there is one; 0 to 1, NaN without any."""
    return _interval(_in_time(rounds, _draws(rounds), target_ms))


def compare_rounds(
    before: Sequence[Interval], after: Sequence[Interval], *, alike: bool
) -> tuple[Comparison, Interval]:
    """A number on two runs, from what each of their rounds says of it; its mean over the rounds is compared.

    Rounds are drawn anew, and in each a number of its own interval. What varies within rounds varies between them too
    and so counts twice, which makes intervals wider rather than narrower. Where the arrivals are the same, much of that
    is common to both: from LEAST_ROUNDS rounds on how their ratios differ counts alone if that is less.

    Args:
        before: of each round of the earlier run, at least one, the number and its interval at SHOWN_CONFIDENCE.
        after: likewise of the later run.
        alike: as many rounds on both, each with the same arrivals; then they are drawn together.

    Returns:
        The comparison, and ``after / before`` with its interval at JUDGED_CONFIDENCE; NaN where ``before`` is 0.
    """
    earlier, later = _round_means(before, _ROUNDS_SEED), _round_means(after, _ROUNDS_SEED + 1)
    if not alike:
        # Draws of as many rounds are the same ones; in another order they have nothing to do with each other.
        later = np.concatenate([later[:1], later[:0:-1]])
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = later / earlier
    drawn = _comparison(earlier, later)
    shown = Interval(float(ratio[0]), *_ends(ratio[1:], JUDGED_CONFIDENCE))
    by = _half_width(before, after) if alike else math.inf
    if not 2 * by < shown.high - shown.low:
        return drawn, shown
    low, high = max(0.0, shown.value - by), shown.value + by
    return replace(drawn, low=(low - 1) * drawn.before, high=(high - 1) * drawn.before), replace(
        shown, low=low, high=high
    )


def _half_width(before: Sequence[Interval], after: Sequence[Interval]) -> float:
    """Of the JUDGED_CONFIDENCE interval of the ratio of sums, by what is left in each round (Cochran, Sampling
    Techniques, 6.4) and Student's t; infinite where that is not known."""
    count = len(before)
    earlier, later = (np.array([one.value for one in rounds]) for rounds in (before, after))
    if count < LEAST_ROUNDS or not np.isfinite([*earlier, *later]).all() or not earlier.sum():
        return math.inf
    left = later - later.sum() / earlier.sum() * earlier
    error = math.sqrt(float(left @ left) / (count * (count - 1))) / float(earlier.mean())
    return _STUDENT[min(count, max(_STUDENT))] * error


def _round_means(rounds: Sequence[Interval], seed: int) -> NDArray[np.float64]:
    """The mean over the rounds, as measured, which comes first, and as drawn."""
    draws, count = _drawn((1,) * len(rounds)), len(rounds)
    values = np.array([one.value for one in rounds])
    with np.errstate(invalid="ignore"):
        wide = np.array([one.high - one.low for one in rounds]) / (2 * NormalDist().inv_cdf((1 + SHOWN_CONFIDENCE) / 2))
        noise = np.random.default_rng(seed).standard_normal(draws.shape) * wide
        noise[0] = 0
        drawn: NDArray[np.float64] = np.where(draws > 0, draws * (values + noise), 0).sum(axis=1) / count
        if count > 1 and np.isfinite(drawn[0]):
            # Means of a few rounds drawn from themselves lie too near to each other.
            drawn = drawn[0] + (drawn - drawn[0]) * math.sqrt(count / (count - 1))
    return np.maximum(drawn, 0)


def block_count(requests: Requests) -> int:
    """Into how many blocks a round is cut."""
    return max(1, round(requests.window_s / BLOCK_SECONDS))


def _comparison(before: NDArray[np.float64], after: NDArray[np.float64]) -> Comparison:
    """From the values as measured, which come first, and as drawn."""
    with np.errstate(invalid="ignore"):
        difference = after[1:] - before[1:]
    low, high = _ends(difference, JUDGED_CONFIDENCE)
    return Comparison(float(before[0]), float(after[0]), low, high)


def _interval(values: NDArray[np.float64]) -> Interval:
    return Interval(float(values[0]), *_ends(values[1:], SHOWN_CONFIDENCE))


def _ends(drawn: NDArray[np.float64], confidence: float) -> tuple[float, float]:
    # Where a draw has no value anything is possible.
    unknown = np.isnan(drawn)
    tail = (1 - confidence) / 2
    low = np.quantile(np.where(unknown, -np.inf, drawn), tail, method="inverted_cdf")
    high = np.quantile(np.where(unknown, np.inf, drawn), 1 - tail, method="inverted_cdf")
    return float(low), float(high)


def _draws(rounds: Rounds) -> NDArray[np.float64]:
    """[1 + draws, blocks of all rounds] how often each block counts: once as measured, then as drawn."""
    return _drawn(tuple(block_count(one) for one in rounds))


@functools.lru_cache(maxsize=8)
def _drawn(blocks: tuple[int, ...]) -> NDArray[np.float64]:
    random = np.random.default_rng(_SEED)
    times = np.ones((_DRAWS, 1), np.int64)
    if len(blocks) > 1:
        times = random.multinomial(len(blocks), np.full(len(blocks), 1 / len(blocks)), size=_DRAWS)
    drawn = [random.multinomial(count * times[:, i], np.full(count, 1 / count)) for i, count in enumerate(blocks)]
    made = np.vstack([np.ones(sum(blocks)), np.hstack(drawn)])
    made.flags.writeable = False
    return made


def _blocks(rounds: Rounds, times: Sequence[NDArray[np.float64]]) -> NDArray[np.int64]:
    """[n] the block of each time, counted through all rounds."""
    found, first = [], 0
    for one, at_s in zip(rounds, times, strict=True):
        count = block_count(one)
        found.append(first + np.minimum((at_s * count / one.window_s).astype(np.int64), count - 1))
        first += count
    return np.concatenate(found)


def _per_block(rounds: Rounds, times: Sequence[NDArray[np.float64]]) -> NDArray[np.int64]:
    """[blocks] how many of the times lie in each block."""
    return np.bincount(_blocks(rounds, times), minlength=sum(map(block_count, rounds)))


def _rows_per_s(rounds: Rounds, draws: NDArray[np.float64]) -> NDArray[np.float64]:
    counts = _per_block(rounds, [one.answered_s for one in rounds])
    seconds = np.concatenate([np.full(block_count(one), one.window_s / block_count(one)) for one in rounds])
    answered: NDArray[np.float64] = (draws @ counts) / (draws @ seconds)
    return answered


def _in_time(rounds: Rounds, draws: NDArray[np.float64], target_ms: float | None) -> NDArray[np.float64]:
    limit = np.finfo(float).max if target_ms is None else target_ms
    asked = draws @ _per_block(rounds, [one.at_s for one in rounds])
    kept = draws @ _per_block(rounds, [one.at_s[one.latency_ms <= limit] for one in rounds])
    return np.divide(kept, asked, out=np.full(len(asked), np.nan), where=asked > 0)


def _quantiles(rounds: Rounds, draws: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    """By name the quantile in each draw: [draws], nearest rank, infinite without requests."""
    latencies = np.concatenate([one.latency_ms for one in rounds])
    blocks = _blocks(rounds, [one.at_s for one in rounds])
    order = np.argsort(latencies)
    count, groups = len(order), min(len(order), _MOST_GROUPS)
    group = np.arange(count) * groups // max(1, count)
    held = np.zeros((draws.shape[1], groups))
    np.add.at(held, (blocks[order], group), 1)
    last = np.append(np.flatnonzero(np.diff(group)), count - 1) if count else np.empty(0, np.int64)
    # One more, which is infinite, for draws without requests.
    ranked = np.append(latencies[order][last], np.inf)
    reached = np.cumsum(draws @ held, axis=1)
    total = reached[:, -1:] if groups else np.zeros((len(draws), 1))
    reached = np.column_stack([reached, total + 1])
    found = {}
    for name, share in QUANTILES.items():
        rank = np.maximum(np.ceil(share * total - 1e-9), 1)
        found[name] = ranked[(reached >= rank).argmax(axis=1)]
    return found
