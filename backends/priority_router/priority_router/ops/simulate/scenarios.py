# SPDX-License-Identifier: Apache-2.0
"""The situations in which scheduling rules are compared: an executor, its load, and who sends where."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from priority_router.core.values import MICROSECOND, MILLISECOND, SECOND, SchedulingPolicy, TrafficClass
from priority_router.ops import loads
from priority_router.ops.simulate.arrivals import Arrival, Stream, traffic
from priority_router.ops.simulate.executor import ExecutorShape, ServiceTimes
from priority_router.ops.simulate.simulation import USUAL_DELAYS, Delays, Setup

ONLINE: Final = TrafficClass(loads.ONLINE, loads.LEVELS[loads.ONLINE])
BACKGROUND: Final = TrafficClass(loads.BACKGROUND, loads.LEVELS[loads.BACKGROUND])


@dataclass(frozen=True, slots=True)
class Scenario:
    """Online work and background work on one executor; requests have one row and one signature.

    Attributes:
        times: the executor's service times.
        max_batch_size: its row limit.
        online: rows per second of class ``online``.
        background: rows per second of class ``background``.
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


def _shared_with_the_benchmark(load: loads.Load, spread: float) -> Scenario:
    executor = load.executor
    times = ServiceTimes(executor.batch_us * MICROSECOND, executor.row_us * MICROSECOND, spread)
    return Scenario(
        times,
        executor.max_batch_size,
        load.online,
        load.background,
        executor.instances,
        shared=BACKGROUND.name in load.direct,
    )


_LINEAR = _shared_with_the_benchmark(loads.LINEAR, spread=0.02)

SCENARIOS: Final = {
    "overload": _shared_with_the_benchmark(loads.OVERLOAD, spread=0.02),
    "linear": _LINEAR,
    "fast": _shared_with_the_benchmark(loads.FAST, spread=0.05),
    "two-humped": Scenario(ServiceTimes(10 * MILLISECOND, long_factor=41.0, long_share=0.5), 4, 3, 22),
    "drift": Scenario(ServiceTimes(30 * MILLISECOND, spread=0.02, peak=3.0, period=20 * SECOND), 4, 10, 90),
    "base-and-slope": Scenario(ServiceTimes(20 * MILLISECOND, 1 * MILLISECOND, spread=0.05), 32, 100, 700),
    "two-instances": replace(_LINEAR, online=2 * _LINEAR.online, background=2 * _LINEAR.background, instances=2),
    "shared": _shared_with_the_benchmark(loads.SHARED, spread=0.02),
}
"""All ask for more than the executor can do."""
