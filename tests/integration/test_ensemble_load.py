# SPDX-License-Identifier: Apache-2.0
"""The steps around the router do not become a queue of their own: under the demo's load, with tenfold slack."""

from __future__ import annotations

import json

import pytest
from priority_router.ops.bench.arrivals import poisson
from priority_router.ops.demo import files, filetype
from priority_router.ops.demo.measurements import BACKGROUND_SHARE, ONLINE_SHARE
from priority_router.ops.loads import BACKGROUND, ONLINE, ClassLoad
from support.modules import load_module
from support.shipped import MODELS, ROOT

SLACK = 10
SECONDS = 6.0


@pytest.fixture(scope="module")
def script():
    return load_module("measure_ensemble", ROOT / "scripts" / "measure_ensemble.py")


@pytest.fixture(scope="module")
def recorded(script):
    return json.loads(script.RESULT.read_text())["measured"]


@pytest.fixture(scope="module")
def server(start_server, tmp_path_factory):
    return start_server(MODELS, log=tmp_path_factory.mktemp("load") / "server.log")


@pytest.fixture(scope="module")
def measured(script, server):
    """The router's capacity, and what the steps and the requests of each class take under 1.4 times that."""
    samples = files.collect([ROOT], 50, 1, filetype.load_rule(MODELS))
    inputs = script.ensemble_inputs(samples)
    capacity = script.rows_per_s(server, "router", [{filetype.INPUT: sample.features} for sample in samples], 2.0)
    loads = [ClassLoad(ONLINE, ONLINE_SHARE * capacity), ClassLoad(BACKGROUND, BACKGROUND_SHARE * capacity)]
    schedule = poisson(loads, script.WARMUP_SECONDS + SECONDS, 1, payloads=len(inputs))
    summary, steps = script.under_load(server, "file_type", inputs, schedule)
    return {"capacity": capacity, "classes": summary.classes, "steps": steps}


@pytest.mark.parametrize("step", ["file_type_features", "file_type_label"])
class TestOuterSteps:
    """Each step has one process."""

    def test_it_could_do_many_times_what_the_executor_does(self, script, server, measured, recorded, step):
        at_record = recorded["alone_rows_per_s"][step]["low"] / recorded["capacity_rows_per_s"]["high"]
        assert at_record > SLACK
        least = measured["capacity"] * at_record / SLACK
        # A machine that stalls may take the whole time of one measurement.
        assert any(script.rows_per_s(server, step, script.one_row(step), 2.0) > least for _ in range(3))

    def test_requests_pass_it_without_a_wait_worth_mentioning(self, measured, recorded, step):
        at_record = sum(recorded["steps"][step][part]["high"] for part in ("queue_ms", "compute_ms"))
        assert at_record < 10
        passed_in = sum(measured["steps"][step][part] for part in ("queue_ms", "compute_ms"))
        # A step that is a queue of its own holds what otherwise waits in the router, some of it until the end.
        waited = measured["classes"][BACKGROUND].latency.get("p50_ms", 1e3 * SECONDS)
        assert passed_in < max(SLACK * at_record, waited / 4)
