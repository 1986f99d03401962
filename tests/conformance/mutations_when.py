# SPDX-License-Identifier: Apache-2.0
"""Removed: when a dispatch goes (rules 3, 5 and 9), what is learned (4), what is lost (6), what comes first (8)."""

from __future__ import annotations

from typing import Any

from conformance.mutations import LAWS, Patch, always, removed, swap
from priority_router.core import executor_model, scheduler, service_times
from priority_router.core.executor_model import ExecutorModel
from priority_router.core.lead import SHORTEST, Lead
from priority_router.core.scheduler import Scheduler
from priority_router.core.service_times import ServiceTimes
from priority_router.core.values import Send

# Rule 3: just in time.

swap(3, "sending ahead", "the_executor_is_kept_busy", ExecutorModel, "next_ahead", always(None))
swap(3, "not too early", "a_newcomer_waits_for_half_a_batch_and_its_own", ExecutorModel, "_ahead_after", always(0))
swap(3, "the lead", "the_executor_is_kept_busy", Lead, "before", always(SHORTEST))
swap(3, "the allowance", "the_executor_is_kept_busy_behind_slow_ways", Lead, "_compare", always(None))
swap(3, "two humps", "a_long_execution_is_not_taken_for_the_median", ServiceTimes, "spread", always([]))
swap(
    3,
    "sent ahead at once while nothing is learned",
    "nothing_learned_sends_ahead_at_once",
    ExecutorModel,
    "_ahead_after",
    always(1),
)
for _check in ("nothing_goes_ahead_that_triton_would_merge", "both_instances_are_kept_busy_by_small_dispatches"):
    swap(3, f"nothing ahead that would merge: {_check}", _check, ExecutorModel, "would_merge", always(False))


def _unlimited_ahead(self: ExecutorModel) -> int | None:
    ahead = sorted(flight.ahead for flight in self._running)
    return ahead[min(len(self.waiting), len(ahead) - 1)] if len(ahead) == self._policy.instances else None


for _check, _says in (
    (LAWS, "ahead"),
    ("at_most_one_dispatch_per_instance_starts_past_a_more_urgent_arrival", ""),
):
    swap(3, f"at most I ahead: {_check}", _check, ExecutorModel, "next_ahead", _unlimited_ahead, _says)


@removed(3, "the k-th ahead follows the k-th completion", "the_second_sent_ahead_waits_for_the_second_completion")
def _(patch: Patch) -> None:
    def first(self: ExecutorModel) -> int | None:
        instances = self._policy.instances
        if len(self.waiting) >= instances or len(self._running) < instances:
            return None
        return min(flight.ahead for flight in self._running)

    patch.setattr(ExecutorModel, "next_ahead", first)


# Rule 4: learning.


@removed(4, "a sample begins at the completion before", "a_dispatch_sent_ahead_counts_from_the_completion_before_it")
def _(patch: Patch) -> None:
    start = ExecutorModel._start

    def from_sending(self: ExecutorModel, flight: Any, now: int) -> None:
        start(self, flight, now)
        flight.started = flight.sent

    patch.setattr(ExecutorModel, "_start", from_sending)


@removed(4, "the first sample dropped", "warm_up_is_not_learned")
def _(patch: Patch) -> None:
    add = service_times._Median.add

    def warm(self: Any, sample: int) -> None:
        self._warm = True
        add(self, sample)

    patch.setattr(service_times._Median, "add", warm)


@removed(4, "the median, not the mean", "one_slow_execution_does_not_move_the_estimate")
def _(patch: Patch) -> None:
    add = service_times._Median.add

    def mean(self: Any, sample: int) -> None:
        add(self, sample)
        if self.order:
            self.value = sum(self.order) // len(self.order)

    patch.setattr(service_times._Median, "add", mean)


swap(4, "the last 15", "the_estimate_follows_a_change_within_fifteen", service_times, "SAMPLES", 10**9)
swap(4, "256 keys", "memory_of_signatures_is_bounded", service_times, "KEYS", 10**9)


@removed(4, "failures give no sample", "failures_teach_nothing")
def _(patch: Patch) -> None:
    completed = ExecutorModel.completed
    patch.setattr(
        ExecutorModel, "completed", lambda self, flight, now, succeeded: completed(self, flight, now, succeeded=True)
    )


@removed(4, "merged dispatches give no sample", "what_triton_may_have_merged_teaches_nothing")
def _(patch: Patch) -> None:
    send = ExecutorModel.send

    def all_telling(self: ExecutorModel, dispatch: Any, now: int) -> None:
        send(self, dispatch, now)
        for flight in self.flights.values():
            flight.telling = True

    patch.setattr(ExecutorModel, "send", all_telling)


for _check in (
    "an_unknown_signature_is_judged_by_its_row_count",
    "a_newcomer_waits_no_longer_where_every_request_is_of_another_shape",
):
    swap(
        4,
        f"the row count stands in for an unknown signature: {_check}",
        _check,
        ServiceTimes,
        "estimate",
        lambda self, signature, rows: (
            self._by_signature[signature].curve.time(rows) if signature in self._by_signature else None
        ),
    )


# Rule 5: overtaking.


@removed(5, "an overtaker goes at once", "an_overtaker_is_sent_at_once")
def _(patch: Patch) -> None:
    patch.setattr(ExecutorModel, "_goes_at_once", lambda self, _level: len(self._running) < self._policy.instances)


@removed(5, "passed at most once", "a_dispatch_is_passed_once")
def _(patch: Patch) -> None:
    patch.setattr(executor_model.Flight, "passed", property(always(False), lambda *_: None))


@removed(5, "only the more urgent pass", "laws_with_overtaking", "ahead")
def _(patch: Patch) -> None:
    patch.setattr(ExecutorModel, "_goes_at_once", lambda self, _level: len(self.flights) < 4)


# Rule 6: lost dispatches.

swap(6, "written off", "a_dispatch_without_an_answer_is_written_off", ExecutorModel, "oldest", always(None))
swap(6, "gone after 8", "an_executor_that_is_gone_gets_no_more_work", scheduler, "MAX_WRITTEN_OFF", 10**9)


@removed(6, "a late answer gives its thread back", "a_late_answer_gives_its_thread_back")
def _(patch: Patch) -> None:
    completed = Scheduler.completed

    def dropped(self: Scheduler, dispatch_id: int, now: int, error: Any = None) -> None:
        if dispatch_id not in self._written_off:
            completed(self, dispatch_id, now, error)

    patch.setattr(Scheduler, "completed", dropped)


# Rule 8: work before replies.


@removed(8, "the slot is given work before replies", LAWS, "sends first")
def _(patch: Patch) -> None:
    advance = Scheduler.advance
    patch.setattr(
        Scheduler,
        "advance",
        lambda self, now: sorted(advance(self, now), key=lambda action: isinstance(action, Send)),
    )


# Rule 9: a shared executor.

for _check in ("the_most_urgent_go_to_a_shared_executor_at_once", "a_shared_executor_serves_urgent_work_by_level"):
    swap(9, f"the most urgent go at once: {_check}", _check, executor_model, "SHARED_IN_FLIGHT", 0)
swap(9, "at most 4 I in flight", "laws_with_a_shared_executor", executor_model, "SHARED_IN_FLIGHT", 99, "ahead")


@removed(9, "only the most urgent", "the_less_urgent_stay_late_bound_on_a_shared_executor")
def _(patch: Patch) -> None:
    at_once = ExecutorModel._goes_at_once
    patch.setattr(ExecutorModel, "_goes_at_once", lambda self, _level: at_once(self, self._most_urgent_level))
