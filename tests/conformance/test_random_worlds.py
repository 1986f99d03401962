# SPDX-License-Identifier: Apache-2.0
"""Policies, executors and traffic drawn at random: every mode, odd row limits, large requests, many classes."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from conformance.worlds import MIXES, MS, TIMES, Played, answered_mostly, check_end, run
from priority_router.core.scheduler import Scheduler
from priority_router.core.values import SECOND, Action, FairBy, Order, SchedulingPolicy, TimeoutAction, TrafficClass
from priority_router.ops.simulate.arrivals import Stream, rows_up_to
from priority_router.ops.simulate.clock import Delay
from priority_router.ops.simulate.executor import ExecutorShape
from priority_router.ops.simulate.simulation import NO_DELAYS, USUAL_DELAYS, Delays, Setup

SLOW_WAYS = Delays(*(Delay(1 * MS, 2 * MS) for _ in range(4)))


def draw_policy(rng: random.Random) -> SchedulingPolicy:
    """Any policy that the configuration would accept."""
    levels = rng.random() < 0.7
    classes = tuple(
        TrafficClass(
            f"class {number}",
            rng.randint(1, 4),
            max_queue_size=rng.choice((0, 0, 1, 3, 20)),
            default_timeout=rng.choice((0, 0, 30 * MS, 300 * MS)),
            allow_timeout_override=rng.random() < 0.5,
            timeout_action=rng.choice(tuple(TimeoutAction)),
        )
        for number in range(rng.randint(1, 6))
    )
    return SchedulingPolicy(
        classes,
        instances=rng.choice((1, 1, 2, 3, 4)),
        max_batch_size=rng.choice((0, 1, 2, 4, 7, 32)),
        levels=levels,
        executor_timeout=rng.choice((SECOND // 2, 2 * SECOND)),
        max_fill_slowdown=rng.choice((0.0, 0.1, 0.1, 2.0)),
        batch_efficiency=rng.choice((0.5, 0.95, 0.95, 1.0)),
        overtaking=levels and rng.random() < 0.4,
        shared_executor=levels and rng.random() < 0.4,
    )


def with_policies(rng: random.Random, policy: SchedulingPolicy) -> SchedulingPolicy:
    """The same with what docs/policies.md offers, each for some of the classes."""
    classes = tuple(
        replace(
            each,
            order=rng.choice(tuple(Order)),
            max_blocking=rng.choice((0, 0, 10 * MS, 60 * MS)),
            max_wait=rng.choice((0, 0, 100 * MS, 500 * MS)),
            min_share=rng.choice((0.0, 0.0, 0.05, 1 / len(policy.classes))),
            fair_by=rng.choice(tuple(FairBy)),
            reject_predicted_late=rng.random() < 0.5,
        )
        for each in policy.classes
    )
    return replace(policy, classes=classes)


def by_tenant(streams: list[Stream]) -> list[Stream]:
    """The same traffic, by four tenants, of whom one sends more than half."""
    shares = {"": 0.1, "flood": 0.6, "often": 0.2, "seldom": 0.1}
    return [
        replace(stream, tenant=tenant, rate=share * stream.rate)
        for stream in streams
        for tenant, share in shares.items()
    ]


def draw_streams(rng: random.Random, policy: SchedulingPolicy, rows_per_second: float) -> list[Stream]:
    """Traffic for every class, large and small requests, together from too little to far too much."""
    load = rng.choice((0.5, 1.0, 1.5, 4.0)) * rows_per_second / len(policy.classes)
    mix = MIXES[rng.choice(tuple(MIXES))]()
    streams = []
    for each in policy.classes:
        most = 1 if policy.max_batch_size == 0 else rng.choice((1, policy.max_batch_size, 4 * policy.max_batch_size))
        streams.append(
            Stream(
                each.name,
                load / ((1 + most) / 2),
                rows_up_to(most),
                mix,
                burst=rng.choice((1, 1, 2, 6)),
                timeout=rng.choice((0, 100 * MS)),
                cancel_share=rng.choice((0.0, 0.2)),
                patience=200 * MS,
            )
        )
    return streams


class Untouched(Scheduler):
    """Refuses nobody early: that follows from predictions, which a change makes anew."""

    def __init__(self, policy: SchedulingPolicy) -> None:
        super().__init__(
            replace(policy, classes=tuple(replace(each, reject_predicted_late=False) for each in policy.classes))
        )


class Adopting(Untouched):
    """Queues everybody anew before each decision, under a policy that differs by a limit that is never reached."""

    def advance(self, now: int) -> list[Action]:
        limit = 0 if self._policy.max_queue_bytes else 2**60
        self.adopt(replace(self._policy, max_queue_bytes=limit), now, self._policy.classes[0].name)
        return super().advance(now)


def check(
    seed: int, requests: int, *, policies: bool = False, scheduler: Callable[[SchedulingPolicy], Scheduler] = Scheduler
) -> Played:
    rng = random.Random(f"world {seed}")
    policy = draw_policy(rng)
    if policies:
        policy = with_policies(random.Random(f"policies {seed}"), policy)
    times = TIMES[rng.choice(tuple(TIMES))]
    capacity = (
        policy.instances * max(policy.max_batch_size, 1) * SECOND / times.expected(max(policy.max_batch_size, 1), 0)
    )
    setup = Setup(
        ExecutorShape(policy.instances, policy.max_batch_size, policy.levels),
        times,
        rng.choice((NO_DELAYS, USUAL_DELAYS, SLOW_WAYS)),
        fate=rng.choice((None, answered_mostly)),
    )
    streams = draw_streams(rng, policy, capacity)
    played = run(policy, setup, by_tenant(streams) if policies else streams, requests, seed, scheduler)
    check_end(played)
    return played


@pytest.mark.parametrize("seed", [*range(60), 10427, 10539])
def test_laws_hold_in_random_worlds(seed: int) -> None:
    check(seed, requests=200)


@pytest.mark.parametrize("seed", range(40))
def test_laws_hold_with_every_policy(seed: int) -> None:
    check(seed, requests=200, policies=True)


@pytest.mark.parametrize("seed", range(20))
def test_decisions_are_the_same_after_a_change_that_changes_nothing(seed: int) -> None:
    untouched, adopting = (check(seed, 200, policies=True, scheduler=made) for made in (Untouched, Adopting))
    assert adopting.taken == untouched.taken
    assert adopting.simulation.outcomes == untouched.simulation.outcomes


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 500, 100))
def test_laws_hold_in_many_random_worlds(first: int) -> None:
    for seed in range(1000 + first, 1100 + first):
        check(seed, requests=400)
        check(seed, requests=400, policies=True)
