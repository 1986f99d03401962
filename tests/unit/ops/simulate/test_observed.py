# SPDX-License-Identifier: Apache-2.0
"""A recording of a made-up server, whose times are known, gives these times."""

import random
from dataclasses import replace
from statistics import fmean, median

import pytest
from priority_router.core.values import MICROSECOND, MILLISECOND, SECOND
from priority_router.ops.simulate.counted import Counters, Page
from priority_router.ops.simulate.observed import (
    USUAL_OVERHEAD_US,
    USUAL_TIMER_US,
    Alone,
    Loaded,
    Recording,
    Reply,
    under_load,
)

US = MICROSECOND
REQUEST, HAND_OVER, INTO_BATCH, AROUND, ANSWER = 300 * US, 200 * US, 50 * US, 400 * US, 300 * US
GAP = 150 * US


def execution(rows):
    return (5 + 2 * rows) * MILLISECOND


def alone(rows, at):
    executor = AROUND + INTO_BATCH + execution(rows)
    done = at + REQUEST + HAND_OVER + executor + ANSWER
    return Alone(
        Reply(rows, at, done, HAND_OVER, executor), Counters(1, INTO_BATCH, {rows: 1}, {rows: execution(rows)})
    )


def recording():
    """Requests alone, then batches of 4 one after the other, each sent 2 ms before the one before it ended."""
    made = Recording(
        alone=[alone(rows, at) for rows in (1, 4) for at in range(0, 1000 * MILLISECOND, 50 * MILLISECOND)]
    )
    replies = []
    end = queue = 0
    count = 40
    for number in range(count):
        waited = 2 * MILLISECOND + GAP
        end += GAP + execution(4)
        # Each call's time is its own, as it is on a real server, to the microsecond.
        executor = AROUND + waited + execution(4) + number % 7 * US
        queue += waited
        returned = end + AROUND // 2
        for place in range(4):
            done = returned + ANSWER + place * 100 * US
            replies.append(Reply(1, done - 60 * MILLISECOND, done, 20 * MILLISECOND, executor))
    made.loads.append(Loaded(replies, Counters(count, queue, {4: count}, {4: count * execution(4)})))
    return made


def test_executions_are_what_the_counters_gained():
    assert recording().execution_us() == {1: [7000.0] * 20, 4: [13000.0] * 20}


def test_executions_that_take_longer_under_load_are_longer_in_the_mean():
    made = recording()
    slower = 40 * (execution(4) + 300 * US)
    [load] = made.loads
    made.loads = [Loaded(load.replies, replace(load.gained, computed={4: slower}))]
    times = made.execution_us()
    assert fmean(times[4]) == pytest.approx(13_300)
    assert fmean(times[1]) == pytest.approx(7_300)
    assert min(times[4]) == pytest.approx(13_000, abs=20)


def test_a_moment_of_standstill_is_no_property_of_the_executor():
    made = recording()
    [load] = made.loads
    stood = Loaded(
        [replace(reply, executor=reply.executor + 900 * MILLISECOND) for reply in load.replies[:4]],
        Counters(1, 0, {4: 1}, {4: execution(4) + 500 * MILLISECOND}),
    )
    made.loads = [load, stood, load]
    assert made.execution_us() == recording().execution_us()
    assert made.delays_us()["reply"] == recording().delays_us()["reply"]


def test_without_requests_of_its_own_the_means_remain():
    seen = [
        Counters(30, 0, {1: 10, 4: 20}, {1: 70 * MILLISECOND, 4: 260 * MILLISECOND}),
        Counters(10, 0, {4: 10}, {4: 140 * MILLISECOND}),
    ]
    watched = Recording(loads=[Loaded((), gained) for gained in seen])
    assert watched.execution_us() == {1: [7000.0], 4: [13000.0, 14000.0]}
    assert watched.delays_us() == {}
    assert watched.overhead_us() == USUAL_OVERHEAD_US


def test_every_way_is_found():
    ways = recording().delays_us()
    assert set(ways["hand_over"]) == {200.0}
    assert set(ways["request"]) == {300.0}
    assert set(ways["call"]) == {250.0}
    assert median(ways["reply"]) == pytest.approx(200, abs=10)
    assert ways["timer"] == list(USUAL_TIMER_US)


