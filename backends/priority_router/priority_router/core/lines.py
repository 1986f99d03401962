# SPDX-License-Identifier: Apache-2.0
"""One request inside the scheduler, and the line that one class's requests stand in.

Law: order inside one class. A line gives out turns, in order of arrival, and says whom the class sends at each: where
the class is ordered by arrival the one who arrived, else the one with the earliest deadline or, of a class that is
shared, whom ``tenants`` says. So a class's own order changes nothing for the others.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator
from operator import attrgetter, itemgetter
from typing import Any

from priority_router.core.ledger import Account
from priority_router.core.ordered import Ordered
from priority_router.core.values import Order, Request, TrafficClass


class Entry:
    """One request inside the scheduler, from submission until its Finish.

    Attributes:
        arrived: time of submission, ns.
        since: time from which it is as urgent as it is, ns.
        deadline: time at which its queue timeout passes, ns; None = never.
        expired: it has passed, and the request waits on.
        timeout: the queue timeout behind ``deadline``, ns.
        next_row: first row not yet sent; ``request.rows`` when all are sent.
        unanswered: rows the executor has not answered yet.
        level: of the lane that it stands in.
        promoted: it has waited as long as its class may.
        predicted: ns that it was predicted to wait when it came; None where nothing was predicted.
        line: where it waits, or waited last.
        turn: its place in that line, which it keeps between its parts.
        turn_alike: the same among those of its signature.
        place: the turn with which it came into that line.
        account: who pays for it, where its class is shared by tenant.
    """

    __slots__ = (
        "account",
        "arrived",
        "deadline",
        "expired",
        "level",
        "line",
        "next_row",
        "place",
        "predicted",
        "promoted",
        "request",
        "sequence",
        "since",
        "timeout",
        "traffic_class",
        "turn",
        "turn_alike",
        "unanswered",
    )

    account: Account
    line: Line
    place: int
    turn: int
    turn_alike: int

    def __init__(self, request: Request, traffic_class: TrafficClass, sequence: int, arrived: int, timeout: int):
        self.request = request
        self.traffic_class = traffic_class
        self.sequence = sequence
        self.arrived = self.since = arrived
        self.timeout = timeout
        self.deadline = arrived + timeout if timeout else None
        self.next_row = 0
        self.expired = False
        self.promoted = False
        self.predicted: int | None = None
        self.unanswered = request.rows
        self.level = traffic_class.level

    @property
    def unsent(self) -> int:
        """Rows that still wait in the router."""
        return self.request.rows - self.next_row


def by_arrival(entry: Entry) -> tuple[Any, ...]:
    """Ascending in order of arrival in the line; different for any two."""
    return (0, entry.place, entry)


def by_deadline(entry: Entry) -> tuple[Any, ...]:
    """Ascending by deadline, then arrival; who has no deadline comes last."""
    return (math.inf if entry.deadline is None else entry.deadline, entry.sequence, entry)


ORDERS: dict[Order, Callable[[Entry], tuple[Any, ...]]] = {Order.ARRIVAL: by_arrival, Order.DEADLINE: by_deadline}


class ByArrival:
    """Entries by turn, each at its own."""

    __slots__ = ("_turns",)

    def __init__(self) -> None:
        # OrderedDict, because taking the first key of a dict whose front was deleted is linear.
        self._turns: OrderedDict[int, Entry] = OrderedDict()

    def __len__(self) -> int:
        return len(self._turns)

    def add(self, entry: Entry, turn: int) -> None:
        """``turn`` is later than every other's."""
        self._turns[turn] = entry

    def leave(self, entry: Entry, turn: int) -> None:  # noqa: ARG002 - the deadline needs it
        """The entry goes without being served, and its turn with it."""
        del self._turns[turn]

    def serve(self, entry: Entry, turn: int) -> tuple[Entry, int] | None:
        """The entry is served; returns whose turn is another one from now on, and which, if anybody's is."""
        self.leave(entry, turn)
        return None

    def turn(self) -> int:
        """The earliest turn; somebody must wait."""
        return next(iter(self._turns))

    def first(self) -> Entry:
        """Who takes it."""
        return next(iter(self._turns.values()))

    def before(self, entry: Entry) -> int:  # noqa: ARG002 - other orders need it
        """How many surely come before one that has come last."""
        return len(self._turns) - 1

    def turns(self) -> Iterator[tuple[int, Entry]]:
        """All turns, and who takes each; do not change the queue while iterating."""
        return iter(self._turns.items())


