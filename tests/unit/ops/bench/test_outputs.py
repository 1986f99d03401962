# SPDX-License-Identifier: Apache-2.0
"""Page and table of a run: after measuring, of a run that was stopped, and from a stored result."""

from __future__ import annotations

import copy
import csv
import io
import json

import pytest
from priority_router.errors import SetupError
from priority_router.ops.bench import command, csv_table, experiment
from priority_router.ops.bench.page import page
from support import bench_document
from support.bench_document import ARMS

RESULTS = bench_document.results([tuple(ARMS), ("flat",)], interrupted=True, exit_status=130)
DOCUMENT = bench_document.told(RESULTS)


def rows(document=DOCUMENT):
    return list(csv.DictReader(io.StringIO(csv_table.as_csv(document))))


@pytest.fixture
def stored(tmp_path):
    path = tmp_path / "result.json"
    path.write_text(json.dumps(DOCUMENT))
    return path


def test_the_table_has_a_row_for_each_arm_round_and_class():
    found = [(row["round"], row["arm"], row["class"]) for row in rows()]
    arms = [("1", arm) for arm in ARMS] + [("2", "flat")]
    assert found == [(*arm, name) for arm in arms for name in ("online", "background")]


def test_the_table_has_the_numbers_of_the_document():
    for row in rows():
        arm = DOCUMENT["rounds"][int(row["round"]) - 1][row["arm"]]
        one = arm["classes"][row["class"]]
        assert {name: int(row[name]) for name in DOCUMENT["outcomes"]} == one["outcomes"]
        for key in ("p50_ms", "p95_ms", "p99_ms"):
            interval = one["latency_interval"][key]
            assert float(row[key]) == one["latency"][key]
            assert (float(row[f"{key}_low"]), float(row[f"{key}_high"])) == (interval["low"], interval["high"])
        assert float(row["max_ms"]) == one["latency"]["max_ms"]
        assert (row["queue_p50_ms"], float(row["rows_per_s"])) == ("", one["rows_per_s"])
        assert float(row["in_time_share"]) == one["goodput"]["share"]
        assert float(row["busy"]) == arm["busy"]
        assert None not in row.values()


def test_names_stay_what_they_are_in_the_table():
    hostile = 'a,"b"\nc'
    other = copy.deepcopy(DOCUMENT)
    other["rounds"] = [{hostile: other["rounds"][0]["flat"]}]
    assert {row["arm"] for row in rows(other)} == {hostile}


def test_a_table_of_nothing_has_its_columns():
    assert csv_table.as_csv({**DOCUMENT, "rounds": [{}]}).splitlines() == csv_table.as_csv(DOCUMENT).splitlines()[:1]


def test_a_run_that_was_stopped_is_written_in_every_form(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(experiment, "run", lambda plan, progress: RESULTS)
    target, html, table = (tmp_path / f"result.{ending}" for ending in ("json", "html", "csv"))
    words = ["overload", "--json", str(target), "--html", str(html), "--csv", str(table)]
    assert command.main(words) == 130
    written = json.loads(target.read_text())
    assert html.read_text() == page.as_html(written)
    assert table.read_text() == csv_table.as_csv(written)
    assert written["command"][-4:] == ["--html", "result.html", "--csv", "result.csv"]
    assert f"{html}: written" in capsys.readouterr().out


def test_a_file_that_cannot_be_written_is_refused_before_anything_is_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(experiment, "run", lambda plan, progress: pytest.fail("it was measured"))
    for option in ("--html", "--csv"):
        words = ["overload", "--json", str(tmp_path / "x.json"), option, str(tmp_path / "no" / "file")]
        with pytest.raises(SetupError, match=f"{option} .*cannot be written"):
            command.main(words)


def test_a_stored_result_is_shown_again(stored, tmp_path):
    html, table = tmp_path / "page.html", tmp_path / "table.csv"
    assert command.main(["report", str(stored), "--html", str(html), "--csv", str(table)]) == 0
    assert html.read_text() == page.as_html(DOCUMENT)
    assert table.read_text() == csv_table.as_csv(DOCUMENT)


def test_what_is_no_result_is_told(stored, tmp_path):
    table = tmp_path / "page.html"

    def said(text):
        stored.write_text(text)
        with pytest.raises(SetupError) as error:
            command.main(["report", str(stored), "--html", str(table)])
        assert not table.exists()
        return str(error.value)

    assert "is no JSON" in said("[" * 100_000)
    assert "has the form None and not 'priority-router-bench/2'" in said("[]")
    assert "has the form 'priority-router-bench/1'" in said('{"schema": "priority-router-bench/1"}')
    assert "KeyError: 'scenario'" in said('{"schema": "priority-router-bench/2"}')
    assert "AttributeError" in said(json.dumps(DOCUMENT | {"arms": 1}))
    stored.unlink()
    with pytest.raises(SetupError, match="cannot be read"):
        command.main(["report", str(stored), "--html", str(table)])


def test_something_must_be_asked_for(stored, capsys):
    with pytest.raises(SystemExit) as status:
        command.main(["report", str(stored)])
    assert status.value.code == 2
    assert "--html FILE, --csv FILE" in capsys.readouterr().err