def test_an_executor_that_has_nothing_to_do_takes_its_time_to_wake_up():
    """Ten more dispatches, each long after the one before it, which take 600 us more than those that had to wait."""
    made = recording()
    [load] = made.loads
    last = max(reply.done for reply in load.replies)
    late = AROUND + INTO_BATCH + 600 * US + execution(4)
    lone = [
        Reply(4, last + number * SECOND, last + number * SECOND + late + number * US, 0, late + number * US)
        for number in range(1, 11)
    ]
    gained = replace(
        load.gained,
        requests=50,
        queue=load.gained.queue + 10 * (INTO_BATCH + 600 * US),
        executions={4: 50},
        computed={4: 50 * execution(4)},
    )
    made.loads = [Loaded([*load.replies, *lone], gained)]
    ways = made.delays_us()
    assert min(ways["call"]) == pytest.approx(250, abs=10)
    assert fmean(ways["call"]) == pytest.approx(250 + 600, abs=20)
    assert fmean(ways["reply"]) == pytest.approx(200, abs=10)


def test_answers_are_those_under_load():
    made = recording()
    outside = [reply.outside for reply in made.together]
    ways = made.delays_us()
    assert fmean(ways["answer"]) == pytest.approx(fmean(outside) / US - 300, abs=1)
    assert Recording(alone=made.alone).delays_us()["answer"] == [300.0] * 40


def test_requests_of_one_call_are_found_by_its_time():
    found = recording().loads[0].dispatches()
    assert len(found) == 40
    assert {dispatch.rows for dispatch in found} == {4}


def test_the_gap_between_batches_is_found_where_the_next_one_waited():
    assert recording().overhead_us() == pytest.approx(150, abs=10)
    made = recording()
    made.instances = 2
    assert made.overhead_us() == USUAL_OVERHEAD_US


def test_a_request_beside_others_is_known():
    assert alone(4, 0).undisturbed
    for gained in (Counters(2, 0, {4: 2}, {4: 1}), Counters(1, 0, {5: 1}, {5: 1}), Counters(2, 0, {4: 1}, {4: 1})):
        assert not Alone(alone(4, 0).reply, gained).undisturbed


def test_counters_read_what_triton_says():
    entry = {
        "inference_stats": {"success": {"count": "7"}, "queue": {"count": "7", "ns": "900"}},
        "batch_stats": [
            {
                "batch_size": "4",
                "compute_input": {"count": "2", "ns": "1"},
                "compute_infer": {"count": "2", "ns": "20"},
                "compute_output": {"count": "2", "ns": "300"},
            }
        ],
    }
    read = Counters.of(entry)
    assert read == Counters(7, 900, {4: 2}, {4: 321})
    later = Counters(9, 1000, {1: 1, 4: 2}, {1: 50, 4: 321})
    assert later.since(read) == Counters(2, 100, {1: 1}, {1: 50})
    assert Counters.of({}) == Counters(0, 0, {}, {})


PAGE = """
# HELP priority_router_hand_over_seconds_bucket Time
priority_router_hand_over_seconds_bucket{le="+Inf",model="router"} 100
priority_router_hand_over_seconds_bucket{le="0.0002",model="router"} 100
priority_router_hand_over_seconds_bucket{le="0.0001",model="router"} 50
priority_router_hand_over_seconds_bucket{le="0.0001",model="other"} 7
priority_router_timer_lateness_seconds_count{model="router"} 10
priority_router_timer_lateness_seconds_sum{model="router"} 0.004
"""


def test_the_routers_own_share_comes_from_its_metrics():
    nothing = Page({}, 0, 0)
    page = Page.of(PAGE, "router").since(nothing)
    times = page.hand_over_us()
    assert len(times) == 100
    assert min(times) == pytest.approx(1)
    assert max(times) == pytest.approx(199)
    assert median(times) == pytest.approx(100, abs=2)
    made = recording()
    made.page = page
    assert made.delays_us()["hand_over"] == times
    assert fmean(made.delays_us()["timer"]) == pytest.approx(400)
    assert Page.of("", "router").hand_over_us() == []
    assert page.plus(page).hand_over_us() == times
    assert (page.plus(page).wake_ups, page.plus(None)) == (20, page)


def test_under_load_the_bulk_stays_and_the_mean_is_the_one_seen():
    rng = random.Random(1)
    quiet = [100 + rng.random() + (50 if place % 10 == 0 else 0) for place in range(400)]
    made = under_load(quiet, 130)
    assert fmean(made) == pytest.approx(130, rel=0.01)
    assert min(made) == pytest.approx(100, abs=0.5)
    assert max(under_load(quiet, 90)) < 102
