# SPDX-License-Identifier: Apache-2.0
"""What was learned about how long the executor takes (rule 4).

Law: samples in, estimates out; every estimate is ready before it is asked for. Knows signatures and row counts, not
requests, levels or the clock.
"""

from __future__ import annotations

from bisect import insort
from collections import OrderedDict, deque
from collections.abc import Hashable

SAMPLES = 15
"""Samples behind a median: odd, and few enough to follow a model that changes speed within seconds."""

KEYS = 256
"""Signature and row count pairs remembered; past that the least recently learned is forgotten."""

TRIALS = 3
"""Dispatches that each trial row count is given: the first sample is dropped, two remain."""

TRIAL_AFTER = 4
"""Dispatches of a signature before smaller row counts are tried: a signature seen once is not worth it."""

VISIBLE = 128
"""A median that moved by less than this fraction (1/128) of itself leaves the curve as it is: drawing takes time."""

TRIAL_AGAIN = 500
"""Dispatches of a signature after which an old row count is tried anew, so that drift is noticed; under 1 % of them."""


class _Median:
    """Median of the last samples, the very first of all dropped (it pays for warm-up)."""

    __slots__ = ("_recent", "_warm", "order", "value")

    def __init__(self) -> None:
        self._recent: deque[int] = deque()
        self.order: list[int] = []
        self._warm = False
        self.value: int | None = None

    def add(self, sample: int) -> None:
        if not self._warm:
            self._warm = True
            return
        self._recent.append(sample)
        insort(self.order, sample)
        if len(self._recent) > SAMPLES:
            self.order.remove(self._recent.popleft())
        self.value = self.order[len(self.order) // 2]


class _Point:
    """One row count of a curve: its time, as learned and as last drawn, and how often and how lately it was sent."""

    __slots__ = ("drawn", "last_sent", "median", "sent")

    def __init__(self) -> None:
        self.median = _Median()
        self.drawn: int | None = None
        self.sent = 0
        self.last_sent = 0


class _Curve:
    """Time by row count, of one signature or of all together: the learned points and straight lines between them."""

    def __init__(self, max_rows: int) -> None:
        self._max_rows = max_rows
        self._efficient: dict[float, int] = {}
        self._sent = 0
        self.points: dict[int, _Point] = {}
        self.times: list[int | None] = [None] * (max_rows + 1)
        self.time_per_row: float | None = None

    def sent(self, rows: int) -> None:
        self._sent += 1
        point = self.points.setdefault(rows, _Point())
        point.sent += 1
        point.last_sent = self._sent

    def learn(self, rows: int, sample: int) -> None:
        point = self.points.setdefault(rows, _Point())
        point.median.add(sample)
        time = point.median.value
        if time is not None and (point.drawn is None or abs(time - point.drawn) * VISIBLE > point.drawn):
            self._redraw()

    def forget(self, rows: int) -> bool:
        """Forget one row count; returns whether any is left."""
        del self.points[rows]
        if self.points:
            self._redraw()
        return bool(self.points)

    def comparable(self) -> bool:
        """Whether at least two row counts have an estimate of their own."""
        return sum(point.median.value is not None for point in self.points.values()) > 1

    def best_rows(self, efficiency: float) -> int:
        """Smallest row count whose rows per ns are within ``efficiency`` of the best; all while that is unknown."""
        if self.times[self._max_rows] is None:
            return self._max_rows
        if efficiency not in self._efficient and self.time_per_row is not None:
            most = self.time_per_row / efficiency
            self._efficient[efficiency] = next(
                rows for rows, time in enumerate(self.times) if rows and time and time / rows <= most
            )
        return self._efficient[efficiency]

    def trial(self, available: int) -> int | None:
        """A row count below ``available`` that should be sent to learn its time, largest first; None = none.

        Powers of two are tried; the lines between them tell the rest.
        """
        if self._sent < TRIAL_AFTER or available < 2:
            return None
        rows = 1 << (available - 1).bit_length() - 1
        while rows:
            point = self.points.get(rows)
            if point is None or point.sent < TRIALS or self._sent - point.last_sent > TRIAL_AGAIN:
                return rows
            rows >>= 1
        return None

    def _redraw(self) -> None:
        self._efficient.clear()
        self.times = [None] * (self._max_rows + 1)
        below: tuple[int, int] | None = None
        for rows in sorted(self.points):
            time = self.points[rows].drawn = self.points[rows].median.value
            if time is None:
                continue
            if below is not None:
                for between in range(below[0] + 1, rows):
                    share = (between - below[0]) / (rows - below[0])
                    self.times[between] = round(below[1] + share * (time - below[1]))
            self.times[rows] = time
            below = (rows, time)
        self._level()

    def _level(self) -> None:
        """Let no row count seem slower than a larger one.

        A batch never gets faster by a row; but a point that was measured too high would end the filling before it, so
        that it is never measured again.
        """
        least: int | None = None
        for rows in range(self._max_rows, 0, -1):
            time = self.times[rows]
            if time is not None:
                least = time if least is None else min(least, time)
                self.times[rows] = least
        self.time_per_row = min((time / rows for rows, time in enumerate(self.times) if rows and time), default=None)


class ServiceTimes:
    """Learned execution times by signature and row count, falling back to row count, then to the model as a whole."""

    def __init__(self, max_rows: int) -> None:
        self._max_rows = max_rows
        self._by_signature: dict[Hashable, _Curve] = {}
        self._recent: OrderedDict[tuple[Hashable, int], None] = OrderedDict()
        self._any_signature = _Curve(max_rows)
        self._overall = _Median()

    def sent(self, signature: Hashable, rows: int) -> None:
        """Note that ``rows`` rows of this signature go to the executor, whether or not a sample comes of it."""
        curve = self._by_signature.get(signature)
        if curve is None:
            curve = self._by_signature[signature] = _Curve(self._max_rows)
        curve.sent(rows)
        key = (signature, rows)
        self._recent[key] = None
        self._recent.move_to_end(key)
        if len(self._recent) > KEYS:
            self._forget(*self._recent.popitem(last=False)[0])

    def learn(self, signature: Hashable, rows: int, sample: int) -> None:
        """Take in one execution of ``rows`` rows that took ``sample`` ns; under 1 ns counts as 1, for the rates."""
        sample = max(sample, 1)
        if (signature, rows) in self._recent:
            self._by_signature[signature].learn(rows, sample)
        self._any_signature.learn(rows, sample)
        self._overall.add(sample)

    def estimate(self, signature: Hashable, rows: int) -> int | None:
        """Expected execution time in ns; None while nothing at all is learned."""
        curve = self._by_signature.get(signature)
        if curve is not None and curve.times[rows] is not None:
            return curve.times[rows]
        if self._any_signature.times[rows] is not None:
            return self._any_signature.times[rows]
        return self._overall.value

    def efficient_rows(self, signature: Hashable, available: int, efficiency: float) -> int:
        """Rows a less urgent dispatch should have (rule 1), or a smaller number now and then to learn its time."""
        curve = self._by_signature.get(signature)
        if curve is not None:
            trial = curve.trial(available)
            if trial is not None:
                return trial
        return self._telling(curve).best_rows(efficiency)

    def fill_limit(self, signature: Hashable, rows: int, slowdown: float) -> int:
        """Most rows a dispatch of ``rows`` may grow to without taking over ``1 + slowdown`` times as long (rule 1)."""
        times = self._telling(self._by_signature.get(signature)).times
        alone = times[rows]
        if alone is None:
            return self._max_rows
        allowed = alone * (1 + slowdown)
        limit = rows
        for more in range(rows + 1, self._max_rows + 1):
            time = times[more]
            if time is not None and time > allowed:
                break
            limit = more
        return limit

    def spread(self, signature: Hashable, rows: int) -> list[int]:
        """The samples behind an estimate, shortest first; empty where it rests on none of its own row count."""
        for curve in (self._by_signature.get(signature), self._any_signature):
            point = curve.points.get(rows) if curve is not None else None
            if point is not None and point.median.value is not None:
                return point.median.order
        return []

    def cost(self, signature: Hashable, rows: int, efficiency: float) -> tuple[int, int, int]:
        """What a dispatch costs against efficient batches, in ns: zeros while that cannot be told.

        Returns:
            its time; what of it exceeds the time of as many rows at ``efficiency`` of the best rows/s; the time of a
            full batch at the best.
        """
        curve = self._telling(self._by_signature.get(signature))
        time, per_row = curve.times[rows], curve.time_per_row
        if time is None or per_row is None:
            return 0, 0, 0
        return time, max(0, round(time - rows * per_row / efficiency)), round(per_row * self._max_rows)

    def _telling(self, curve: _Curve | None) -> _Curve:
        """The signature's own curve once it can compare row counts, else that of all signatures together."""
        return curve if curve is not None and curve.comparable() else self._any_signature

    def _forget(self, signature: Hashable, rows: int) -> None:
        if not self._by_signature[signature].forget(rows):
            del self._by_signature[signature]
