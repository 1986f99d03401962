# SPDX-License-Identifier: Apache-2.0
"""What the referee writes down: who waits where, and in which order the rules want them served."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from operator import attrgetter

from conformance.tenant_books import TenantBooks
from priority_router.core.values import Dispatch, FairBy, Order, Request, SchedulingPolicy, TrafficClass


class Foul(AssertionError):
    """A decision that breaks a law; the text begins with the law's name."""


def law(holds: bool, name: str, text: str, *details: object) -> None:
    """``details`` go into ``text`` as with ``str.format``, and only when they are needed: these run a million times."""
    if not holds:
        raise Foul(f"{name}: {text.format(*details)}")


@dataclass(slots=True, eq=False)
class Record:
    """What the referee knows of one request."""

    request: Request
    traffic_class: TrafficClass
    place: int
    arrived: int
    deadline: int | None = None
    sent_rows: int = 0
    answered_rows: int = 0
    delayed: bool = False
    promoted_to: int | None = None
    expired: int = 0
    waits_on: bool = False
    account: Hashable = None
    turn: int = field(init=False)
    turn_alike: int = field(init=False)

    def __post_init__(self) -> None:
        self.turn = self.turn_alike = self.place

    @property
    def unsent(self) -> int:
        return self.request.rows - self.sent_rows

    @property
    def lane(self) -> tuple[int, bool]:
        return (self.level, self.delayed)

    @property
    def level(self) -> int:
        return self.traffic_class.level if self.promoted_to is None else self.promoted_to

    @property
    def queue(self) -> tuple[str, bool]:
        """Those with whom it shares turns."""
        return (self.traffic_class.name, self.promoted_to is not None)

    @property
    def by_deadline(self) -> bool:
        return self.traffic_class.order is Order.DEADLINE and self.promoted_to is None and not self.delayed

    @property
    def fair(self) -> bool:
        return self.traffic_class.fair_by is FairBy.TENANT and self.promoted_to is None


Records = OrderedDict[int, Record]


@dataclass(slots=True)
class Line:
    """Waiting requests of one level, unexpired or delayed, as they came into it; the same per signature."""

    everyone: Records = field(default_factory=OrderedDict)
    alike: dict[Hashable, Records] = field(default_factory=dict)

    def add(self, record: Record) -> None:
        self.everyone[record.request.id] = record
        self.alike.setdefault(record.request.signature, OrderedDict())[record.request.id] = record

    def remove(self, record: Record, served: bool) -> None:
        alike = self.alike[record.request.signature]
        if served and (record.by_deadline or record.fair):  # it takes the first turn of its class
            first = min((each for each in self.everyone.values() if each.queue == record.queue), key=_turn)
            first.turn = record.turn
            first = min((each for each in alike.values() if each.queue == record.queue), key=_turn_alike)
            first.turn_alike = record.turn_alike
        del self.everyone[record.request.id]
        del alike[record.request.id]
        if not alike:
            del self.alike[record.request.signature]


_turn: Callable[[Record], int] = attrgetter("turn")
_turn_alike: Callable[[Record], int] = attrgetter("turn_alike")


