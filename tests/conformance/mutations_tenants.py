# SPDX-License-Identifier: Apache-2.0
"""Removed: what makes a class fair between its tenants."""

from __future__ import annotations

from typing import Any

from conformance.mutations import Patch, always, removed, swap
from priority_router.core import lanes, ledger, lines, tenants
from priority_router.core.lanes import Lanes
from priority_router.core.ledger import Ledger
from priority_router.core.lines import Line
from priority_router.core.scheduler import Scheduler
from priority_router.core.values import Order

for _check in (
    "tenants_take_turns_whoever_sends_how_many",
    "a_tenant_gets_the_same_rows_in_large_requests",
    "a_tenant_gets_the_same_time_in_slow_requests",
    "rows_count_while_no_time_is_learned",
    "who_comes_one_at_a_time_pays_for_what_it_had",
    "dispatches_are_filled_in_turns_too",
    "the_delayed_are_shared_as_well",
    "a_guaranteed_share_goes_to_the_tenant_whose_turn_it_is",
    "others_pass_between_the_parts_of_a_tenants_oversized_request",
    "charges_hold_for_all_signatures_of_a_tenant",
):
    swap(0, f"fair tenants: {_check}", _check, lanes, "_line", lambda order, _ledger: Line(order))
swap(0, "fair tenants", "laws_with_tenants", lanes, "_line", lambda order, _ledger: Line(order), "head")


def _charge(patch: Patch, cost: Any) -> None:
    """Charge a pick by ``cost(entry, rows, row_time)`` rows of 1 ns."""

    def charged(self: Lanes, picks: Any, row_time: float) -> None:
        for entry, rows in picks:
            if entry.traffic_class.name in self._ledgers:
                self._ledgers[entry.traffic_class.name].charge(entry.account, cost(entry, rows, row_time), 1.0)

    patch.setattr(Lanes, "charge", charged)


for _check in ("a_tenant_gets_the_same_rows_in_large_requests", "rows_count_while_no_time_is_learned"):

    @removed(0, f"charged by rows: {_check}", _check)
    def _(patch: Patch) -> None:
        _charge(patch, always(1))


@removed(0, "charged in time", "a_tenant_gets_the_same_time_in_slow_requests")
def _(patch: Patch) -> None:
    _charge(patch, lambda _entry, rows, _time: rows)


@removed(0, "charged with what each part takes", "others_pass_between_the_parts_of_a_tenants_oversized_request")
def _(patch: Patch) -> None:
    _charge(patch, lambda entry, rows, time: 0 if rows < entry.unsent else entry.request.rows * round(time))


@removed(0, "no tenant banks idle time", "an_idle_tenant_banks_nothing")
def _(patch: Patch) -> None:
    begins = Ledger.begins

    def from_nothing(self: Ledger, tenant: str) -> Any:
        account = begins(self, tenant)
        if account.waiting == 1:
            self._by_charge.remove((account.charged, account.number, account))
            account.charged = 0
            self._by_charge.add((0, account.number, account))
        return account

    patch.setattr(Ledger, "begins", from_nothing)


swap(0, "charges outlast the work", "who_comes_one_at_a_time_pays_for_what_it_had", ledger, "MOST_DEBTS", 0)


@removed(0, "those who join are charged in thought", "dispatches_are_filled_in_turns_too")
def _(patch: Patch) -> None:
    following = tenants._next
    patch.setattr(tenants, "_next", lambda ahead, _row_time: following(ahead, 0.0))


@removed(0, "order inside a tenant", "inside_a_tenant_the_class_keeps_its_order")
def _(patch: Patch) -> None:
    patch.setitem(lines.ORDERS, Order.DEADLINE, lines.by_arrival)


@removed(0, "of equal tenants the first", "equal_tenants_come_in_order_of_arrival")
def _(patch: Patch) -> None:
    ranked = tenants.fair_queue
    patch.setattr(lanes, "fair_queue", lambda books, _order: ranked(books, Order.ARRIVAL))
    patch.setitem(lines.ORDERS, Order.ARRIVAL, lambda entry: (entry.request.tenant, entry.place, entry))


@removed(0, "turns between classes", "between_classes_of_a_level_turns_go_by_arrival_all_the_same")
def _(patch: Patch) -> None:
    def keep(self: Any, entry: Any, turn: int) -> None:
        self.leave(entry, turn)

    patch.setattr(tenants._ByTenant, "serve", keep)


@removed(0, "the aged by arrival", "who_has_waited_long_enough_stands_by_arrival_whoever_sent_it")
def _(patch: Patch) -> None:
    patch.setattr(Scheduler, "_promote", always(None))


@removed(0, "put right after charges elsewhere", "laws_with_tenants")
def _(patch: Patch) -> None:
    patch.setattr(tenants._ByTenant, "_put_right", always(None))


swap(
    0,
    "a bounded lead",
    "time_that_others_could_not_use_is_not_held_against_a_tenant",
    ledger,
    "LONGEST_LEAD",
    10**15,
)
swap(
    0,
    "shared accounts",
    "names_without_end_take_no_more_queues_than_there_may_be",
    Ledger,
    "_key",
    lambda _self, tenant: tenant,
)


@removed(0, "a bounded memory of debts", "charges_of_those_without_work_are_forgotten_past_a_number")
def _(patch: Patch) -> None:
    init = Ledger.__init__

    def without_bound(self: Ledger) -> None:
        init(self)
        self._debts = _NeverMany()

    patch.setattr(Ledger, "__init__", without_bound)


class _NeverMany(dict[Any, Any]):
    def __len__(self) -> int:
        return 0
