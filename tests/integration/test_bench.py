# SPDX-License-Identifier: Apache-2.0
"""The benchmark on real servers: tiny runs, judged by their books and not by their times."""

import importlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from priority_router.ops.bench import arms, command, executor_stats, load
from priority_router.ops.bench.arrivals import poisson
from priority_router.ops.bench.load import Target
from priority_router.ops.bench.scenarios import COMPARED, SCENARIOS
from priority_router.ops.bench.stats import QUANTILES
from priority_router.ops.bench.wire import Outcome, Route
from priority_router.ops.loads import BACKGROUND, LEVELS, ONLINE, ClassLoad, ExecutorShape
from support.fleet import PATIENCE_SECONDS, eventually
from support.load import replay

jsonschema: Any = importlib.import_module("jsonschema")  # it has no type stubs
SCHEMA = json.loads((Path(__file__).resolve().parents[2] / "docs" / "bench.schema.json").read_text())
PACKAGE = Path(__file__).resolve().parents[2] / "backends" / "priority_router"
PAYLOADS = [{"X": np.full((rows, 4), rows, np.float32)} for rows in (1, 3)]
SHAPE = ExecutorShape(batch_us=4_000, row_us=0, max_batch_size=4)
SPREAD = {"median", "low", "high"}


@pytest.fixture(scope="module", params=["flat", "levels", "levels+hooks", "router", "router-plain"])
def arm_server(request, start_server, tmp_path_factory):
    arm = arms.ARMS[request.param]
    repository = tmp_path_factory.mktemp(request.param) / "repository"
    repository.mkdir()
    arms.write_repository(repository, arm, SHAPE, LEVELS)
    return arm, start_server(repository, hooks=arm.hooks)


def test_the_ledger_and_the_server_count_the_same(arm_server):
    arm, server = arm_server
    target = Target(server.http, arms.routes(arm, LEVELS), PAYLOADS)
    schedule = poisson([ClassLoad(ONLINE, 40), ClassLoad(BACKGROUND, 80)], 2, 5, payloads=2)
    before = executor_stats.read(server.http, arms.EXECUTOR)
    ledger = replay(target, schedule, queue_time=True)
    after = executor_stats.read(server.http, arms.EXECUTOR)
    assert not ledger.failures
    assert (ledger.outcome == Outcome.SUCCESS).all()
    assert len(ledger) == len(schedule)
    assert after.rows - before.rows == ledger.rows.sum() == (1 + 2 * schedule.payload).sum()
    executions = after.executions - before.executions
    assert after.mean_batch_since(before) == pytest.approx(ledger.rows.sum() / executions)
    # 4 ms of sleep for each execution, plus what the server needs around it.
    assert after.compute_ns - before.compute_ns > 4_000_000 * executions
    assert 0 < after.busy_since(before, 1) < 1
    assert (ledger.queue_us >= 0).all() == (arm.mode is not None)


def test_errors_of_the_server_are_told(arm_server):
    _, server = arm_server
    lost = Target(server.http, {ONLINE: Route("nobody"), BACKGROUND: Route("nobody")}, PAYLOADS)
    ledger = replay(lost, poisson([ClassLoad(ONLINE, 20)], 0.5, 1))
    assert (ledger.outcome == Outcome.OTHER).all()
    [(status, text)] = ledger.failures
    assert status in (400, 404)
    assert "nobody" in text
    with pytest.raises(load.LoadError, match="nobody"):
        executor_stats.read(server.http, "nobody")


def tiny(scenario, target, *more):
    return [
        scenario,
        "--json",
        str(target),
        "--rounds",
        "1",
        "--duration",
        "1.5",
        "--warmup",
        "0.5",
        "--seed",
        "3",
        *more,
    ]


