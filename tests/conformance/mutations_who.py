# SPDX-License-Identifier: Apache-2.0
"""Removed: who goes and with whom (rules 1, 2 and 7), and what is promised to callers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from conformance.mutations import LAWS, Patch, always, removed, swap
from priority_router.core import batching, deadlines, lines, scheduler, service_times
from priority_router.core.admission import Admission
from priority_router.core.curve import Curve
from priority_router.core.executor_model import ExecutorModel
from priority_router.core.fill_budget import FillBudget
from priority_router.core.lanes import Lane, Lanes
from priority_router.core.lines import Entry
from priority_router.core.scheduler import Scheduler
from priority_router.core.service_times import ServiceTimes
from priority_router.core.values import Finish

# Rule 1: who and with whom.


@removed(1, "the most urgent level first", LAWS, "head")
def _(patch: Patch) -> None:
    def oldest(self: Lanes) -> Any:
        return min((head for lane in self if (head := lane.head())), key=lambda head: head.sequence, default=None)

    patch.setattr(Lanes, "head", oldest)


@removed(1, "the oldest of a level first", LAWS, "head")
def _(patch: Patch) -> None:
    patch.setattr(lines.ByArrival, "first", lambda self: next(reversed(self._turns.values())))


@removed(1, "only equal signatures join", LAWS, "joins")
def _(patch: Patch) -> None:
    def everyone(self: Lane, _signature: Any) -> Any:
        return (
            entry for kind in (self.fresh, self.delayed) for line in kind.values() for _, entry in line._all.turns()
        )

    patch.setattr(Lane, "of_signature", everyone)


@removed(1, "the first that does not fit ends the joining", LAWS, "joins")
def _(patch: Patch) -> None:
    def skipping(lane: Lane, head: Any, picks: Any, rows: int, room: int, target: int) -> int:
        for entry in lane.of_signature(head.request.signature):
            if entry is not head and rows < target and rows + entry.unsent <= room:
                picks.append((entry, entry.unsent))
                rows += entry.unsent
        return rows

    patch.setattr(batching, "_join", skipping)


def _larger_batches(patch: Patch) -> None:
    propose = batching.propose

    def larger(waiting: Any, times: Any, budget: Any, policy: Any, *more: Any) -> Any:
        return propose(waiting, times, budget, replace(policy, max_batch_size=2 * policy.max_batch_size or 2), *more)

    patch.setattr(scheduler, "propose", larger)
    patch.setattr(scheduler, "charge", always(None))
    for name, value in (("estimate", None), ("spread", []), ("learn", None), ("fill_limit", 99)):
        patch.setattr(ServiceTimes, name, always(value))
    patch.setattr(ServiceTimes, "efficient_rows", always(99))


removed(1, "at most B rows", LAWS, "rows")(_larger_batches)
removed(1, "no joins without a batch axis", "laws_without_a_batch_axis", "rows")(_larger_batches)

LINEAR = "a_linear_executor_serves_urgent_work_in_small_batches"
swap(1, "the fill limit", LINEAR, ServiceTimes, "fill_limit", lambda self, *_: self._max_rows)
swap(1, "the cut at batch_efficiency", LINEAR, ServiceTimes, "efficient_rows", lambda self, *_: self._max_rows)
swap(4, "trials", "small_dispatches_are_tried_under_a_steady_backlog", service_times._History, "trial", always(None))
SLOW_MOMENT = "a_slow_moment_does_not_make_batches_small_for_ever"
swap(4, "doubts of slow full batches", SLOW_MOMENT, service_times._History, "_doubts", always(False))
swap(
    1,
    "the fill budget",
    "urgent_work_does_not_cost_the_executor_its_rows",
    FillBudget,
    "spent",
    property(always(False)),
)


@removed(1, "slowdown from the head's own level", "slowdown_counts_from_the_heads_own_level")
def _(patch: Patch) -> None:
    join = batching._join

    def compounding(lane: Lane, head: Any, picks: Any, rows: int, room: int, target: int) -> int:
        return join(lane, head, picks, rows, room + (lane.level > 2), target)

    patch.setattr(batching, "_join", compounding)


@removed(4, "no row count seems slower than a larger one", "one_point_measured_too_high_does_not_end_the_filling")
def _(patch: Patch) -> None:
    level = Curve._level

    def as_measured(self: Curve, last: int) -> None:
        level(self, last)
        self._times[:] = self._measured

    patch.setattr(Curve, "_level", as_measured)


# Rule 2: work conserving, limits after what can be sent.


@removed(2, "a free slot gets work", "laws_with_two_instances_and_no_joins", "conserving")
def _(patch: Patch) -> None:
    patch.setattr(ExecutorModel, "may_send", lambda self, *_: not self._running)


@removed(2, "limits after sends", "what_can_be_sent_does_not_count_as_waiting")
def _(patch: Patch) -> None:
    expire = Scheduler._expire

    def early(self: Scheduler, now: int) -> None:
        expire(self, now)
        for entry, refusal in self._admission.refusals(now):
            self._end(entry, refusal)

    patch.setattr(Scheduler, "_expire", early)


@removed(2, "all of a call known first", "arrivals_of_one_call_are_all_known_before_the_decision")
def _(patch: Patch) -> None:
    submit, advance = Scheduler.submit, Scheduler.advance

    def one_by_one(self: Scheduler, requests: Any, now: int) -> None:
        self.__dict__.setdefault("kept", [])
        for request in requests:
            submit(self, [request], now)
            self.__dict__["kept"] += advance(self, now)

    def with_kept(self: Scheduler, now: int) -> Any:
        kept, self.__dict__["kept"] = self.__dict__.get("kept", []), []
        return kept + advance(self, now)

    patch.setattr(Scheduler, "submit", one_by_one)
    patch.setattr(Scheduler, "advance", with_kept)


# Rule 7: oversized requests.


def _unexpired(lanes: Lanes) -> Iterator[Entry]:
    return (entry for lane in lanes for line in lane.fresh.values() for _, entry in line._all.turns())


@removed(7, "the last part is joined", "the_last_part_of_a_split_request_is_joined")
def _(patch: Patch) -> None:
    join = batching._join

    def alone(lane: Lane, head: Any, picks: Any, rows: int, room: int, target: int) -> int:
        return rows if head.next_row else join(lane, head, picks, rows, room, target)

    patch.setattr(batching, "_join", alone)


@removed(7, "more urgent work passes between parts", "more_urgent_work_passes_between_the_parts_of_a_split_request")
def _(patch: Patch) -> None:
    head = Lanes.head

    def begun_first(self: Lanes) -> Any:
        begun = (entry for entry in _unexpired(self) if entry.next_row)
        return next(begun, None) or head(self)

    patch.setattr(Lanes, "head", begun_first)


@removed(7, "the timeout ends with the first part", "a_split_request_cannot_expire_once_its_first_part_is_sent")
def _(patch: Patch) -> None:
    remove = deadlines.Deadlines.remove
    patch.setattr(deadlines.Deadlines, "remove", lambda self, entry: None if entry.unsent else remove(self, entry))


@removed(7, "the first failing part ends it", "the_first_failing_part_ends_a_split_request")
def _(patch: Patch) -> None:
    answer = Scheduler._answer

    def last_part_decides(self: Scheduler, flight: Any, error: Any) -> None:
        entry = self._entries.get(flight.dispatch.parts[0].request_id)
        answer(self, flight, None if entry is not None and entry.unsent else error)

    patch.setattr(Scheduler, "_answer", last_part_decides)


@removed(7, "counts once in max_queue_size", "a_split_request_counts_once_in_max_queue_size")
def _(patch: Patch) -> None:
    refusals = Admission.refusals

    def by_parts(self: Admission, now: int) -> Any:
        waiting = dict(self._lanes.waiting)
        for entry in _unexpired(self._lanes):
            self._lanes.waiting[entry.traffic_class.name] += (entry.unsent - 1) // self._policy.max_batch_size
        yield from refusals(self, now)
        self._lanes.waiting.update(waiting)

    patch.setattr(Admission, "refusals", by_parts)


# Outside the numbered rules: timeouts, limits, cancels, drain.


@removed(0, "DELAY serves later", "delayed_requests_come_after_the_unexpired")
def _(patch: Patch) -> None:
    patch.setattr(Lanes, "delay", lambda self, entry: setattr(entry, "deadline", None))


@removed(0, "REJECT answers", "a_caller_may_only_shorten_the_timeout")
def _(patch: Patch) -> None:
    patch.setattr(
        Scheduler,
        "_expire",
        lambda self, now: [self._lanes.delay(entry) for entry in self._deadlines.pop_expired(now)],
    )


swap(0, "queue limits", LAWS, Admission, "refusals", always(()), "limits")


@removed(0, "the newest is refused", LAWS, "limits")
def _(patch: Patch) -> None:
    refusals = Admission.refusals

    def oldest_first(self: Admission, now: int) -> Any:
        self._arrivals.reverse()
        return refusals(self, now)

    patch.setattr(Admission, "refusals", oldest_first)


@removed(7, "one that has begun is not refused as full", "a_request_that_has_begun_is_not_refused_as_full")
def _(patch: Patch) -> None:
    refusals = Admission.refusals

    def begun_too(self: Admission, now: int) -> Any:
        begun = {entry: entry.next_row for entry in self._arrivals if entry.unsent}
        for entry in begun:
            entry.next_row = 0
        yield from refusals(self, now)
        for entry, next_row in begun.items():
            entry.next_row = entry.next_row or next_row

    patch.setattr(Admission, "refusals", begun_too)


swap(0, "cancels", LAWS, Scheduler, "cancel", always(None), "one end")
swap(0, "drain", "draining_refuses_the_new_and_serves_the_old", Scheduler, "drain", always(None))
swap(
    0,
    "a caller may only shorten",
    "a_caller_may_only_shorten_the_timeout",
    scheduler,
    "_queue_timeout",
    lambda traffic_class, asked: asked or traffic_class.default_timeout,
)
swap(0, "wake-ups for timeouts", LAWS, deadlines.Deadlines, "earliest", always(None), "wake-up")


@removed(0, "one outcome per request", LAWS, "one end")
def _(patch: Patch) -> None:
    advance = Scheduler.advance

    def twice(self: Scheduler, now: int) -> Any:
        actions = advance(self, now)
        return actions + [action for action in actions if isinstance(action, Finish)]

    patch.setattr(Scheduler, "advance", twice)


def first_come_first_served(patch: Patch) -> None:
    """No priorities at all: every class on one level."""
    init = Scheduler.__init__

    def flat(self: Scheduler, policy: Any) -> None:
        init(self, replace(policy, classes=tuple(replace(each, level=1) for each in policy.classes)))

    patch.setattr(Scheduler, "__init__", flat)
