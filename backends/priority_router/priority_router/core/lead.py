# SPDX-License-Identifier: Apache-2.0
"""How long before the executor is free a dispatch must leave the router (rule 3).

Law: observed delays in, one duration out.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque

from priority_router.core.values import MICROSECOND, MILLISECOND

SAMPLES = 50
"""Delays remembered: enough for a p90, few enough to follow a change of load within seconds."""

SHORTEST = 500 * MICROSECOND
"""The lead is never shorter: what a thread hand-over and Triton's own queue cost on an idle machine."""

UNKNOWN_WAY = 1 * MILLISECOND
"""The way assumed before the first delay was seen."""

LONGEST_SHARE = 4
"""The lead is at most this fraction (1/4) of the estimate: past that late binding would bind early."""

GROWTH_STEP = 100 * MICROSECOND
"""What one late send adds to the allowance."""

LATE_EXCESS = 0.02
"""A dispatch this share longer than its estimate, sent with little time to spare, counts as lengthened by that."""

DECAY = 0.98
"""What every dispatch that was not late leaves of the allowance, so that a burst of lateness is forgotten."""


class Lead:
    """The time that a dispatch sent ahead needs to reach Triton's queue before the executor is free."""

    def __init__(self) -> None:
        self._recent: deque[int] = deque()
        self._order: list[int] = []
        self._way = UNKNOWN_WAY
        self._allowance = 0.0

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
        if spare < self.before(estimate) and took > estimate * (1 + LATE_EXCESS):
            self._allowance += GROWTH_STEP
        else:
            self._allowance *= DECAY

    def before(self, estimate: int) -> int:
        """The lead in ns ahead of a completion of something expected to take ``estimate`` ns."""
        return max(SHORTEST, min(self._way + round(self._allowance), estimate // LONGEST_SHARE))
