# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from priority_router.core.values import SECOND
from priority_router.ops.bench.arrivals import drawn, poisson, recorded
from priority_router.ops.loads import ARRIVALS, ClassLoad

ONLINE, BACKGROUND = ClassLoad("online", 16), ClassLoad("background", 110)


def columns(schedule):
    return schedule.at, schedule.class_index, schedule.payload


def test_the_same_seed_gives_the_same_arrays():
    first, second = (poisson([ONLINE, BACKGROUND], 30, (1, 2), payloads=7) for _ in range(2))
    for one, other in zip(columns(first), columns(second), strict=True):
        assert_array_equal(one, other)


def test_another_round_gives_other_arrivals():
    first, second = (poisson([ONLINE, BACKGROUND], 30, (1, number)) for number in range(2))
    assert len(first) != len(second) or (first.at != second.at).any()


@pytest.mark.parametrize("others", [[], [ClassLoad("background", 0)], [ClassLoad("background", 7), ClassLoad("x", 9)]])
def test_a_class_does_not_change_with_the_others(others):
    crowded = poisson([ONLINE, BACKGROUND], 30, 3)
    other = poisson([ONLINE, *others], 30, 3)
    assert_array_equal(other.at[other.class_index == 0], crowded.at[crowded.class_index == 0])


@given(
    rates=st.lists(st.floats(0, 200), min_size=1, max_size=4),
    duration=st.floats(0.01, 5),
    seed=st.integers(0, 2**63),
    payloads=st.integers(1, 5),
)
def test_arrivals_are_ordered_and_inside_the_run(rates, duration, seed, payloads):
    schedule = poisson([ClassLoad(str(i), rate) for i, rate in enumerate(rates)], duration, seed, payloads)
    assert (np.diff(schedule.at) >= 0).all()
    assert ((schedule.at >= 0) & (schedule.at <= schedule.duration)).all()
    assert set(schedule.payload.tolist()) <= set(range(payloads))
    assert set(schedule.class_index.tolist()) <= set(range(len(rates)))


def test_counts_and_gaps_are_those_of_a_poisson_process():
    counts = [np.bincount(poisson([ONLINE, BACKGROUND], 30, seed).class_index) for seed in range(200)]
    for index, mean in ((0, 480), (1, 3300)):
        seen = np.array([count[index] for count in counts])
        assert abs(seen.mean() - mean) < 4 * np.sqrt(mean / len(counts))
        assert 0.7 < seen.var() / mean < 1.4
    gaps = np.diff(poisson([BACKGROUND], 300, 1).at) / SECOND
    # The deviation of an exponential gap equals its mean.
    assert abs(gaps.std() / gaps.mean() - 1) < 0.05


@given(parts=st.integers(1, 5))
def test_shares_are_a_partition(parts):
    schedule = poisson([ONLINE, BACKGROUND], 2, 5, payloads=3)
    shares = [schedule.share(part, parts) for part in range(parts)]
    assert sum(map(len, shares)) == len(schedule)
    together = np.concatenate([share.at for share in shares])
    assert_array_equal(np.sort(together), schedule.at)
    assert {share.duration for share in shares} == {schedule.duration}


@pytest.mark.parametrize(
    ("loads", "duration", "payloads"),
    [([], 1, 1), ([ONLINE, ONLINE], 1, 1), ([ONLINE], 0, 1), ([ONLINE], 1, 0), ([ClassLoad("x", -1)], 1, 1)],
)
def test_senseless_loads_are_refused(loads, duration, payloads):
    with pytest.raises(ValueError, match=r"load|duration"):
        poisson(loads, duration, 1, payloads)


BURSTS = ClassLoad("online", 8, arrivals="burst", burst_size=16, burst_start_s=1.0)


def test_bursts_come_at_once_after_the_warm_up_and_keep_their_rate():
    schedule = drawn([BURSTS, BACKGROUND], 30, 1, [3, 1], warmup_s=5)
    at = schedule.at[schedule.class_index == 0] / SECOND
    assert sorted(set(at.tolist())) == [6.0 + 2 * i for i in range(12)]
    assert len(at) == 12 * 16
    poisson_alone = poisson([BURSTS, BACKGROUND], 30, 1)
    # Another class's arrivals do not change with how this one comes.
    assert_array_equal(schedule.at[schedule.class_index == 1], poisson_alone.at[poisson_alone.class_index == 1])


def test_constant_arrivals_are_even_and_two_classes_do_not_come_together():
    loads = [ClassLoad(name, 20, arrivals="constant") for name in ("a", "b")]
    schedule = drawn(loads, 10, 7, [1, 1])
    first, second = (schedule.at[schedule.class_index == index] / SECOND for index in (0, 1))
    for at in (first, second):
        assert len(at) == pytest.approx(200, abs=1)
        assert np.diff(at) == pytest.approx(0.05)
    assert abs(first[0] - second[0]) > 1e-4


@pytest.mark.parametrize("arrivals", ARRIVALS)
def test_no_rate_means_no_request_and_a_seed_the_same_ones(arrivals):
    silent = ClassLoad("silent", 0, arrivals=arrivals, burst_size=2)
    loads = [silent, ClassLoad("x", 5, arrivals=arrivals, burst_size=2)]
    first, second = (drawn(loads, 10, 3, [1, 4]) for _ in range(2))
    assert (first.class_index == 1).all()
    assert len(first)
    for one, other in zip(columns(first), columns(second), strict=True):
        assert_array_equal(one, other)
    assert ((first.at >= 0) & (first.at < first.duration)).all()


def test_a_recording_is_replayed_as_it_is_and_ends_with_the_run():
    times = [np.array([0.5, 1.0, 3.5]), np.array([0.75])]
    schedule = recorded(["a", "b"], times, [np.array([0, 2, 1]), np.array([4])], 3.0)
    assert (schedule.at / SECOND).tolist() == [0.5, 0.75, 1.0]
    assert schedule.class_index.tolist() == [0, 1, 0]
    assert schedule.payload.tolist() == [0, 4, 2]
    assert schedule.duration == 3 * SECOND
