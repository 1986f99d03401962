# SPDX-License-Identifier: Apache-2.0
"""Who waits, and in which order.

Law: order only. A lane holds one level; a smaller level is served first, within a lane the unexpired come before the
delayed. Classes that share a lane take turns in order of arrival; who takes the turn of a class is for its line to say.
Every operation costs the number of classes of a level and at most the logarithm of the number of waiting requests.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from operator import itemgetter
from typing import Protocol

from priority_router.core.ledger import Ledger
from priority_router.core.lines import Entry, Line
from priority_router.core.tenants import fair_queue
from priority_router.core.values import FairBy, Order, SchedulingPolicy, TrafficClass


class Watch(Protocol):
    """Who is told where requests go."""

    def left(self, entry: Entry) -> None:
        """It no longer waits."""

    def moved(self, entry: Entry) -> None:
        """It stands elsewhere."""


class Lane:
    """All waiting requests of one level.

    Attributes:
        level: see above.
        fresh: the lines of the unexpired, by class.
        delayed: those of the delayed, which get their turns when they expire.
        promoted: in the most urgent lane, lines of those who have waited as long as their class may, whatever its level
            or order; their turns are among the unexpired.
    """

    __slots__ = ("_first", "delayed", "fresh", "level", "promoted")

    def __init__(
        self, level: int, classes: Sequence[TrafficClass], promoted: Iterable[str], ledgers: Mapping[str, Ledger]
    ) -> None:
        self.level = level
        self.fresh = {each.name: _line(each.order, ledgers.get(each.name)) for each in classes}
        self.delayed = {each.name: _line(Order.ARRIVAL, ledgers.get(each.name)) for each in classes}
        self.promoted = {name: Line() for name in promoted}
        self._first = [*self.fresh.values(), *self.promoted.values()]

    def head(self) -> Entry | None:
        """The request that this level serves next."""
        return _first(self._first) or _first(self.delayed.values())

    def holds(self, signature: Hashable) -> bool:
        """Whether a request of this signature waits."""
        return any(line.holds(signature) for lines in (self._first, self.delayed.values()) for line in lines)

    def of_signature(self, signature: Hashable) -> Iterator[Entry]:
        """Waiting requests of one signature in serving order; do not change the lane while iterating."""
        yield from _merged(self._first, signature)
        yield from _merged(self.delayed.values(), signature)


class Lanes:
    """Every waiting request: a lane per level, most urgent first, and what waits of each class.

    Attributes:
        waiting: requests, per class.
        waiting_bytes: their bytes, per class.
        watch: is told of every request that leaves or moves, if anybody is.
    """

    def __init__(self, policy: SchedulingPolicy, before: Lanes | None = None) -> None:
        """Starts empty; the ledgers of ``before``, and its count of delays, go on where the policy still has them."""
        levels = sorted({c.level for c in policy.classes})
        ledgers: Mapping[str, Ledger] = {} if before is None else before._ledgers
        self._ledgers: dict[str, Ledger] = {
            c.name: ledgers.get(c.name) or Ledger() for c in policy.classes if c.fair_by is FairBy.TENANT
        }
        aging = [c.name for c in policy.classes if c.max_wait]
        self._lanes = [
            Lane(
                level,
                [c for c in policy.classes if c.level == level],
                aging if level == levels[0] else (),
                self._ledgers,
            )
            for level in levels
        ]
        self._by_level = {lane.level: lane for lane in self._lanes}
        self._count = 0
        self._delays: int = 0 if before is None else before._delays
        self.watch: Watch | None = None
        self.waiting = {c.name: 0 for c in policy.classes}
        self.waiting_bytes = {c.name: 0 for c in policy.classes}

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Lane]:
        """Lanes, most urgent first."""
        return iter(self._lanes)

    @property
    def most_urgent_level(self) -> int:
        """The smallest level of the policy, whether or not anything waits there."""
        return self._lanes[0].level

    def head(self) -> Entry | None:
        """Who is served next: the first of the most urgent level with work."""
        for lane in self._lanes:
            head = lane.head()
            if head is not None:
                return head
        return None

    def lines_of(self, traffic_class: TrafficClass) -> list[Line]:
        """Where requests of a class may stand, in serving order."""
        name, lane = traffic_class.name, self._by_level[traffic_class.level]
        lines = [lane.fresh[name], lane.delayed[name]]
        return [self._lanes[0].promoted[name], *lines] if traffic_class.max_wait else lines

    def from_level(self, level: int) -> Iterator[Lane]:
        """Lanes of this level and the less urgent ones, in order."""
        return (lane for lane in self._lanes if lane.level >= level)

    def more_urgent_than(self, level: int) -> Iterator[Lane]:
        """Lanes strictly more urgent than this level."""
        return (lane for lane in self._lanes if lane.level < level)

    def add(self, entry: Entry) -> None:
        """Queue a new request at the end of its class."""
        self.open_account(entry)
        self._by_level[entry.level].fresh[entry.traffic_class.name].add(entry, entry.sequence)
        self._note(entry)

    def open_account(self, entry: Entry) -> None:
        """Let somebody pay for a request that begins to wait in its class, where that is shared."""
        ledger = self._ledgers.get(entry.traffic_class.name)
        if ledger is not None:
            entry.account = ledger.begins(entry.request.tenant)

    def next_delay(self) -> int:
        """The place among the delayed of one that is delayed now."""
        self._delays += 1
        return self._delays

    def readmit(self, entries: Iterable[Entry]) -> None:
        """Queue requests that waited under another policy, in lanes without any; each has its place and its account."""
        homes: dict[Line, list[Entry]] = {}
        for entry in entries:
            name, lane = entry.traffic_class.name, self._by_level[entry.level]
            lines = lane.promoted if entry.promoted else lane.delayed if entry.expired else lane.fresh
            homes.setdefault(lines[name], []).append(entry)
            self._note(entry)
        for line, those in homes.items():
            line.readmit(those)

    def charge(self, picks: Iterable[tuple[Entry, int]], row_time: float) -> None:
        """Let the tenants of those who wait pay for rows that are sent, ns each, before any is taken out."""
        if self._ledgers:
            for entry, rows in picks:
                ledger = self._ledgers.get(entry.traffic_class.name)
                if ledger is not None:
                    ledger.charge(entry.account, rows, row_time)

    def serve(self, entry: Entry) -> None:
        """Take out a request whose last row is sent, and free its place in its class."""
        entry.line.serve(entry)
        self._forget(entry)

    def remove(self, entry: Entry) -> None:
        """Take out a request that ends without being sent to its end, and free its place in its class."""
        entry.line.leave(entry)
        self._forget(entry)

    def delay(self, entry: Entry) -> None:
        """Move a request behind the unexpired work of its level."""
        entry.line.leave(entry)
        self._by_level[entry.level].delayed[entry.traffic_class.name].add(entry, self.next_delay())
        if self.watch is not None:
            self.watch.moved(entry)

    def promote(self, entry: Entry) -> None:
        """Move a request to its turn by arrival among the most urgent; those of one class come in order of arrival."""
        entry.line.leave(entry)
        entry.promoted, entry.level = True, self.most_urgent_level
        self._lanes[0].promoted[entry.traffic_class.name].add(entry, entry.sequence)
        if self.watch is not None:
            self.watch.moved(entry)

    def _note(self, entry: Entry) -> None:
        self.waiting[entry.traffic_class.name] += 1
        self.waiting_bytes[entry.traffic_class.name] += entry.request.size
        self._count += 1

    def _forget(self, entry: Entry) -> None:
        self.waiting[entry.traffic_class.name] -= 1
        self.waiting_bytes[entry.traffic_class.name] -= entry.request.size
        self._count -= 1
        ledger = self._ledgers.get(entry.traffic_class.name)
        if ledger is not None:
            ledger.ends(entry.account)
        if self.watch is not None:
            self.watch.left(entry)


def _line(order: Order, ledger: Ledger | None) -> Line:
    return Line(order) if ledger is None else Line(queue=fair_queue(ledger, order))


def _first(lines: Iterable[Line]) -> Entry | None:
    """Who takes the first turn of several lines."""
    earliest: Line | None = None
    for line in lines:
        if len(line) and (earliest is None or line.turn() < earliest.turn()):
            earliest = line
    return None if earliest is None else earliest.first()


def _merged(lines: Iterable[Line], signature: Hashable) -> Iterator[Entry]:
    """All of one signature in several lines, turn by turn."""
    turns = [line.turns(signature) for line in lines if line.holds(signature)]
    return map(itemgetter(1), turns[0] if len(turns) == 1 else merge(*turns))
