# SPDX-License-Identifier: Apache-2.0
import dataclasses
import json
import os

import pytest
from priority_router.errors import SetupError
from priority_router.ops import result_file
from priority_router.ops.bench import command, document, doubts, experiment, report
from priority_router.ops.bench.experiment import _rotated
from priority_router.ops.bench.scenarios import SCENARIOS

from . import ledgers
from .ledgers import summary

FAST = {"p50_ms": 80.0, "p95_ms": 100.0, "p99_ms": 110.0, "max_ms": 120.0}
SLOW = {"p50_ms": 160.0, "p95_ms": 200.0, "p99_ms": 220.0, "max_ms": 240.0}


def results(scenario=SCENARIOS["overload"], rounds=None, **changes):
    usual = [
        {
            "levels": summary(busy=0.5, online=SLOW, background=SLOW),
            "router": summary(busy=busy, online=FAST, background=SLOW),
        }
        for busy in (0.97, 0.99, 0.98)
    ]
    return ledgers.results(scenario, usual if rounds is None else rounds, **changes)


def test_json_says_what_was_run_and_what_came_out():
    written = json.loads(json.dumps(document.as_json(results(), ["priority-router", "bench"])))
    assert written["schema"] == document.SCHEMA
    assert written["versions"]["triton"] == "2.51.0"
    assert written["seed"] == 4
    assert written["command"] == ["priority-router", "bench"]
    assert written["scenario"]["name"] == "overload"
    assert written["arms"]["router"]["busy"] == {"median": 0.98, "low": 0.97, "high": 0.99}
    assert written["arms"]["router"]["classes"]["online"]["outcomes"]["success"] == 1500
    assert written["arms"]["router"]["classes"]["online"]["latency"]["p99_ms"]["median"] == 110
    assert written["arms"]["router"]["classes"]["online"]["queue_ms"]["p99_ms"] is None
    assert list(written["rounds"][0]) == ["levels", "router"]
    # Without the oracle three of them have nothing that they are held against.
    assert [(aim["arm"], aim["met"]) for aim in written["aims"]] == [
        ("router", met) for met in (True, True, *[None] * 3)
    ]


def test_the_table_has_a_line_for_each_arm_and_class():
    lines = report.as_text(results()).splitlines()
    [router] = [line for line in lines if line.startswith("router ") and "online" in line]
    assert "98% (97-99)" in router
    assert "110" in router
    assert sum(" background " in line for line in lines) >= 2
    assert any(
        line.strip().startswith("met") and "router: executor busy: 0.98 (0.97-0.99), at least 0.97" in line
        for line in lines
    )


def test_goodput_and_what_the_client_used_are_said():
    made = results()
    made.rounds[0]["router"] = dataclasses.replace(made.rounds[0]["router"], client_cpu=0.31, processes=2)
    lines = report.as_text(made).splitlines()
    # The requests behind it take 900 to 1200 ms, and the target of online is 150.
    assert "online within 150 ms: levels 0%, router 0%" in lines
    assert not any(line.startswith("background within") for line in lines)
    assert "client: 2 processes, 31% of a core at most, late by 0.1 ms at most (p99)" in lines


def test_a_missed_aim_is_said():
    text = report.as_text(results(rounds=[{"router": summary(busy=0.5, online=FAST, background=SLOW)}]))
    assert "missed  router: executor busy: 0.5, at least 0.97" in text
    assert "not measured  router: online p99 / that of the oracle" in text


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (results(interrupted=True), "interrupted"),
        (
            results(scenario=dataclasses.replace(SCENARIOS["overload"], rounds=1, seconds=2.5, arms=("levels",))),
            "shortened: 1 of 5 rounds, 2.5 of 15 s, without flat, levels+hooks, router, router-plain",
        ),
        (
            results(rounds=[{"router": summary(late_p99_ms=7, online=FAST)}]),
            "router: requests were sent up to 7.0 ms late",
        ),
        (results(rounds=[{"router": summary(online={"success": 99})}]), "router: only 99 answers of class online"),
        (
            results(
                rounds=[{"router": summary(online=FAST, failures=[{"status": 500, "text": "no luck", "count": 3}])}]
            ),
            "router: 3 requests failed, for example: no luck (status 500)",
        ),
    ],
)
def test_doubts_are_said(made, words):
    assert any(words in text for text in doubts.warnings(made))
    assert f"warning: {words}" in report.as_text(made)


def test_a_clean_run_raises_no_doubts():
    assert doubts.warnings(results()) == []


def test_nothing_measured_is_still_a_report():
    written = document.as_json(results(rounds=[{}], interrupted=True), [])
    assert written["arms"] == {}
    assert "interrupted" in report.as_text(results(rounds=[{}], interrupted=True))


def test_rounds_begin_with_another_arm_each():
    assert [_rotated("abc", number) for number in range(4)] == [list("abc"), list("bca"), list("cab"), list("abc")]


@pytest.mark.parametrize(
    "words",
    [
        ["nonsense", "--json", "x"],
        ["overload"],
        ["overload", "--json", "x", "--arms", "levels,nonsense"],
        ["overload", "--json", "x", "--rounds", "0"],
        ["overload", "--json", "x", "--duration", "nan"],
    ],
)
def test_wrong_use_is_refused_before_anything_runs(words, capsys):
    with pytest.raises(SystemExit) as stopped:
        command.main(words)
    assert stopped.value.code == 2
    assert "usage:" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("folder", "shown"), [("/somewhere/else", "x.json"), ("", "x.json"), ("below", "below/x.json"), ("..", "x.json")]
)
def test_the_command_in_the_file_runs_it_again_and_names_no_folder_of_this_machine(
    tmp_path, monkeypatch, folder, shown
):
    written = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(result_file, "check_writable", lambda path: None)
    monkeypatch.setattr(result_file, "write", lambda path, document: written.append(document["command"]))
    monkeypatch.setattr(experiment, "run", lambda plan, progress: results(plan.scenario, seed=plan.seed))
    for base in (folder, tmp_path / folder):
        options = ["--arms=router,levels", "--rounds", "3", "--duration=2.5", "--seed", "0"]
        assert command.main(["overload", f"--json={os.path.join(base, 'x.json')}", *options]) == 0
    expected = ["--arms", "router,levels", "--rounds", "3", "--duration", "2.5", "--seed", "0", "--json", shown]
    assert written == [["priority-router", "bench", "overload", *expected]] * 2


def test_a_file_that_cannot_be_written_is_refused_before_minutes_of_measuring(tmp_path):
    for target in (tmp_path, tmp_path / "missing" / "x.json"):
        with pytest.raises(SetupError, match="--json"):
            command.main(["overload", "--json", str(target)])
