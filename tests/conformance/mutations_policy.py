# SPDX-License-Identifier: Apache-2.0
"""Removed: what an owner may ask for on top of the rules (docs/policies.md)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from conformance.mutations import Patch, always, removed, swap
from conformance.worlds import MS
from priority_router.core import batching, lines, scheduler, service_times, shares
from priority_router.core.admission import Admission
from priority_router.core.curve import Curve
from priority_router.core.deadlines import Deadlines
from priority_router.core.lanes import Lanes
from priority_router.core.scheduler import Scheduler
from priority_router.core.service_times import ServiceTimes
from priority_router.core.shares import Shares
from priority_router.core.values import SchedulingPolicy, TrafficClass

# Order inside a class.


@removed(0, "order by deadline", "a_class_by_deadline_serves_the_earliest_first")
def _(patch: Patch) -> None:
    patch.setattr(lines, "_QUEUES", dict.fromkeys(lines._QUEUES, lines.ByArrival))


@removed(0, "turns by arrival", "the_order_inside_a_class_takes_no_turn_from_another")
def _(patch: Patch) -> None:
    def keep(self: Any, entry: Any, turn: int) -> None:
        self.leave(entry, turn)

    patch.setattr(lines._ByDeadline, "serve", keep)


# Bounded blocking.


def _tried_once(self: Any, rows: int, time: int) -> bool:
    if rows > self.beyond(time):
        return False
    self._again = self._sent + service_times.TRIAL_AGAIN
    return True


for _check in (
    "less_urgent_dispatches_keep_to_the_blocking_budget",
    "a_request_above_the_blocking_budget_is_split",
    "a_dispatch_that_one_row_takes_over_the_budget_is_counted",
    "one_measured_hiccup_in_ten_is_covered",
    "less_urgent_rows_fill_an_urgent_dispatch_within_the_blocking_budget",
):
    swap(0, f"the blocking budget: {_check}", _check, scheduler, "blocking_budgets", always({}))
swap(0, "p90", "one_measured_hiccup_in_ten_is_covered", service_times, "UPPER", (1, 2))
swap(
    0,
    "only less urgent ones are cut",
    "the_most_urgent_are_not_cut_by_their_own_budget",
    scheduler,
    "blocking_budgets",
    lambda policy: {each.name: each.max_blocking for each in policy.classes if each.max_blocking},
)


@removed(0, "free rows join", "where_no_row_count_keeps_to_the_budget_rows_that_cost_nothing_join")
def _(patch: Patch) -> None:
    def at_least_one(self: ServiceTimes, signature: Any, time: int, _slowdown: float) -> int:
        return self._telling(signature).upper.rows_within(time) or 1

    patch.setattr(ServiceTimes, "rows_within", at_least_one)


swap(
    0,
    "another try of rows measured too slow",
    "rows_once_measured_too_slow_are_tried_again_after_a_while",
    ServiceTimes,
    "rows_beyond",
    always(0),
)
swap(
    0,
    "one more while they keep to the bound",
    "rows_once_measured_too_slow_are_tried_again_after_a_while",
    service_times._History,
    "tried",
    _tried_once,
)
swap(
    0,
    "a while between two tries",
    "rows_that_are_too_slow_break_the_bound_seldom",
    ServiceTimes,
    "tried",
    always(True),
)


@removed(0, "rows that should keep to the bound alone are tried", "rows_known_to_be_too_slow_are_not_tried")
def _(patch: Patch) -> None:
    def more(self: Curve, time: int) -> int:
        within = self.rows_within(time)
        return within + 1 if within < self._max_rows else 0

    patch.setattr(Curve, "rows_beyond", more)


# The age bound.

for _check in (
    "who_has_waited_long_enough_is_as_urgent_as_the_most_urgent",
    "who_has_waited_long_enough_stands_by_its_arrival",
):
    swap(0, f"the age bound: {_check}", _check, Scheduler, "_promote", always(None))


@removed(0, "a promoted one's place", "who_has_waited_long_enough_stands_by_its_arrival")
def _(patch: Patch) -> None:
    promote = Lanes.promote

    def at_the_end(self: Lanes, entry: Any) -> None:
        entry.sequence += 1000
        promote(self, entry)

    patch.setattr(Lanes, "promote", at_the_end)


@removed(0, "wake-ups for the age bound", "the_age_bound_wakes_the_router")
def _(patch: Patch) -> None:
    earliest = Deadlines.earliest

    def deadlines_alone(self: Deadlines) -> int | None:
        return earliest(self) if any(entry.deadline for _, _, entry in self._heap) else None

    patch.setattr(Deadlines, "earliest", deadlines_alone)


# Guaranteed shares.

for _check in (
    "a_class_gets_its_share_of_time_and_no_more",
    "an_absent_class_changes_nobodys_share",
    "a_dispatch_for_a_share_is_not_passed_inside_triton",
):
    swap(0, f"the guaranteed share: {_check}", _check, Scheduler, "_deprived", None)


@removed(0, "charged in time", "a_class_gets_its_share_of_time_and_no_more")
def _(patch: Patch) -> None:
    sent, ended = Shares.sent, Shares.ended
    patch.setattr(
        Shares, "sent", lambda self, number, rows, waiting, _time, claim: sent(self, number, rows, waiting, MS, claim)
    )
    patch.setattr(Shares, "ended", lambda self, number, _took, succeeded: ended(self, number, MS, succeeded=succeeded))


@removed(0, "of those with work", "an_absent_class_changes_nobodys_share")
def _(patch: Patch) -> None:
    most = Shares.most_deprived

    def of_all(self: Shares, waiting: Any) -> str | None:
        name = most(self, dict.fromkeys(waiting, 1))
        return name if name is not None and waiting[name] else None

    def everybody(self: Shares, dispatch_id: int, rows: Any, waiting: Any, *more: Any) -> None:
        sent(self, dispatch_id, rows, dict.fromkeys(waiting, 1), *more)

    sent = Shares.sent
    patch.setattr(Shares, "begins", always(None))
    patch.setattr(Shares, "most_deprived", of_all)
    patch.setattr(Shares, "sent", everybody)


@removed(0, "nothing is banked", "an_idle_class_banks_nothing")
def _(patch: Patch) -> None:
    def everybody(self: Shares, dispatch_id: int, rows: Any, waiting: Any, *more: Any) -> None:
        sent(self, dispatch_id, rows, dict.fromkeys(waiting, 1), *more)

    sent = Shares.sent
    patch.setattr(Shares, "begins", always(None))
    patch.setattr(Shares, "sent", everybody)


swap(
    0,
    "debts are bounded",
    "time_that_nobody_else_wanted_is_not_held_against_a_class",
    shares,
    "LONGEST_DEBT",
    10**15,
)


@removed(0, "failures are taken back", "a_failed_pick_is_not_charged")
def _(patch: Patch) -> None:
    ended = Shares.ended
    patch.setattr(Shares, "ended", lambda self, dispatch, took, succeeded: ended(self, dispatch, took, succeeded=True))


@removed(0, "one failure in a row is taken back", "a_class_that_always_fails_gets_no_more_than_its_share")
def _(patch: Patch) -> None:
    ended = Shares.ended

    def forgiving(self: Shares, dispatch_id: int, took: int, *, succeeded: bool) -> None:
        self._failed.clear()
        ended(self, dispatch_id, took, succeeded=succeeded)

    patch.setattr(Shares, "ended", forgiving)


@removed(0, "its own class first", "a_dispatch_for_a_share_is_filled_from_its_own_class_first")
def _(patch: Patch) -> None:
    join = batching._join

    def lanes_alone(lane: Any, head: Any, picks: Any, rows: int, room: int, target: int) -> int:
        return rows if isinstance(lane, lines.Line) else join(lane, head, picks, rows, room, target)

    patch.setattr(batching, "_join", lanes_alone)


@removed(0, "blocking by class", "what_stands_before_more_urgent_work_for_its_share_is_seen_as_blocking")
def _(patch: Patch) -> None:
    note = Scheduler._note_blocking

    def by_level(self: Scheduler, flight: Any, now: int) -> None:
        entries, self._entries = self._entries, {}
        note(self, flight, now)
        self._entries = entries

    patch.setattr(Scheduler, "_note_blocking", by_level)


# Limits in bytes.


def _without_bytes(patch: Patch, *targets: type) -> None:
    init = Scheduler.__init__

    def unlimited(self: Scheduler, policy: SchedulingPolicy) -> None:
        if TrafficClass in targets:
            policy = replace(policy, classes=tuple(replace(each, max_queue_bytes=0) for each in policy.classes))
        init(self, replace(policy, max_queue_bytes=0) if SchedulingPolicy in targets else policy)

    patch.setattr(Scheduler, "__init__", unlimited)


for _check, _target in (
    ("a_class_holds_no_more_bytes_than_it_may", TrafficClass),
    ("all_classes_together_hold_no_more_bytes_than_they_may", SchedulingPolicy),
):

    @removed(0, f"bytes: {_check}", _check)
    def _(patch: Patch, target: type = _target) -> None:
        _without_bytes(patch, target)


@removed(0, "the less urgent first", "of_those_that_came_together_the_less_urgent_are_refused_first")
def _(patch: Patch) -> None:
    refusals = Admission.refusals

    def as_they_came(self: Admission, now: int) -> Any:
        for entry in self._arrivals:
            entry.level = 1
        return refusals(self, now)

    patch.setattr(Admission, "refusals", as_they_came)
