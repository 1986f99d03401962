# SPDX-License-Identifier: Apache-2.0
"""Every rule is guarded: a check that passes, and that fails once the rule is removed from the scheduler."""

from __future__ import annotations

import re

import pytest
from conformance import (  # noqa: F401 - they enter what they hold
    checks_change,
    checks_early,
    checks_policy,
    checks_tenants,
    checks_when,
    checks_worst,
    measurements,
    mutations_change,
    mutations_early,
    mutations_policy,
    mutations_tenants,
    mutations_when,
    mutations_worst,
)
from conformance.checks import CHECKS
from conformance.mutations import MUTATIONS, Mutation
from conformance.mutations_who import first_come_first_served

PRIORITY = (
    "laws_with_joins_splits_and_limits",
    "laws_with_two_instances_and_no_joins",
    "laws_without_a_batch_axis",
    "laws_with_a_shared_executor",
    "laws_with_overtaking",
    "arrivals_of_one_call_are_all_known_before_the_decision",
    "more_urgent_work_passes_between_the_parts_of_a_split_request",
    "an_overtaker_is_sent_at_once",
    "the_most_urgent_go_to_a_shared_executor_at_once",
    "a_linear_executor_serves_urgent_work_in_small_batches",
    "a_newcomer_waits_for_half_a_batch_and_its_own",
    "a_newcomer_waits_no_longer_where_every_request_is_of_another_shape",
    "a_long_execution_is_not_taken_for_the_median",
    "at_most_one_dispatch_per_instance_starts_past_a_more_urgent_arrival",
)
"""Checks of the order between levels: serving in order of arrival must fail each of them."""


@pytest.mark.parametrize("name", CHECKS)
def test_holds(name: str) -> None:
    CHECKS[name]()


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: f"rule {mutation.rule}: {mutation.piece}")
def test_is_missed_when_removed(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation.remove(monkeypatch)
    with pytest.raises(AssertionError, match=rf"^{re.escape(mutation.says)}"):
        CHECKS[mutation.check]()


@pytest.mark.parametrize("name", PRIORITY)
def test_first_come_first_served_fails(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first_come_first_served(monkeypatch)
    with pytest.raises(AssertionError):
        CHECKS[name]()


def test_every_rule_and_every_check_has_a_mutation() -> None:
    assert {mutation.rule for mutation in MUTATIONS} == set(range(10))
    guarded = {mutation.check for mutation in MUTATIONS}
    assert guarded == set(CHECKS)