class Reordered(ByArrival):
    """The same turns, taken by others than those who brought them.

    Whoever is served uses up the earliest turn, and leaves its own to the one whose turn that was.
    """

    __slots__ = ()

    def serve(self, entry: Entry, turn: int) -> tuple[Entry, int] | None:
        """As above."""
        _, passed = self._turns.popitem(last=False)
        if passed is entry:
            return None
        self._turns[turn] = passed  # in the place that it has, so the turns stay in order
        return passed, turn


class _ByDeadline(Reordered):
    """The turns taken by deadline."""

    __slots__ = ("_order",)

    def __init__(self) -> None:
        super().__init__()
        self._order = Ordered()

    def add(self, entry: Entry, turn: int) -> None:
        super().add(entry, turn)
        self._order.add(by_deadline(entry))

    def leave(self, entry: Entry, turn: int) -> None:
        super().leave(entry, turn)
        self._order.remove(by_deadline(entry))

    def serve(self, entry: Entry, turn: int) -> tuple[Entry, int] | None:
        self._order.remove(by_deadline(entry))
        return super().serve(entry, turn)

    def first(self) -> Entry:
        entry: Entry = self._order.first()[2]
        return entry

    def before(self, entry: Entry) -> int:
        return self._order.rank(by_deadline(entry))

    def turns(self) -> Iterator[tuple[int, Entry]]:
        return zip(self._turns, map(itemgetter(2), self._order), strict=True)


_QUEUES: dict[Order, Callable[[], ByArrival]] = {Order.ARRIVAL: ByArrival, Order.DEADLINE: _ByDeadline}


class Line:
    """Waiting requests of one class in one standing, and the same of each signature."""

    __slots__ = ("_all", "_by_signature", "_queue")

    def __init__(self, order: Order = Order.ARRIVAL, queue: Callable[[], ByArrival] | None = None) -> None:
        """Starts empty; ``queue`` makes the queues in place of those that the order asks for."""
        self._queue = _QUEUES[order] if queue is None else queue
        self._all = self._queue()
        self._by_signature: dict[Hashable, ByArrival] = {}

    def __len__(self) -> int:
        return len(self._all)

    def add(self, entry: Entry, turn: int) -> None:
        """Let the entry wait here; its turn is later than every other's."""
        entry.line, entry.place, entry.turn, entry.turn_alike = self, turn, turn, turn
        self._all.add(entry, turn)
        self._alike(entry).add(entry, turn)

    def readmit(self, entries: Iterable[Entry]) -> None:
        """Let entries wait in this line, which is empty, each at the place and the turns that it has."""
        for entry in sorted(entries, key=_turn):
            entry.line = self
            self._all.add(entry, entry.turn)
        for entry in sorted(entries, key=_turn_alike):
            self._alike(entry).add(entry, entry.turn_alike)

    def leave(self, entry: Entry) -> None:
        """Take an entry out that is not served here."""
        self._all.leave(entry, entry.turn)
        same = self._by_signature[entry.request.signature]
        same.leave(entry, entry.turn_alike)
        if not same:
            del self._by_signature[entry.request.signature]

    def serve(self, entry: Entry) -> None:
        """Take an entry out whose last row is sent."""
        if (changed := self._all.serve(entry, entry.turn)) is not None:
            changed[0].turn = changed[1]
        same = self._by_signature[entry.request.signature]
        if (changed := same.serve(entry, entry.turn_alike)) is not None:
            changed[0].turn_alike = changed[1]
        if not same:
            del self._by_signature[entry.request.signature]

    def turn(self) -> int:
        """The next turn of the class; somebody must wait."""
        return self._all.turn()

    def first(self) -> Entry:
        """Who takes it."""
        return self._all.first()

    def before(self, entry: Entry) -> int:
        """How many of the class surely come before one that has come last."""
        return self._all.before(entry)

    def holds(self, signature: Hashable) -> bool:
        """Whether one of this signature waits."""
        return signature in self._by_signature

    def of_signature(self, signature: Hashable) -> Iterator[Entry]:
        """Those of one signature in the order of the class."""
        return map(itemgetter(1), self.turns(signature)) if self.holds(signature) else iter(())

    def turns(self, signature: Hashable) -> Iterator[tuple[int, Entry]]:
        """Turns of those of this signature, and who takes each; one must wait."""
        return self._by_signature[signature].turns()

    def _alike(self, entry: Entry) -> ByArrival:
        """The queue of those of its signature."""
        same = self._by_signature.get(entry.request.signature)
        if same is None:
            same = self._by_signature[entry.request.signature] = self._queue()
        return same


_turn = attrgetter("turn")
_turn_alike = attrgetter("turn_alike")
