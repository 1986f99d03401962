# SPDX-License-Identifier: Apache-2.0
import importlib
import importlib.metadata
import io
import json
from email.message import Message
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from priority_router import __version__
from priority_router.ops.lint import report, sarif
from priority_router.ops.lint.check import Located, Report
from priority_router.ops.pbtxt.document import Position
from priority_router.ops.rules.catalogue import RULES
from priority_router.ops.rules.finding import Finding, Place, Severity

ROOT = Path(__file__).parents[4]
SCHEMA = json.loads((ROOT / "docs" / "lint.schema.json").read_text())
jsonschema: Any = importlib.import_module("jsonschema")  # it has no type stubs
ODD = "a\nb\x1b[31m\u202e\udcff"


def located(code="PR103", file="models/executor/config.pbtxt", position=(12, 3), what="it is wrong", fix="write it"):
    place = Place("executor", path=("dynamic_batching", "priority_queue_policy", "1", 0))
    finding = Finding(RULES[code], place, what, fix)
    return Located(finding, Path(file), None if position is None else Position(*position))


def made(*found, remarks=()):
    return Report((Path("models"),), 3, found, remarks)


THREE = made(
    located(),
    located("PR118", "/elsewhere/a b/config.pbtxt", (1, 1)),
    located("PR111", "models/router", None),
    remarks=("router/1/model.onnx: it is empty",),
)


def test_text():
    why = RULES["PR103"].why
    assert report.text(made(located())) == (
        f"models/executor/config.pbtxt:12:3: error PR103: it is wrong\n  why: {why}\n  fix: write it\n"
        "1 error in 3 models"
    )
    lines = report.text(THREE).splitlines()
    assert lines[3] == "/elsewhere/a b/config.pbtxt:1:1: warning PR118: it is wrong"
    assert lines[6] == "models/router: note PR111: it is wrong"
    assert lines[9:] == ["not looked at: router/1/model.onnx: it is empty", "1 error, 1 warning, 1 note in 3 models"]


def test_nothing_and_several():
    assert report.text(made()) == "no findings in 3 models"
    assert report.closing(made(located(), located())) == "2 errors in 3 models"
    assert report.closing(Report((), 1, (), ())) == "no findings in 1 model"


def test_colour_is_all_that_a_terminal_adds():
    coloured = report.text(THREE, colour=True)
    assert coloured.startswith("\x1b[1mmodels/executor/config.pbtxt:12:3\x1b[0m: \x1b[1;31merror PR103\x1b[0m: it is")
    for code in ("1", "1;31", "1;33", "1;36", "0"):
        assert f"\x1b[{code}m" in coloured
        coloured = coloured.replace(f"\x1b[{code}m", "")
    assert coloured == report.text(THREE)


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("stream", "environment", "expected"),
    [
        (Terminal(), {}, True),
        (Terminal(), {"NO_COLOR": ""}, True),
        (Terminal(), {"NO_COLOR": "1"}, False),
        (Terminal(), {"TERM": "dumb"}, False),
        (io.StringIO(), {}, False),
    ],
)
def test_who_gets_colour(stream, environment, expected):
    assert report.uses_colour(stream, environment) is expected


def test_odd_names_do_nothing_to_a_terminal():
    text = report.text(made(located(file=ODD, what=ODD, fix=ODD), remarks=(ODD,)))
    assert len(text.splitlines()) == 5
    assert all(line.isprintable() for line in text.splitlines())
    assert text.startswith(r"a\nb\x1b[31m\u202e\udcff:12:3: error")
    text.encode()


def test_letters_of_other_languages_stay():
    assert report.plain("Ümit 模型") == "Ümit 模型"


@pytest.mark.parametrize("found", [made(), THREE, made(located(file=ODD, what=ODD, fix=ODD), remarks=(ODD,))])
def test_json_is_what_its_schema_says(found):
    text = report.as_json(found)
    text.encode()
    document = json.loads(text)
    jsonschema.validate(document, SCHEMA)
    json.dumps(document, ensure_ascii=False).encode()


def test_json_has_everything():
    document = json.loads(report.as_json(THREE))
    assert document["version"] == 1
    assert document["tool"] == {"name": "priority-router lint", "version": __version__}
    assert (document["repositories"], document["models"]) == (["models"], 3)
    assert document["counts"] == {"error": 1, "warning": 1, "note": 1}
    assert document["not_looked_at"] == ["router/1/model.onnx: it is empty"]
    assert document["findings"][0] == {
        "code": "PR103",
        "severity": "error",
        "title": RULES["PR103"].title,
        "model": "executor",
        "file": "models/executor/config.pbtxt",
        "line": 12,
        "column": 3,
        "path": ["dynamic_batching", "priority_queue_policy", "1", 0],
        "what": "it is wrong",
        "why": RULES["PR103"].why,
        "fix": "write it",
    }
    assert (document["findings"][2]["line"], document["findings"][2]["column"]) == (None, None)


def test_the_schema_is_strict():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    document = json.loads(report.as_json(THREE))
    for key in list(document):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({name: value for name, value in document.items() if name != key}, SCHEMA)
    for key in list(document["findings"][0]):
        finding = {name: value for name, value in document["findings"][0].items() if name != key}
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**document, "findings": [finding]}, SCHEMA)


