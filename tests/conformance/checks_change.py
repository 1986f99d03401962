# SPDX-License-Identifier: Apache-2.0
"""Checks by hand of what becomes of waiting requests when the policy changes: core/succession.py."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from conformance.checks import check
from priority_router.core.values import FairBy, Order, Request, SchedulingPolicy, TimeoutAction, TrafficClass
from unit.core.build import BACKGROUND, MS, ONLINE, Bench, ids, policy


def _adopt(bench: Bench, *classes: TrafficClass, default: str = "background", **keys: Any) -> SchedulingPolicy:
    adopted = policy(*classes, **{"max_batch_size": 1, **keys})
    bench.scheduler.adopt(adopted, bench.now, default)
    return adopted


def _busy(*classes: TrafficClass, **keys: Any) -> Bench:
    """An executor of one row and 50 ms that was just given one."""
    bench = Bench(*classes, **{"max_batch_size": 1, **keys})
    name = bench.scheduler._policy.classes[0].name
    bench.learn(50, class_name=name)
    bench.submit(name)
    bench.advance()
    return bench


def _served(bench: Bench, ms: int = 50) -> list[int]:
    """Ids in the order in which they run from now on, until nothing waits."""
    order: list[int] = []
    (running,) = bench.flying()
    while True:
        bench.now += ms * MS
        sent = bench.complete(running)
        if not sent:
            return order
        (running,) = sent
        order += ids(running)


@check
def a_changed_level_holds_for_those_who_wait() -> None:
    bench = _busy(ONLINE, BACKGROUND)
    urgent, patient = bench.submit("online", "background")
    bench.advance()
    _adopt(bench, replace(ONLINE, level=2), replace(BACKGROUND, level=1))
    bench.advance()
    assert _served(bench) == [patient, urgent]


@check
def a_change_loses_nobody_and_answers_everybody_once() -> None:
    bench = _busy(ONLINE, BACKGROUND)
    waiting = bench.submit("online", "background", "online", "background", rows=1)
    bench.advance()
    _adopt(bench, TrafficClass("other", 1), BACKGROUND)
    bench.advance()
    assert sorted(_served(bench)) == waiting
    assert set(bench.outcomes.values()) == {"success"}
    assert bench.scheduler.held == 0


@check
def requests_of_a_class_that_is_gone_wait_in_the_default_class_by_their_arrival() -> None:
    bench = _busy(ONLINE, BACKGROUND, TrafficClass("reports", 2))
    waiting = bench.submit("reports", "background", "reports", "background")
    bench.advance()
    _adopt(bench, ONLINE, replace(BACKGROUND, level=3))
    assert bench.scheduler.waiting == {"online": 0, "background": 4}
    bench.advance()
    assert _served(bench) == waiting


@check
def a_change_keeps_the_order_of_arrival() -> None:
    bench = _busy(ONLINE, BACKGROUND, TrafficClass("reports", 1))
    waiting = bench.submit("background", "reports", "background", "online", "reports")
    bench.advance()
    _adopt(bench, *(replace(each, level=4) for each in (ONLINE, BACKGROUND, TrafficClass("reports", 1))))
    bench.advance()
    assert _served(bench) == waiting


@check
def a_change_keeps_turns_that_were_given_away() -> None:
    """The two classes go on as they would have, though one has served its last before its first."""
    classes = (TrafficClass("fifo", 1), TrafficClass("edf", 1, order=Order.DEADLINE))
    orders = []
    for changed in (False, True):
        bench = _busy(*classes)
        for at, name in enumerate(["edf", "fifo", "edf", "fifo", "edf"]):
            bench.submit(name, timeout_ms=900 - 100 * at)
            bench.advance()
        bench.now += 50 * MS
        bench.complete(bench.flying()[0])
        if changed:
            _adopt(bench, *classes, default="fifo", executor_timeout=10**12)
            bench.advance()
        orders.append(_served(bench))
    assert orders[0] == orders[1]


@check
def a_deadline_outlives_a_change() -> None:
    bench = _busy(ONLINE, replace(BACKGROUND, default_timeout=20 * MS))
    (waits,) = bench.submit("background")
    bench.advance()
    start = bench.now
    _adopt(bench, ONLINE, BACKGROUND)
    bench.advance()
    assert bench.scheduler.next_wakeup() == start + 20 * MS
    bench.now = start + 20 * MS
    bench.advance()
    assert bench.outcomes[waits] == "timeout"


@check
def who_waits_already_is_not_refused_by_a_smaller_limit() -> None:
    bench = _busy(ONLINE, BACKGROUND)
    waiting = bench.submit(*["background"] * 3, size=10)
    bench.advance()
    _adopt(bench, ONLINE, replace(BACKGROUND, max_queue_size=1, max_queue_bytes=10), max_queue_bytes=10)
    bench.advance()
    (late,) = bench.submit("background", size=10)
    bench.advance()
    assert bench.outcomes.pop(late) == "queue_full"
    assert not set(waiting) & set(bench.outcomes)


@check
def a_new_age_bound_counts_from_arrival() -> None:
    bench = _busy(ONLINE, BACKGROUND)
    (old,) = bench.submit("background")
    urgent = bench.submit(*["online"] * 3)
    bench.advance()
    bench.now += 45 * MS
    bench.advance()
    _adopt(bench, ONLINE, replace(BACKGROUND, max_wait=40 * MS))
    bench.advance()
    assert _served(bench, 5) == [old, *urgent]


@check
def without_the_age_bound_who_was_promoted_waits_at_its_level_again() -> None:
    bench = _busy(ONLINE, replace(BACKGROUND, max_wait=10 * MS))
    (old,) = bench.submit("background")
    urgent = bench.submit("online")
    bench.now += 20 * MS
    bench.advance()
    _adopt(bench, ONLINE, BACKGROUND)
    bench.advance()
    assert _served(bench) == [*urgent, old]


@check
def who_waits_on_past_its_deadline_does_so_under_any_policy() -> None:
    late = replace(BACKGROUND, default_timeout=10 * MS, timeout_action=TimeoutAction.DELAY)
    bench = _busy(ONLINE, late)
    (expired,) = bench.submit("background")
    bench.now += 20 * MS
    bench.advance()
    _adopt(bench, ONLINE, BACKGROUND)
    (fresh,) = bench.submit("background")
    bench.advance()
    assert _served(bench) == [fresh, expired]


@check
def a_share_keeps_what_it_is_owed() -> None:
    """Whose turn it is does not change, though the policy does in the middle of a round."""
    quarter = replace(BACKGROUND, min_share=0.25)
    orders = []
    for changed in (False, True):
        bench = _busy(ONLINE, quarter)
        bench.submit(*["online"] * 16, *["background"] * 8)
        bench.advance()
        for _ in range(6):
            bench.now += 50 * MS
            bench.complete(bench.flying()[0])
        if changed:
            _adopt(bench, ONLINE, quarter, executor_timeout=10**12)
            bench.advance()
        orders.append(_served(bench))
    assert orders[0] == orders[1]


@check
def tenants_keep_what_they_were_charged_with() -> None:
    fair = replace(BACKGROUND, fair_by=FairBy.TENANT)
    orders = []
    for changed in (False, True):
        bench = _busy(fair)
        for number, tenant in enumerate("xxxyyy", start=1000):
            bench.scheduler.submit([Request(number, "background", 1, "s", tenant=tenant)], bench.now)
        bench.advance()
        bench.now += 50 * MS
        bench.complete(bench.flying()[0])
        if changed:
            _adopt(bench, fair, executor_timeout=10**12)
            bench.advance()
        orders.append(_served(bench))
    assert orders[0] == orders[1]


@check
def a_new_blocking_budget_uses_what_was_learned_before() -> None:
    bench = Bench(ONLINE, BACKGROUND, max_batch_size=16)
    for rows in (16, 8, 4, 2, 1):
        bench.learn(5 + 10 * rows, rows=rows, class_name="online", times=6)
    _adopt(bench, replace(ONLINE, max_blocking=45 * MS), BACKGROUND, max_batch_size=16, batch_efficiency=1.0)
    bench.submit(*["background"] * 16)
    (first,) = bench.advance()
    assert first.rows == 4


@check
def a_request_that_has_begun_goes_on_after_a_change() -> None:
    bench = Bench(ONLINE, BACKGROUND)
    (large,) = bench.submit("background", rows=12)
    first, second = bench.advance()
    _adopt(bench, replace(ONLINE, level=5), TrafficClass("other", 2), default="other", max_batch_size=4)
    following = bench.complete(first)
    assert [[(part.request_id, part.first_row, part.rows) for part in sent.parts] for sent in following] == [
        [(large, 8, 4)]
    ]
    for sent in (second, *following):
        bench.complete(sent)
    assert bench.outcomes == {large: "success"}
