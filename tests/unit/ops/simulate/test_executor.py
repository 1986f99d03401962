# SPDX-License-Identifier: Apache-2.0
"""The modelled executor: what runs with what, in which order, and for how long."""

import random

import pytest
from priority_router.ops.simulate.clock import EventLoop
from priority_router.ops.simulate.executor import Call, ExecutorShape, ModelledExecutor, ServiceTimes


class Rig:
    """An executor that takes 10 per batch and 1 per row, and what it ran: (start, end, owners)."""

    def __init__(self, *, instances=1, max_batch_size=4, levels=True, times=None, **options):
        self.loop = EventLoop()
        self.ran: list[tuple[int, int, str]] = []
        self.executor = ModelledExecutor(
            self.loop,
            ExecutorShape(instances, max_batch_size, levels),
            times or ServiceTimes(10, 1),
            random.Random(1),
            lambda calls: self.ran.append((calls[0].start, self.loop.now, "".join(call.owner for call in calls))),
            **options,
        )

    def enqueue(self, time, owner, level=1, rows=1, signature="s"):
        self.loop.at(time, self.executor.enqueue, Call(level, rows, signature, owner))

    def run(self):
        self.loop.run()
        return self.ran


def test_an_idle_instance_starts_at_once_and_what_comes_meanwhile_merges():
    rig = Rig()
    for time, owner in ((5, "a"), (6, "b"), (7, "c")):
        rig.enqueue(time, owner)
    assert rig.run() == [(5, 16, "a"), (16, 28, "bc")]


def test_only_neighbours_of_equal_signature_that_fit_merge():
    rig = Rig()
    rig.enqueue(0, "x")
    for owner, rows, signature in (("a", 2, "s"), ("b", 1, "t"), ("c", 1, "s"), ("d", 3, "s"), ("e", 1, "s")):
        rig.enqueue(1, owner, rows=rows, signature=signature)
    assert [owners for _, _, owners in rig.run()] == ["x", "a", "b", "cd", "e"]


def test_a_call_that_does_not_fit_is_not_skipped():
    rig = Rig()
    rig.enqueue(0, "x")
    for owner, rows in (("a", 2), ("b", 3), ("c", 1)):
        rig.enqueue(1, owner, rows=rows)
    assert [owners for _, _, owners in rig.run()] == ["x", "a", "bc"]


@pytest.mark.parametrize(("levels", "order"), [(True, ["x", "b", "ca"]), (False, ["x", "a", "b", "c"])])
def test_the_queue_is_by_level_or_by_arrival(levels, order):
    rig = Rig(levels=levels)
    rig.enqueue(0, "x", level=2)
    rig.enqueue(1, "a", level=2, rows=2)
    rig.enqueue(2, "b", level=1, rows=4)
    rig.enqueue(3, "c", level=1, rows=2)
    assert [owners for _, _, owners in rig.run()] == order


def test_without_a_batch_axis_nothing_merges():
    rig = Rig(max_batch_size=0)
    for owner in "abc":
        rig.enqueue(0, owner)
    assert rig.run() == [(0, 11, "a"), (11, 22, "b"), (22, 33, "c")]


def test_instances_run_side_by_side():
    rig = Rig(instances=2, max_batch_size=1)
    for owner in "abc":
        rig.enqueue(0, owner)
    assert rig.run() == [(0, 11, "a"), (0, 11, "b"), (11, 22, "c")]


def test_the_overhead_lies_between_two_batches_and_not_before_the_first():
    rig = Rig(max_batch_size=1, dispatch_overhead=3)
    rig.enqueue(0, "a")
    rig.enqueue(0, "b")
    assert rig.run() == [(0, 11, "a"), (14, 25, "b")]


def test_busy_time_and_rows_count_inside_the_window_alone():
    rig = Rig(max_batch_size=1, window=(5, 25))
    for owner in "abc":
        rig.enqueue(0, owner)
    rig.run()
    assert (rig.executor.busy, rig.executor.rows, rig.executor.batches) == (20, 2, 2)


class TestServiceTimes:
    rng = random.Random(1)

    def test_base_and_rows(self):
        assert ServiceTimes(10, 2).draw(3, 0, self.rng) == 16
        assert ServiceTimes(10, 2).expected(3, 0) == 16

    def test_jitter_stays_within_its_spread(self):
        draws = [ServiceTimes(1000, spread=0.1).draw(1, 0, self.rng) for _ in range(999)]
        assert 900 <= min(draws) < 920
        assert 1080 < max(draws) <= 1100

    def test_some_take_much_longer(self):
        times = ServiceTimes(10, long_factor=41, long_share=0.5)
        draws = [times.draw(1, 0, self.rng) for _ in range(2000)]
        assert set(draws) == {10, 410}
        assert draws.count(410) / 2000 == pytest.approx(0.5, abs=0.05)
        assert times.expected(1, 0) == 210

    @pytest.mark.parametrize(("now", "factor"), [(0, 1), (25, 2), (50, 3), (75, 2), (100, 1), (150, 3)])
    def test_drift_is_a_triangle(self, now, factor):
        assert ServiceTimes(10, peak=3, period=100).draw(1, now, self.rng) == 10 * factor
