# SPDX-License-Identifier: Apache-2.0
"""How long before the executor is free a dispatch must leave the router (rule 3).

Law: observed delays in, one duration out.

The way from the decision to the executor call is seen directly. The rest, from there into Triton's queue and the
answer's way back, is not, and its cost hides in the learned times themselves. It is found by comparison: if dispatches
that were sent with little time to spare last longer than those with much, and by as much as they had less, the lead is
too short.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from statistics import median_high
from typing import Final

from priority_router.core.values import MICROSECOND, MILLISECOND

SAMPLES: Final = 50
"""Delays remembered: enough for a p90, few enough to follow a change of load within seconds."""

SHORTEST: Final = 500 * MICROSECOND
"""The lead is never shorter: what a thread hand-over and Triton's own queue cost on an idle machine."""

UNKNOWN_WAY: Final = 1 * MILLISECOND
"""The way assumed before the first delay was seen."""

LONGEST_SHARE: Final = 2
"""The lead is at most this fraction (1/2) of the estimate. At 1/4 a 5 ms executor behind twice the usual delays was
busy 84 % of the time instead of 95 % (simulated)."""

PAIRS: Final = 64
"""Dispatches sent ahead that are compared."""

COMPARE_EVERY: Final = 8
"""Dispatches between two comparisons."""

TOO_SHORT: Final = 0.3
"""Lengthening per ns of missing spare time above which the lead grows."""

LONG_ENOUGH: Final = 0.1
"""The same, below which it shrinks: what is left is noise, and a shorter lead serves urgent arrivals better."""

STEP: Final = 100 * MICROSECOND
"""What one comparison adds to the allowance, or takes off."""


class Lead:
    """The time that a dispatch sent ahead needs to reach Triton's queue before the executor is free."""

    def __init__(self) -> None:
        self._recent: deque[int] = deque()
        self._order: list[int] = []
        self._way = UNKNOWN_WAY
        self._pairs: deque[tuple[int, int]] = deque(maxlen=PAIRS)
        self._until_comparison = COMPARE_EVERY
        self._allowance = 0

    def observe_way(self, delay: int) -> None:
        """Take in the time from a decision to the start of its executor call, ns."""
        self._recent.append(delay)
        insort(self._order, delay)
        if len(self._recent) > SAMPLES:
            del self._order[bisect_left(self._order, self._recent.popleft())]
        self._way = self._order[len(self._order) * 9 // 10]

    def observe_ahead(self, spare: int, took: int, estimate: int) -> None:
        """Take in how a dispatch sent ahead fared.

        Args:
            spare: ns between the start of its call and the moment the executor became free.
            took: ns the executor then needed for it.
            estimate: ns it was expected to need.
        """
        self._pairs.append((spare, took - estimate))
        self._until_comparison -= 1
        if self._until_comparison <= 0 and len(self._pairs) >= 2 * COMPARE_EVERY:
            self._until_comparison = COMPARE_EVERY
            self._compare(estimate)

    def before(self, estimate: int) -> int:
        """The lead in ns ahead of a completion of something expected to take ``estimate`` ns."""
        return max(SHORTEST, min(self._way + self._allowance, estimate // LONGEST_SHARE))

    def _compare(self, estimate: int) -> None:
        """Move the allowance by what the tighter half of the pairs lost against the roomier half."""
        pairs = sorted(self._pairs)
        tight, roomy = pairs[: len(pairs) // 2], pairs[len(pairs) // 2 :]
        spare = median_high(spare for spare, _ in roomy) - median_high(spare for spare, _ in tight)
        lost = median_high(excess for _, excess in tight) - median_high(excess for _, excess in roomy)
        if lost > TOO_SHORT * spare:
            self._allowance = min(self._allowance + STEP, estimate // LONGEST_SHARE)
        elif lost < LONG_ENOUGH * spare:
            self._allowance = max(self._allowance - STEP, 0)
