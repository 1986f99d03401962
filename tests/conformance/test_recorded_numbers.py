# SPDX-License-Identifier: Apache-2.0
"""docs/results/simulated.json, which the documents show, is what this scheduler does; scripts/judge renews it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from statistics import fmean

import pytest
from priority_router.core.scheduler import Scheduler
from priority_router.core.values import SECOND
from priority_router.ops.simulate.comparison import SCHEMA, simulate
from priority_router.ops.simulate.scenarios import SCENARIOS

RECORDED = json.loads((Path(__file__).parents[2] / "docs" / "results" / "simulated.json").read_text())


def test_every_scenario_is_recorded() -> None:
    assert RECORDED["schema"] == SCHEMA
    assert list(RECORDED["scenarios"]) == list(SCENARIOS)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["overload", "linear"])
def test_recorded_numbers_are_those_of_this_scheduler(name: str) -> None:
    duration = round(RECORDED["seconds"] * SECOND)
    runs = [asdict(simulate(SCENARIOS[name], Scheduler, seed, duration)) for seed in RECORDED["seeds"]]
    for what, recorded in RECORDED["scenarios"][name]["router"].items():
        assert fmean(run[what] for run in runs) == pytest.approx(recorded, rel=1e-3, abs=0.01), "run scripts/judge"
