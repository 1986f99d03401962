# SPDX-License-Identifier: Apache-2.0
"""The situations in which scheduling rules are compared: an executor, its load, and who sends where."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from priority_router.core.values import MICROSECOND, MILLISECOND, SECOND, SchedulingPolicy, TrafficClass
from priority_router.ops.simulate.arrivals import Arrival, Stream, traffic
from priority_router.ops.simulate.executor import ExecutorShape, ServiceTimes
from priority_router.ops.simulate.simulation import USUAL_DELAYS, Delays, Setup

ONLINE: Final = TrafficClass("online", level=1)
BACKGROUND: Final = TrafficClass("background", level=2)


@dataclass(frozen=True, slots=True)
class Scenario:
    """Online work and background work on one executor; requests have one row and one signature.

    Attributes:
        times: the executor's service times.
        max_batch_size: its row limit.
        online: rows per second, class ``online`` on level 1.
        background: rows per second, class ``background`` on level 2.
        instances: executor instances.
        shared: background goes to the executor directly, past the scheduler.
        delays: ways outside the executor.
    """

    times: ServiceTimes
    max_batch_size: int
    online: float
    background: float
    instances: int = 1
    shared: bool = False
    delays: Delays = USUAL_DELAYS

    def policy(self) -> SchedulingPolicy:
        """The policy that fits, with default settings."""
        return SchedulingPolicy(
            (ONLINE, BACKGROUND),
            instances=self.instances,
            max_batch_size=self.max_batch_size,
            shared_executor=self.shared,
        )

    def routed(self, seed: int, duration: int) -> Iterator[Arrival]:
        """What reaches the scheduler during ``duration`` ns."""
        return traffic(self._streams()[: 1 if self.shared else 2], seed, duration)

    def everything(self, seed: int, duration: int) -> Iterator[Arrival]:
        """All requests, whoever is asked to serve them."""
        return traffic(self._streams(), seed, duration)

    def setup(self, seed: int, duration: int, measured: tuple[int, int]) -> Setup:
        """What surrounds the scheduler; busy time and rows count from ``measured[0]`` to ``measured[1]`` ns."""
        direct: Iterable[Arrival] = ()
        if self.shared:
            direct = (arrival for arrival in self.everything(seed, duration) if arrival.class_name == BACKGROUND.name)
        return Setup(
            ExecutorShape(self.instances, self.max_batch_size),
            self.times,
            self.delays,
            others=tuple(direct),
            others_level=BACKGROUND.level,
            measured=measured,
        )

    def _streams(self) -> list[Stream]:
        return [Stream(ONLINE.name, self.online), Stream(BACKGROUND.name, self.background)]


_FIXED = ServiceTimes(50 * MILLISECOND, spread=0.02)
_LINEAR = ServiceTimes(0, 4_100 * MICROSECOND, spread=0.02)

SCENARIOS: Final = {
    "overload": Scenario(_FIXED, 4, 16, 110),
    "linear": Scenario(_LINEAR, 8, 20, 230),
    "fast": Scenario(ServiceTimes(5 * MILLISECOND, spread=0.05), 4, 100, 800),
    "two-humped": Scenario(ServiceTimes(10 * MILLISECOND, long_factor=41.0, long_share=0.5), 4, 3, 22),
    "drift": Scenario(ServiceTimes(30 * MILLISECOND, spread=0.02, peak=3.0, period=20 * SECOND), 4, 10, 90),
    "base-and-slope": Scenario(ServiceTimes(20 * MILLISECOND, 1 * MILLISECOND, spread=0.05), 32, 100, 700),
    "two-instances": Scenario(_LINEAR, 8, 40, 460, instances=2),
    "shared": Scenario(_FIXED, 4, 16, 110, shared=True),
}
"""``overload``, ``linear``, ``fast`` and ``shared`` are those of ``priority-router bench``; all ask for more than the
executor can do."""
