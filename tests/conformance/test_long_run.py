# SPDX-License-Identifier: Apache-2.0
"""A million steps under the referee: nothing breaks late, and nothing is left behind."""

from __future__ import annotations

import random

import pytest
from conformance.worlds import TIMES, World, check_end, run
from priority_router.core.deadlines import SLACK
from priority_router.core.scheduler import Scheduler
from priority_router.core.service_times import KEYS
from priority_router.core.values import SECOND, Dispatch, SchedulingPolicy
from priority_router.errors import ExecutorFailed, Outcome
from priority_router.ops.simulate.executor import ExecutorShape
from priority_router.ops.simulate.simulation import Fate, Setup


def late_at_worst(dispatch: Dispatch, rng: random.Random) -> Fate:
    """Errors, and answers so late that they are written off; none is lost for good, or the run would end early."""
    draw = rng.random()
    if draw < 0.02:
        return Fate(error=ExecutorFailed("the model refused"))
    return Fate(extra_delay=round(6 * SECOND * rng.random())) if draw < 0.03 else Fate()


def check(requests: int, steps: int) -> None:
    kept: list[Scheduler] = []

    def keep(policy: SchedulingPolicy) -> Scheduler:
        kept.append(Scheduler(policy))
        return kept[0]

    world = World("drifting", "few", 2, 2)
    setup = Setup(ExecutorShape(2, 2), TIMES[world.times], fate=late_at_worst)
    played = run(world.policy(), setup, world.streams(), requests, 3, keep)
    check_end(played)
    outcomes = played.referee.ended
    assert min(outcomes[each] for each in Outcome if each is not Outcome.INVALID) > requests / 4000, outcomes
    assert outcomes[Outcome.SUCCESS] > requests / 2
    assert played.referee.steps >= steps
    (scheduler,) = kept
    assert scheduler.held == 0
    assert scheduler.dispatches_in_flight == 0
    assert set(scheduler.waiting.values()) == {0}
    assert scheduler._entries == {}
    lines = [
        line
        for lane in scheduler._lanes
        for kind in (lane.fresh, lane.delayed, lane.promoted)
        for line in kind.values()
    ]
    assert all(not line._all and not line._by_signature for line in lines)
    forecast = scheduler._admission._forecast
    assert forecast is not None
    assert forecast._counted == {}
    assert all(not book._alike and book.time == 0 for books in forecast._books_of.values() for book in books)
    assert len(scheduler._deadlines._heap) <= SLACK
    assert len(scheduler._executor.times._recent) <= KEYS
    assert scheduler._executor._running == scheduler._executor.waiting == []


def test_nothing_is_left_behind() -> None:
    check(2_000, 2_000)


@pytest.mark.slow
def test_a_million_steps() -> None:
    check(870_000, 1_000_000)
