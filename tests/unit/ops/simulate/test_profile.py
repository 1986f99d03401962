# SPDX-License-Identifier: Apache-2.0
"""Profiles: what a file says is what the modelled executor draws."""

import json
import random
from statistics import fmean

import pytest
from priority_router.core.values import MICROSECOND, MILLISECOND
from priority_router.ops.simulate import profile
from priority_router.ops.simulate.clock import Drawn
from priority_router.ops.simulate.executor import ExecutorShape
from priority_router.ops.simulate.profile import MeasuredTimes, ProfileError

SHAPE = ExecutorShape(2, 8, levels=False)
DELAYS = {name: [100.0, 200.0] for name in profile.WAYS}


def document(**changes):
    made = profile.as_json(SHAPE, {1: [5000.0, 5200.0], 8: [40000.0]}, 150.0, DELAYS, {"model": "router"}, 16)
    return json.loads(json.dumps({**made, **changes}))


def test_what_is_written_is_read():
    read = profile.parse(json.dumps(document()), "p.json")
    assert read.shape == SHAPE
    assert read.dispatch_overhead == 150 * MICROSECOND
    assert read.times.samples == {1: Drawn((5_000_000, 5_200_000)), 8: Drawn((40_000_000,))}
    assert read.delays.hand_over == Drawn((100_000, 200_000))
    assert read.recorded == {"model": "router"}
    assert read.largest_request == 16


def test_what_the_router_takes_may_be_left_out_and_without_a_batch_axis_is_one_row():
    made = document(router={"max_batch_size": 0})
    assert profile.parse(json.dumps(made), "p.json").largest_request == 1
    del made["router"]
    assert profile.parse(json.dumps(made), "p.json").largest_request is None


def test_a_way_that_is_not_told_takes_no_time():
    read = profile.parse(json.dumps(document(delays_us={})), "p.json")
    assert read.delays.answer.draw(random.Random(1)) == 0


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"schema": "priority-router-profile/0"}, "priority-router-profile/1"),
        ({"executor": {"instances": 0, "max_batch_size": 8}}, "executor.instances = 0"),
        ({"executor": {"instances": 1, "max_batch_size": True}}, "executor.max_batch_size = True"),
        ({"executor": {"instances": 1, "max_batch_size": 8, "levels": 1}}, "executor.levels = 1"),
        ({"executor": None}, "executor missing"),
        ({"router": {"max_batch_size": -1}}, "router.max_batch_size = -1"),
        ({"execution_us": {}}, "at least one row count"),
        ({"execution_us": {"0": [1]}}, "row count of at least 1"),
        ({"execution_us": {"one": [1]}}, "execution_us.one"),
        ({"execution_us": {"1": []}}, "execution_us.1 = []"),
        ({"execution_us": {"1": [-5]}}, "execution_us.1 = -5"),
        ({"execution_us": {"1": ["5"]}}, "execution_us.1 = '5'"),
        ({"execution_us": {"1": [float("nan")]}}, "execution_us.1 = nan"),
        ({"delays_us": {"call": [1], "handover": [1]}}, "delays_us.handover"),
        ({"dispatch_overhead_us": None}, "dispatch_overhead_us missing"),
    ],
)
def test_what_cannot_be_used_is_named(changes, said):
    with pytest.raises(ProfileError, match=r"p\.json") as caught:
        profile.parse(json.dumps(document(**changes)), "p.json")
    assert said in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "[]", "null"])
def test_other_files_are_refused(text):
    with pytest.raises(ProfileError, match=r"p\.json"):
        profile.parse(text, "p.json")


TIMES = MeasuredTimes({2: Drawn((10 * MILLISECOND, 20 * MILLISECOND)), 4: Drawn((30 * MILLISECOND, 60 * MILLISECOND))})


@pytest.mark.parametrize(("rows", "low", "high"), [(1, 10, 20), (2, 10, 20), (3, 20, 40), (4, 30, 60), (8, 60, 120)])
def test_times_lie_between_those_measured_and_go_on_in_proportion(rows, low, high):
    rng = random.Random(1)
    drawn = [TIMES.draw(rows, 0, rng) / MILLISECOND for _ in range(2000)]
    assert low <= min(drawn) < low + 0.02 * high
    assert high * 0.98 < max(drawn) <= high
    assert TIMES.expected(rows, 0) / MILLISECOND == pytest.approx((low + high) / 2)
    assert fmean(drawn) == pytest.approx((low + high) / 2, rel=0.02)


def test_long_lists_are_thinned_and_one_odd_value_counts_for_one():
    thin = profile.thinned([*(float(value) for value in range(1, 10_000)), 1e9])
    assert len(thin) == profile.MOST_SAMPLES
    assert thin == sorted(thin)
    assert thin[profile.MOST_SAMPLES // 2] == pytest.approx(5000, rel=0.01)
    assert thin[-1] < 10_000
    assert profile.thinned([3.0, 1.0, 2.0]) == [1.0, 2.0, 3.0]


def test_the_mean_of_drawn_is_that_of_its_draws():
    way = Drawn((0, 100, 1000))
    rng = random.Random(2)
    assert way.mean == pytest.approx(300)
    assert fmean(way.draw(rng) for _ in range(20_000)) == pytest.approx(300, rel=0.02)
