# SPDX-License-Identifier: Apache-2.0
"""Seeded worlds for the scheduler: executors, traffic and trouble, and a run of one of them under the referee."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from conformance.referee import Referee
from priority_router.core.scheduler import Scheduler
from priority_router.core.values import (
    MILLISECOND,
    SECOND,
    Dispatch,
    SchedulingPolicy,
    TimeoutAction,
    TrafficClass,
)
from priority_router.errors import ExecutorFailed, Outcome
from priority_router.ops.simulate.arrivals import (
    SignatureMix,
    Stream,
    few_signatures,
    one_signature,
    own_signatures,
    rows_up_to,
    traffic,
)
from priority_router.ops.simulate.executor import Call, ExecutorShape, ServiceTimes
from priority_router.ops.simulate.simulation import Fate, SchedulerLike, Setup, Simulation

MS = MILLISECOND

TIMES = {
    "fixed": ServiceTimes(50 * MS, spread=0.02),
    "linear": ServiceTimes(0, 4_100_000, spread=0.02),
    "two-humped": ServiceTimes(10 * MS, long_factor=41.0, long_share=0.5),
    "drifting": ServiceTimes(20 * MS, 1 * MS, spread=0.02, peak=3.0, period=5 * SECOND),
}
MIXES: dict[str, Callable[[], SignatureMix]] = {
    "one": lambda: one_signature,
    "few": lambda: few_signatures(3),
    "own": own_signatures,
}


def answered_mostly(dispatch: Dispatch, rng: random.Random) -> Fate:
    """Errors, a few answers that never come, and some that come too late or nearly so."""
    draw = rng.random()
    if draw < 0.02:
        return Fate(error=ExecutorFailed("the model refused"))
    if draw < 0.0205:
        return Fate(extra_delay=None)
    if draw < 0.023:
        return Fate(extra_delay=round(6 * SECOND * rng.random()))
    return Fate()


@dataclass(frozen=True)
class World:
    """One executor with its traffic; everything follows from these values and the seed."""

    times: str = "fixed"
    mix: str = "one"
    instances: int = 1
    max_batch_size: int = 4
    levels: bool = True
    overtaking: bool = False
    shared_executor: bool = False
    load: float = 1.4
    requests: int = 400
    trouble: bool = True

    def policy(self) -> SchedulingPolicy:
        """Four classes on three levels, with every kind of limit."""
        plain = self.trouble is False
        return SchedulingPolicy(
            (
                TrafficClass("online", 1, default_timeout=0 if plain else 400 * MS),
                TrafficClass("batch", 3, max_queue_size=0 if plain else 40),
                TrafficClass(
                    "reports",
                    2,
                    max_queue_size=0 if plain else 7,
                    default_timeout=0 if plain else 60 * MS,
                    reject_predicted_late=not plain,
                ),
                TrafficClass(
                    "patient", 2, default_timeout=0 if plain else 150 * MS, timeout_action=TimeoutAction.DELAY
                ),
            ),
            instances=self.instances,
            max_batch_size=self.max_batch_size,
            levels=self.levels,
            overtaking=self.overtaking,
            shared_executor=self.shared_executor,
            executor_timeout=2 * SECOND,
        )

    def capacity(self) -> float:
        """Rows per second of the executor when it is always full."""
        rows = max(1, 1 if self.mix == "own" else self.max_batch_size)
        return self.instances * rows * SECOND / TIMES[self.times].expected(rows, 0)

    def streams(self) -> list[Stream]:
        """Online 15 % of the load in small requests, the rest in bursts and, where there is an axis, in larger ones."""
        rate = self.load * self.capacity()
        mix = MIXES[self.mix]()
        large = rows_up_to(1 if self.max_batch_size == 0 else self.max_batch_size * 3)
        small = rows_up_to(max(1, self.max_batch_size // 2))
        mean_small = (1 + max(1, self.max_batch_size // 2)) / 2
        mean_large = (1 + max(1, self.max_batch_size * 3)) / 2
        return [
            Stream(
                "online", 0.15 * rate / mean_small, small, mix, timeout=300 * MS, cancel_share=0.1, patience=100 * MS
            ),
            Stream("reports", 0.15 * rate / mean_small, small, mix, burst=3, cancel_share=0.1, patience=SECOND),
            Stream("patient", 0.10 * rate / mean_small, small, mix),
            Stream("batch", 0.60 * rate / mean_large, large, mix, burst=5, cancel_share=0.05, patience=2 * SECOND),
        ]


@dataclass
class Played:
    """A finished run.

    Attributes:
        executed: by request, the first row and the rows of each of its parts.
        taken: each dispatch that ran, with its start and end in ns.
    """

    simulation: Simulation
    referee: Referee
    executed: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    taken: list[tuple[Dispatch, int, int]] = field(default_factory=list)


def play(world: World, seed: int, scheduler: Callable[[SchedulingPolicy], SchedulerLike] = Scheduler) -> Played:
    """Run a world to its end under the referee, and note which rows of which request the executor ran."""
    streams = world.streams()
    setup = Setup(
        ExecutorShape(world.instances, world.max_batch_size, world.levels),
        TIMES[world.times],
        fate=answered_mostly if world.trouble else None,
    )
    return run(world.policy(), setup, streams, world.requests, seed, scheduler)


def run(
    policy: SchedulingPolicy,
    setup: Setup,
    streams: list[Stream],
    requests: int,
    seed: int,
    scheduler: Callable[[SchedulingPolicy], SchedulerLike] = Scheduler,
) -> Played:
    """Run about so many requests of these streams to their end under the referee."""
    duration = round(SECOND * requests / sum(stream.rate for stream in streams))
    referee = Referee(scheduler(policy), policy)
    simulation = Simulation(referee, setup, traffic(streams, seed, duration), seed)
    played = Played(simulation, referee)

    def note(calls: list[Call]) -> None:
        for call in calls:
            if call.owner is not None:
                for part in call.owner[1].parts:
                    played.executed.setdefault(part.request_id, []).append((part.first_row, part.rows))

    ended = simulation.executor.on_batch_end

    def take(calls: list[Call]) -> None:
        played.taken += [(call.owner[1], call.start, simulation.loop.now) for call in calls if call.owner is not None]
        ended(calls)

    simulation.executor.on_batch_start = note
    simulation.executor.on_batch_end = take
    simulation.run()
    return played


def check_end(played: Played) -> None:
    """What must hold when all is over: an answer for everyone, and every answered row ran once."""
    simulation, referee = played.simulation, played.referee
    assert referee.received == len(simulation.arrived)
    assert None not in simulation.outcomes, "a request has no answer at the end"
    for number, outcome in enumerate(simulation.outcomes):
        if outcome is Outcome.SUCCESS:
            ran = sorted(played.executed[number])
            rows = 0
            for first, count in ran:
                assert first == rows, f"request {number}: rows ran as {ran}"
                rows += count
