# SPDX-License-Identifier: Apache-2.0
"""``priority-router simulate`` from its words to its table and file."""

import json
import sys
from pathlib import Path

import pytest
from priority_router.errors import PriorityRouterError
from priority_router.ops import cli
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


def test_a_file_of_requests_is_served_to_its_end(tmp_path):
    document = simulated(tmp_path, "--arrivals", str(EXAMPLE / "arrivals.csv"))
    lines = (EXAMPLE / "arrivals.csv").read_text().splitlines()[1:]
    classes = document["rounds"][0]["router"]["classes"]
    for name, one in classes.items():
        assert sum(one["outcomes"].values()) == sum(f",{name}," in line for line in lines)
    assert document["seconds"] == pytest.approx(float(lines[-1].partition(",")[0]), abs=0.001)
    assert document["warmup_seconds"] == 0


def test_the_backlog_at_the_end_is_unanswered_on_both_arms(tmp_path):
    words = ["--rate", "online=1", "--rate", "background=500", "--seconds", "5", "--grace", "1"]
    policy = tmp_path / "policy.toml"
    policy.write_text((EXAMPLE / "policy.toml").read_text().replace("max_queue_size = 200", "max_queue_size = 0"))
    document = simulated(tmp_path, *words, "--policy", str(policy))
    for arm in document["rounds"][0].values():
        assert arm["classes"]["background"]["outcomes"]["unanswered"] > 1000
        assert arm["classes"]["online"]["outcomes"]["unanswered"] == 0


def test_what_the_profile_does_not_know_is_said(tmp_path, capsys):
    policy = tmp_path / "policy.toml"
    policy.write_text((EXAMPLE / "policy.toml").read_text().replace("max_batch_size = 4", "max_batch_size = 16"))
    document = simulated(tmp_path, "--rate", "online=5", "--seconds", "5", "--policy", str(policy))
    out = capsys.readouterr().out
    assert len(document["warnings"]) == 2
    for warning in document["warnings"]:
        assert f"warning: {warning}" in out


def test_rules_of_tenants_are_said_not_to_be_simulated(tmp_path, capsys):
    policy = tmp_path / "policy.toml"
    text = (EXAMPLE / "policy.toml").read_text()
    policy.write_text(f'{text}\n[[tenant]]\nname = "*"\nmost_urgent_class = "background"\n')
    (warning,) = simulated(tmp_path, "--rate", "online=5", "--seconds", "5", "--policy", str(policy))["warnings"]
    assert "[[tenant]]" in warning
    assert f"warning: {warning}" in capsys.readouterr().out


@pytest.fixture
def routed(tmp_path):
    """The example's policy in the folder of a router that takes 8 rows."""
    policy = tmp_path / "router" / "1" / "policy.toml"
    policy.parent.mkdir(parents=True)
    policy.write_text((EXAMPLE / "policy.toml").read_text())
    (tmp_path / "router" / "config.pbtxt").write_text('backend: "priority_router" max_batch_size: 8')
    return policy


def warned_of(tmp_path, policy, *words):
    return simulated(tmp_path, "--policy", str(policy), "--seconds", "5", *words)["warnings"]


def test_a_request_with_more_rows_than_the_router_takes_is_warned_about(tmp_path, routed):
    words = ["--rate", "online=5,rows=1-9", "--rate", "background=5,rows=8"]
    config = routed.parent.parent / "config.pbtxt"
    (warning,) = warned_of(tmp_path, routed, *words)
    assert (
        warning
        == f"class 'online' has requests of 9 rows, and the router refuses more than 8 (max_batch_size of {config})"
    )
    other = tmp_path / "other.pbtxt"
    other.write_text('backend: "priority_router" max_batch_size: 9')
    assert warned_of(tmp_path, routed, *words, "--router-config", str(other)) == []
    config.unlink()
    assert warned_of(tmp_path, routed, *words) == [], "nobody says what the router takes"
    recorded = tmp_path / "profile.json"
    profile = json.loads((EXAMPLE / "profile.json").read_text())
    recorded.write_text(json.dumps(profile | {"router": {"max_batch_size": 0}}))
    assert len(warned_of(tmp_path, routed, *words, "--profile", str(recorded))) == 2


