# SPDX-License-Identifier: Apache-2.0
"""The benchmark against servers that are there, over both protocols, and on models of one's own."""

import importlib
import json
from pathlib import Path
from typing import Any

import pytest
from priority_router.errors import SetupError
from priority_router.ops.bench import arms, command
from priority_router.ops.loads import BACKGROUND, LEVELS, ONLINE, ExecutorShape

jsonschema: Any = importlib.import_module("jsonschema")  # it has no type stubs
ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "docs" / "bench.schema.json").read_text())
SLOW = ExecutorShape(batch_us=20_000, row_us=0, max_batch_size=2)
PLAN = """
seconds = 2
warmup_seconds = 0.5
rounds = 1
[[class]]
name = "online"
level = 1
rate = 20
[[class]]
name = "background"
level = 2
rate = 250
"""


@pytest.fixture(scope="module")
def routed(start_server, tmp_path_factory):
    """A router in levels mode with its executor, which is closed to others."""
    repository = tmp_path_factory.mktemp("routed") / "repository"
    repository.mkdir()
    arms.write_repository(repository, arms.ARMS["router"], SLOW, LEVELS)
    return start_server(repository, hooks=True)


@pytest.fixture(scope="module")
def bare(start_server, tmp_path_factory):
    """An executor with two levels, and no router."""
    repository = tmp_path_factory.mktemp("bare") / "repository"
    repository.mkdir()
    arms.write_repository(repository, arms.ARMS["levels+hooks"], SLOW, LEVELS)
    return start_server(repository, hooks=True)


def url(server, protocol):
    return f"{protocol}://{server.http if protocol == 'http' else server.grpc}"


def bench(tmp_path, *words):
    target = tmp_path / "result.json"
    assert command.main([*map(str, words), "--json", str(target)]) == 0
    document = json.loads(target.read_text())
    jsonschema.validate(document, SCHEMA)
    return document


@pytest.fixture
def plan(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    return path


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_guarded_server_runs_the_routers_arms_and_says_what_it_leaves_out(routed, plan, tmp_path, capsys, protocol):
    document = bench(tmp_path, plan, "--url", url(routed, protocol), "--arms", "levels+hooks,router,router-one-class")
    assert document["server"] == {"kind": "url", "url": url(routed, protocol)}
    assert list(document["dropped"]) == ["levels+hooks"]
    assert "closed to direct calls" in document["dropped"]["levels+hooks"]
    assert "bench: without levels+hooks: the executor" in capsys.readouterr().err
    [finished] = document["rounds"]
    assert list(finished) == ["router", "router-one-class"]
    online = finished["router"]["classes"][ONLINE]
    # Every answer had its request's id; otherwise it would be a failure.
    assert finished["router"]["failures"] == []
    assert online["outcomes"]["success"] > 0
    assert online["queue_ms"]["p50_ms"] > 0
    assert finished["router"]["busy"] > 0
    # Both arms were sent the same, and priority is gone with the classes.
    for name in (ONLINE, BACKGROUND):
        counts = {sum(one["classes"][name]["outcomes"].values()) for one in finished.values()}
        assert len(counts) == 1
    alone = finished["router-one-class"]["classes"][ONLINE]
    assert online["outcomes"]["unanswered"] < alone["outcomes"]["unanswered"] or (
        online["latency"]["p50_ms"] < alone["latency"]["p50_ms"]
    )


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_server_without_a_router_runs_tritons_own_levels(bare, plan, tmp_path, protocol):
    document = bench(tmp_path, plan, "--url", url(bare, protocol), "--arms", "flat,flat-levels,levels,router")
    assert set(document["dropped"]) == {"flat", "router"}
    assert document["dropped"]["router"] == "the server has no router"
    [finished] = document["rounds"]
    assert list(finished) == ["flat-levels", "levels"]

    def typical(arm):
        found = finished[arm]["classes"][ONLINE]
        rest = found["outcomes"]["unanswered"] > found["outcomes"]["success"]
        return float("inf") if rest else found["latency"]["p50_ms"]

    # The mark that gives a request its level travels by either protocol.
    assert typical("levels") < typical("flat-levels") / 2


def test_no_server_and_no_executor_are_said(routed, plan, tmp_path):
    target = ["--json", str(tmp_path / "result.json")]
    for words in (["--url", "http://127.0.0.1:1"], ["--url", url(routed, "http"), "--executor", "nobody"]):
        with pytest.raises(SetupError, match="name the server with --url and its executor with --executor"):
            command.main([str(plan), *words, *target])


def test_a_router_of_ones_own_is_measured_with_files_as_inputs(tmp_path):
    """The shipped one, whose capacity is measured first."""
    data = tmp_path / "files.json"
    data.write_text(json.dumps({"data": [{"bytes": [65] * 1024 + [256] * 1024}, {"bytes": [0] * 2048}]}))
    words = ["--duration", "2", "--warmup", "0.5", "--rounds", "1", "--arms", "flat,router", "--input-data", data]
    document = bench(tmp_path, "overload", "--model", ROOT / "model_repository" / "router", *words)
    [finished] = document["rounds"]
    assert list(finished) == ["flat", "router"]
    for one in finished.values():
        assert one["failures"] == []
        assert one["classes"][ONLINE]["outcomes"]["success"] > 0
    assert document["scenario"]["executor"]["max_batch_size"] == 4
    rates = {one["name"]: one["rate"] for one in document["scenario"]["loads"]}
    assert rates[BACKGROUND] / rates[ONLINE] == pytest.approx(110 / 16)
    assert finished["router"]["classes"][ONLINE]["queue_ms"]
    assert document["aims"] == []
