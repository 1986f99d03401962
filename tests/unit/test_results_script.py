# SPDX-License-Identifier: Apache-2.0
"""scripts/results.py: numbers in the documents come from the result files, and from nowhere else."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from priority_router.ops import result_file
from priority_router.ops.bench import report
from priority_router.ops.bench.scenarios import SCENARIOS
from priority_router.ops.simulate import comparison
from support.modules import load_module

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "results.py"


@pytest.fixture
def results(tmp_path, monkeypatch):
    module = load_module("results_script", SCRIPT)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "RESULTS", tmp_path / "docs" / "results")
    (tmp_path / "docs" / "results").mkdir(parents=True)
    return module


def spread(median, low=None, high=None):
    return {"median": median, "low": median if low is None else low, "high": median if high is None else high}


def write_result(root, name, p50=80.0, run=None, **changes):
    one = {
        "outcomes": {"success": 90, "queue_full": 1, "timeout": 0, "cancelled": 0, "other": 2, "unanswered": 7},
        "rows_per_s": spread(16.0),
        "latency": {key: spread(p50, p50 - 1, p50 + 1) for key in ("p50_ms", "p95_ms", "p99_ms", "max_ms")},
    }
    document = {
        "schema": report.SCHEMA,
        "interrupted": False,
        "command": ["priority-router", "bench", name],
        "versions": {"triton": "2.51.0"},
        "cores": 2,
        "seed": 1,
        "scenario": {**asdict(SCENARIOS[name]), **(run or {})},
        "rounds": [{}, {}, {}],
        "arms": {"router": {"classes": {"online": one, "background": one}, "busy": spread(0.98)}},
        "aims": [
            {"text": "busy", "arm": "router", "at_most": False, "limit": 0.96, "reached": spread(0.5), "met": False},
            {"text": "p50", "arm": "router", "at_most": True, "limit": 1.1, "reached": None, "met": None},
        ],
        "warnings": [],
        **changes,
    }
    (root / "docs" / "results" / f"bench-{name}.json").write_text(json.dumps(document))


def document_with(root, name, inside="old\n"):
    path = root / "docs" / "performance.md"
    path.write_text(f"before\n\n<!-- results: {name} -->\n{inside}<!-- end of results -->\n\nafter\n")
    return path


def test_a_section_takes_over_the_numbers_and_nothing_else_changes(results, tmp_path):
    write_result(tmp_path, "overload")
    path = document_with(tmp_path, "overload")
    assert results.main([]) == 0
    text = path.read_text()
    assert "| router | online | 90 / 3 / 7 | 16 | 80 (79-81) |" in text
    assert "| 98 |" in text
    assert "`priority-router bench overload`" in text
    assert text.startswith("before\n\n<!-- results: overload -->\n|")
    assert text.endswith("<!-- end of results -->\n\nafter\n")
    assert "old" not in text
    assert results.main(["--check"]) == 0


def test_check_finds_numbers_that_are_not_those_of_the_files(results, tmp_path, capsys):
    write_result(tmp_path, "overload")
    path = document_with(tmp_path, "overload")
    results.main([])
    write_result(tmp_path, "overload", p50=81.0)
    before = path.read_text()
    assert results.main(["--check"]) == 1
    assert "docs/performance.md" in capsys.readouterr().err
    assert path.read_text() == before


def test_aims_of_all_scenarios(results, tmp_path):
    for name in SCENARIOS:
        write_result(tmp_path, name)
    path = document_with(tmp_path, "aims")
    assert results.main([]) == 0
    text = path.read_text()
    assert "| overload | busy | router | at least 0.96 | 0.5 | **missed** |" in text
    assert text.count("not measured") == len(SCENARIOS)


def test_summary_leaves_out_closed_loops(results, tmp_path):
    for name in SCENARIOS:
        write_result(tmp_path, name)
    path = document_with(tmp_path, "summary")
    assert results.main([]) == 0
    assert "| fast | router |" in path.read_text()
    assert "overhead" not in path.read_text()


def test_the_two_modes_stand_beside_each_other(results, tmp_path):
    for name in SCENARIOS:
        write_result(tmp_path, name)
        path = tmp_path / "docs" / "results" / f"bench-{name}.json"
        document = json.loads(path.read_text())
        plain = json.loads(json.dumps(document["arms"]["router"]).replace("80.0", "95.0"))
        document["arms"]["router-plain"] = plain
        path.write_text(json.dumps(document))
    path = document_with(tmp_path, "modes")
    assert results.main([]) == 0
    assert "| fast | 80 (79-81) | 95 (79-81) | 80 (79-81) | 95 (79-81) | 16 | 16 |" in path.read_text()
    assert "overhead" not in path.read_text()


def test_what_the_way_through_the_router_costs(results, tmp_path):
    def steps(p50, rows):
        loaded = {"1 in flight": (p50, 1.0), "64 in flight": (99.0, rows)}
        classes = {
            name: {"latency": {"p50_ms": spread(ms)}, "rows_per_s": spread(rate)} for name, (ms, rate) in loaded.items()
        }
        return {"classes": classes}

    arms = {"levels": {}, "levels+hooks": steps(0.5, 9000.0), "router": steps(1.5, 3000.0)}
    write_result(tmp_path, "overhead", arms=arms)
    path = document_with(tmp_path, "cost")
    assert results.main([]) == 0
    assert "| straight to a model that does nothing | 0.5 | 9000 |" in path.read_text()
    assert "| through the router | 1.5 | 3000 |" in path.read_text()


@pytest.mark.parametrize("section", ["fast", "aims", "summary"])
def test_a_shortened_run_and_its_warnings_are_told_beside_its_numbers(results, tmp_path, section):
    for name in SCENARIOS:
        write_result(tmp_path, name)
    path = document_with(tmp_path, section)
    assert results.main([]) == 0
    assert "Beware" not in path.read_text()
    left_out = "shortened: 2 of 3 rounds, 8 of 15 s, 3 of 4 s of warm-up"
    run = {"rounds": 2, "seconds": 8.0, "warmup_seconds": 3.0}
    for known in ([], [left_out]):
        write_result(tmp_path, "fast", run=run, warnings=[*known, "levels: 3 requests failed"])
        assert results.main([]) == 0
        text = path.read_text()
        assert f"\n\nBeware:\n\n- `fast`: {left_out}\n- `fast`: levels: 3 requests failed\n<!-- end" in text
    if section == "fast":
        assert "8 s per arm and round after 3 s of warm-up" in text


def test_numbers_of_another_load_are_refused(results, tmp_path, capsys):
    write_result(tmp_path, "overload", run={"loads": [{"name": "online", "rate": 1}]})
    document_with(tmp_path, "overload")
    assert results.main([]) == 1
    said = capsys.readouterr().err
    assert "bench-overload.json was measured when the scenario had other loads; run scripts/bench" in said


def write_simulated(root, schema=comparison.SCHEMA):
    router = {"busy": 0.9916, "rows_per_s": 79.1, "online_p50": 76.3, "online_p95": 99.7, "online_p99": 102.0}
    document = {"schema": schema, "seeds": [1, 2, 3], "seconds": 60.0, "warmup_seconds": 5.0}
    scenarios = {"overload": {"oracle": router, "router": router}}
    (root / "docs" / "results" / "simulated.json").write_text(json.dumps({**document, "scenarios": scenarios}))


def test_the_simulated_numbers(results, tmp_path, capsys):
    path = document_with(tmp_path, "simulated")
    assert results.main([]) == 1
    assert "run scripts/judge" in capsys.readouterr().err
    write_simulated(tmp_path)
    assert results.main([]) == 0
    text = path.read_text()
    assert "| overload | oracle | 76.3 | 99.7 | 102 | 79.1 | 99.2 |" in text
    assert "|  | router |" in text
    assert "Means of 3 seeds, 60 virtual seconds each, the first 5 not counted." in text


def test_simulated_numbers_of_another_version_are_refused(results, tmp_path, capsys):
    write_simulated(tmp_path, schema="another/0")
    document_with(tmp_path, "simulated")
    assert results.main([]) == 1
    assert "not a complete result" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["overload", "nonsense", "odd name"])
def test_what_cannot_be_filled_is_an_error(results, tmp_path, capsys, name):
    path = document_with(tmp_path, name)
    before = path.read_text()
    for words in ([], ["--check"]):
        assert results.main(words) == 1
        assert "docs/performance.md" in capsys.readouterr().err
    assert path.read_text() == before


def test_an_incomplete_result_is_refused(results, tmp_path, capsys):
    write_result(tmp_path, "overload", interrupted=True)
    document_with(tmp_path, "overload")
    assert results.main([]) == 1
    assert "not a complete result" in capsys.readouterr().err


@pytest.mark.parametrize("content", ["", "{", "{}"])
def test_what_is_no_result_file_is_said(results, tmp_path, capsys, content):
    (tmp_path / "docs" / "results" / "bench-overload.json").write_text(content)
    document_with(tmp_path, "overload")
    assert results.main([]) == 1
    assert "run scripts/bench" in capsys.readouterr().err


def test_wrong_use(results):
    with pytest.raises(SystemExit) as stopped:
        results.main(["--nonsense"])
    assert stopped.value.code == 2


def test_the_ensemble_beside_the_router(results, tmp_path, capsys):
    path = document_with(tmp_path, "ensemble")
    assert results.main([]) == 1
    assert "run scripts/measure_ensemble.py" in capsys.readouterr().err
    online = {key: spread(30.0, 29.0, 31.0) for key in ("p50_ms", "p95_ms", "p99_ms", "rows_per_s")}
    arm = {"busy": spread(0.95), "classes": {"online": online, "background": {"rows_per_s": spread(80.0)}}}
    use = {key: spread(0.25) for key in ("queue_ms", "compute_ms", "rows_per_execution", "busy_percent")}
    document = {
        "schema": result_file.ENSEMBLE_SCHEMA,
        "cores": 2,
        "seconds": 25.0,
        "rounds": 3,
        "load": {"online": 0.2, "background": 1.2},
        "measured": {
            "router": arm,
            "ensemble": arm,
            "steps": {"first": use},
            "alone_rows_per_s": {"first": spread(4000.0)},
            "whole_file_ms": {"8 KiB": spread(9.5), "1 MiB": spread(12.0)},
            "capacity_rows_per_s": spread(100.0),
        },
    }
    (tmp_path / "docs" / "results" / "ensemble.json").write_text(json.dumps(document))
    assert results.main([]) == 0
    text = path.read_text()
    assert "| ensemble | 30 (29-31) | 30 (29-31) | 30 (29-31) | 80 | 95 |" in text
    assert "| `first` | 0.25 | 0.25 | 0.25 | 0.25 | 4000 |" in text
    assert "ms by the size of its file: 8 KiB 9.5, 1 MiB 12." in text
    assert "Online 0.2 and background 1.2 times the router's capacity of 100 rows/s." in text
