# SPDX-License-Identifier: Apache-2.0
import contextlib
import io
import json
import os
import sys

import pytest
from priority_router.ops import cli
from priority_router.ops.rules.catalogue import RULES
from unit.ops.lint.repositories import clean_pair


@pytest.fixture
def repository(tmp_path):
    return clean_pair(tmp_path / "models")


def broken(repository):
    path = repository / "executor" / "config.pbtxt"
    path.write_text(path.read_text().replace("default_priority_level: 2", "default_priority_level: 3"))
    return repository


def warned_of(repository):
    path = repository / "router" / "1" / "policy.toml"
    path.write_text(path.read_text().replace("max_queue_size = 64", "", 1))
    return repository


def lint(*words):
    return cli.main(["lint", *map(str, words)])


def test_a_clean_repository_is_status_0(repository, capsys):
    assert lint(repository) == 0
    assert capsys.readouterr() == ("no findings in 2 models\n", "")


def test_warnings_are_status_0(repository, capsys):
    assert lint(warned_of(repository)) == 0
    out, err = capsys.readouterr()
    assert ": warning PR307: " in out
    assert (out.splitlines()[-1], err) == ("1 warning in 2 models", "")


@pytest.mark.parametrize("form", [[], ["--json"], ["--sarif"]])
def test_errors_are_status_1_in_every_form(repository, capsys, form):
    assert lint(broken(repository), *form) == 1
    out, err = capsys.readouterr()
    assert err == ""
    assert "PR103" in out
    if form:
        json.loads(out)


def test_several_repositories_are_one_server(repository, tmp_path, capsys):
    other = tmp_path / "more"
    other.mkdir()
    (repository / "executor").rename(other / "executor")
    assert lint(repository) == 1
    assert lint(repository, other) == 0


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--json"],
        ["models", "--json", "--sarif"],
        ["models", "--js"],
        ["nowhere"],
        ["models/executor"],
        ["models", "models"],
        ["s3://bucket/models"],
        ["--explain"],
        ["--explain", "PR999"],
        ["--explain", "PR103", "--json"],
    ],
)
def test_wrong_use_is_status_2_and_no_report(repository, monkeypatch, capsys, words):
    monkeypatch.chdir(repository.parent)
    with pytest.raises(SystemExit) as caught:
        lint(*words)
    assert caught.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "priority-router lint: error: " in err


@pytest.mark.parametrize(
    ("code", "near"),
    [("PR998", "the nearest are PR"), ("103", "PR103"), ("levels", f"they go from PR001 to {list(RULES)[-1]}")],
)
def test_an_unknown_rule_has_neighbours(capsys, code, near):
    with pytest.raises(SystemExit):
        lint("--explain", code)
    assert near in capsys.readouterr().err


@pytest.mark.parametrize("code", RULES)
def test_every_rule_is_explained(capsys, code):
    assert lint("--explain", code.lower()) == 0
    out = " ".join(capsys.readouterr().out.split())
    rule = RULES[code]
    for part in (code, rule.title, rule.severity.value, rule.why, rule.remedy, "for example, in "):
        assert " ".join(part.split()) in out


@pytest.mark.parametrize("words", [["--help"], ["--explain", "PR103"]])
def test_what_needs_no_package_works_without(monkeypatch, capsys, words):
    for name in ("tritonclient", "google.protobuf", "onnx", "numpy"):
        monkeypatch.setitem(sys.modules, name, None)
    for name in [name for name in sys.modules if name.startswith(("priority_router.ops.lint", "tritonclient."))]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(SystemExit) if "--help" in words else contextlib.nullcontext() as end:
        assert lint(*words) == 0
    assert end is None or end.value.code == 0
    assert "PR10" in capsys.readouterr().out


def test_a_missing_package_is_status_2_and_named(repository, monkeypatch, capsys):
    for name in [
        name for name in sys.modules if name.startswith(("priority_router.ops.lint", "priority_router.ops.pb"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tritonclient", None)
    for name in [name for name in sys.modules if name.startswith("tritonclient.")]:
        monkeypatch.delitem(sys.modules, name)
    assert lint(repository) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("priority-router lint: error: it needs the package tritonclient")
    assert "'triton-priority-router[tools]'" in err
    assert err.count("\n") == 1


def test_colour_is_for_terminals(repository, monkeypatch, capsys):
    broken(repository)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    lint(repository)
    assert "\x1b" not in capsys.readouterr().out
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    lint(repository)
    assert "\x1b[1;31merror PR103\x1b[0m" in capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    lint(repository)
    assert "\x1b" not in capsys.readouterr().out


def test_a_terminal_without_a_letter_gets_its_escape(repository, monkeypatch):
    (repository / "ümlaut").mkdir()
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    assert lint(repository) == 1
    assert rb"models/\xfcmlaut: error PR009" in stream.buffer.getvalue()


def test_names_that_are_no_text_are_printed(repository, capsys):
    (repository / os.fsdecode(b"\xff\n")).mkdir()
    for form in ([], ["--json"], ["--sarif"]):
        assert lint(repository, *form) == 1
        assert r"\udcff" in capsys.readouterr().out or form == ["--sarif"]


@pytest.mark.parametrize("words", [["models"], ["models", "--json"], ["models", "--sarif"], ["--explain", "PR103"]])
def test_a_closed_stdout_is_status_2_and_said(repository, monkeypatch, capsys, words):
    """As Python has it after ``>&-``."""
    monkeypatch.chdir(repository.parent)
    monkeypatch.setattr(sys, "stdout", None)
    assert lint(*words) == 2
    err = capsys.readouterr().err
    assert err == "priority-router lint: error: the report cannot be written (stdout is closed)\n"


PROFILE = {
    "schema": "priority-router-profile/1",
    "recorded": {"model": "router"},
    "executor": {"instances": 1, "max_batch_size": 4, "levels": True},
    "execution_us": {"1": [60000, 61000, 62000]},
    "dispatch_overhead_us": 0,
    "delays_us": {},
}


def test_a_profile_tells_which_timeouts_are_too_short(repository, tmp_path, capsys):
    path = repository / "router" / "1" / "policy.toml"
    path.write_text(path.read_text().replace("level = 1", "level = 1\ndefault_timeout_microseconds = 50_000", 1))
    assert lint(repository) == 0
    assert "no findings" in capsys.readouterr().out
    profile = tmp_path / "profile.json"
    profile.write_text(json.dumps(PROFILE))
    assert lint(repository, "--profile", profile) == 0
    out = capsys.readouterr().out
    assert "PR511" in out
    assert f"one execution of 1 row takes 61000 by {profile}" in out
    assert "write default_timeout_microseconds = 122000, or more" in out


def test_a_profile_of_others_is_said_to_be_compared_with_nothing(repository, tmp_path, capsys):
    profile = tmp_path / "profile.json"
    profile.write_text(json.dumps(PROFILE | {"recorded": {"model": "lane", "executor": "scorer"}}))
    assert lint(repository, "--profile", profile) == 0
    assert (
        f"not looked at: {profile}: it was recorded of router 'lane' and executor 'scorer'" in capsys.readouterr().out
    )


@pytest.mark.parametrize("text", [None, "{}", "no JSON"])
def test_a_profile_that_cannot_be_used_is_wrong_use(repository, tmp_path, capsys, text):
    profile = tmp_path / "profile.json"
    if text is not None:
        profile.write_text(text)
    with pytest.raises(SystemExit) as stopped:
        lint(repository, "--profile", profile)
    assert stopped.value.code == 2
    assert str(profile) in capsys.readouterr().err
