# SPDX-License-Identifier: Apache-2.0
"""Time by row count: the learned points and straight lines between them.

Law: geometry only. Points in, times and row counts out; it does not know where a point comes from. Every answer comes
from the points and costs their logarithm, the best rate their number once after a change; none is a search over rows.

No row count is slower than a larger one: a batch never gets faster by a row, but a point that was measured too high
would end the filling before it, so that it is never measured again.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from operator import truediv


class Curve:
    """Times in ns of row counts from the smallest to the largest point; those outside are unknown."""

    def __init__(self, max_rows: int) -> None:
        self._max_rows = max_rows
        self._rows: list[int] = []
        self._measured: list[int] = []
        self._times: list[int] = []  # of each point: the least that was measured there or with more rows
        self._time_per_row: float | None = None  # None after a change
        self._best_rows: dict[float, int] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def put(self, rows: int, time: int) -> None:
        """Let the curve pass through this point, in place of the one of as many rows."""
        at = bisect_left(self._rows, rows)
        if at == len(self._rows) or self._rows[at] != rows:
            self._rows.insert(at, rows)
            self._measured.insert(at, time)
            self._times.insert(at, 0)
        self._measured[at] = time
        self._level(at)

    def drop(self, rows: int) -> None:
        """Forget the point of this many rows, if there is one."""
        at = bisect_left(self._rows, rows)
        if at < len(self._rows) and self._rows[at] == rows:
            del self._rows[at], self._measured[at], self._times[at]
            self._level(at - 1)

    def time(self, rows: int) -> int | None:
        """Expected time of this many rows, ns; None where it is unknown."""
        known = len(self._rows) > 0 and self._rows[0] <= rows <= self._rows[-1]
        return self._time(rows) if known else None

    def least(self, rows: int) -> int:
        """A time in ns that so many rows need at the least, where none is measured, too; 0 while there is no point.

        Time is taken to be in proportion below the smallest point, and to grow no more above the largest.
        """
        if not self._rows:
            return 0
        if rows < self._rows[0]:
            return self._times[0] * rows // self._rows[0]
        return self._time(rows) if rows < self._rows[-1] else self._times[-1]

    def time_per_row(self) -> float | None:
        """The least, ns; None without points. Of a straight line it is least at an end, so a point has it."""
        if self._time_per_row is None:
            self._time_per_row = min(map(truediv, self._times, self._rows), default=None)
        return self._time_per_row

    def best_rows(self, efficiency: float) -> int:
        """Smallest row count whose rows per ns are within ``efficiency`` of the best; all while that is unknown."""
        least = self.time_per_row()
        if least is None or self._rows[-1] < self._max_rows:
            return self._max_rows
        if efficiency not in self._best_rows:
            enough = least / efficiency
            # Up to the point before this one nothing is good enough: the best of a straight line is at one of its ends.
            point = next(rows for at, rows in enumerate(self._rows) if self._times[at] / rows <= enough)
            self._best_rows[efficiency] = bisect_left(
                range(point), True, self._rows[0], key=lambda rows: self._time(rows) / rows <= enough
            )
        return self._best_rows[efficiency]

    def most_rows(self, rows: int, slowdown: float) -> int:
        """Most rows that take at most ``1 + slowdown`` times as long as ``rows``; all while nothing says otherwise."""
        alone = self.time(rows)
        if alone is None or self._times[-1] <= alone * (1 + slowdown):
            return self._max_rows
        return bisect_right(range(self._rows[-1]), alone * (1 + slowdown), rows, key=self._time) - 1

    def rows_within(self, time: int) -> int:
        """Most rows that take at most ``time`` ns; all while nothing says otherwise; 0 where one row takes longer.

        Below the smallest point time is taken to be in proportion: a guess that is too high becomes the next point.
        """
        if not self._rows or self._times[-1] <= time:
            return self._max_rows
        if self._times[0] > time:
            return max(self._rows[0] * time // self._times[0], min(self._rows[0] - 1, 1))
        return bisect_right(range(self._rows[-1]), time, self._rows[0], key=self._time) - 1

    def rows_beyond(self, time: int) -> int:
        """Most rows that by the line through the last two points within ``time`` ns take no longer; 0 = none but those.

        At most the first point that takes longer, since that one is to be doubted. With one point within, time is taken
        to be in proportion.
        """
        at = bisect_right(self._times, time)
        if at in (0, len(self._rows)):
            return 0
        rows, longest = self._rows[at - 1], self._times[at - 1]
        fewer, shorter = (self._rows[at - 2], self._times[at - 2]) if at > 1 else (0, 0)
        most = self._rows[at]
        if longest > shorter:
            most = min(most, rows + (time - longest) * (rows - fewer) // (longest - shorter))
        return most if most > self.rows_within(time) else 0

    def _time(self, rows: int) -> int:
        above = bisect_left(self._rows, rows)
        if self._rows[above] == rows:
            return self._times[above]
        below = above - 1
        share = (rows - self._rows[below]) / (self._rows[above] - self._rows[below])
        time = self._measured[below] + share * (self._measured[above] - self._measured[below])
        return min(round(time), self._times[above])

    def _level(self, last: int) -> None:
        """Renew the times of the points up to ``last``, as far down as they change."""
        self._time_per_row = None
        self._best_rows.clear()
        for at in range(last, -1, -1):
            larger = self._times[at + 1] if at + 1 < len(self._times) else self._measured[at]
            time = min(self._measured[at], larger)
            if self._times[at] == time:
                break
            self._times[at] = time
