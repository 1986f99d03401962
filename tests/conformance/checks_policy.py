# SPDX-License-Identifier: Apache-2.0
"""Checks by hand of what an owner may ask for on top of the rules: docs/policies.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformance.checks import check
from priority_router.core.service_times import TRIAL_AGAIN
from priority_router.core.values import Dispatch, Order, TrafficClass
from priority_router.errors import ExecutorFailed
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
def less_urgent_rows_fill_an_urgent_dispatch_within_the_blocking_budget() -> None:
    bench = _bounded()
    bench.submit("first", *["background"] * 16)
    (short,) = bench.advance()
    assert short.rows == 1, "what it wastes is not paid for, so the next is filled"
    bench.submit("first")
    bench.now += 15 * MS
    (filled,) = bench.complete(short)
    assert filled.rows == 4


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


def _slow_once(*times: float, max_blocking: int = 21 * MS) -> Bench:
    """An executor of 4 ms and 4 ms per row, so that four rows keep to 21 ms, but for these times of them."""
    online = TrafficClass("online", 1, max_blocking=max_blocking)
    bench = Bench(TrafficClass("first", 1), online, BACKGROUND, max_batch_size=8)
    for rows in (8, 2, 1):
        bench.learn(4 + 4 * rows, rows=rows, class_name="first")
    for time in times:
        bench.learn(time, rows=4, class_name="first", times=1)
    return bench


def _rows_sent(bench: Bench, dispatches: int, of_four: float = 20) -> list[int]:
    """Rows of so many dispatches under a steady backlog, where four take that many ms."""
    bench.submit(*["background"] * 4 * dispatches)
    flying = bench.advance()
    order: list[int] = []
    while len(order) < dispatches:
        order.append(flying[0].rows)
        bench.now += round((of_four if flying[0].rows == 4 else 4 + 4 * flying[0].rows) * MS)
        flying = flying[1:] + bench.complete(flying[0])
    return order


@check
def rows_once_measured_too_slow_are_tried_again_after_a_while() -> None:
    bench = _slow_once(20, 20, 60, 60)
    order = _rows_sent(bench, TRIAL_AGAIN + 40)
    assert max(order[: TRIAL_AGAIN - 20]) == 2
    assert order[-15:] == [4] * 15
    assert bench.scheduler.over_budget == {"background": 0}


@check
def rows_that_are_too_slow_break_the_bound_seldom() -> None:
    order = _rows_sent(_slow_once(60, 60, 60), 3 * TRIAL_AGAIN, of_four=60)
    assert order.count(4) in (2, 3)
    assert max(order) == 4


@check
def rows_known_to_be_too_slow_are_not_tried() -> None:
    assert max(_rows_sent(_slow_once(20, 20, 20, max_blocking=19 * MS), TRIAL_AGAIN + 40)) == 3


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


# Guaranteed shares.

QUARTER = TrafficClass("background", 2, min_share=0.25)


def _shared(
    *classes: TrafficClass, ms: Mapping[str, float], dispatches: int = 80, quiet: int = 0, **keys: Any
) -> tuple[Bench, list[Dispatch]]:
    """Every class of ``ms`` has work, ``background`` only after ``quiet`` dispatches; a row takes that long."""
    bench = Bench(*classes, **{"max_batch_size": 1, **keys})
    (running,) = bench.submit("online") and bench.advance()
    ran: list[Dispatch] = []
    pending: list[Dispatch] = [running]
    for number in range(dispatches):
        for name in ms:
            missing = 20 - bench.scheduler.waiting[name]
            if missing > 0 and (number >= quiet or name != "background"):
                bench.submit(*[name] * missing)
        pending += bench.advance()
        dispatch = pending.pop(0)
        ran.append(dispatch)
        bench.now += round(dispatch.rows * ms[bench.names[ids(dispatch)[0]]] * MS)
        pending += bench.complete(dispatch)
    return bench, ran


def _time_of(bench: Bench, ran: list[Dispatch], ms: Mapping[str, float], name: str) -> float:
    """Share of the time that dispatches headed by this class took."""
    took = [(bench.names[ids(each)[0]], each.rows * ms[bench.names[ids(each)[0]]]) for each in ran]
    return sum(time for who, time in took if who == name) / sum(time for _, time in took)


@check
def a_class_gets_its_share_of_time_and_no_more() -> None:
    for slow in (50, 150, 20):
        ms = {"online": 50, "background": slow}
        bench, ran = _shared(ONLINE, QUARTER, ms=ms, dispatches=200)
        assert 0.23 < _time_of(bench, ran, ms, "background") < 0.27, slow


@check
def an_absent_class_changes_nobodys_share() -> None:
    ms = {"online": 50, "background": 50}
    bench, ran = _shared(ONLINE, QUARTER, TrafficClass("absent", 2, min_share=0.5), ms=ms, dispatches=200)
    assert 0.23 < _time_of(bench, ran, ms, "background") < 0.27


@check
def an_idle_class_banks_nothing() -> None:
    ms = {"online": 50, "background": 50}
    bench, ran = _shared(ONLINE, QUARTER, ms=ms, dispatches=120, quiet=80)
    assert sum(bench.names[ids(each)[0]] == "background" for each in ran[80:96]) <= 5


@check
def time_that_nobody_else_wanted_is_not_held_against_a_class() -> None:
    """Alone for 10 s, it has its share again a second after others came."""
    bench = Bench(ONLINE, QUARTER, max_batch_size=1)
    bench.learn(50, times=200)
    bench.submit(*["online"] * 40, *["background"] * 40)
    (running,) = bench.advance()
    order = []
    for _ in range(40):
        order.append(bench.names[ids(running)[0]])
        bench.now += 50 * MS
        (running,) = bench.complete(running)
    assert order.count("background") >= 4


@check
def a_failed_pick_is_not_charged() -> None:
    bench, _ = _shared(ONLINE, QUARTER, ms={"online": 50, "background": 50})
    before = len(bench.sent)
    while bench.names[ids(bench.sent[-1])[0]] != "background":
        bench.now += 50 * MS
        bench.complete(bench.flying()[0])
    failed = bench.sent[-1]
    while bench.flying()[0] is not failed:
        bench.now += 50 * MS
        bench.complete(bench.flying()[0])
    assert len(bench.sent) > before
    bench.now += 50 * MS
    (following, *_) = bench.complete(failed, ExecutorFailed("no"))
    assert bench.names[ids(following)[0]] == "background"


@check
def a_class_that_always_fails_gets_no_more_than_its_share() -> None:
    bench = Bench(ONLINE, QUARTER, max_batch_size=1)
    bench.learn(50, times=6, class_name="online")
    bench.submit(*["online"] * 90, *["background"] * 90)
    (running,) = bench.advance()
    order = []
    for _ in range(80):
        order.append(bench.names[ids(running)[0]])
        bench.now += 50 * MS
        (running,) = bench.complete(running, ExecutorFailed("no") if order[-1] == "background" else None)
    assert 15 < order.count("background") < 25


@check
def a_dispatch_for_a_share_is_not_passed_inside_triton() -> None:
    bench, ran = _shared(ONLINE, QUARTER, ms={"online": 50, "background": 50})
    assert {each.level for each in ran} == {1}
    assert {bench.names[ids(each)[0]] for each in ran} == {"online", "background"}


@check
def a_dispatch_for_a_share_is_filled_from_its_own_class_first() -> None:
    bench = Bench(ONLINE, TrafficClass("older", 2), QUARTER, max_batch_size=4)
    for rows in (4, 2, 1):
        bench.learn(50, rows=rows, class_name="online", times=6)
    bench.submit(*["older"] * 50, *["online"] * 80, *["background"] * 8)
    (running,) = bench.advance()
    while bench.names[ids(running)[0]] == "online":
        bench.now += 50 * MS
        (running,) = bench.complete(running)
    assert {bench.names[number] for number in ids(running)} == {"background"}


@check
def what_stands_before_more_urgent_work_for_its_share_is_seen_as_blocking() -> None:
    bench, ran = _shared(ONLINE, QUARTER, ms={"online": 50, "background": 50})
    assert ran
    assert bench.scheduler.worst_blocking(bench.now)["online"] == 50 * MS


# Limits in bytes.


def _beside_a_busy_executor(*classes: TrafficClass, **keys: Any) -> Bench:
    bench = Bench(ONLINE, *classes, max_batch_size=1, **keys)
    bench.learn(50, class_name="online")
    bench.submit("online")
    bench.advance()
    return bench


@check
def a_class_holds_no_more_bytes_than_it_may() -> None:
    bench = _beside_a_busy_executor(TrafficClass("background", 2, max_queue_bytes=1000))
    kept, _, small = (bench.submit("background", size=size)[0] for size in (700, 400, 200))
    bench.advance()
    assert set(bench.outcomes.values()) == {"success", "queue_full"}
    assert bench.scheduler.waiting_bytes == {"online": 0, "background": 700}
    assert {kept, small} & set(bench.outcomes) == {small}, "the newest go, until the rest fits"


@check
def all_classes_together_hold_no_more_bytes_than_they_may() -> None:
    bench = _beside_a_busy_executor(BACKGROUND, max_queue_bytes=1000)
    (urgent,) = bench.submit("online", size=800)
    less = bench.submit("background", size=800)
    bench.advance()
    bench.submit("online", size=900)
    bench.advance()
    assert bench.scheduler.waiting_bytes == {"online": 800, "background": 0}
    assert urgent not in bench.outcomes
    assert bench.outcomes[less[0]] == "queue_full"


@check
def of_those_that_came_together_the_less_urgent_are_refused_first() -> None:
    bench = _beside_a_busy_executor(BACKGROUND, max_queue_bytes=1000)
    bench.submit("background", "online", size=800)
    bench.advance()
    assert bench.scheduler.waiting_bytes == {"online": 800, "background": 0}
