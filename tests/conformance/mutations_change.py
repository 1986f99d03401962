# SPDX-License-Identifier: Apache-2.0
"""Removed: what a change of the policy keeps (core/succession.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from conformance.mutations import Patch, always, removed, swap
from priority_router.core import scheduler
from priority_router.core.deadlines import Deadlines
from priority_router.core.lanes import Lanes
from priority_router.core.lines import Entry
from priority_router.core.scheduler import Scheduler
from priority_router.core.service_times import ServiceTimes
from priority_router.core.shares import Shares
from priority_router.core.succession import succeed
from priority_router.core.values import SchedulingPolicy

LOSES = "a_change_loses_nobody_and_answers_everybody_once"


def _succeeding(patch: Patch, change: Callable[[list[Entry], SchedulingPolicy, int], Iterable[Entry]]) -> None:
    """Patches what is done with the entries before they are queued again."""

    def changed(entries: Iterable[Entry], lanes: Any, policy: SchedulingPolicy, now: int, default_class: str) -> Any:
        return succeed(change(list(entries), policy, now), lanes, policy, now, default_class)

    patch.setattr(scheduler, "succeed", changed)


swap(0, "a change takes effect", "a_changed_level_holds_for_those_who_wait", Scheduler, "adopt", always(None))
swap(
    0,
    "a new age bound",
    "a_new_age_bound_counts_from_arrival",
    Scheduler,
    "adopt",
    always(None),
)


@removed(0, "a change keeps everybody", LOSES)
def _(patch: Patch) -> None:
    _succeeding(patch, lambda entries, _policy, _now: entries[:-1])


@removed(0, "a change keeps those who have begun", "a_request_that_has_begun_goes_on_after_a_change")
def _(patch: Patch) -> None:
    _succeeding(patch, lambda entries, _policy, _now: [entry for entry in entries if not entry.next_row])


@removed(0, "a change keeps arrivals", "requests_of_a_class_that_is_gone_wait_in_the_default_class_by_their_arrival")
def _(patch: Patch) -> None:
    def by_class(entries: list[Entry], _policy: SchedulingPolicy, _now: int) -> list[Entry]:
        ordered = sorted(entries, key=lambda entry: entry.traffic_class.name)
        for number, entry in enumerate(ordered):
            entry.sequence = number
        return ordered

    _succeeding(patch, by_class)


@removed(0, "a change keeps the order", "a_change_keeps_the_order_of_arrival")
def _(patch: Patch) -> None:
    def from_now_on(entries: list[Entry], _policy: SchedulingPolicy, _now: int) -> list[Entry]:
        for number, entry in enumerate(reversed(entries)):
            entry.sequence = entry.turn = entry.turn_alike = number
        return entries

    _succeeding(patch, from_now_on)


@removed(0, "a change keeps turns", "a_change_keeps_turns_that_were_given_away")
def _(patch: Patch) -> None:
    def own(entries: list[Entry], _policy: SchedulingPolicy, _now: int) -> list[Entry]:
        for entry in entries:
            entry.turn = entry.turn_alike = entry.sequence
        return entries

    _succeeding(patch, own)


@removed(0, "a change keeps deadlines", "a_deadline_outlives_a_change")
def _(patch: Patch) -> None:
    def none(entries: Iterable[Entry], lanes: Any, policy: SchedulingPolicy, now: int, default_class: str) -> Any:
        lanes, _, ages = succeed(entries, lanes, policy, now, default_class)
        return lanes, Deadlines(), ages

    patch.setattr(scheduler, "succeed", none)


@removed(0, "limits refuse on arrival alone", "who_waits_already_is_not_refused_by_a_smaller_limit")
def _(patch: Patch) -> None:
    adopt = Scheduler.adopt

    def as_if_new(self: Scheduler, policy: SchedulingPolicy, now: int, default_class: str) -> None:
        adopt(self, policy, now, default_class)
        self._admission._arrivals += [entry for entry in self._entries.values() if entry.unsent]

    patch.setattr(Scheduler, "adopt", as_if_new)


@removed(0, "ages under the new policy", "without_the_age_bound_who_was_promoted_waits_at_its_level_again")
def _(patch: Patch) -> None:
    def promoted(entries: list[Entry], policy: SchedulingPolicy, now: int) -> list[Entry]:
        for entry in entries:
            if entry.promoted:
                entry.traffic_class = next(each for each in policy.classes if each.level == 1)
        return entries

    _succeeding(patch, promoted)


@removed(0, "the expired stay behind", "who_waits_on_past_its_deadline_does_so_under_any_policy")
def _(patch: Patch) -> None:
    def fresh(entries: list[Entry], _policy: SchedulingPolicy, _now: int) -> list[Entry]:
        for entry in entries:
            entry.expired = False
            entry.place = entry.turn = entry.turn_alike = entry.sequence
        return entries

    _succeeding(patch, fresh)


@removed(0, "a change keeps lags", "a_share_keeps_what_it_is_owed")
def _(patch: Patch) -> None:
    adopt = Shares.adopt

    def forgetting(self: Shares, policy: SchedulingPolicy) -> None:
        self._lag.clear()
        adopt(self, policy)

    patch.setattr(Shares, "adopt", forgetting)


@removed(0, "a change keeps ledgers", "tenants_keep_what_they_were_charged_with")
def _(patch: Patch) -> None:
    made = Lanes.__init__

    def forgetting(self: Lanes, policy: SchedulingPolicy, before: Lanes | None = None) -> None:
        made(self, policy)
        for entry in () if before is None else (each for lane in before for each in lane.of_signature("s")):
            self.open_account(entry)

    patch.setattr(Lanes, "__init__", forgetting)


swap(
    0,
    "a change keeps what was learned",
    "a_new_blocking_budget_uses_what_was_learned_before",
    ServiceTimes,
    "bound",
    always(None),
)
