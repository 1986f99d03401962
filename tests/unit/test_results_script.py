# SPDX-License-Identifier: Apache-2.0
"""scripts/results.py: numbers in the documents come from the result files, and from nowhere else."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from priority_router.ops import result_file
from priority_router.ops.bench.scenarios import SCENARIOS
from priority_router.ops.demo import record, verdict
from priority_router.ops.simulate import comparison
from support.demo_results import BEFORE
from support.demo_results import results as demo_results
from support.modules import load_module
from support.result_files import document_with, spread, write_result

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "results.py"


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(SCRIPT.parent)
    module = load_module("results_script", SCRIPT)
    monkeypatch.setattr(module.result_tables, "ROOT", tmp_path)
    monkeypatch.setattr(module.result_tables, "RESULTS", tmp_path / "docs" / "results")
    monkeypatch.setattr(module.result_sentences, "SENTENCES", {})
    (tmp_path / "docs" / "results").mkdir(parents=True)
    return module


def test_results_of_the_form_before_are_read(results, tmp_path):
    """Their loads had fewer keys, and some arms were not there yet."""
    scenario = json.loads(json.dumps(asdict(SCENARIOS["overload"])))
    old: dict[str, Any] = {
        "loads": [{"name": one["name"], "rate": one["rate"]} for one in scenario["loads"]],
        "arms": ["levels", "levels+hooks", "router", "router-plain"],
    }
    write_result(tmp_path, "overload", run=old, schema="priority-router-bench/1")
    path = document_with(tmp_path, "overload")
    assert results.main([]) == 0
    assert "| router | online | 90 / 3 / 7 |" in path.read_text()
    assert "Beware" not in path.read_text()
    write_result(tmp_path, "overload", run=old)
    assert results.main([]) == 1
    old["loads"][0]["rate"] = 17
    write_result(tmp_path, "overload", run=old, schema="priority-router-bench/1")
    assert results.main([]) == 1


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


def test_where_the_router_is_slower_is_said_beside_where_it_is_faster(results, tmp_path):
    for name in ("overload", "linear", "fast", "shared"):
        arms = {
            arm: {"classes": {"online": {"latency": {"p50_ms": spread(ms)}}}}
            for arm, ms in (("levels+hooks", 20.0), ("router", 9.5 if name == "linear" else 20.5))
        }
        write_result(tmp_path, name, arms=arms)
    path = document_with(tmp_path, "beside")
    assert results.main([]) == 0
    assert (
        ": lower in `linear` (9.5 instead of 20 ms); higher in `overload` (20.5 instead of 20 ms), `fast` (20.5 "
        "instead of 20 ms), `shared` (20.5 instead of 20 ms).\n"
    ) in path.read_text()


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
    left_out = "shortened: 2 of 5 rounds, 8 of 15 s, 3 of 4 s of warm-up"
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


def ideal(*classes):
    """An oracle of some classes."""
    latency = {key: spread(60.0) for key in ("p50_ms", "p95_ms", "p99_ms", "max_ms")}
    one = {"outcomes": {"success": 9, "unanswered": 0}, "rows_per_s": spread(17.0), "latency": latency}
    return {"classes": dict.fromkeys(classes, one), "busy": spread(1.0)}


def test_scenarios_with_a_real_model_stand_beside_their_oracle(results, tmp_path):
    write_result(tmp_path, "overload", oracle=ideal("online", "background"))
    folder = tmp_path / "docs" / "results"
    (folder / "bench-overload.json").rename(folder / "bench-file-type-overload.json")
    path = document_with(tmp_path, "file-type")
    assert results.main([]) == 0
    text = path.read_text()
    assert "| overload | router | 80 (79-81) | 80 (79-81) | 80 (79-81) | 16 | 98 |" in text
    assert "|  | oracle | 60 | 60 | 60 | 17 | 100 |" in text
    assert "`priority-router bench overload`" in text


def test_the_oracle_stands_in_the_table_of_its_scenario(results, tmp_path):
    write_result(tmp_path, "overload", oracle=ideal("online"))
    path = document_with(tmp_path, "overload")
    assert results.main([]) == 0
    assert "| oracle | online | 9 / 0 / 0 | 17 | 60 | 60 | 60 | 60 | 100 |" in path.read_text()


def test_where_the_time_of_a_routed_request_goes(results, tmp_path, capsys):
    path = document_with(tmp_path, "overhead-parts")
    assert results.main([]) == 1
    assert "run scripts/measure_overhead.py" in capsys.readouterr().err
    figures = ("rate", "of_direct", "p50_ms", "added_p50_ms", "server_us", "model_us", "switches")
    way = {name: {"median": number, "low": number, "high": number + 1} for number, name in enumerate(figures, 1)}
    document = {
        "schema": result_file.OVERHEAD_SCHEMA,
        "cores": 2,
        "seconds": 4.0,
        "rounds": 5,
        "in_flight": [1, 64],
        "ways": {"router": way},
        "profiles": {"router": {"kernel": 28.4, "numpy": 5.0}},
    }
    (tmp_path / "docs" / "results" / "overhead-parts.json").write_text(json.dumps(document))
    assert results.main([]) == 0
    text = path.read_text()
    assert "| router | 1 (1-2) | 2 (2-3) |" in text
    assert "p50 with 1 in flight, all else with 64" in text
    assert "| router | 28 | 5 |" in text


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


def write_hooks(root, **changes):
    figures = {
        "idle_cpu_percent": {"median": 0.07},
        "backlog_of_1_cpu_percent": {"median": 13.49},
        "backlog_of_3_cpu_percent": {"median": 29.36},
        "overload_rows_per_second": {"median": 78.0},
        "overload_cpu_percent": {"median": 14.48},
        "overload_waits_cut_per_second": {"median": 5426.49},
    }
    document = {
        "schema": result_file.HOOKS_SCHEMA,
        "cores": 2,
        "seconds": 6.0,
        "rounds": 3,
        "settings": {
            "levels, slices of 100 us": figures,
            "router in front": {key: one for key, one in figures.items() if key.startswith("overload")},
        },
        **changes,
    }
    (root / "docs" / "results" / "hooks.json").write_text(json.dumps(document))


def test_what_prompt_dispatch_costs(results, tmp_path, capsys):
    write_hooks(tmp_path, schema="another/0")
    path = document_with(tmp_path, "hooks")
    assert results.main([]) == 1
    assert "run scripts/measure_hooks.py" in capsys.readouterr().err
    write_hooks(tmp_path)
    assert results.main([]) == 0
    text = path.read_text()
    assert "| levels, slices of 100 us | 0.07 | 13.49 | 29.36 | 14.48 | 5426.49 |" in text
    assert "| router in front |  |  |  | 14.48 | 5426.49 |" in text
    assert "medians of 3 runs of 6 s, 2 cores" in text


def test_the_demonstration_as_it_was_printed(results, tmp_path):
    made = demo_results(replace(BEFORE, online_ms=30, seed=2))
    run = record.Run(made, verdict.judge(made), [(144.0, "done\n")], [Path("demo-results/demo.html")])
    (tmp_path / "docs" / "results" / "demo.json").write_text(json.dumps(record.as_json(run, 25.0, 1)))
    path = document_with(tmp_path, "demo")
    assert results.main([]) == 0
    assert f"-->\n```console\n$ scripts/demo\n{run.printed()}\n```\n<!--" in path.read_text()
    assert run.verdict.sentence.split(":")[0] in path.read_text()


def with_sentence(results, monkeypatch, words, **numbers):
    sentence = results.result_sentences.Sentence(words, lambda: numbers)
    monkeypatch.setattr(results.result_sentences, "SENTENCES", {"docs/performance.md": [sentence]})


def test_numbers_within_a_sentence_are_written_and_its_words_and_lines_stay(results, tmp_path, monkeypatch, capsys):
    with_sentence(
        results, monkeypatch, "costs {ms} ms on {cores} cores, {rate}/s.", ms="1.25", cores="two", rate="3,207"
    )
    path = tmp_path / "docs" / "performance.md"
    path.write_text("It costs 900 ms on\n  four cores, 1/s. And 900 ms more.\n")
    assert results.main(["--check"]) == 1
    assert "numbers not those of docs/results: docs/performance.md" in capsys.readouterr().err
    assert results.main([]) == 0
    assert path.read_text() == "It costs 1.25 ms on\n  two cores, 3,207/s. And 900 ms more.\n"
    assert results.main(["--check"]) == 0


@pytest.mark.parametrize("text", ["", "It costs 1 s.", "It costs 1 ms. It costs 1 ms.", "It costs x2 ms."])
def test_a_sentence_stands_once_and_in_its_own_words(results, tmp_path, monkeypatch, capsys, text):
    with_sentence(results, monkeypatch, "costs {ms} ms.", ms="2")
    path = tmp_path / "docs" / "performance.md"
    path.write_text(text)
    assert results.main(["--check"]) == 1
    assert "docs/performance.md: 'costs {ms} ms.' stands there " in capsys.readouterr().err


def test_words_that_the_numbers_no_longer_bear_are_refused(results, monkeypatch, capsys):
    (results.result_tables.ROOT / "docs" / "performance.md").write_text("It is faster.\n")

    def numbers():
        results.result_sentences.values.hold(False, "it is faster")

    sentence = results.result_sentences.Sentence("is faster", numbers)
    monkeypatch.setattr(results.result_sentences, "SENTENCES", {"docs/performance.md": [sentence]})
    assert results.main(["--check"]) == 1
    assert "docs/performance.md: docs/results no longer bears what is written: it is faster" in capsys.readouterr().err


def test_the_documents_are_in_step_with_the_committed_results(monkeypatch, capsys):
    monkeypatch.syspath_prepend(SCRIPT.parent)
    status = load_module("results_script", SCRIPT).main(["--check"])
    assert (status, capsys.readouterr().err) == (0, "")
