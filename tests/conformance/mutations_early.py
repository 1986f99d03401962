# SPDX-License-Identifier: Apache-2.0
"""Removed: pieces of early refusal (docs/policies.md)."""

from __future__ import annotations

from typing import Any

from conformance.mutations import Patch, always, removed, swap
from conformance.worlds import MS
from priority_router.core import admission, forecast, lines, tenants
from priority_router.core.admission import Admission
from priority_router.core.executor_model import ExecutorModel
from priority_router.core.forecast import Forecast
from priority_router.errors import QueueFull

for _check in (
    "who_cannot_start_in_time_is_refused_at_once",
    "more_urgent_work_counts_and_less_urgent_does_not",
    "all_instances_work_on_what_is_ahead",
):
    swap(0, f"refusal on arrival: {_check}", _check, Forecast, "start", always(None))

swap(
    0,
    "the rest of what runs",
    "what_runs_counts",
    ExecutorModel,
    "free_from",
    lambda self, _level, now: [now] * self._policy.instances,
)


@removed(0, "what waits inside Triton", "what_was_sent_ahead_counts")
def _(patch: Patch) -> None:
    free_from = ExecutorModel.free_from

    def running_alone(self: ExecutorModel, level: int, now: int) -> list[int]:
        waiting, self.waiting = self.waiting, []
        free = free_from(self, level, now)
        self.waiting = waiting
        return free

    patch.setattr(ExecutorModel, "free_from", running_alone)


swap(0, "enough samples", "nothing_is_refused_before_enough_is_learned", forecast, "ENOUGH_SAMPLES", 0)


@removed(0, "only where it is asked for", "only_who_asks_for_it_is_refused_early")
def _(patch: Patch) -> None:
    for module in (admission, forecast):
        patch.setattr(module, "refuses_early", always(True))


@removed(0, "only what comes before", "more_urgent_work_counts_and_less_urgent_does_not")
def _(patch: Patch) -> None:
    patch.setattr(
        Forecast, "_come_before", lambda self, *_: [*self._until.values(), *self._above.values(), *self._own.values()]
    )


for _check in ("who_shares_a_dispatch_starts_with_it", "rows_of_another_signature_do_not_join"):
    swap(0, f"joined rows: {_check}", _check, forecast._Book, "enough", always(1))


@removed(0, "signatures", "rows_of_another_signature_do_not_join")
def _(patch: Patch) -> None:
    add, take, before = forecast._Book.add, forecast._Book.take, forecast._Book.before
    patch.setattr(forecast._Book, "add", lambda self, _, rows: add(self, "s", rows))
    patch.setattr(forecast._Book, "take", lambda self, _, rows: take(self, "s", rows))
    patch.setattr(forecast._Book, "before", lambda self, _, rows, skipped: before(self, "s", rows, skipped))


@removed(0, "all instances", "all_instances_work_on_what_is_ahead")
def _(patch: Patch) -> None:
    done = forecast._done
    patch.setattr(forecast, "_done", lambda free, work: done(free[:1], work))


swap(
    0,
    "the place by deadline",
    "by_deadline_only_earlier_ones_are_ahead",
    lines._ByDeadline,
    "before",
    lines.ByArrival.before,
)
swap(
    0,
    "the tenant's own alone",
    "of_other_tenants_nothing_is_ahead_for_sure",
    tenants._ByTenant,
    "before",
    lines.ByArrival.before,
)

for _check, _books in (("a_share_makes_the_start_earlier", "_own"), ("an_age_bound_makes_the_start_earlier", "_aged")):

    @removed(0, f"earlier: {_check}", _check)
    def _(patch: Patch, books: str = _books) -> None:
        init = Forecast.__init__

        def without(self: Forecast, *parts: Any) -> None:
            init(self, *parts)
            setattr(self, books, {})

        patch.setattr(Forecast, "__init__", without)


@removed(0, "who may expire", "who_may_be_answered_at_its_timeout_is_not_ahead")
def _(patch: Patch) -> None:
    add = Forecast.add

    def counted(self: Forecast, entry: Any) -> None:
        entry.predicted = entry.predicted or 0
        add(self, entry)

    patch.setattr(Forecast, "add", counted)


swap(0, "who leaves", "who_has_left_is_not_ahead", Forecast, "left", always(None))
swap(
    0,
    "parts that were sent",
    "the_parts_of_a_request_that_were_sent_are_not_ahead",
    Admission,
    "shortened",
    always(None),
)


@removed(0, "who may be delayed", "who_may_be_delayed_is_ahead_of_the_less_urgent_alone")
def _(patch: Patch) -> None:
    come_before = Forecast._come_before
    patch.setattr(Forecast, "_come_before", lambda self, each, promoted, _: come_before(self, each, promoted, False))


@removed(0, "the late first", "who_is_refused_early_takes_nobodys_place")
def _(patch: Patch) -> None:
    late = Admission._predicted_late

    def full_first(self: Admission, forecast: Forecast, arrivals: Any, now: int) -> Any:
        for entry in reversed(arrivals):
            full = self._full(entry.traffic_class)
            if full is not None:
                yield entry, QueueFull(full)
        yield from late(self, forecast, arrivals, now)

    patch.setattr(Admission, "_predicted_late", full_first)


swap(0, "the sums", "what_was_predicted_and_what_came_true_is_told", Admission, "ran", always(None))
swap(
    0,
    "refusal when it is about to be sent",
    "who_would_be_sent_ahead_too_late_is_refused_instead",
    Admission,
    "too_late",
    always(()),
)


@removed(0, "refused picks cost nothing", "who_is_refused_when_its_share_is_due_is_not_charged")
def _(patch: Patch) -> None:
    too_late = Admission.too_late

    def charged(self: Admission, batch: Any, now: int) -> Any:
        late = too_late(self, batch, now)
        for entry, _ in late:
            name = entry.traffic_class.name
            self._shares.sent(-1, {name: 1}, self._lanes.waiting, 50 * MS, name)
        return late

    patch.setattr(Admission, "too_late", charged)
