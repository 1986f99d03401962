# SPDX-License-Identifier: Apache-2.0
"""How long a request will wait at the least (docs/policies.md, early refusal).

Law: books of the work that waits, by learned times, and one moment out: the earliest at which the executor can start a
request. Only what is there counts, never what may still come, and only what will stay until it is served: a request
that may be answered at its queue timeout instead is left out, unless it was found to be in time itself. Of everything
that cannot be known the shorter is taken, since who is refused must be one who could not have been served.

Keeping the books costs the number of them, a prediction the number of instances and, where a class is not served in
order of arrival, of the short lists of its line.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from heapq import heapify, heapreplace
from itertools import pairwise, product
from typing import Final, NamedTuple

from priority_router.core.executor_model import ENOUGH_SAMPLES, ExecutorModel
from priority_router.core.lanes import Lanes
from priority_router.core.lines import Entry
from priority_router.core.service_times import ServiceTimes
from priority_router.core.shares import Shares
from priority_router.core.values import FairBy, Order, SchedulingPolicy, TimeoutAction, TrafficClass

REMEMBERED: Final = 64
"""Dispatches from which it is taken how full they get; after twice as many the older ones count half."""


class Work(NamedTuple):
    """What some requests need.

    Attributes:
        time: ns of executor time.
        dispatches: that it comes in.
    """

    time: float = 0.0
    dispatches: float = 0.0


class _Alike:
    """What one book holds of one signature, joined as the scheduler would join it.

    Attributes:
        rows: that wait.
        requests: that hold them.
        last: rows of the last dispatch that they make.
        others: ns of other work that had come when the first of that dispatch came.
        closed: dispatches that were full.
        closed_rows: of them.
        work: what they need.
        came: ns by which they made the book longer when they came, all that ever did.
    """

    __slots__ = ("came", "closed", "closed_rows", "last", "others", "requests", "rows", "work")

    def __init__(self) -> None:
        self.rows = self.requests = self.last = self.closed = self.closed_rows = self.others = self.came = 0
        self.work = Work()

    @property
    def single(self) -> bool:
        """Whether each request has one row."""
        return self.rows == self.requests

    def join(self, rows: int, enough: int, most: int, others: int) -> None:
        """A request comes: it joins the last dispatch while that has not ``enough`` rows and at most ``most`` then."""
        self.rows += rows
        self.requests += 1
        if 0 < self.last < enough and self.last + rows <= most:
            self.last += rows
            return
        self.others = others
        whole, rest = divmod(rows, most)
        self.closed += (self.last > 0) + whole
        self.closed_rows += self.last + whole * most
        self.last = rest
        if self.closed > 2 * REMEMBERED:
            self.closed //= 2
            self.closed_rows //= 2

    def full(self, enough: int) -> float:
        """Rows of one dispatch: ``enough`` where all have one row, else as many as fitted so far."""
        return enough if self.single or not self.closed else self.closed_rows / self.closed


class _Book:
    """Work of the requests that come before some others."""

    __slots__ = ("_alike", "_came", "_efficiency", "_most", "_times", "dispatches", "time")

    def __init__(self, times: ServiceTimes, most: int, efficiency: float | None) -> None:
        """Starts empty.

        Args:
            times: learned so far.
            most: rows of a dispatch.
            efficiency: at which a dispatch has rows enough; None = it takes all that fit.
        """
        self._times = times
        self._most = most
        self._efficiency = efficiency
        self._came = 0
        self._alike: dict[Hashable, _Alike] = {}
        self.time = 0.0
        self.dispatches = 0.0

    def of(self, signature: Hashable) -> _Alike:
        """What is alike; it must not be changed."""
        return self._alike.get(signature) or _Alike()

    def enough(self, signature: Hashable) -> int:
        """Rows at which a dispatch takes no more requests."""
        if self._efficiency is None:
            return self._most
        return min(self._most, self._times.best_rows(signature, self._efficiency))

    def add(self, signature: Hashable, rows: int) -> None:
        """A request comes."""
        alike = self._alike.get(signature)
        if alike is None:
            alike = self._alike[signature] = _Alike()
        alike.join(rows, self.enough(signature), self._most, self._came - alike.came)
        grown = max(0, round(self._renew(signature, alike)))
        alike.came += grown
        self._came += grown

    def take(self, signature: Hashable, rows: int) -> None:
        """A request goes."""
        alike = self._alike[signature]
        alike.rows -= rows
        alike.requests -= 1
        if not alike.requests:
            del self._alike[signature]
        self._renew(signature, alike)
        if not self._alike:
            self.time = self.dispatches = 0.0  # what rounding has left

    def before(self, signature: Hashable, rows: int, skipped: int = 0) -> Work:
        """Work before the start of a request that comes behind all.

        Args:
            signature: of it.
            rows: of it.
            skipped: rows like it which do not come before it.
        """
        alike = self._alike.get(signature)
        if alike is None:
            return Work(self.time, self.dispatches)
        others, between = self.time - alike.work.time, self.dispatches - alike.work.dispatches
        enough = self.enough(signature)
        last = alike.rows % enough if alike.single else alike.last
        joins = 0 < last < enough and last + rows <= self._most
        earlier = alike.rows - skipped - (last if joins else 0)
        if joins and others > 0:
            before = min(others, max(0.0, others - (self._came - alike.came - alike.others)))
            others, between = before, between * before / others
        own = self.work(signature, alike, max(0, earlier))
        return Work(others + own.time, between + own.dispatches)

    def work(self, signature: Hashable, alike: _Alike, rows: float) -> Work:
        """What so many rows need that come in requests like these."""
        full = alike.full(self.enough(signature))
        count, rest = divmod(rows, full)
        time = count * self._times.least(signature, round(full))
        if not rest:
            return Work(time, count)
        if alike.single or not count:
            return Work(time + self._times.least(signature, round(rest)), count + 1)
        return Work(time * rows / (count * full), rows / full)

    def _renew(self, signature: Hashable, alike: _Alike) -> float:
        """Take in that ``alike`` has changed; returns by how many ns the book has grown."""
        before = alike.work
        alike.work = self.work(signature, alike, alike.rows) if alike.rows else Work()
        self.dispatches += alike.work.dispatches - before.dispatches
        self.time += alike.work.time - before.time
        return alike.work.time - before.time


class Forecast:
    """The earliest start of requests, from who waits, what runs and what was learned.

    Attributes:
        classes: names of those that are refused early.
    """

    def __init__(self, policy: SchedulingPolicy, lanes: Lanes, executor: ExecutorModel, shares: Shares) -> None:
        self._policy = policy
        self._lanes = lanes
        self._executor = executor
        self._shares = shares
        self._counted: dict[int, tuple[tuple[_Book, ...], int]] = {}
        self._books_of: dict[tuple[str, bool, bool], tuple[_Book, ...]] = {}
        early = [each for each in policy.classes if refuses_early(each)]
        self.classes: Final = frozenset(each.name for each in early)
        top = lanes.most_urgent_level
        self._until = {each.level: self._book(each.level) for each in early}
        self._above = {level: self._book(level) for level in self._until if level > top}
        self._own = {each.name: self._book(each.level) for each in early if each.min_share}
        self._aged = {each.name: self._book(top) for each in early if each.max_wait and each.level > top}
        for each in policy.classes:
            for promoted, passed in product((False, True), repeat=2):
                books = tuple(self._come_before(each, promoted, passed))
                self._books_of[each.name, promoted, passed] = books

    def _book(self, level: int) -> _Book:
        top = level == self._lanes.most_urgent_level
        most, efficiency = max(self._policy.max_batch_size, 1), self._policy.batch_efficiency
        return _Book(self._executor.times, most, None if top else efficiency)

    def _come_before(self, traffic_class: TrafficClass, promoted: bool, passed: bool) -> list[_Book]:
        """The books in which some requests of a class stand: those of the newcomers whom they precede.

        Args:
            traffic_class: see above.
            promoted: they have waited as long as their class may.
            passed: those of their own level who come later may be served before them.
        """
        top = self._lanes.most_urgent_level
        level = top if promoted else traffic_class.level
        stays = promoted or not passed
        books = [book for at, book in self._until.items() if level < at or (level == at and stays)]
        books += [book for at, book in self._above.items() if level < at]
        books += [book for name, book in self._own.items() if name == traffic_class.name]
        books += [book for name, book in self._aged.items() if stays and (level == top or name == traffic_class.name)]
        return books

    # What waits.

    def add(self, entry: Entry) -> None:
        """Count a waiting request among the work ahead of those that come after it."""
        has_deadline = entry.deadline is not None
        delays = entry.traffic_class.timeout_action is TimeoutAction.DELAY
        if has_deadline and not delays and entry.predicted is None and not entry.next_row:
            return  # it may be answered at its queue timeout and never take any time
        books = self._books_of[entry.traffic_class.name, entry.promoted, has_deadline and delays]
        self._counted[entry.sequence] = books, entry.unsent
        for book in books:
            book.add(entry.request.signature, entry.unsent)

    def left(self, entry: Entry) -> None:
        """A request no longer waits."""
        counted = self._counted.pop(entry.sequence, None)
        if counted is not None:
            for book in counted[0]:
                book.take(entry.request.signature, counted[1])

    def moved(self, entry: Entry) -> None:
        """A request stands elsewhere from now on, or waits with fewer rows."""
        self.left(entry)
        self.add(entry)

    # When one can start.

    def start(self, entry: Entry, now: int) -> int | None:
        """The earliest start in ns of a request that has come just now; None where too little is learned."""
        if self._executor.times.samples < ENOUGH_SAMPLES:
            return None
        traffic_class = entry.traffic_class
        name, level, top = traffic_class.name, traffic_class.level, self._lanes.most_urgent_level
        until, above = self._until[level], self._above.get(level)
        moment = _done(self._executor.free_from(level, now), self._before(entry, until, above))
        if name in self._own or name in self._aged:
            free = self._executor.free_from(top, now)
            if name in self._own:
                missing = self._before(entry, self._own[name]).time - self._shares.owed(name)
                rate = traffic_class.min_share * self._policy.instances
                moment = min(moment, free[0] + max(0, round(missing / rate)))
            if name in self._aged:
                aged = _done(free, self._before(entry, self._aged[name]))
                moment = min(moment, max(entry.arrived + traffic_class.max_wait, aged))
        return moment

    def start_of_next(self, level: int, now: int) -> int:
        """The start in ns of a dispatch of this level that is sent now."""
        return self._executor.free_from(level, now)[0]

    def _before(self, entry: Entry, until: _Book, above: _Book | None = None) -> Work:
        """What is done before a request starts.

        Args:
            entry: the request.
            until: work up to the end of its own line.
            above: that part of it which is more urgent than its level.
        """
        signature, rows = entry.request.signature, entry.unsent
        urgent = _NOTHING if above is None else above.of(signature)
        # Of more urgent requests of several rows some may leave room in their dispatches, which it would take.
        skipped = 0 if urgent.single else urgent.rows
        traffic_class, others_of_class = entry.traffic_class, len(entry.line) - 1
        by_arrival = traffic_class.order is Order.ARRIVAL and traffic_class.fair_by is FairBy.NONE
        if by_arrival or not others_of_class:
            return until.before(signature, rows, skipped)
        # Else the part of its line that comes before it counts, taken to be as the whole.
        part = entry.line.before(entry) / others_of_class
        alike = until.of(signature)
        earlier = round(urgent.rows - skipped + part * (alike.rows - urgent.rows), ndigits=3)
        own = until.work(signature, alike, earlier - earlier % until.enough(signature)) if earlier else Work()
        urgent_others = 0.0 if above is None else above.time - urgent.work.time
        others = until.time - alike.work.time
        if others < 1:
            return own
        before = urgent_others + part * (others - urgent_others)
        if alike.work.time:
            before *= own.time / alike.work.time  # it starts with those before it, who stand evenly between the others
        return Work(own.time + before, own.dispatches + before / others * (until.dispatches - alike.work.dispatches))


_NOTHING: Final = _Alike()


def _done(free: Sequence[int], work: Work) -> int:
    """The earliest moment in ns at which a dispatch can follow some work.

    Args:
        free: when each instance is free, ascending.
        work: its dispatches are taken to be equally long.
    """
    time, dispatches = work
    if len(free) == 1 or not 1 <= dispatches <= time:
        return free[0] + round(time / len(free))
    each = max(1, round(time / dispatches))
    left = round(dispatches)
    # All that surely starts before this moment is given out at once, what is left one by one.
    until = _level(free, time - len(free) * each)
    starts = []
    for moment in free:
        begun = max(0, -(-(until - moment) // each))
        starts.append(moment + begun * each)
        left -= begun
    heapify(starts)
    for _ in range(left):
        heapreplace(starts, starts[0] + each)
    return starts[0]


def _level(free: Sequence[int], time: float) -> int:
    """The moment by which instances that are free from then on have worked for so long together."""
    for count, (moment, following) in enumerate(pairwise(free), start=1):
        if time <= count * (following - moment):
            return moment + round(max(0.0, time) / count)
        time -= count * (following - moment)
    return free[-1] + round(time / len(free))


def refuses_early(traffic_class: TrafficClass) -> bool:
    """Whether requests of a class may be refused by prediction."""
    return traffic_class.reject_predicted_late and traffic_class.timeout_action is TimeoutAction.REJECT
