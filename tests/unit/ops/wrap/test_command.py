# SPDX-License-Identifier: Apache-2.0
"""What the command prints, and what lint finds in the repository as it would be."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time

import pytest
from priority_router.errors import SetupError
from priority_router.ops import cli
from priority_router.ops.wrap import command, leftovers, plan
from support import onnx_models
from support.bare_models import IDENTITY, model, snapshot

LIMITS = ("--class", "a:1,max_queue=9,timeout=1s,override", "--class", "b:2,max_queue=99,timeout=90s")


@pytest.fixture(autouse=True)
def temporary(tmp_path_factory, monkeypatch):
    """A folder for temporary files that no other process has left anything in."""
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def source(tmp_path):
    return model(tmp_path / "somewhere" / "model")


@pytest.fixture
def repository(tmp_path):
    return tmp_path / "repository"


@pytest.fixture
def said(capfd):
    def run(source, repository, *words):
        assert command.main([str(source), "--into", str(repository), *words]) == 0
        return capfd.readouterr()

    return run


def test_it_says_what_was_done_and_what_to_do_next(source, repository, said):
    lines = said(source, repository, *LIMITS).out.splitlines()
    assert lines[:5] == [
        f"{repository}/model: copied from {source}",
        f"{repository}/model_router: written",
        "Classes of model_router:",
        "  a: level 1, 9 may wait, 1 s at most, less if a request asks for it",
        "  b (default): level 2, 99 may wait, 90 s at most",
    ]
    assert "Note: `priority-router serve` refuses clients that call model directly" in lines[5]
    assert lines[6:8] == ["", "Start:"]
    assert f"  priority-router serve --model-repository {repository}" in lines
    assert not [line for line in lines if line.startswith(("Lint", "ATTENTION"))]


def test_a_dry_run_prints_the_diff_alone_on_its_output(source, repository, said):
    before = snapshot(repository.parent)
    found = said(source, repository, "--dry-run")
    assert snapshot(repository.parent) == before
    assert found.out.startswith(f"--- {source}/config.pbtxt\n+++ {repository}/model/config.pbtxt\n@@")
    assert {line[0] for line in found.out.splitlines()} <= {"-", "+", "@", " "}
    assert (
        f"{repository}/model: would be copied from {source}\n{repository}/model_router: would be written\n" in found.err
    )
    assert found.err.endswith("Nothing was written (--dry-run).\n")
    assert "serve --model" not in found.err


def test_teaching_values_are_called_so(source, repository, said):
    found = said(source, repository).out
    assert "Classes of model_router (teaching values: replace them):" in found
    assert "online: level 1, 32 may wait, 50 ms at most, less if a request asks for it" in found
    assert "background (default): level 2, 128 may wait, 200 ms at most\n" in found


def test_classes_without_limits_are_told_as_they_are(source, repository, said):
    found = said(source, repository, "--class", "a:1", "--class", "b:2,max_queue=1,override,timeout=1500us").out
    assert "  a: level 1, any number may wait, for as long as it takes\n" in found
    assert "  b (default): level 2, 1 may wait, 1500 us at most, less" in found
    assert "warning PR307: class 'a'" in found
    found = said(source, repository, "--force", "--class", "a:1,override", "--class", "b:2").out
    assert "  a: level 1, any number may wait, as long as a request asks for\n" in found


def test_what_the_block_overrides_and_keeps_is_listed(source, repository, said):
    block = """dynamic_batching {
      preferred_batch_size: [ 2, 4 ]
      max_queue_delay_microseconds: 100
      priority_levels: 1
      default_priority_level: 1
      priority_queue_policy { key: 1 value { max_queue_size: 16 } }
    }
    """
    (source / "config.pbtxt").write_text(IDENTITY + block)
    found = said(source, repository, *LIMITS).out
    listed = [line for line in found.splitlines() if line.startswith("  dynamic_batching: ")]
    assert "  dynamic_batching: max_queue_delay_microseconds: 100 stays as it was" in listed
    assert any("priority_queue_policy 1: max_queue_size: 16" in line for line in listed)
    assert any(line.startswith("  dynamic_batching: preferred_batch_size") for line in listed)
    assert "PR108" in found


def test_what_was_overridden_before_is_not_told_again(source, repository, said):
    (source / "config.pbtxt").write_text(
        IDENTITY + "dynamic_batching { priority_levels: 1 default_priority_level: 1 }\n"
    )
    assert "dynamic_batching: " in said(source, repository, *LIMITS).out
    assert "dynamic_batching: " not in said(source, repository, *LIMITS).out


def test_a_configuration_that_is_a_link_is_told(source, repository, said):
    shutil.copytree(source, repository / "model")
    (repository / "model" / "config.pbtxt").rename(repository / "model" / "base")
    (repository / "model" / "config.pbtxt").symlink_to("base")
    found = said(repository / "model", repository, *LIMITS).out
    assert f"  config.pbtxt is a link: what changes is {repository.resolve()}/model/base\n" in found


def test_a_folder_that_is_a_link_is_told(source, repository, said):
    real = repository.parent.resolve() / "real"
    shutil.copytree(source, real)
    repository.mkdir()
    (repository / "model").symlink_to(real)
    for words in (("--dry-run",), ()):
        found = said(repository / "model", repository, *LIMITS, *words)
        assert (
            f"  {repository}/model is a link: what changes is {real}/config.pbtxt\n{repository}/model_router: "
            in found.out + found.err
        )
    (repository / "model_router" / "1").rename(real / "elsewhere")
    (repository / "model_router" / "1").symlink_to(real / "elsewhere")
    found = said(repository / "model", repository, "--class", "a:1").out
    assert f"  1 is a link: what changes is {real}/elsewhere/policy.toml\n" in found


def test_what_a_killed_wrap_left_behind_is_told_and_stays(source, repository, temporary, said, monkeypatch):
    said(source, repository, *LIMITS)
    inside = (
        ".priority-router-wrap-0",
        "model/.priority-router-wrap-1.old",
        "model_router/1/.priority-router-wrap-2.new",
    )
    places = [*(repository / name for name in inside), temporary / "priority-router-wrap-4"]
    places.append(repository.parent / ".priority-router-wrap-3")
    for place in places:
        place.write_text("")
    now = time.time()
    (line,) = [line for line in said(source, repository, *LIMITS).out.splitlines() if "was killed" in line]
    assert [str(place) in line for place in places] == [True] * 3 + [False] * 2
    monkeypatch.setattr(time, "time", lambda: now + 3700)
    (line,) = [line for line in said(source, repository, *LIMITS).out.splitlines() if "was killed" in line]
    assert all(str(place) in line for place in places)
    assert all(place.exists() for place in places)


def test_without_a_lock_what_is_young_may_be_of_a_wrap_at_work(tmp_path):
    (tmp_path / ".priority-router-wrap-0").mkdir()
    now = time.time()
    assert leftovers.of(tmp_path, now, locked=False) == []
    assert leftovers.of(tmp_path, now, locked=True) == [tmp_path / ".priority-router-wrap-0"]
    assert leftovers.of(tmp_path, now + 3700, locked=False) == [tmp_path / ".priority-router-wrap-0"]
    assert leftovers.of(tmp_path / "missing", now, locked=False) == []


def test_what_cannot_be_read_is_told_and_nothing_is_written(source, repository, monkeypatch, capfd):
    def unreadable(*_):
        raise PermissionError(13, "Permission denied", "secret")

    monkeypatch.setattr(plan, "make", unreadable)
    assert cli.main(["wrap", str(source), "--into", str(repository)]) == 1
    assert capfd.readouterr().err == "priority-router wrap: error: secret: Permission denied; nothing is changed\n"


def test_an_open_number_of_instances_is_said_aloud(source, repository, said):
    (source / "config.pbtxt").write_text(IDENTITY.replace("kind: KIND_CPU ", ""))
    loud = said(source, repository, *LIMITS).out
    assert "\nATTENTION: The config.pbtxt of model leaves the number of instances open: a group has no kind" in loud
    assert f"over all groups into {repository}/model_router/1/policy.toml, or run wrap with --instances N" in loud
    stated = said(repository / "model", repository, *LIMITS, "--instances", "2").out
    assert "ATTENTION" not in stated


def test_limits_on_the_executor_are_said_to_cost_something(source, repository, said):
    found = said(source, repository, *LIMITS, "--executor-policies").out
    assert "fails for all of them" in found
    assert "shared_executor = true, and the guard leaves the model open" in found
    assert "refuses clients" not in found
    assert not [line for line in found.splitlines() if line.startswith("Lint")]


def test_an_ensemble_that_calls_the_model_is_found(source, repository, said):
    shutil.copytree(source, repository / "model")
    step = 'step [ { model_name: "model" model_version: -1 input_map { key: "X" value: "X" } '
    step += 'output_map { key: "Y" value: "Y" } } ]'
    tensors = "\n".join(IDENTITY.splitlines()[4:6])
    text = f'platform: "ensemble"\nmax_batch_size: 4\n{tensors}\nensemble_scheduling {{ {step} }}\n'
    ensemble = model(repository / "ensemble", text)
    for words in (("--dry-run",), ()):
        found = said(repository / "model", repository, *LIMITS, *words)
        (line,) = [line for line in (found.out + found.err).splitlines() if line.startswith("Lint")]
        assert f"Lint: {repository}/model_router/1/policy.toml" in line
        assert "PR303" in line
        assert "shared_executor = true" in line
    assert ensemble.exists()


def test_what_lint_says_of_other_models_is_only_mentioned(source, repository, said):
    model(repository / "other", "priority: 3\n")
    found = said(source, repository, *LIMITS).out
    assert f"Lint has more to say about other models in {repository}: priority-router lint {repository}" in found
    assert "priority: 3" not in found


def test_a_bare_file_is_clean(tmp_path, repository, said):
    file = onnx_models.doubling(tmp_path / "double.onnx")
    found = said(file, repository, *LIMITS).out
    assert "Note: every input and output of the model begins with a free dimension" in found
    assert "Lint" not in found
    assert "Lint" not in said(repository / "double", repository, *LIMITS).out


def test_missing_labels_are_told(tmp_path, repository, said):
    text = IDENTITY.replace("dims: [ 4 ] } ]\ninst", 'dims: [ 4 ] label_filename: "labels.txt" } ]\ninst')
    found = said(model(tmp_path / "m", text), repository, *LIMITS).out
    assert "Note: labels.txt is not there: put it beside the config.pbtxt of model and of model_router" in found


def test_bytes_that_are_no_text_are_printed_as_they_are(source, repository, capfdbinary):
    (source / "config.pbtxt").write_bytes(b"# caf\xe9\n" + IDENTITY.encode().rstrip() + b" # \xff")
    command.main([str(source), "--into", str(repository), "--dry-run"])
    assert b" # \xff\n" in capfdbinary.readouterr().out
    command.main([str(source), "--into", str(repository)])
    assert (repository / "model" / "config.pbtxt").read_bytes().startswith(b"# caf\xe9\n")


def test_a_reader_that_stops_reading_is_no_failure(source, repository, monkeypatch):
    reader, writer = os.pipe()
    os.close(reader)
    before = os.dup(1)
    os.dup2(writer, 1)
    try:
        with open(writer, "w") as out:
            monkeypatch.setattr(sys, "stdout", out)
            assert command.main([str(source), "--into", str(repository), "--dry-run"]) == 0
    finally:
        os.dup2(before, 1)
        os.close(before)


def test_a_dry_run_that_cannot_print_fails_with_one_line(source, repository, monkeypatch, capfd):
    words = ["wrap", str(source), "--into", str(repository), "--dry-run"]
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert cli.main(words) == 1
    assert capfd.readouterr().err.startswith(
        "priority-router wrap: error: standard output: No space left on device; --dry-run prints the changes there"
    )
    monkeypatch.setattr(sys, "stdout", None)
    assert cli.main(words) == 1
    said = capfd.readouterr().err
    assert said.startswith("priority-router wrap: error: standard output is closed, where --dry-run prints the changes")
    assert said.count("\n") == 1


def test_a_dry_run_without_standard_error_prints_the_diff_alone(source, repository, monkeypatch, capfd):
    monkeypatch.setattr(sys, "stderr", None)
    assert command.main([str(source), "--into", str(repository), "--dry-run"]) == 0
    assert {line[0] for line in capfd.readouterr().out.splitlines()} <= {"-", "+", "@", " "}


def test_a_refusal_writes_nothing_and_ends_with_status_1(source, repository, capfd):
    (source / "config.pbtxt").write_text(IDENTITY + "max_batch_sise: 3\n")
    before = snapshot(repository.parent)
    assert cli.main(["wrap", str(source), "--into", str(repository)]) == 1
    said = capfd.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"priority-router wrap: error: {source}/config.pbtxt:8:1: ")
    assert snapshot(repository.parent) == before


def test_what_lint_itself_refuses_is_refused_before_anything_is_written(source, tmp_path):
    with pytest.raises(SetupError):
        command.main([str(source), "--into", str(source / "inside")])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["somewhere"]
