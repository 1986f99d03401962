# SPDX-License-Identifier: Apache-2.0
"""What was learned about how long the executor takes (rule 4).

Law: samples in, estimates out. Knows signatures and row counts, not requests, levels or the clock.
"""

from __future__ import annotations

from bisect import insort
from collections import OrderedDict, deque
from collections.abc import Hashable

from priority_router.core.curve import Curve

SAMPLES = 15
"""Samples behind a median: odd, and few enough to follow a model that changes speed within seconds."""

KEYS = 256
"""Pairs of signature and row count remembered, and as many row counts of all signatures together; past that the least
recent one is forgotten. It is also the most points that a curve has."""

TRIALS = 3
"""Dispatches that each trial row count is given: the first sample is dropped, two remain."""

TRIAL_AFTER = 4
"""Dispatches of a signature before smaller row counts are tried: a signature seen once is not worth it."""

TRIAL_AGAIN = 500
"""Dispatches of a signature after which an old row count is tried anew, so that drift is noticed; under 1 % of them."""

DOUBTFUL = (5, 4)
"""From so many times the least time per row on, the time of a full batch may have come from one slow moment."""

UPPER = (9, 10)
"""Share of the samples that a time promised to more urgent work covers. A median would be exceeded every second time,
the longest sample would let one hiccup keep dispatches short until fifteen more are seen."""


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


class _RowCount:
    """What is known of one row count: its time, the last sample of it, and how often and how lately it was sent."""

    __slots__ = ("last_sample", "last_sent", "median", "sent")

    def __init__(self) -> None:
        self.median = _Median()
        self.last_sample = 0
        self.sent = 0
        self.last_sent = 0


class _History:
    """What was sent and learned of one signature, or of all together."""

    def __init__(self, max_rows: int, bounded: bool) -> None:
        self._max_rows = max_rows
        self._sent = 0
        self._again = TRIAL_AGAIN
        self._tried: tuple[int, int] | None = None
        self._bounded = bounded
        self._row_counts: OrderedDict[int, _RowCount] = OrderedDict()
        self.curve = Curve(max_rows)
        self.upper = Curve(max_rows)

    def counted(self) -> None:
        """One more dispatch was sent that concerns it."""
        self._sent += 1

    def sent(self, rows: int) -> None:
        self.counted()
        row_count = self._row_counts.setdefault(rows, _RowCount())
        row_count.sent += 1
        row_count.last_sent = self._sent

    def learn(self, rows: int, sample: int) -> None:
        row_count = self._row_counts.setdefault(rows, _RowCount())
        row_count.last_sample = sample
        median = row_count.median
        median.add(sample)
        if median.value is not None:
            self.curve.put(rows, median.value)
            if self._bounded:
                self.upper.put(rows, _nearly_always(median))
        if self._tried is not None and rows == self._tried[0] and sample <= self._tried[1]:
            self._again = 0
        self._row_counts.move_to_end(rows)

    def bound(self, bounded: bool) -> None:
        if bounded and not self._bounded:
            for rows, row_count in self._row_counts.items():
                if row_count.median.value is not None:
                    self.upper.put(rows, _nearly_always(row_count.median))
        self._bounded = bounded

    def keep(self, most: int) -> None:
        """Forget the row counts learned longest ago until at most so many are left."""
        while len(self._row_counts) > most:
            self.forget(next(iter(self._row_counts)))

    def forget(self, rows: int) -> bool:
        """Forget one row count; returns whether any is left."""
        del self._row_counts[rows]
        self.curve.drop(rows)
        self.upper.drop(rows)
        return len(self._row_counts) > 0

    def beyond(self, time: int) -> int:
        """More rows than were seen to keep to ``time`` ns, which should be tried now; 0 = none."""
        return self.upper.rows_beyond(time) if self._sent >= self._again else 0

    def tried(self, rows: int, time: int) -> bool:
        """Note such a dispatch; returns whether it is a try beyond ``time`` ns, after which the next waits."""
        if rows > self.beyond(time):
            return False
        self._again = self._sent + TRIAL_AGAIN
        self._tried = rows, time
        return True

    def samples(self, rows: int) -> list[int]:
        """Those behind the time of this row count, shortest first; empty while it has no time of its own."""
        return self._row_counts[rows].median.order if rows in self._row_counts else []

    def trial(self, available: int) -> int | None:
        """A row count up to ``available`` that should be sent to learn its time, largest first; None = none.

        Below it powers of two are tried; the lines between them tell the rest.
        """
        if self._sent < TRIAL_AFTER or available < 2:
            return None
        if available >= self._max_rows and self._doubts():
            return self._max_rows
        rows = 1 << (available - 1).bit_length() - 1
        while rows:
            row_count = self._row_counts.get(rows)
            if row_count is None or row_count.sent < TRIALS or self._sent - row_count.last_sent > TRIAL_AGAIN:
                return rows
            rows >>= 1
        return None

    def _doubts(self) -> bool:
        """Whether full batches, which seem a waste of time and so are no longer sent, should show it again now.

        The first of them may have met a slow moment. One that took half as long as they seem to is followed by more.
        """
        full, least = self._row_counts.get(self._max_rows), self.curve.time_per_row()
        if full is None or full.median.value is None or least is None:
            return False
        if full.median.value * DOUBTFUL[1] < least * self._max_rows * DOUBTFUL[0]:
            return False
        return 2 * full.last_sample <= full.median.value or self._sent - full.last_sent > TRIAL_AGAIN


