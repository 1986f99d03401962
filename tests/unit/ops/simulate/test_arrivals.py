# SPDX-License-Identifier: Apache-2.0
import random
from itertools import pairwise

import pytest
from priority_router.core.values import SECOND
from priority_router.ops.simulate.arrivals import Stream, few_signatures, own_signatures, rows_up_to, traffic

LONG = 200 * SECOND


def test_the_same_seed_gives_the_same_traffic_and_another_does_not():
    streams = [Stream("a", 20, rows_up_to(3), few_signatures(2)), Stream("b", 5, burst=3, cancel_share=0.5)]
    first, again, other = (list(traffic(streams, seed, LONG)) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_one_stream_can_change_without_moving_the_others():
    kept = [each for each in traffic([Stream("a", 20), Stream("b", 5)], 1, LONG) if each.class_name == "a"]
    assert kept == [each for each in traffic([Stream("a", 20), Stream("b", 90)], 1, LONG) if each.class_name == "a"]


def test_streams_of_equal_rate_do_not_arrive_together():
    arrivals = list(traffic([Stream("a", 40), Stream("a", 40)], 1, LONG))
    assert len({each.time for each in arrivals}) > 0.99 * len(arrivals)


def test_arrivals_are_in_order_and_inside_the_time_asked_for():
    times = [each.time for each in traffic([Stream("a", 50), Stream("b", 50)], 1, SECOND, begin=3 * SECOND)]
    assert times == sorted(times)
    assert times[0] >= 3 * SECOND
    assert times[-1] < 4 * SECOND


@pytest.mark.parametrize("burst", [1, 4])
def test_the_rate_is_that_of_requests(burst):
    count = len(list(traffic([Stream("a", 40, burst=burst)], 1, LONG)))
    assert count / 200 == pytest.approx(40, rel=0.05)


def test_gaps_vary_as_those_of_a_poisson_process():
    times = [each.time for each in traffic([Stream("a", 40)], 1, LONG)]
    gaps = [after - before for before, after in pairwise(times)]
    mean = sum(gaps) / len(gaps)
    spread = (sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) ** 0.5
    assert spread == pytest.approx(mean, rel=0.05)


def test_the_requests_of_a_burst_arrive_together():
    arrivals = list(traffic([Stream("a", 40, burst=4)], 1, SECOND))
    assert len(arrivals) % 4 == 0
    assert all(len({each.time for each in arrivals[at : at + 4]}) == 1 for at in range(0, len(arrivals), 4))


def test_a_stream_without_a_rate_is_silent():
    assert list(traffic([Stream("a", 0)], 1, LONG)) == []


def test_some_callers_go_away():
    arrivals = list(traffic([Stream("a", 40, cancel_share=0.25, patience=SECOND)], 1, LONG))
    patience = [each.cancel_after for each in arrivals if each.cancel_after]
    assert len(patience) / len(arrivals) == pytest.approx(0.25, abs=0.02)
    assert sum(patience) / len(patience) == pytest.approx(SECOND, rel=0.1)


def test_mixes_draw_what_they_say():
    rng = random.Random(1)
    assert {rows_up_to(3)(rng) for _ in range(99)} == {1, 2, 3}
    assert {few_signatures(2)(rng) for _ in range(99)} == {0, 1}
    own = own_signatures()
    assert len({own(rng) for _ in range(99)}) == 99
