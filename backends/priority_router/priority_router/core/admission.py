# SPDX-License-Identifier: Apache-2.0
"""Who is refused on arrival, and why.

Law: looks at who waits, decides who may not, and changes neither. What came is judged once ``advance`` has sent what it
can, since what was sent or has ended has made room.
"""

from __future__ import annotations

from collections.abc import Iterator

from priority_router.core.lanes import Lanes
from priority_router.core.lines import Entry
from priority_router.core.values import SchedulingPolicy, TrafficClass
from priority_router.errors import QueueFull, RequestError


class Admission:
    """The requests that came since the last decision, and the limits that they must keep to."""

    def __init__(self, policy: SchedulingPolicy, lanes: Lanes) -> None:
        self._policy = policy
        self._lanes = lanes
        self._arrivals: list[Entry] = []

    def arrived(self, entry: Entry) -> None:
        """Take in a request that waits as of now."""
        self._arrivals.append(entry)

    def refusals(self) -> Iterator[tuple[Entry, RequestError]]:
        """The newest past the limits and what to answer; end each before asking for the next.

        One that has begun is kept, even where the delayed requests that it passed fill the class. Where all classes
        together are past their limit the less urgent are refused first.
        """
        arrivals, self._arrivals = self._arrivals, []
        if self._policy.max_queue_bytes:
            arrivals.sort(key=lambda entry: entry.level)  # stable, so each level stays by arrival
        for entry in reversed(arrivals):
            full = None if entry.next_row else self._full(entry.traffic_class)
            if full is not None:
                yield entry, QueueFull(full)

    def _full(self, traffic_class: TrafficClass) -> str | None:
        """Which limit the class is past; None where it is past none."""
        name, lanes = traffic_class.name, self._lanes
        if traffic_class.max_queue_size and lanes.waiting[name] > traffic_class.max_queue_size:
            return f"class {name!r}: queue is full, max_queue_size is {traffic_class.max_queue_size}"
        if traffic_class.max_queue_bytes and lanes.waiting_bytes[name] > traffic_class.max_queue_bytes:
            return f"class {name!r}: queue is full, its max_queue_bytes is {traffic_class.max_queue_bytes}"
        limit = self._policy.max_queue_bytes
        if limit and sum(lanes.waiting_bytes.values()) > limit:
            return f"the queue of all classes is full, its max_queue_bytes is {limit}"
        return None
