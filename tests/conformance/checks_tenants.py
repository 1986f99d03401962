# SPDX-License-Identifier: Apache-2.0
"""Checks of classes that are shared by tenant: docs/policies.md, "Fair tenants"."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from conformance.checks import check
from conformance.worlds import answered_mostly, run
from priority_router.core import ledger
from priority_router.core.values import SECOND, Dispatch, FairBy, Order, SchedulingPolicy, TimeoutAction, TrafficClass
from priority_router.errors import ExecutorFailed
from priority_router.ops.simulate.arrivals import Stream, few_signatures, rows_up_to
from priority_router.ops.simulate.executor import ExecutorShape, ServiceTimes
from priority_router.ops.simulate.simulation import Setup
from unit.core.build import MS, ONLINE, Bench, ids

FAIR = TrafficClass("background", 2, fair_by=FairBy.TENANT)


class Tenants(Bench):
    """An executor of one instance that takes ``ms`` for a row of a signature, and is busy until told to ``run``.

    Attributes:
        of: whose each request is.
        ran: tenants, one for each row that ran for one, in order.
    """

    def __init__(self, *classes: TrafficClass, ms: Callable[[str], int] = lambda _: 10, **keys: Any) -> None:
        super().__init__(ONLINE, *(classes or (FAIR,)), **{"max_batch_size": 1, **keys})
        self.ms = ms
        self.of: dict[int, str] = {}
        self.ran: list[str] = []
        for signature in "abs":
            for rows in range(self.scheduler._policy.max_batch_size, 0, -1):
                self.learn(rows * ms(signature), rows, signature, class_name="online")
        self.submit("online", signature="busy")
        self.advance()

    def come(self, tenant: str, count: int = 1, class_name: str = "background", **keys: Any) -> list[int]:
        """Requests of one tenant, at once."""
        numbers: list[int] = self.submit(*[class_name] * count, tenant=tenant, **keys)
        self.of.update(dict.fromkeys(numbers, tenant))
        return numbers

    def run(self, dispatches: int, then: Callable[[Dispatch], object] = lambda _: None) -> list[str]:
        """Let so many dispatches end, telling ``then`` of each; returns whose rows ran meanwhile."""
        self.advance()
        first = len(self.ran)
        for _ in range(dispatches):
            running = self.flying()[0]
            self.now += running.rows * self.ms(running.signature) * MS
            then(running)
            for part in running.parts:
                self.ran += [self.of[part.request_id]] * part.rows if part.request_id in self.of else []
            self.complete(running)
        return self.ran[first:]


def text(ran: list[str]) -> str:
    return "".join(ran)


@check
def tenants_take_turns_whoever_sends_how_many() -> None:
    bench = Tenants()
    bench.come("a", 20)
    bench.come("b", 3)
    bench.come("c", 3)
    assert text(bench.run(14)) == "abcabcabcaaaa"


@check
def a_tenant_gets_the_same_rows_in_large_requests() -> None:
    bench = Tenants(max_batch_size=4)
    bench.come("a", 20, rows=4)
    bench.come("b", 60)
    ran = bench.run(21)
    assert abs(ran.count("a") - ran.count("b")) <= 4


@check
def a_tenant_gets_the_same_time_in_slow_requests() -> None:
    bench = Tenants(ms={"a": 40, "s": 10, "b": 10, "busy": 10}.__getitem__)
    bench.come("a", 20, signature="a")
    bench.come("b", 60)
    ran = bench.run(51)
    assert abs(40 * ran.count("a") - 10 * ran.count("b")) <= 40


@check
def rows_count_while_no_time_is_learned() -> None:
    bench = Bench(ONLINE, FAIR, max_batch_size=4)
    bench.submit(*["background"] * 5, rows=4, tenant="a")
    bench.submit(*["background"] * 9, rows=1, tenant="b")
    running = bench.advance()
    rows = {"a": 0, "b": 0}
    for _ in range(3):
        for part in running[0].parts:
            rows["a" if part.request_id < 5 else "b"] += part.rows
        running = running[1:] + bench.complete(running[0], error=ExecutorFailed("teaches nothing"))
    assert rows == {"a": 8, "b": 4}


@check
def an_idle_tenant_banks_nothing() -> None:
    bench = Tenants()
    bench.come("b")
    bench.come("a", 60)
    bench.run(40)
    bench.come("b", 20)
    assert text(bench.run(12)[3:]) in ("abababab" + "a", "babababa" + "b")


@check
def who_comes_one_at_a_time_pays_for_what_it_had() -> None:
    bench = Tenants(max_batch_size=4)

    def again(ended: Dispatch) -> None:
        if any(bench.of.get(part.request_id) == "a" for part in ended.parts):
            bench.come("a", rows=4)

    bench.come("b", 200)
    bench.come("a", rows=4)
    ran = bench.run(60, then=again)
    assert abs(ran.count("a") - ran.count("b")) <= 8


@check
def dispatches_are_filled_in_turns_too() -> None:
    bench = Tenants(replace(FAIR, level=1), max_batch_size=4)
    bench.come("a", 8)
    bench.come("b", 8)
    assert text(bench.run(5)) == "abab" * 4


@check
def inside_a_tenant_the_class_keeps_its_order() -> None:
    bench = Tenants(replace(FAIR, order=Order.DEADLINE))
    numbers = [bench.come(tenant, timeout_ms=ms)[0] for tenant, ms in (("a", 900), ("a", 500), ("b", 800), ("b", 700))]
    order: list[int] = []
    bench.run(5, then=lambda ended: order.extend(ids(ended)))
    assert [numbers.index(number) for number in order[1:]] == [1, 3, 2, 0]


@check
def equal_tenants_come_in_order_of_arrival() -> None:
    bench = Tenants()
    for tenant in "cabdcabd":
        bench.come(tenant)
    assert text(bench.run(9)) == "cabdcabd"


@check
def between_classes_of_a_level_turns_go_by_arrival_all_the_same() -> None:
    bench = Tenants(FAIR, TrafficClass("other", 2))
    for tenant, name in ("a", "background"), ("a", "background"), ("-", "other"), ("a", "background"), ("-", "other"):
        bench.come(tenant, class_name=name)
    bench.come("b")
    assert text(bench.run(7)) == "ab-a-a"


@check
def who_has_waited_long_enough_stands_by_arrival_whoever_sent_it() -> None:
    bench = Tenants(replace(FAIR, max_wait=30 * MS))
    bench.come("a", 6)
    bench.come("b")
    bench.now += 30 * MS
    assert text(bench.run(8)) == "aaaaaab"


@check
def the_delayed_are_shared_as_well() -> None:
    bench = Tenants(replace(FAIR, default_timeout=5 * MS, timeout_action=TimeoutAction.DELAY))
    bench.come("a", 6)
    bench.come("b", 2)
    bench.now += 6 * MS
    assert text(bench.run(9)) == "ababaaaa"


@check
def a_guaranteed_share_goes_to_the_tenant_whose_turn_it_is() -> None:
    bench = Tenants(replace(FAIR, min_share=0.5))
    bench.submit(*["online"] * 60)
    bench.come("a", 20)
    bench.come("b", 20)
    ran = bench.run(41)
    assert len(ran) > 15
    assert abs(ran.count("a") - ran.count("b")) <= 1


@check
def others_pass_between_the_parts_of_a_tenants_oversized_request() -> None:
    bench = Tenants(replace(FAIR, level=1), max_batch_size=4)
    bench.come("a", rows=16)
    bench.come("b", 8)
    assert text(bench.run(7)) == "aaaabbbbaaaabbbbaaaaaaaa"


@check
def charges_hold_for_all_signatures_of_a_tenant() -> None:
    bench = Tenants(replace(FAIR, level=1), max_batch_size=2)
    for tenant in "ab":
        for signature in "ab":
            bench.come(tenant, 20, signature=signature)
    bench.come("b", 40, signature="s")
    ran = bench.run(20)
    assert abs(ran.count("a") - ran.count("b")) <= 2


@check
def time_that_others_could_not_use_is_not_held_against_a_tenant() -> None:
    """Its rows fill urgent dispatches for 10 s, which the others, of another signature, cannot."""
    bench = Tenants(max_batch_size=2, max_fill_slowdown=9.0, ms=lambda _: 50)
    bench.come("b", 400, signature="b")
    bench.come("a", 400)
    bench.submit("online")
    assert set(bench.run(201, then=lambda _: bench.submit("online"))) == {"a"}
    assert "a" in bench.run(60)[2:]


@check
def names_without_end_take_no_more_queues_than_there_may_be(most: int = 8) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ledger, "MOST_TENANTS", most)
        bench = Tenants()
        for number in range(2000):
            bench.come(f"t{number}")
        (books,) = bench.scheduler._lanes._ledgers.values()
        assert len(books._accounts) <= most + ledger.SHARED_ACCOUNTS
        bench.run(1500)
        assert len(books._accounts) <= most + ledger.SHARED_ACCOUNTS
        bench.run(501)
    assert set(bench.outcomes.values()) == {"success"}
    assert not books._accounts
    assert not books._by_charge


@check
def charges_of_those_without_work_are_forgotten_past_a_number(most: int = 8) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ledger, "MOST_DEBTS", most)
        bench = Tenants()
        bench.come("rest", 500)
        for number in range(100):
            bench.come(f"t{number}")
        bench.run(60)
    (books,) = bench.scheduler._lanes._ledgers.values()
    assert len(list(books._by_debt)) == len(books._debts) <= most


@check
def laws_with_tenants() -> None:
    """Under the referee, which knows whose turn it is."""
    policy = SchedulingPolicy(
        (
            replace(FAIR, level=1, default_timeout=300 * MS),
            replace(FAIR, name="patient", default_timeout=100 * MS, timeout_action=TimeoutAction.DELAY),
            replace(FAIR, name="other", order=Order.DEADLINE, max_wait=400 * MS),
        ),
        max_batch_size=4,
        executor_timeout=2 * SECOND,
    )
    streams = [
        Stream(name, rate, rows_up_to(6), few_signatures(2), timeout=250 * MS, cancel_share=0.1, tenant=tenant)
        for name in ("background", "patient", "other")
        for tenant, rate in (("flood", 40), ("x", 10), ("", 5))
    ]
    setup = Setup(ExecutorShape(1, 4), ServiceTimes(10 * MS, 4 * MS, spread=0.02), fate=answered_mostly)
    run(policy, setup, streams, 1500, 5)