class Lines:
    """All that wait, in serving order."""

    def __init__(self, policy: SchedulingPolicy) -> None:
        levels = sorted({each.level for each in policy.classes})
        self._lines = {(level, delayed): Line() for level in levels for delayed in (False, True)}
        self.tenants = TenantBooks(policy)
        self._delays = 0
        self._mixed = self.tenants or any(each.order is Order.DEADLINE or each.max_wait for each in policy.classes)

    def add(self, record: Record) -> None:
        self._lines[record.lane].add(record)

    def remove(self, record: Record, *, served: bool = False) -> None:
        self._lines[record.lane].remove(record, served)

    def promote(self, record: Record) -> None:
        self.remove(record)
        record.delayed, record.promoted_to = False, min(level for level, _ in self._lines)
        record.turn = record.turn_alike = record.place
        self.add(record)

    def delay(self, record: Record) -> None:
        self.remove(record)
        self._mark_delayed(record)
        self.add(record)

    def _mark_delayed(self, record: Record) -> None:
        self._delays += 1
        record.delayed, record.expired = True, self._delays
        record.turn = record.turn_alike = record.expired

    def under(self, policy: SchedulingPolicy, now: int, default_class: str) -> Lines:
        """The same requests under another policy."""
        classes = {each.name: each for each in policy.classes}
        lines = Lines(policy)
        lines.tenants, lines._delays = self.tenants.under(policy), self._delays
        everyone = list(self.everyone())
        late = []
        for record in sorted(everyone, key=lambda each: each.place):
            before, after = record.traffic_class, classes.get(record.traffic_class.name, classes[default_class])
            was, aged = record.queue, after.max_wait and now >= record.arrived + after.max_wait
            record.traffic_class = after
            record.promoted_to = min(level for level, _ in lines._lines) if aged else None
            if (before.name, before.fair_by) != (after.name, after.fair_by):
                lines.tenants.enter(record)
            if record.waits_on and not aged and not record.delayed:
                late.append(record)
            record.delayed = record.delayed and not aged
            if record.queue != was or (before.order, before.fair_by) != (after.order, after.fair_by):
                record.turn = record.turn_alike = record.expired if record.delayed else record.place
        for record in sorted(late, key=lambda each: (each.deadline or 0, each.place)):
            lines._mark_delayed(record)
        for record in sorted(everyone, key=lambda each: each.expired if each.delayed else each.place):
            lines.add(record)
        return lines

    def holds(self, record: Record) -> bool:
        line = self._lines.get(record.lane)
        return line is not None and record.request.id in line.everyone

    def everyone(self) -> Iterator[Record]:
        for line in self._lines.values():
            yield from line.everyone.values()

    def first(self) -> Record | None:
        for line in self._lines.values():
            if line.everyone:
                return next(self._served(line.everyone, _turn))
        return None

    def first_of(self, traffic_class: TrafficClass) -> Record | None:
        """Whom a class sends first."""
        for promoted in (True, False) if traffic_class.max_wait else (False,):
            level = min(level for level, _ in self._lines) if promoted else traffic_class.level
            for line in (self._lines[level, False], self._lines[level, True]):
                own = (each for each in line.everyone.values() if each.queue == (traffic_class.name, promoted))
                first = next(own, None)
                if first is not None:
                    as_they_came = not (promoted or first.by_deadline or first.fair)
                    return first if as_they_came else next(self._taken([first, *own]))
        return None

    def alike(self, signature: Hashable) -> Iterator[tuple[int, Iterator[Record]]]:
        """Level by level, those of one signature."""
        for (level, _), line in self._lines.items():
            yield level, self._served(line.alike.get(signature, OrderedDict()), _turn_alike)

    def _served(self, records: Records, turn: Callable[[Record], int]) -> Iterator[Record]:
        """Turns go by arrival, or by expiry; a class may send another than the one whose turn it is."""
        if not self._mixed:
            return iter(records.values())
        own: dict[tuple[str, bool], list[Record]] = {}
        for record in records.values():
            own.setdefault(record.queue, []).append(record)
        taken = {queue: self._taken(those) for queue, those in own.items()}
        return (next(taken[record.queue]) for record in sorted(records.values(), key=turn))

    def _taken(self, own: list[Record]) -> Iterator[Record]:
        """Those of one class in its own order."""
        charges = self.tenants.of(own[0].traffic_class) if own[0].fair else None
        return iter(sorted(own, key=_place)) if charges is None else charges.order(own, _place)


def _place(record: Record) -> tuple[float, int]:
    deadline = record.deadline if record.by_deadline and record.deadline is not None else math.inf
    return (deadline, record.expired if record.delayed else record.place)


def replay_joins(lines: Lines, dispatch: Dispatch, records: list[Record], max_batch_size: int) -> None:
    """Replay the joining: walk everyone alike in serving order, and see that those who join are the first."""
    head = records[0]
    expected = [record.request.id for record in records[1:]]
    joined = set(expected)
    order: list[int] = []
    rows = dispatch.parts[0].rows
    passed: dict[int, Record] = {}
    for level, line in lines.alike(dispatch.signature):
        if level < head.level or len(order) == len(expected) or level in passed:
            continue
        for record in line:
            if record is head:
                continue
            if record.request.id not in joined:
                passed[level] = record
                fits = level == head.level and rows + record.unsent <= max_batch_size
                law(not fits or len(order) == len(expected), "joins", "{} fits and is passed by {}", record, dispatch)
                break
            order.append(record.request.id)
            rows += record.unsent
    law(order == expected, "joins", "{} join {}, serving order {}, passed {}", expected, head, order, passed)
