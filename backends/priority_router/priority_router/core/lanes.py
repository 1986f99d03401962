# SPDX-License-Identifier: Apache-2.0
"""Who waits, and in which order.

Law: order only. A lane holds one level; a smaller level is served first, within a lane the unexpired come in order of
arrival and the delayed after them. Every operation takes constant time in the number of waiting requests.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator

from priority_router.core.values import Request, SchedulingPolicy, TrafficClass


class Entry:
    """One request inside the scheduler, from submission until its Finish.

    Attributes:
        arrived: time of submission, ns.
        deadline: time at which its queue timeout passes, ns; None = never.
        timeout: the queue timeout behind ``deadline``, ns.
        next_row: first row not yet sent; ``request.rows`` when all are sent.
        unanswered: rows the executor has not answered yet.
        delayed: its queue timeout passed and its class has DELAY.
    """

    __slots__ = (
        "arrived",
        "deadline",
        "delayed",
        "next_row",
        "request",
        "sequence",
        "timeout",
        "traffic_class",
        "unanswered",
    )

    def __init__(self, request: Request, traffic_class: TrafficClass, sequence: int, arrived: int, timeout: int):
        self.request = request
        self.traffic_class = traffic_class
        self.sequence = sequence
        self.arrived = arrived
        self.timeout = timeout
        self.deadline = arrived + timeout if timeout else None
        self.next_row = 0
        self.unanswered = request.rows
        self.delayed = False

    @property
    def unsent(self) -> int:
        """Rows that still wait in the router."""
        return self.request.rows - self.next_row


class _Line:
    """Entries in order of addition, and the same order within each signature."""

    __slots__ = ("_all", "_by_signature")

    def __init__(self) -> None:
        # OrderedDict, because taking the first key of a dict whose front was deleted is linear.
        self._all: OrderedDict[int, Entry] = OrderedDict()
        self._by_signature: dict[Hashable, OrderedDict[int, Entry]] = {}

    def __len__(self) -> int:
        return len(self._all)

    def add(self, entry: Entry) -> None:
        self._all[entry.sequence] = entry
        self._by_signature.setdefault(entry.request.signature, OrderedDict())[entry.sequence] = entry

    def remove(self, entry: Entry) -> None:
        del self._all[entry.sequence]
        same = self._by_signature[entry.request.signature]
        del same[entry.sequence]
        if not same:
            del self._by_signature[entry.request.signature]

    def first(self) -> Entry | None:
        return next(iter(self._all.values()), None)

    def holds(self, signature: Hashable) -> bool:
        return signature in self._by_signature

    def of_signature(self, signature: Hashable) -> Iterator[Entry]:
        same = self._by_signature.get(signature)
        return iter(()) if same is None else iter(same.values())


class Lane:
    """All waiting requests of one level."""

    __slots__ = ("_delayed", "_fresh", "level")

    def __init__(self, level: int) -> None:
        self.level = level
        self._fresh = _Line()
        self._delayed = _Line()

    def __len__(self) -> int:
        return len(self._fresh) + len(self._delayed)

    def head(self) -> Entry | None:
        """The request that this level serves next."""
        return self._fresh.first() or self._delayed.first()

    def holds(self, signature: Hashable) -> bool:
        """Whether a request of this signature waits."""
        return self._fresh.holds(signature) or self._delayed.holds(signature)

    def of_signature(self, signature: Hashable) -> Iterator[Entry]:
        """Waiting requests of one signature in serving order; do not change the lane while iterating."""
        yield from self._fresh.of_signature(signature)
        yield from self._delayed.of_signature(signature)

    def line(self, entry: Entry) -> _Line:
        """Where the entry stands."""
        return self._delayed if entry.delayed else self._fresh


class Lanes:
    """Every waiting request: a lane per level, most urgent first, and the number waiting per class."""

    def __init__(self, policy: SchedulingPolicy) -> None:
        self._lanes = [Lane(level) for level in sorted({c.level for c in policy.classes})]
        self._by_level = {lane.level: lane for lane in self._lanes}
        self.waiting = {c.name: 0 for c in policy.classes}

    def __len__(self) -> int:
        return sum(map(len, self._lanes))

    def __iter__(self) -> Iterator[Lane]:
        """Lanes, most urgent first."""
        return iter(self._lanes)

    @property
    def most_urgent_level(self) -> int:
        """The smallest level of the policy, whether or not anything waits there."""
        return self._lanes[0].level

    def head(self) -> Entry | None:
        """The oldest request of the most urgent level with work."""
        for lane in self._lanes:
            head = lane.head()
            if head is not None:
                return head
        return None

    def from_level(self, level: int) -> Iterator[Lane]:
        """Lanes of this level and the less urgent ones, in order."""
        return (lane for lane in self._lanes if lane.level >= level)

    def more_urgent_than(self, level: int) -> Iterator[Lane]:
        """Lanes strictly more urgent than this level."""
        return (lane for lane in self._lanes if lane.level < level)

    def add(self, entry: Entry) -> None:
        """Queue a new request at the end of its level."""
        self._by_level[entry.traffic_class.level].line(entry).add(entry)
        self.waiting[entry.traffic_class.name] += 1

    def remove(self, entry: Entry) -> None:
        """Take a request out, and free its place in its class."""
        self._by_level[entry.traffic_class.level].line(entry).remove(entry)
        self.waiting[entry.traffic_class.name] -= 1

    def delay(self, entry: Entry) -> None:
        """Move a request behind the unexpired work of its level."""
        lane = self._by_level[entry.traffic_class.level]
        lane.line(entry).remove(entry)
        entry.delayed = True
        lane.line(entry).add(entry)
