# SPDX-License-Identifier: Apache-2.0
"""``priority-router simulate`` from its words to its table and file."""

import json
from pathlib import Path

import pytest
from priority_router.errors import PriorityRouterError
from priority_router.ops.bench.table import HEAD
from priority_router.ops.bench.wire import Outcome
from priority_router.ops.simulate import command

EXAMPLE = Path(__file__).resolve().parents[4] / "examples" / "simulate"
FILES = ["--policy", str(EXAMPLE / "policy.toml"), "--profile", str(EXAMPLE / "profile.json")]
LOAD = ["--rate", "online=16", "--rate", "background=110,rows=1-2", "--seconds", "10"]


def simulated(tmp_path, *words):
    target = tmp_path / "numbers.json"
    assert command.main([*FILES, *words, "--json", str(target)]) == 0
    return json.loads(target.read_text())


def test_the_table_has_the_columns_of_the_benchmark_and_the_oracle_beside(tmp_path, capsys):
    document = simulated(tmp_path, *LOAD)
    lines = capsys.readouterr().out.splitlines()
    assert [name for name in HEAD if name not in lines[0]] == []
    assert [line.split()[0] for line in lines[1:4:2]] == ["router", "oracle"]
    assert document["schema"] == command.SCHEMA
    router, oracle = document["arms"]["router"], document["arms"]["oracle"]
    assert set(router["classes"]) == {"online", "background"}
    assert router["busy"]["median"] > 0.97
    assert router["classes"]["online"]["outcomes"]["success"] > 100
    assert router["classes"]["background"]["outcomes"]["queue_full"] > 0
    for arm in (oracle, router):
        assert 50 < arm["classes"]["online"]["latency"]["p50_ms"]["median"] < 100


def test_the_same_seed_gives_the_same_numbers_and_another_one_others(tmp_path):
    rounds = [simulated(tmp_path, *LOAD, "--seed", seed)["rounds"] for seed in ("7", "7", "8")]
    assert rounds[0] == rounds[1] != rounds[2]


def test_every_request_ends_in_one_way_however_many_routers_there_are(tmp_path):
    totals = []
    for routers in ("1", "3"):
        document = simulated(tmp_path, *LOAD, "--routers", routers)
        classes = document["rounds"][0]["router"]["classes"]
        totals.append({name: sum(one["outcomes"].values()) for name, one in classes.items()})
        assert set(classes["online"]["outcomes"]) == {outcome.label for outcome in Outcome}
    assert totals[0] == totals[1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([*FILES, "--rate", "onlin=1"], "no such class"),
        ([*FILES, "--rate", "online=1", "--arrivals", "x.csv"], "not allowed with"),
        ([*FILES, "--rate", "online=-1"], "requests per second"),
        ([*FILES, "--rate", "online=1,row=2"], "no setting"),
        ([*FILES], "required"),
        ([*FILES[:2], "--profile", "/nowhere", "--rate", "online=1"], "cannot be read"),
        ([*FILES, "--rate", "online=1", "--json", "/nowhere/x.json"], "cannot be written"),
    ],
)
def test_what_cannot_be_simulated_is_said(words, said, capsys):
    with pytest.raises((PriorityRouterError, SystemExit)) as caught:
        command.main(words)
    assert said in f"{caught.value} {capsys.readouterr().err}"
