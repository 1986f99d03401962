# SPDX-License-Identifier: Apache-2.0
"""Checks that each guard one rule: they pass on the scheduler and fail once the rule is removed from it.

``test_rules_matter.py`` runs both sides. A check takes nothing, builds what it needs and raises AssertionError. Here
are those that play a world under the referee, and those that walk by hand through who goes with whom and what callers
are promised; ``checks_when.py`` walks through moments and learning, ``measurements.py`` measures.
"""

from __future__ import annotations

from collections.abc import Callable

from conformance.worlds import World, play
from priority_router.core.values import TimeoutAction, TrafficClass
from priority_router.errors import ExecutorFailed
from unit.core.build import MS, ONLINE, Bench, ids

Check = Callable[[], None]
CHECKS: dict[str, Check] = {}


def check(function: Check) -> Check:
    """Enter a check under its function's name."""
    CHECKS[function.__name__] = function
    return function


# Under the referee: the law that is broken is named in the Foul.


def _world(world: World, seed: int = 7) -> None:
    simulation = play(world, seed).simulation
    assert None not in simulation.outcomes, "one end: a request has no answer at the end"


@check
def laws_with_joins_splits_and_limits() -> None:
    _world(World("fixed", "few", 1, 4))
    _world(World("linear", "one", 2, 4))


@check
def laws_with_two_instances_and_no_joins() -> None:
    _world(World("drifting", "own", 2, 1))


@check
def laws_with_overtaking() -> None:
    _world(World("fixed", "few", 1, 4, overtaking=True))


@check
def laws_with_a_shared_executor() -> None:
    _world(World("fixed", "few", 1, 4, shared_executor=True))


@check
def laws_without_a_batch_axis() -> None:
    _world(World("fixed", "one", 1, 0))


# By hand: who goes with whom.


@check
def slowdown_counts_from_the_heads_own_level() -> None:
    levels = tuple(TrafficClass(name, level) for level, name in enumerate(("first", "second", "background"), start=1))
    bench = Bench(*levels, max_batch_size=32)
    for rows in (32, 16, 8, 4, 3, 2, 1):
        bench.learn(10 + rows, rows=rows, class_name="first")
    bench.submit("first", "second", *["background"] * 9)
    (first,) = bench.advance()
    assert first.rows == 2, "12 ms against 11 ms alone is under a tenth more, 13 ms is not"


@check
def one_point_measured_too_high_does_not_end_the_filling() -> None:
    bench = Bench()
    for rows, time in ((4, 9.0), (3, 5.0), (2, 6.5), (1, 5.0)):
        bench.learn(time, rows=rows, class_name="online")
    bench.submit("online", "background", "background", "background")
    (first,) = bench.advance()
    assert first.rows == 3


@check
def the_last_part_of_a_split_request_is_joined() -> None:
    bench = Bench()
    (large,) = bench.submit("background", rows=5)
    (small,) = bench.submit("background")
    _, last = bench.advance()
    assert ids(last) == [large, small]


@check
def more_urgent_work_passes_between_the_parts_of_a_split_request() -> None:
    bench = Bench()
    (large,) = bench.submit("background", rows=12)
    first, _ = bench.advance()
    (urgent,) = bench.submit("online")
    bench.advance()
    (third,) = bench.complete(first)
    assert ids(third)[0] == urgent
    assert large not in bench.outcomes


@check
def a_split_request_cannot_expire_once_its_first_part_is_sent() -> None:
    bench = Bench(ONLINE, TrafficClass("background", 2, default_timeout=10 * MS))
    (large,) = bench.submit("background", rows=12)
    bench.advance()
    bench.at(11).advance()
    assert large not in bench.outcomes


@check
def the_first_failing_part_ends_a_split_request() -> None:
    bench = Bench()
    (large,) = bench.submit("background", rows=12)
    first, _ = bench.advance()
    bench.complete(first, ExecutorFailed("no"))
    assert bench.outcomes == {large: "executor_error"}
    assert bench.scheduler.waiting["background"] == 0


@check
def a_split_request_counts_once_in_max_queue_size() -> None:
    bench = Bench(ONLINE, TrafficClass("background", 2, max_queue_size=2))
    bench.submit("background", rows=8)
    bench.advance()
    large, small = bench.submit("background", rows=40) + bench.submit("background")
    bench.advance()
    assert not {large, small} & set(bench.outcomes)


@check
def small_dispatches_are_tried_under_a_steady_backlog() -> None:
    bench = Bench(max_batch_size=8)
    bench.submit(*["background"] * 500)
    flying = bench.advance()
    for _ in range(40):
        bench.now += flying[0].rows * 4 * MS
        flying = flying[1:] + bench.complete(flying[0])
    assert flying[0].rows == 1, "a linear executor loses nothing by it"


@check
def a_slow_moment_does_not_make_batches_small_for_ever() -> None:
    bench = Bench(max_batch_size=8)
    bench.learn(50, rows=4, class_name="online")
    bench.learn(300, rows=8, class_name="online")
    bench.submit(*["background"] * 8 * 800)
    flying, order = bench.advance(), list[int]()
    for _ in range(600):
        order.append(flying[0].rows)
        bench.now += 50 * MS
        flying = flying[1:] + bench.complete(flying[0])
    assert max(order[:400]) == 4, "so far full ones seem a waste"
    assert set(order[-15:]) == {8}


@check
def what_can_be_sent_does_not_count_as_waiting() -> None:
    bench = Bench(ONLINE, TrafficClass("background", 2, max_queue_size=1))
    bench.submit(*["background"] * 4)
    bench.advance()
    assert bench.outcomes == {}


@check
def a_request_that_has_begun_is_not_refused_as_full() -> None:
    late = TrafficClass("background", 2, max_queue_size=1, default_timeout=10 * MS, timeout_action=TimeoutAction.DELAY)
    bench = Bench(ONLINE, late, instances=2)
    for rows in (4, 4, 1, 1):  # the last would merge with the one before, so it stays
        bench.submit("background", rows=rows)
        bench.advance()
    bench.at(11).advance()
    (large,) = bench.submit("background", rows=12)
    (first_part,) = bench.advance()
    assert ids(first_part) == [large]
    assert bench.outcomes == {}


# By hand: what callers are promised.


@check
def delayed_requests_come_after_the_unexpired() -> None:
    late = TrafficClass("background", 2, default_timeout=10 * MS, timeout_action=TimeoutAction.DELAY)
    bench = Bench(ONLINE, late, max_batch_size=1)
    *_, expired = bench.submit("background", "background", "background")
    running, ahead = bench.advance()
    (fresh,) = bench.at(9).submit("background")
    bench.advance()
    bench.at(11).advance()
    order = [ids(sent)[0] for dispatch in (running, ahead) for sent in bench.complete(dispatch)]
    assert order == [fresh, expired]


@check
def a_caller_may_only_shorten_the_timeout() -> None:
    bench = Bench(ONLINE, TrafficClass("background", 2, default_timeout=10 * MS), max_batch_size=1)
    *_, waits = bench.submit("background", "background", "background", timeout_ms=1000)
    bench.advance()
    bench.at(10).advance()
    assert bench.outcomes == {waits: "timeout"}


@check
def draining_refuses_the_new_and_serves_the_old() -> None:
    bench = Bench(max_batch_size=1)
    old = bench.submit("background", "background")
    flying = bench.advance()
    bench.scheduler.drain()
    (new,) = bench.submit("online")
    bench.advance()
    for dispatch in flying:
        bench.complete(dispatch)
    assert bench.outcomes == {old[0]: "success", old[1]: "success", new: "unavailable"}