def _nearly_always(median: _Median) -> int:
    return median.order[len(median.order) * UPPER[0] // UPPER[1]]


class ServiceTimes:
    """Learned execution times by signature and row count, falling back to row count, then to the model as a whole."""

    def __init__(self, max_rows: int, *, bounded: bool = False) -> None:
        """Starts empty; ``bounded`` learns also what is nearly always kept to."""
        self._max_rows = max_rows
        self._bounded = bounded
        self._by_signature: dict[Hashable, _History] = {}
        self._recent: OrderedDict[tuple[Hashable, int], None] = OrderedDict()
        self._any_signature = _History(max_rows, bounded)
        self._overall = _Median()

    def bound(self, *, bounded: bool) -> None:
        """Learn from now on what is nearly always kept to, too, from the samples that there are; or no longer."""
        self._bounded = bounded
        for history in (self._any_signature, *self._by_signature.values()):
            history.bound(bounded)

    def sent(self, signature: Hashable, rows: int) -> None:
        """Note that ``rows`` rows of this signature go to the executor, whether or not a sample comes of it."""
        history = self._by_signature.get(signature)
        if history is None:
            history = self._by_signature[signature] = _History(self._max_rows, self._bounded)
        history.sent(rows)
        self._any_signature.counted()
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
        self._any_signature.keep(KEYS)
        self._overall.add(sample)

    def estimate(self, signature: Hashable, rows: int) -> int | None:
        """Expected execution time in ns; None while nothing at all is learned."""
        for history in self._histories(signature):
            time = history.curve.time(rows)
            if time is not None:
                return time
        return self._overall.value

    def efficient_rows(self, signature: Hashable, available: int, efficiency: float) -> int:
        """Rows a less urgent dispatch should have (rule 1), or another number now and then to learn its time."""
        history = self._by_signature.get(signature)
        trial = history.trial(available) if history is not None else None
        return self.best_rows(signature, efficiency) if trial is None else trial

    def best_rows(self, signature: Hashable, efficiency: float) -> int:
        """The smallest row count that is efficient enough; all while nothing is learned."""
        return self._telling(signature).curve.best_rows(efficiency)

    def least(self, signature: Hashable, rows: int) -> int:
        """A time in ns that so many rows take together at the least, measured or not; 0 while nothing is learned."""
        own = self._by_signature.get(signature)
        return (self._any_signature.curve if own is None or not len(own.curve) else own.curve).least(rows)

    @property
    def samples(self) -> int:
        """Of the last executions, how many were learned from: ``SAMPLES`` at most."""
        return len(self._overall.order)

    def fill_limit(self, signature: Hashable, rows: int, slowdown: float) -> int:
        """Most rows a dispatch of ``rows`` may grow to without taking over ``1 + slowdown`` times as long (rule 1)."""
        return self._telling(signature).curve.most_rows(rows, slowdown)

    def rows_within(self, signature: Hashable, time: int, slowdown: float) -> int:
        """Most rows that nearly always take at most ``time`` ns; all while nothing is learned.

        Where one row takes longer nothing keeps to it, and fewer rows help no more: as many as take at most
        ``1 + slowdown`` times as long as one.
        """
        curve = self._telling(signature).upper
        return curve.rows_within(time) or curve.most_rows(1, slowdown)

    def rows_beyond(self, signature: Hashable, time: int) -> int:
        """More rows than that, which are worth a try now; 0 = none.

        Some that take too long by what was measured, although by the time of fewer they should not, are tried every
        ``TRIAL_AGAIN`` dispatches, and on and on while they keep to ``time`` ns: one slow moment must not rule them out
        for ever.
        """
        return self._telling(signature).beyond(time)

    def tried(self, signature: Hashable, rows: int, time: int) -> bool:
        """Note a dispatch, about to be sent, that should take ``time`` ns at most; returns whether it is such a try."""
        return self._telling(signature).tried(rows, time)

    def upper(self, signature: Hashable, rows: int) -> int | None:
        """A time in ns that is nearly always kept to; None while it is not learned."""
        return self._telling(signature).upper.time(rows)

    def spread(self, signature: Hashable, rows: int) -> list[int]:
        """The samples behind an estimate, shortest first; empty where it rests on none of its own row count."""
        for history in self._histories(signature):
            samples = history.samples(rows)
            if samples:
                return samples
        return []

    def cost(self, signature: Hashable, rows: int, efficiency: float) -> tuple[int, int, int]:
        """What a dispatch costs against efficient batches, in ns: zeros while that cannot be told.

        Returns:
            its time; what of it exceeds the time of as many rows at ``efficiency`` of the best rows/s; the time of a
            full batch at the best.
        """
        curve = self._telling(signature).curve
        time, per_row = curve.time(rows), curve.time_per_row()
        if time is None or per_row is None:
            return 0, 0, 0
        return time, max(0, round(time - rows * per_row / efficiency)), round(per_row * self._max_rows)

    def _histories(self, signature: Hashable) -> list[_History]:
        """The signature's own, if there is one, then that of all signatures together."""
        own = self._by_signature.get(signature)
        return [self._any_signature] if own is None else [own, self._any_signature]

    def _telling(self, signature: Hashable) -> _History:
        """The signature's own once it can compare row counts, else that of all signatures together."""
        history = self._histories(signature)[0]
        return history if len(history.curve) > 1 else self._any_signature

    def _forget(self, signature: Hashable, rows: int) -> None:
        if not self._by_signature[signature].forget(rows):
            del self._by_signature[signature]
