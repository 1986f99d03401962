# SPDX-License-Identifier: Apache-2.0
"""What could be reached at best: the same classes served without preemption, overhead or ignorance.

On a free instance the oracle takes the oldest request of the most urgent class and fills the batch by the same two
limits as the scheduler (rule 1), from the executor's true mean times instead of learned ones. Nothing travels and
nothing is sent early. It splits no requests and knows no limits or timeouts.
"""

from __future__ import annotations

import random
from array import array
from collections import deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from heapq import heappop, heappush

from priority_router.core.values import SchedulingPolicy
from priority_router.ops.simulate.arrivals import Arrival
from priority_router.ops.simulate.executor import Times


@dataclass(slots=True)
class _Waiting:
    number: int
    level: int
    rows: int
    signature: Hashable
    taken: bool = False


@dataclass(slots=True)
class Oracle:
    """One run over the same arrivals.

    Attributes:
        policy: classes, executor shape and the two limits of rule 1.
        times: the executor's service times.
        seed: draws them.
        window: ns from and to which ``busy`` is counted.
        limited: False = fill every batch, without the limits of rule 1.
        arrived: ns of each request's arrival.
        answered: ns of its answer.
        class_names: its class.
        served: its rows.
        busy: ns spent running inside the window, summed over the instances.
        rows: rows of the batches started inside the window.
        batches: those batches.
    """

    policy: SchedulingPolicy
    times: Times
    seed: int
    window: tuple[int, int] = (0, 1 << 62)
    limited: bool = True
    arrived: array[int] = field(default_factory=lambda: array("q"))
    answered: array[int] = field(default_factory=lambda: array("q"))
    class_names: list[str] = field(default_factory=list)
    served: array[int] = field(default_factory=lambda: array("q"))
    busy: int = 0
    rows: int = 0
    batches: int = 0
    _heads: dict[int, deque[_Waiting]] = field(default_factory=dict)
    _lanes: dict[tuple[int, Hashable], deque[_Waiting]] = field(default_factory=dict)

    def run(self, arrivals: Iterable[Arrival]) -> None:
        """Serve all arrivals."""
        rng = random.Random(f"{self.seed}/times")
        level_of = {traffic_class.name: traffic_class.level for traffic_class in self.policy.classes}
        for level in sorted(set(level_of.values())):
            self._heads[level] = deque()
        free_at = [0] * self.policy.instances
        waiting = 0
        source = iter(arrivals)
        arrival = next(source, None)
        now = 0
        while arrival is not None or waiting:
            if not waiting and arrival is not None:
                now = max(now, arrival.time)
            now = max(now, free_at[0])
            while arrival is not None and arrival.time <= now:
                self._take_in(arrival, level_of[arrival.class_name])
                waiting += 1
                arrival = next(source, None)
            batch = self._batch(now)
            waiting -= len(batch)
            rows = sum(entry.rows for entry in batch)
            time = self.times.draw(rows, now, rng)
            if self.window[0] <= now < self.window[1]:
                self.rows += rows
                self.batches += 1
            heappop(free_at)
            heappush(free_at, now + time)
            self.busy += max(0, min(now + time, self.window[1]) - max(now, self.window[0]))
            for entry in batch:
                self.answered[entry.number] = now + time

    def _take_in(self, arrival: Arrival, level: int) -> None:
        entry = _Waiting(len(self.arrived), level, arrival.rows, arrival.signature)
        self.arrived.append(arrival.time)
        self.answered.append(-1)
        self.class_names.append(arrival.class_name)
        self.served.append(arrival.rows)
        self._heads[level].append(entry)
        self._lanes.setdefault((level, arrival.signature), deque()).append(entry)

    def _batch(self, now: int) -> list[_Waiting]:
        head = self._head()
        limit = max(1, self.policy.max_batch_size)
        most_urgent = next(iter(self._heads))
        if self.limited and head.level != most_urgent:
            limit = self._efficient(limit, now)
        batch: list[_Waiting] = []
        rows = 0
        own_time = 0.0
        for level in self._heads:
            lane = self._lanes.get((level, head.signature))
            if not lane:
                continue
            while lane and (not batch or (self.policy.max_batch_size and rows + lane[0].rows <= limit)):
                if level == head.level:
                    own_time = self.times.expected(rows + lane[0].rows, now)
                elif self.limited and not self._joins(rows + lane[0].rows, own_time, now):
                    break
                entry = lane.popleft()
                entry.taken = True
                rows += entry.rows
                batch.append(entry)
            if not lane:
                del self._lanes[level, head.signature]
        return batch

    def _head(self) -> _Waiting:
        for heads in self._heads.values():
            while heads and heads[0].taken:
                heads.popleft()
            if heads:
                return heads[0]
        raise RuntimeError("the oracle was asked for a batch with nothing waiting")

    def _efficient(self, limit: int, now: int) -> int:
        rates = [rows / self.times.expected(rows, now) for rows in range(1, limit + 1)]
        goal = self.policy.batch_efficiency * max(rates)
        return next(rows for rows, rate in enumerate(rates, start=1) if rate >= goal)

    def _joins(self, rows: int, own_time: float, now: int) -> bool:
        return self.times.expected(rows, now) <= (1.0 + self.policy.max_fill_slowdown) * own_time
