# SPDX-License-Identifier: Apache-2.0
"""Removed: what the bounds of ``core/worst_case.py`` count, and what they rest on."""

from __future__ import annotations

from conformance.mutations import Patch, always, removed, swap
from priority_router.core import shares
from priority_router.core.executor_model import ExecutorModel
from priority_router.core.worst_case import _Facts


@removed(0, "what is in flight counts", "a_full_queue_and_what_is_in_flight_bound_the_wait")
def _(patch: Patch) -> None:
    init = _Facts.__init__

    def nothing_ahead(self: _Facts, *given: object) -> None:
        init(self, *given)  # type: ignore[arg-type]
        self.in_flight = 0

    patch.setattr(_Facts, "__init__", nothing_ahead)


@removed(
    0, "nothing of a less urgent class counts", "the_bound_of_a_less_urgent_class_counts_the_age_and_what_came_before"
)
def _(patch: Patch) -> None:
    patch.setattr(_Facts, "_until_turn", lambda self, own, parts: self._until_free(self._sent_ahead, own) + parts)


swap(0, "what waits counts", "a_full_queue_and_what_is_in_flight_bound_the_wait", _Facts, "_urgent", always(0))
swap(0, "parts count", "the_bound_counts_the_parts_of_requests_that_are_split", _Facts, "parts", always(1))
swap(
    0,
    "the aged count",
    "the_bound_counts_requests_that_have_waited_for_their_class_s_limit",
    _Facts,
    "_aged",
    always(0),
)
swap(
    0,
    "the more urgent count",
    "the_bound_of_a_less_urgent_class_counts_the_age_and_what_came_before",
    _Facts,
    "_urgent",
    always(0),
)
swap(0, "claims count", "the_bound_counts_what_others_claim_for_their_share", _Facts, "_claiming", always([]))
swap(0, "debts count", "a_share_bounds_the_wait_where_nobody_joins", _Facts, "_places", always(-60))
swap(0, "the way from Send counts", "a_timeout_bounds_the_wait_for_a_start", _Facts, "_from_send", always(0))
swap(0, "order counts", "deadlines_give_no_bound_where_later_requests_pass", _Facts, "_in_turn", always(True))
swap(0, "delay counts", "what_may_be_delayed_has_no_bound", _Facts, "_in_order", always(True))
swap(
    0,
    "sharing counts",
    "inside_a_shared_executor_only_the_most_urgent_have_a_bound",
    _Facts,
    "missing_by_place",
    always(()),
)
swap(
    0,
    "one passes once",
    "what_waits_inside_triton_is_passed_once_where_a_wait_is_promised",
    ExecutorModel,
    "would_pass_again",
    always(False),
)
swap(
    0,
    "only where a wait is promised",
    "without_a_promise_it_is_passed_as_before",
    ExecutorModel,
    "would_pass_again",
    lambda self, level: any(flight.passed for flight in self.waiting),
)
swap(0, "the least charge", "a_class_of_single_rows_claims_no_more_than_twice_its_share", shares, "LEAST_CLAIM", 0.0)
