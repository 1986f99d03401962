# SPDX-License-Identifier: Apache-2.0
"""Checks by hand of what an owner may ask for on top of the rules: docs/policies.md."""

from __future__ import annotations

from conformance.checks import check
from priority_router.core.values import Order, TrafficClass
from unit.core.build import BACKGROUND, MS, ONLINE, Bench, ids

# Order inside a class.


@check
def a_class_by_deadline_serves_the_earliest_first() -> None:
    bench = Bench(ONLINE, TrafficClass("background", 2, order=Order.DEADLINE), max_batch_size=1)
    bench.learn(50)
    bench.submit("background")
    (running,) = bench.advance()
    never = bench.submit("background")
    late, soon = (bench.submit("background", timeout_ms=timeout)[0] for timeout in (900, 300))
    order = []
    for _ in range(3):
        bench.now += 50 * MS
        (running,) = bench.complete(running)
        order += ids(running)
    assert order == [soon, late, *never]


@check
def the_order_inside_a_class_takes_no_turn_from_another() -> None:
    bench = Bench(TrafficClass("fifo", 1), TrafficClass("edf", 1, order=Order.DEADLINE), max_batch_size=1)
    bench.learn(50, class_name="fifo")
    bench.submit("fifo")
    (running,) = bench.advance()
    names = ["edf", "fifo", "edf", "fifo", "edf"]
    submitted = [bench.submit(name, timeout_ms=900 - 100 * at)[0] for at, name in enumerate(names)]
    order = []
    for _ in names:
        bench.now += 50 * MS
        (running,) = bench.complete(running)
        order += ids(running)
    assert order == [submitted[at] for at in (4, 1, 2, 3, 0)]


# Bounded blocking.


def _bounded(max_blocking: int = 45 * MS) -> Bench:
    """An executor that takes 5 ms and 10 ms per row, and fills its batches for that."""
    online = TrafficClass("online", 1, max_blocking=max_blocking)
    bench = Bench(TrafficClass("first", 1), online, BACKGROUND, max_batch_size=16, batch_efficiency=1.0)
    for rows in (16, 8, 4, 2, 1):
        bench.learn(5 + 10 * rows, rows=rows, class_name="first", times=6)
    return bench


@check
def less_urgent_dispatches_keep_to_the_blocking_budget() -> None:
    bench = _bounded()
    bench.submit(*["background"] * 16)
    (first,) = bench.advance()
    assert first.rows == 4
    assert bench.scheduler.over_budget == {"background": 0}


@check
def a_request_above_the_blocking_budget_is_split() -> None:
    bench = _bounded()
    (large,) = bench.submit("background", rows=6)
    (first,) = bench.advance()
    bench.now += 45 * MS
    rest = bench.complete(first)
    assert [sent.rows for sent in (first, *rest)] == [4, 2]
    bench.now += 25 * MS
    bench.complete(rest[0])
    assert bench.outcomes[large] == "success"


@check
def the_most_urgent_are_not_cut_by_their_own_budget() -> None:
    bench = _bounded()
    bench.submit(*["online"] * 16)
    first, *_ = bench.advance()
    assert first.rows == 16


@check
def a_dispatch_that_one_row_takes_over_the_budget_is_counted() -> None:
    bench = _bounded(max_blocking=5 * MS)
    bench.submit(*["background"] * 2)
    (first,) = bench.advance()
    assert first.rows == 1
    assert bench.scheduler.over_budget == {"background": 1}


@check
def where_no_row_count_keeps_to_the_budget_rows_that_cost_nothing_join() -> None:
    bench = Bench(TrafficClass("online", 1, max_blocking=20 * MS), BACKGROUND, max_batch_size=16)
    for rows in (16, 8, 4, 2, 1):
        bench.learn(50, rows=rows, class_name="online", times=6)
    bench.submit(*["background"] * 16)
    (first,) = bench.advance()
    assert first.rows == 16


@check
def one_measured_hiccup_in_ten_is_covered() -> None:
    online = TrafficClass("online", 1, max_blocking=46 * MS)
    bench = Bench(online, BACKGROUND, max_batch_size=4, batch_efficiency=1.0)
    for rows, times in ((4, (45, 45, 45, 65, 45)), (2, (25,) * 5), (1, (15,) * 5)):
        for time in times:
            bench.learn(time, rows=rows, class_name="online", times=1)
    bench.submit(*["background"] * 4)
    (first,) = bench.advance()
    assert first.rows == 3, "of four the median would do, but not nearly always"


# The age bound.


def _aged() -> tuple[list[int], list[int]]:
    """50 ms per request, 6 urgent ones before one that may wait for 200 ms, 9 after it: who was served when, at what
    level."""
    bench = Bench(ONLINE, TrafficClass("background", 2, max_wait=200 * MS), max_batch_size=1)
    bench.learn(50, class_name="online")
    bench.submit(*["online"] * 6)
    (old,) = bench.submit("background")
    bench.submit(*["online"] * 9)
    (running,) = bench.advance()
    order, levels = ids(running), [running.level]
    while len(order) < 16:
        bench.now += 50 * MS
        assert bench.scheduler.waiting["background"] == (old not in order)
        (running,) = bench.complete(running)
        order += ids(running)
        levels.append(running.level)
    return [number - old for number in order], levels


@check
def who_has_waited_long_enough_is_as_urgent_as_the_most_urgent() -> None:
    order, levels = _aged()
    assert order.index(0) < 15
    assert levels == [1] * 16


@check
def who_has_waited_long_enough_stands_by_its_arrival() -> None:
    order, _ = _aged()
    assert order == list(range(-6, 10))


@check
def the_age_bound_wakes_the_router() -> None:
    bench = Bench(ONLINE, TrafficClass("background", 2, max_wait=20 * MS), max_batch_size=1)
    bench.learn(50, class_name="online")
    bench.submit("online")
    bench.advance()
    start = bench.now
    bench.submit("background")
    bench.advance()
    assert bench.scheduler.next_wakeup() == start + 20 * MS
