# SPDX-License-Identifier: Apache-2.0
"""The oracle and the simpler rules, on cases small enough to work out by hand."""

import pytest
from priority_router.core.values import SchedulingPolicy, TrafficClass
from priority_router.ops.simulate.arrivals import Arrival
from priority_router.ops.simulate.baselines import FixedDepth
from priority_router.ops.simulate.executor import ExecutorShape, ServiceTimes
from priority_router.ops.simulate.oracle import Oracle
from priority_router.ops.simulate.simulation import NO_DELAYS, Setup, Simulation
from priority_router.ops.simulate.summary import percentile, summarize

FIXED = ServiceTimes(100)
LINEAR = ServiceTimes(0, 100)


def policy(**keys):
    classes = (TrafficClass("online", 1), TrafficClass("background", 2))
    return SchedulingPolicy(classes, **{"max_batch_size": 1, **keys})


def arrivals(*described):
    return [Arrival(time, {"o": "online", "b": "background"}[name], *more) for time, name, *more in described]


def answered(times, *described, **keys):
    oracle = Oracle(policy(**keys), times, seed=1)
    oracle.run(arrivals(*described))
    return list(oracle.answered)


def test_a_running_batch_is_not_interrupted_and_the_urgent_goes_next():
    assert answered(FIXED, (0, "b"), (10, "b"), (20, "o")) == [100, 300, 200]


def test_it_sleeps_while_nothing_waits():
    assert answered(FIXED, (0, "o"), (500, "o")) == [100, 600]


def test_two_instances_serve_two_at_once():
    assert answered(FIXED, (0, "b"), (0, "b"), (0, "b"), instances=2) == [100, 100, 200]


def test_a_batch_costs_nothing_more_so_it_is_filled_with_the_less_urgent():
    assert answered(FIXED, (0, "b"), (10, "b"), (20, "o"), (30, "b"), max_batch_size=2) == [100, 200, 200, 300]


def test_where_rows_cost_the_less_urgent_do_not_join_and_do_not_batch():
    described = ((0, "b"), (10, "b"), (11, "b"), (20, "o"))
    assert answered(LINEAR, *described, max_batch_size=4) == [100, 300, 400, 200]
    oracle = Oracle(policy(max_batch_size=4), LINEAR, seed=1, limited=False)
    oracle.run(arrivals(*described))
    assert list(oracle.answered) == [100, 400, 400, 400]


def test_other_signatures_and_rows_that_do_not_fit_wait():
    described = ((0, "o", 1, "s"), (1, "o", 1, "s"), (2, "o", 1, "t"), (3, "o", 2, "s"), (4, "o", 2, "s"))
    assert answered(FIXED, *described, max_batch_size=3) == [100, 200, 300, 200, 400]


def test_busy_time_and_rows_count_inside_the_window_alone():
    oracle = Oracle(policy(), FIXED, seed=1, window=(50, 150))
    oracle.run(arrivals((0, "o"), (0, "o"), (0, "o")))
    assert (oracle.busy, oracle.rows) == (100, 1)


class TestFixedDepth:
    def ends(self, in_flight, *described, **keys):
        rules = policy(max_batch_size=2)
        setup = Setup(ExecutorShape(1, 2), FIXED, NO_DELAYS, dispatch_overhead=0)
        simulation = Simulation(FixedDepth(rules, in_flight, **keys), setup, arrivals(*described), seed=1)
        simulation.run()
        return list(simulation.answered)

    TRAFFIC = ((0, "b"), (10, "b"), (11, "b"), (20, "o"))

    def test_one_at_a_time_passes_what_waits(self):
        assert self.ends(1, *self.TRAFFIC) == [100, 200, 300, 200]

    def test_two_in_flight_lets_the_urgent_wait_for_one_more(self):
        assert self.ends(2, (0, "b", 2), (10, "b", 2), (11, "b", 2), (20, "o", 2)) == [100, 200, 400, 300]

    def test_by_arrival_nobody_is_passed(self):
        assert self.ends(1, *self.TRAFFIC, by_level=False) == [100, 200, 200, 300]

    def test_without_joins_triton_merges_what_clients_send(self):
        assert self.ends(99, *self.TRAFFIC, joins=False) == [100, 200, 300, 200]


class TestSummary:
    @pytest.mark.parametrize(("share", "value"), [(0.5, 50), (0.95, 95), (0.99, 99), (0.001, 1), (1.0, 100)])
    def test_percentiles_by_nearest_rank(self, share, value):
        assert percentile(list(range(1, 101)), share) == value

    def test_one_value_is_every_percentile(self):
        assert {percentile([7], share) for share in (0.5, 0.95, 0.99)} == {7}

    def test_only_the_answered_that_arrived_inside_the_window_count(self):
        ms = 1_000_000
        arrived = [0, 10 * ms, 20 * ms, 30 * ms]
        answers = [5 * ms, 14 * ms, -1, 99 * ms]
        summaries = summarize(arrived, answers, ["a", "a", "a", "b"], (10 * ms, 30 * ms))
        assert list(summaries) == ["a"]
        assert (summaries["a"].count, summaries["a"].p50, summaries["a"].worst) == (1, 4.0, 4.0)
