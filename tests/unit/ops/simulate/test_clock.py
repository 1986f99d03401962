# SPDX-License-Identifier: Apache-2.0
import random

import pytest
from priority_router.ops.simulate.clock import Delay, EventLoop


def test_callbacks_run_in_order_of_time_and_ties_in_order_of_scheduling():
    loop, seen = EventLoop(), []
    for time, name in ((20, "c"), (10, "a"), (10, "b")):
        loop.at(time, lambda name: seen.append((loop.now, name)), name)
    loop.run()
    assert seen == [(10, "a"), (10, "b"), (20, "c")]


def test_what_is_scheduled_for_the_past_runs_now_and_not_before_what_is_due():
    loop, seen = EventLoop(), []

    def late(_):
        loop.at(3, lambda _: seen.append(("late", loop.now)))

    loop.at(10, late)
    loop.at(10, lambda _: seen.append(("due", loop.now)))
    loop.run()
    assert seen == [("due", 10), ("late", 10)]


def test_a_run_until_a_moment_includes_it_and_leaves_the_rest():
    loop = EventLoop()
    seen: list[int] = []
    for time in (10, 20, 21):
        loop.at(time, seen.append, time)
    loop.run(until=20)
    assert seen == [10, 20]
    assert (loop.now, loop.pending) == (20, 1)
    loop.run()
    assert seen == [10, 20, 21]


def test_a_delay_is_its_least_plus_an_exponential_tail():
    rng = random.Random(1)
    assert Delay(7).draw(rng) == 7
    draws = [Delay(100, 50).draw(rng) for _ in range(4000)]
    assert min(draws) >= 100
    assert sum(draws) / len(draws) == pytest.approx(150, rel=0.05)
