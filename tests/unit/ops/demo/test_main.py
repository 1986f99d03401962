# SPDX-License-Identifier: Apache-2.0
"""``scripts/demo`` around the measurements: where results go, and what is told when they cannot."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from priority_router.ops.demo import __main__ as demo
from priority_router.ops.demo import experiment, files, filetype, record
from support.demo_results import BEFORE, results

MODELS = Path(__file__).parents[4] / "model_repository"
RESULTS = results(replace(BEFORE, online_ms=30, seed=2))


@pytest.fixture
def measured(monkeypatch):
    """Stands for minutes of measuring; counts how often."""
    calls: list[int] = []

    def run(*_):
        calls.append(1)
        return RESULTS

    monkeypatch.setattr(files, "collect", lambda *_: [])
    monkeypatch.setattr(experiment, "run", run)
    return calls


def run(output):
    return demo.main(["--model-repository", str(MODELS), "--output", str(output)])


def test_text_page_and_chart_are_given(measured, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(MODELS)  # from where no relative path is the shorter one
    output = tmp_path / "new" / "folder"
    assert run(output) == 0
    told = capsys.readouterr().out
    assert "\nAgainst levels+hooks, the router makes online requests faster: " in told
    assert told.endswith(f"\n{output}/demo.html: written\n{output}/demo.png: written\n")
    assert sorted(path.name for path in output.iterdir()) == ["demo.html", "demo.png"]
    assert (output / "demo.html").read_text().startswith("<!doctype html>")
    assert "\r" not in told


def test_without_matplotlib_the_text_is_given_and_what_to_install(measured, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for name in ("chart", "page"):
        monkeypatch.delitem(sys.modules, f"priority_router.ops.demo.{name}", raising=False)
    assert run(tmp_path) == 0
    told = capsys.readouterr().out
    assert "\nAgainst levels+hooks, the router makes online requests faster: " in told
    assert told.endswith(
        "\nno page and no chart: it needs the package matplotlib; "
        f"run: {sys.executable} -m pip install 'triton-priority-router[tools]'\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_is_refused_before_anything_is_measured(measured, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert run(tmp_path / "file" / "below") == 1
    assert f"error: --output {tmp_path}/file/below: " in capsys.readouterr().err
    assert measured == []


def test_results_go_beside_the_model_repository(measured, tmp_path, monkeypatch):
    copied = tmp_path / "clone" / "model_repository"
    copied.mkdir(parents=True)
    monkeypatch.setattr(filetype, "load_rule", lambda _: None)
    assert demo.main(["--model-repository", str(copied)]) == 0
    assert (tmp_path / "clone" / "demo-results" / "demo.png").is_file()


def test_what_was_printed_can_be_printed_again_from_the_file(measured, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert demo.main(["--model-repository", str(MODELS), "--output", "here", "--json", "numbers.json"]) == 0
    told = capsys.readouterr().out
    assert told.endswith("\nhere/demo.html: written\nhere/demo.png: written\nnumbers.json: written\n")
    again = record.from_json(json.loads((tmp_path / "numbers.json").read_text())).printed()
    assert f"{again}\nnumbers.json: written\n" == told


def test_a_file_for_the_numbers_that_cannot_be_is_refused_before_anything_is_measured(measured, tmp_path, capsys):
    words = ["--model-repository", str(MODELS), "--output", str(tmp_path), "--json", str(tmp_path / "no" / "file")]
    assert demo.main(words) == 1
    assert f"--json {tmp_path}/no/file: cannot be written" in capsys.readouterr().err
    assert measured == []