def test_what_the_router_takes_is_left_open_where_nothing_can_read_its_configuration(tmp_path, routed, monkeypatch):
    monkeypatch.setitem(sys.modules, "priority_router.ops.pbtxt.reading", None)
    assert warned_of(tmp_path, routed, "--rate", "online=5,rows=9") == []
    with pytest.raises(ModuleNotFoundError):
        warned_of(tmp_path, routed, "--rate", "online=5", "--router-config", str(routed.parent.parent / "config.pbtxt"))


def test_a_class_that_asks_for_nothing_in_the_time_that_counts_is_warned_about(tmp_path):
    words = ["--rate", "online=20", "--rate", "background=1,burst=100000", "--seconds", "5"]
    (warning,) = simulated(tmp_path, *words)["warnings"]
    assert "no request of class 'background'" in warning


def test_requests_that_all_come_at_once_take_a_length_of_the_run(tmp_path):
    load = tmp_path / "load.csv"
    load.write_text("time,class\n0,online\n0,online\n")
    with pytest.raises(PriorityRouterError, match=r"load\.csv: all its requests come at once"):
        simulated(tmp_path, "--arrivals", str(load))
    document = simulated(tmp_path, "--arrivals", str(load), "--seconds", "1")
    assert document["arms"]["router"]["classes"]["online"]["outcomes"]["success"] == 2


@pytest.mark.parametrize(("suffix", "begin"), [(".svg", b"<?xml"), (".png", b"\x89PNG")])
def test_a_chart_is_drawn(tmp_path, capsys, suffix, begin):
    target = tmp_path / f"chart{suffix}"
    simulated(tmp_path, "--rate", "online=16", "--seconds", "5", "--rounds", "2", "--plot", str(target))
    assert target.read_bytes().startswith(begin)
    assert f"{target}: written" in capsys.readouterr().out.splitlines()


def test_without_matplotlib_it_says_what_to_install_before_it_begins(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "priority_router.ops.simulate.plot", raising=False)
    monkeypatch.delitem(sys.modules, "matplotlib.figure", raising=False)
    words = ["simulate", *FILES, *LOAD, "--plot", str(tmp_path / "chart.svg")]
    assert cli.main(words) == 1
    captured = capsys.readouterr()
    assert "matplotlib" in captured.err
    assert "triton-priority-router[tools]" in captured.err
    assert captured.out == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([*FILES, "--rate", "onlin=1"], "no such class"),
        ([*FILES, "--rate", "online=1", "--arrivals", "x.csv"], "not allowed with"),
        ([*FILES, "--rate", "online=-1"], "requests per second"),
        ([*FILES, "--rate", "online=1,row=2"], "no setting"),
        ([*FILES], "required"),
        ([*FILES[:2], "--profile", "/nowhere", "--rate", "online=1"], "cannot be read"),
        ([*FILES, "--rate", "online=1", "--json", "/nowhere/x.json"], "--json /nowhere/x.json: cannot be written"),
        ([*FILES, "--rate", "online=1", "--plot", "/nowhere/x.svg"], "--plot /nowhere/x.svg: cannot be written"),
        ([*FILES, "--rate", "online=1", "--plot", "x.pdf"], ".svg or .png"),
        ([*FILES, "--rate", "online=1", "--routers", "0"], "from 1 to 64"),
        ([*FILES, "--arrivals", str(EXAMPLE / "arrivals.csv"), "--warmup", "9"], "nothing is left to count"),
        ([*FILES, "--arrivals", "/nowhere"], "cannot be read"),
        ([*FILES, "--rate", "online=16", "--seconds", "0.001"], "no request comes in the 0.001 virtual s that count"),
        ([*FILES, "--rate", "online=1,burst=1000000"], "no request comes in the 60 virtual s that count"),
        (["--policy", str(EXAMPLE / "profile.json"), *FILES[2:], "--rate", "online=1"], "profile.json"),
        ([*FILES[:2], "--profile", str(EXAMPLE / "policy.toml"), "--rate", "online=1"], "policy.toml"),
    ],
)
def test_what_cannot_be_simulated_is_said(words, said, capsys):
    with pytest.raises((PriorityRouterError, SystemExit)) as caught:
        command.main(words)
    assert said in f"{caught.value} {capsys.readouterr().err}"
