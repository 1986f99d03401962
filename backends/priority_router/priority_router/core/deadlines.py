# SPDX-License-Identifier: Apache-2.0
"""Who has waited too long: for its queue timeout, or for its level.

Law: a heap of moments with lazy removal. It may hold requests that have left the queue, never more of them than of
those that wait (plus a constant), so memory follows the queue and not the traffic.
"""

from __future__ import annotations

import heapq

from priority_router.core.lines import Entry

SLACK = 64
"""Stale heap items tolerated before the first clean-up; small against any queue that matters."""


class Deadlines:
    """A moment of each of some waiting requests: its queue deadline, say."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Entry]] = []
        self._live: set[int] = set()

    def add(self, entry: Entry, moment: int) -> None:
        """Watch a request that waits until this time, ns."""
        self._live.add(entry.sequence)
        heapq.heappush(self._heap, (moment, entry.sequence, entry))

    def remove(self, entry: Entry) -> None:
        """Stop watching; a request that is not watched is ignored."""
        self._live.discard(entry.sequence)
        if len(self._heap) > 2 * len(self._live) + SLACK:
            self._heap = [item for item in self._heap if item[1] in self._live]
            heapq.heapify(self._heap)

    def earliest(self) -> int | None:
        """The next moment of a watched request, ns."""
        self._drop_stale()
        return self._heap[0][0] if self._heap else None

    def pop_expired(self, now: int) -> list[Entry]:
        """Requests whose moment is ``now`` or earlier, in order of it; they are no longer watched."""
        expired: list[Entry] = []
        while True:
            self._drop_stale()
            if not self._heap or self._heap[0][0] > now:
                return expired
            _, sequence, entry = heapq.heappop(self._heap)
            self._live.remove(sequence)
            expired.append(entry)

    def _drop_stale(self) -> None:
        while self._heap and self._heap[0][1] not in self._live:
            heapq.heappop(self._heap)