def test_a_scenario_from_end_to_end(tmp_path, capsys):
    target = tmp_path / "result.json"
    assert command.main(tiny("overload", target)) == 0
    document = json.loads(target.read_text())
    jsonschema.validate(document, SCHEMA)
    assert document["command"][:3] == ["priority-router", "bench", "overload"]
    assert document["versions"]["triton"].startswith("2.")
    [finished] = document["rounds"]
    assert list(finished) == list(document["arms"]) == list(COMPARED)
    schedule = poisson(SCENARIOS["overload"].loads, 2.0, (3, 0))
    counted = schedule.class_index[schedule.at >= 500_000_000]
    for name, summary in finished.items():
        for index, class_name in enumerate((ONLINE, BACKGROUND)):
            outcomes = summary["classes"][class_name]["outcomes"]
            assert set(outcomes) == {outcome.label for outcome in Outcome}
            # Every arm was sent the same requests, and each of them ended in one way.
            assert sum(outcomes.values()) == np.count_nonzero(counted == index), name
            assert outcomes["other"] == 0, summary["failures"]
            routed = name.startswith("router") and outcomes["success"] > 0
            assert bool(summary["classes"][class_name]["queue_ms"]) is routed
        # On a busy machine these seconds are over before background work has had its turn.
        assert summary["classes"][ONLINE]["outcomes"]["success"] > 0
        # Rows are counted by the server and time by the client, which a machine that stalls keeps apart.
        assert 0 < summary["busy"] < 10
        assert 1 <= summary["mean_batch"] <= 4
        assert set(summary["batches"]) <= {"1", "2", "3", "4"}
        executions = sum(summary["batches"].values())
        rows = sum(int(rows) * count for rows, count in summary["batches"].items())
        assert rows / executions == pytest.approx(summary["mean_batch"])
        latency = document["arms"][name]["classes"][ONLINE]["latency"]
        assert set(latency) == set(QUANTILES)
        assert all(set(spread) == SPREAD for spread in latency.values())
        assert latency["p50_ms"]["median"] > 50
    assert [(aim["arm"], len(aim["values"])) for aim in document["aims"] if aim["decisive"]] == [("router", 1)] * 5
    assert document["client"]["top_rate"] > document["client"]["asked_rate"] == len(schedule) / 2
    # The executor slept 50 ms for each batch, so no request of the oracle's took less.
    assert document["oracle"]["classes"][ONLINE]["latency"]["p50_ms"]["median"] > 50
    [ideal] = document["oracle"]["rounds"]
    assert {name: sum(one["outcomes"].values()) for name, one in ideal["classes"].items()} == {
        name: np.count_nonzero(counted == index) for index, name in enumerate((ONLINE, BACKGROUND))
    }
    printed = capsys.readouterr()
    assert "router-plain" in printed.out
    assert str(target) in printed.out
    assert printed.err.index("client: alone one process sends") < printed.err.index("round 1 of 1: router")


def test_background_goes_past_the_router_in_the_shared_scenario(tmp_path):
    target = tmp_path / "result.json"
    assert command.main(tiny("shared", target, "--arms", "router,router-plain")) == 0
    [finished] = json.loads(target.read_text())["rounds"]
    for summary in finished.values():
        assert summary["classes"][ONLINE]["outcomes"]["success"] > 0
        assert sum(summary["classes"][BACKGROUND]["outcomes"].values()) > 0
        assert summary["failures"] == []


def test_a_heavy_tenant_is_not_in_the_way_of_many_light_ones(tmp_path):
    target = tmp_path / "result.json"
    assert command.main(tiny("tenants", target, "--arms", "router", "--duration", "4")) == 0
    [finished] = json.loads(target.read_text())["rounds"]
    classes = finished["router"]["classes"]
    assert set(classes) == {ONLINE, "light tenants", "heavy tenant"}

    def served(name):
        outcomes = classes[name]["outcomes"]
        return outcomes["success"] / sum(outcomes.values())

    assert finished["router"]["failures"] == []
    assert served("light tenants") > served("heavy tenant")


def test_closed_loop_steps(tmp_path):
    target = tmp_path / "result.json"
    assert command.main(tiny("overhead", target, "--arms", "levels+hooks,router", "--duration", "3")) == 0
    document = json.loads(target.read_text())
    for arm in document["arms"].values():
        assert set(arm["classes"]) == {"1 in flight", "64 in flight"}
        assert all(one["outcomes"]["success"] > 0 for one in arm["classes"].values())
        assert all(one["outcomes"]["unanswered"] == 0 for one in arm["classes"].values())
    assert [aim["arm"] for aim in document["aims"]] == ["router", "router"]
    assert all(aim["reached"] is not None for aim in document["aims"])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_keeps_what_was_measured_and_leaves_nothing_running(tmp_path, number):
    target = tmp_path / "result.json"
    words = [
        "overload",
        "--json",
        str(target),
        "--duration",
        "1",
        "--warmup",
        "0.5",
        "--rounds",
        "50",
        "--arms",
        "levels",
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "priority_router.ops.cli", "bench", *words],
        env={**os.environ, "PYTHONPATH": str(PACKAGE)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    seen = ""
    assert process.stderr is not None
    while "round 3 of 50" not in seen:
        line = process.stderr.readline()
        assert line, seen
        seen += line
    running = psutil.Process(process.pid)
    eventually(lambda: len(running.children(recursive=True)) > 1)
    started = running.children(recursive=True)
    if number == signal.SIGINT:
        # As a terminal does it: to the whole group, the generator included.
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    out, errors = process.communicate(timeout=PATIENCE_SECONDS)
    assert psutil.wait_procs(started, timeout=PATIENCE_SECONDS)[1] == []
    assert process.returncode == 128 + number, errors
    assert "Traceback" not in errors
    document = json.loads(target.read_text())
    assert document["interrupted"]
    *complete, last = [list(finished) for finished in document["rounds"]]
    assert len(complete) >= 2, "what was measured before is lost"
    assert complete == [["levels"]] * len(complete)
    assert last == []
    assert "warning: interrupted" in out
