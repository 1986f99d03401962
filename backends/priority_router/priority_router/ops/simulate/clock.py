# SPDX-License-Identifier: Apache-2.0
"""Virtual time: callbacks in order of their time, ties in order of scheduling."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, Protocol


class EventLoop:
    """A heap of callbacks and the time of the one that runs.

    Attributes:
        now: virtual time in ns.
    """

    def __init__(self) -> None:
        self.now = 0
        self._heap: list[tuple[int, int, Callable[[Any], None], Any]] = []
        self._sequence = 0

    def at(self, time: int, callback: Callable[[Any], None], argument: Any = None) -> None:
        """Call ``callback(argument)`` at ``time`` ns; a time that has passed means now."""
        self._sequence += 1
        heappush(self._heap, (max(time, self.now), self._sequence, callback, argument))

    def run(self, until: int | None = None) -> None:
        """Run callbacks until none is left, or the next one lies after ``until`` ns."""
        heap = self._heap
        while heap:
            if until is not None and heap[0][0] > until:
                self.now = until
                return
            self.now, _, callback, argument = heappop(heap)
            callback(argument)

    @property
    def pending(self) -> int:
        """Callbacks not yet run."""
        return len(self._heap)


class Way(Protocol):
    """What it takes to get from one thread or process to another."""

    def draw(self, rng: random.Random) -> int:
        """One passage in ns."""


@dataclass(frozen=True, slots=True)
class Delay:
    """A way between two threads or processes: a fixed part and an exponential tail.

    Attributes:
        least: ns that every passage takes.
        mean_extra: mean of what comes on top, ns.
    """

    least: int = 0
    mean_extra: int = 0

    def draw(self, rng: random.Random) -> int:
        """One passage in ns."""
        if not self.mean_extra:
            return self.least
        return self.least + int(rng.expovariate(1.0) * self.mean_extra)


@dataclass(frozen=True, slots=True)
class Drawn:
    """A time that was measured: between two neighbours of its ordered samples every value is as likely.

    Attributes:
        samples: ns, ascending, at least one.
    """

    samples: tuple[int, ...]

    def draw(self, rng: random.Random) -> int:
        """One of them in ns."""
        return int(self.at(rng.random()))

    def at(self, share: float) -> float:
        """The time that this share of all are below, ns; 0 is the shortest, 1 the longest."""
        samples = self.samples
        place = share * (len(samples) - 1)
        below = int(place)
        if below + 1 >= len(samples):
            return samples[-1]
        return samples[below] + (place - below) * (samples[below + 1] - samples[below])

    @property
    def mean(self) -> float:
        """Of ``draw``, ns."""
        inner = sum(self.samples) - (self.samples[0] + self.samples[-1]) / 2
        return inner / (len(self.samples) - 1) if len(self.samples) > 1 else self.samples[0]
