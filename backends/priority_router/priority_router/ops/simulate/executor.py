# SPDX-License-Identifier: Apache-2.0
"""The executor as Triton runs it: one queue, I instances, batches formed when an instance is free.

The model follows what Triton 2.51 does. With levels its queue is ordered by level, then arrival, and a batch is formed
only when an instance is waiting. Without levels the queue is first come, first served, and a batch formed ahead stays
open for rows until it runs, which comes to the same thing as forming it when it starts. Either way neighbours in the
queue merge while their signatures are equal and their rows fit into one batch.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any, Protocol

from priority_router.ops.simulate.clock import EventLoop


class Times(Protocol):
    """How long batches take."""

    def draw(self, rows: int, now: int, rng: random.Random) -> int:
        """Time in ns of a batch of ``rows`` rows that starts at ``now``."""

    def expected(self, rows: int, now: int) -> float:
        """Mean of ``draw`` in ns."""


@dataclass(frozen=True, slots=True)
class ServiceTimes:
    """How long one batch takes: ``base + per_row * rows``, then jitter, humps and drift on top of each other.

    Attributes:
        base: ns per batch, whatever its size.
        per_row: ns per row.
        spread: uniform jitter; 0.02 means plus or minus 2 %.
        long_factor: some batches take this many times as long, which nobody sees beforehand.
        long_share: share of those batches.
        peak: the executor slows down and recovers, in a triangle between 1 and this factor.
        period: ns from one trough of that triangle to the next.
    """

    base: int
    per_row: int = 0
    spread: float = 0.0
    long_factor: float = 1.0
    long_share: float = 0.0
    peak: float = 1.0
    period: int = 0

    def draw(self, rows: int, now: int, rng: random.Random) -> int:
        """Time in ns of a batch of ``rows`` rows that starts at ``now``."""
        time = (self.base + self.per_row * rows) * self._drift(now)
        if self.spread:
            time *= 1.0 + self.spread * (2.0 * rng.random() - 1.0)
        if self.long_share and rng.random() < self.long_share:
            time *= self.long_factor
        return max(1, int(time))

    def expected(self, rows: int, now: int) -> float:
        """Mean of ``draw`` in ns."""
        humps = 1.0 + self.long_share * (self.long_factor - 1.0)
        return (self.base + self.per_row * rows) * self._drift(now) * humps

    def _drift(self, now: int) -> float:
        if not self.period:
            return 1.0
        phase = (now % self.period) / self.period
        return 1.0 + (self.peak - 1.0) * (2.0 * phase if phase < 0.5 else 2.0 - 2.0 * phase)


@dataclass(slots=True)
class Call:
    """One request in the executor's own queue: a dispatch of the router, or somebody else's.

    Attributes:
        level: 1 is the most urgent.
        rows: length of the batch axis.
        signature: neighbours with equal ones merge.
        owner: whatever the sender wants back.
        start: ns when its batch started, -1 before.
    """

    level: int
    rows: int
    signature: Hashable
    owner: Any = None
    start: int = -1


@dataclass(frozen=True, slots=True)
class ExecutorShape:
    """How the executor is set up.

    Attributes:
        instances: instances over all devices (I).
        max_batch_size: row limit (B); 0 = no batch axis, calls never merge.
        levels: the queue honours the level of a call.
    """

    instances: int = 1
    max_batch_size: int = 1
    levels: bool = True


@dataclass(slots=True)
class ModelledExecutor:
    """The executor; calls come in with ``enqueue`` and ``on_batch_end(calls)`` says when they have run.

    Attributes:
        loop: virtual clock.
        shape: instances, row limit, levels.
        times: service times.
        rng: draws the service times and nothing else.
        on_batch_end: called with the calls of a batch when it ends.
        on_batch_start: called with them when it starts.
        dispatch_overhead: ns from the end of a batch to the start of the next on the same instance.
        window: what ``busy`` and ``rows`` cover, in ns: only what falls between the two times counts.
        busy: ns spent running, summed over the instances.
        rows: rows of the batches started.
        batches: batches started.
    """

    loop: EventLoop
    shape: ExecutorShape
    times: Times
    rng: random.Random
    on_batch_end: Callable[[list[Call]], None]
    on_batch_start: Callable[[list[Call]], None] | None = None
    dispatch_overhead: int = 0
    window: tuple[int, int] = (0, 1 << 62)
    busy: int = 0
    rows: int = 0
    batches: int = 0
    _queue: list[tuple[int, int, Call]] = field(default_factory=list)
    _free: int = -1
    _sequence: int = 0

    def __post_init__(self) -> None:
        self._free = self.shape.instances

    @property
    def queued(self) -> int:
        """Calls waiting."""
        return len(self._queue)

    @property
    def running(self) -> int:
        """Batches running."""
        return self.shape.instances - self._free

    def enqueue(self, call: Call) -> None:
        """A call reaches the executor's queue."""
        self._sequence += 1
        heappush(self._queue, (call.level if self.shape.levels else 0, self._sequence, call))
        if self._free:
            self._start_batch()

    def _start_batch(self) -> None:
        queue, now, limit = self._queue, self.loop.now, self.shape.max_batch_size
        first = heappop(queue)[2]
        calls, rows = [first], first.rows
        while queue and rows < limit:
            after = queue[0][2]
            if after.signature != first.signature or rows + after.rows > limit:
                break
            rows += after.rows
            calls.append(heappop(queue)[2])
        for call in calls:
            call.start = now
        self._free -= 1
        if self.on_batch_start is not None:
            self.on_batch_start(calls)
        time = self.times.draw(rows, now, self.rng)
        begin, end = self.window
        if now < end:
            self.busy += max(0, min(now + time, end) - max(now, begin))
            if now >= begin:
                self.rows += rows
                self.batches += 1
        self.loop.at(now + time, self._end_batch, calls)

    def _end_batch(self, calls: list[Call]) -> None:
        self._free += 1
        self.on_batch_end(calls)
        if self.dispatch_overhead and self._queue:
            self.loop.at(self.loop.now + self.dispatch_overhead, self._next)
        else:
            self._next(None)

    def _next(self, _: Any) -> None:
        while self._free and self._queue:
            self._start_batch()