LEVELS = {"none", "note", "warning", "error"}


def checked(text):
    """What SARIF 2.1.0 asks of the parts that are used here, by the numbers of its sections."""
    log = json.loads(text)
    assert log["version"] == "2.1.0"  # 3.13.2
    assert urlsplit(log["$schema"]).scheme == "https"
    (run,) = log["runs"]
    assert run["columnKind"] in ("utf16CodeUnits", "unicodeCodePoints")  # 3.14.17
    driver = run["tool"]["driver"]  # 3.18.2
    assert driver["name"]  # 3.19.8
    for rule in driver["rules"]:
        assert rule["id"]  # 3.49.3
        for key in ("shortDescription", "fullDescription", "help"):
            assert isinstance(rule[key]["text"], str)  # 3.12.3
            assert rule[key]["text"]
        assert rule["defaultConfiguration"]["level"] in LEVELS  # 3.50.3
        assert urlsplit(rule.get("helpUri", "https://none")).scheme  # 3.49.12: absolute
    assert len({rule["id"] for rule in driver["rules"]}) == len(driver["rules"])
    for invocation in run["invocations"]:
        assert isinstance(invocation["executionSuccessful"], bool)  # 3.20.14
        for notification in invocation["toolExecutionNotifications"]:
            assert notification["message"]["text"]  # 3.58.5
            assert notification["level"] in LEVELS
    for result in run["results"]:
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]  # 3.27.6
        assert result["level"] in LEVELS  # 3.27.10
        assert result["message"]["text"]  # 3.27.11
        (place,) = result["locations"]
        uri = place["physicalLocation"]["artifactLocation"]["uri"]  # 3.29.3
        assert uri.isascii()
        assert not set(uri) & set(' <>"{}|\\^`\x1b\n')
        region = place["physicalLocation"].get("region")
        if region is not None:
            assert set(region) == {"startLine", "startColumn"}
            assert min(region.values()) >= 1  # 3.30.5
    return run


def test_sarif(tmp_path):
    run = checked(sarif.as_sarif(THREE, Path.cwd()))
    first, second, third = run["results"]
    assert (first["ruleId"], first["level"], second["level"], third["level"]) == ("PR103", "error", "warning", "note")
    assert first["message"]["text"] == "it is wrong. Fix: write it."
    places = [result["locations"][0]["physicalLocation"] for result in run["results"]]
    assert places[0] == {
        "artifactLocation": {"uri": "models/executor/config.pbtxt"},
        "region": {"startLine": 12, "startColumn": 3},
    }
    assert places[1]["artifactLocation"] == {"uri": "file:///elsewhere/a%20b/config.pbtxt"}
    assert places[2] == {"artifactLocation": {"uri": "models/router"}}
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == list(RULES)
    (notification,) = run["invocations"][0]["toolExecutionNotifications"]
    assert notification["message"]["text"] == "not looked at: router/1/model.onnx: it is empty"


def test_sarif_of_nothing_and_of_odd_names():
    assert checked(sarif.as_sarif(made(), Path.cwd()))["results"] == []
    run = checked(sarif.as_sarif(made(located(file=f"models/{ODD}/config.pbtxt", what=ODD, fix=ODD)), Path.cwd()))
    uri = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert unquote(uri, errors="surrogateescape") == f"models/{ODD}/config.pbtxt"


def test_files_are_named_from_where_the_command_runs(tmp_path):
    file = tmp_path / "models" / "executor" / "config.pbtxt"
    for folder, named in ((tmp_path, "models/executor/config.pbtxt"), (tmp_path / "models", "executor/config.pbtxt")):
        run = checked(sarif.as_sarif(made(located(file=str(file))), folder))
        assert run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == named
    beside = checked(sarif.as_sarif(made(located(file=str(file))), tmp_path / "mod"))
    uri = beside["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == f"file://{file}"


@pytest.mark.parametrize("address", ["https://example.org/router", "https://example.org/router/"])
def test_where_the_package_says_where_it_lives_rules_lead_to_its_documents(monkeypatch, address):
    metadata = Message()
    metadata["Project-URL"] = f"Repository, {address}"
    monkeypatch.setattr(importlib.metadata, "metadata", lambda name: metadata)
    driver = checked(sarif.as_sarif(made(), Path.cwd()))["tool"]["driver"]
    assert driver["informationUri"] == "https://example.org/router/blob/main/docs/lint.md"
    assert driver["rules"][0]["helpUri"] == "https://example.org/router/blob/main/docs/lint.md#pr001"


@pytest.mark.parametrize("metadata", [Message(), None])
def test_where_it_does_not_they_lead_nowhere(monkeypatch, metadata):
    def known(name):
        if metadata is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return metadata

    monkeypatch.setattr(importlib.metadata, "metadata", known)
    driver = checked(sarif.as_sarif(made(), Path.cwd()))["tool"]["driver"]
    assert "informationUri" not in driver
    assert not any("helpUri" in rule for rule in driver["rules"])


def test_levels_are_those_of_severities():
    assert {severity.value for severity in Severity} == LEVELS - {"none"}
