# SPDX-License-Identifier: Apache-2.0
"""What docs/policies.md says of wrong predictions: bounds and shares hold about as far as it is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.modules import load_module

ROOT = Path(__file__).resolve().parents[2]
RECORDED = json.loads((ROOT / "docs" / "results" / "policies.json").read_text())
ARMS = ("accurate", "each wrong", "drifting")
WRONG = ARMS[1:]
SECONDS = 60


@pytest.fixture(scope="module", name="script")
def measuring_script() -> Any:
    return load_module("measure_policies", ROOT / "scripts" / "measure_policies.py")


def test_no_dispatch_exceeds_its_budget_as_long_as_times_are_as_learned(script: Any) -> None:
    measured = script.blocking(script.ARMS["accurate"], SECONDS)
    assert measured["over_budget_percent"] == 0
    assert measured["longest_in_budgets"] <= 1


@pytest.mark.parametrize("arm", WRONG)
def test_wrong_predictions_exceed_the_budget_seldom_and_not_by_more_than_they_are_wrong(script: Any, arm: str) -> None:
    measured = script.blocking(script.ARMS[arm], SECONDS)
    assert 0 < measured["over_budget_percent"] < 10, "nine in ten samples are planned with"
    assert 1 < measured["longest_in_budgets"] <= 4, "the slowest is four times the fastest"


@pytest.mark.parametrize("arm", ARMS)
def test_nobody_waits_longer_than_the_age_bound_or_in_order_of_arrival(script: Any, arm: str) -> None:
    measured = script.age(script.ARMS[arm], SECONDS)
    two_dispatches = 2 * script.SLOWDOWN * script.ACCURATE.expected(1, 0) / script.MS
    bound = max(script.MAX_WAIT / script.MS, measured["by_arrival_ms"])
    assert measured["longest_wait_ms"] <= bound + two_dispatches
    assert script.longest_wait(0, script.ARMS[arm], SECONDS, 1) > bound * script.MS


@pytest.mark.parametrize("arm", ARMS)
def test_shares_are_kept_whatever_is_predicted(script: Any, arm: str) -> None:
    measured = script.shares(script.ARMS[arm], SECONDS // 2)
    for name, share in script.SHARES.items():
        assert measured[f"{name}_percent"] == pytest.approx(100 * share, rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("arm", ARMS)
def test_recorded_numbers_are_those_of_this_scheduler(script: Any, arm: str) -> None:
    measured = {what: measure(script.ARMS[arm]) for what, measure in script.MEASURED.items()}
    assert measured == RECORDED["arms"][arm], "run scripts/measure_policies.py"
