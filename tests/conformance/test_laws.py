# SPDX-License-Identifier: Apache-2.0
"""Seeded runs under the referee, over every executor and signature mix; and a scheduler that must be caught."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from conformance.referee import Foul
from conformance.worlds import MIXES, TIMES, World, check_end, play
from priority_router.core.scheduler import Scheduler
from priority_router.errors import Outcome

WORLDS = [
    World(times, mix, instances, max_batch_size, levels=levels)
    for times, mix, (instances, max_batch_size), levels in product(
        TIMES, MIXES, product((1, 2, 4), (0, 1, 4, 32)), (True, False)
    )
]
MODES = [
    World(times, "few", instances, 4, overtaking=overtaking, shared_executor=not overtaking)
    for times, instances, overtaking in product(TIMES, (1, 2, 4), (True, False))
]


def check(world: World, seed: int) -> None:
    """One run: the referee's laws at every step, then what must hold at the end."""
    played = play(world, seed)
    check_end(played)
    referee = played.referee
    assert referee.ended[Outcome.SUCCESS] > referee.received / 10, "a world in which nothing works proves nothing"


@pytest.mark.parametrize("world", WORLDS[::5] + MODES[::3], ids=str)
def test_laws_hold(world: World) -> None:
    check(world, seed=7)


@pytest.mark.slow
@pytest.mark.parametrize("world", WORLDS + MODES, ids=str)
def test_laws_hold_everywhere(world: World) -> None:
    check(replace(world, requests=1500), seed=11)


def test_every_outcome_occurs() -> None:
    """The worlds are worth something: all that can happen to a request happens in them."""
    seen = set()
    for world in WORLDS[::17]:
        seen |= {outcome for outcome, count in play(world, 7).referee.ended.items() if count}
    assert seen == set(Outcome) - {Outcome.INVALID}


@pytest.mark.parametrize("world", WORLDS[::30], ids=str)
def test_first_come_first_served_is_caught(world: World) -> None:
    def first_come(policy):
        return Scheduler(replace(policy, classes=tuple(replace(each, level=1) for each in policy.classes)))

    with pytest.raises(Foul, match=r"^head"):
        play(world, 7, first_come)
