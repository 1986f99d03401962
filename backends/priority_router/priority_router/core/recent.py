# SPDX-License-Identifier: Apache-2.0
"""The worst of late, for numbers that must fall again once things are well.

Law: values with their times in, one number out.
"""

from __future__ import annotations

from typing import Final

from priority_router.core.values import SECOND

WINDOW: Final = 60 * SECOND
"""ns; a scrape interval is shorter as a rule, so no value is missed, and an alert ends two minutes after its cause."""


class RecentWorst:
    """The largest value of this window and the one before: of the last one to two minutes."""

    __slots__ = ("_before", "_current", "_window")

    def __init__(self) -> None:
        self._window = 0
        self._before = self._current = 0

    def add(self, value: int, now: int) -> None:
        """Take in a value of this moment."""
        self._turn(now)
        self._current = max(self._current, value)

    def read(self, now: int) -> int:
        """The largest; 0 where there was none."""
        self._turn(now)
        return max(self._before, self._current)

    def _turn(self, now: int) -> None:
        window = now // WINDOW
        if window != self._window:
            self._before = self._current if window == self._window + 1 else 0
            self._current = 0
            self._window = window
