# SPDX-License-Identifier: Apache-2.0
"""`serve` checks what it is to serve: errors keep it from starting, unless it is told not to look."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.clients import Call, client
from support.models import Executor, Router, write_executor, write_pair
from support.serving import READY_SECONDS, serving

CLASSES = (
    {"name": "interactive", "level": 1, "max_queue_size": 64},
    {"name": "bulk", "level": 2, "max_queue_size": 64},
)
LOOSE = "dynamic_batching { priority_levels: 2 default_priority_level: 2 }"
NEITHER = "dynamic_batching { }"
"""In levels mode an error to lint; the server loads it, and serves in the wrong order."""


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "models"
    folder.mkdir()
    return folder


def ours(command):
    """What `serve` itself said, without the server's log."""
    lines = command.log.splitlines()
    return [line for line in lines if line.startswith("priority-router serve: ") and "stopping:" not in line]


def answers(command):
    with client(command.ready()[1]) as sender:
        return sender.infer("router", Call(tag=1, traffic_class="bulk")).code == "OK"


def test_a_clean_repository_is_served_without_a_word(tmp_path, repository):
    write_pair(repository, Router(classes=CLASSES))
    with serving(tmp_path, "--model-repository", repository) as command:
        assert answers(command)
        assert ours(command) == []


def test_errors_refuse_with_all_that_is_needed_to_mend_them(tmp_path, repository):
    write_pair(repository, Router(classes=CLASSES), Executor(batching=NEITHER))
    with serving(tmp_path, "--model-repository", repository) as command:
        assert command.ended(READY_SECONDS) == 1
        assert command.lines == [], "it said that it was ready"
        said = command.log.splitlines()
    config = repository / "executor" / "config.pbtxt"
    line = config.read_text().splitlines().index(NEITHER) + 1
    assert said[0] == ("priority-router serve: error: lint finds 1 error; mend what it names, or start with --no-lint:")
    assert said[1].startswith(f"{config}:{line}:1: error PR101: ")
    assert said[2].startswith("  why: ")
    assert said[3].startswith("  fix: write dynamic_batching { priority_levels: 2 ")
    assert len(said) == 4, "a server was started"


def test_no_lint_starts_all_the_same_and_the_comparison_says_it(tmp_path, repository):
    write_pair(repository, Router(classes=CLASSES), Executor(batching=NEITHER))
    with serving(tmp_path, "--no-lint", "--model-repository", repository) as command:
        assert answers(command)
        (line,) = ours(command)
        assert line.startswith("priority-router serve: warning: router 'router': ")
        assert "priority_levels" in line


def test_a_warning_is_one_line_and_is_not_said_again(tmp_path, repository):
    write_pair(repository, Router(classes=CLASSES), Executor(batching=LOOSE, instances=2))
    policy = repository / "router" / "1" / "policy.toml"
    policy.write_text(policy.read_text().replace("instances = 2", "instances = 1"))
    with serving(tmp_path, "--model-repository", repository) as command:
        assert answers(command)
        place, instances = ours(command)
        config = repository / "executor" / "config.pbtxt"
        assert place.startswith(f"priority-router serve: lint: {config}:")
        assert ": warning PR105: " in place
        assert instances.startswith(f"priority-router serve: lint: {policy}:7:1: warning PR306: ")
        assert len(command.lines) == 1, "standard output has the one line"


def test_a_server_that_hangs_on_a_model_without_its_file_is_not_started(tmp_path, repository):
    write_executor(repository, Executor())
    (repository / "executor" / "1" / "model.py").unlink()
    with serving(tmp_path, "--model-repository", repository) as command:
        assert command.ended(READY_SECONDS) == 1
        assert ": error PR009: " in command.log
        assert "Started" not in command.log


def test_a_pipe_in_the_place_of_a_file_does_not_hold_it_up(tmp_path, repository):
    write_pair(repository, Router(classes=CLASSES))
    for path in (repository / "router" / "1" / "policy.toml", repository / "executor" / "config.pbtxt"):
        path.unlink()
        os.mkfifo(path)
    with serving(tmp_path, "--model-repository", repository) as command:
        assert command.ended(READY_SECONDS) == 1
        assert ": error PR005: " in command.log
        assert ": error PR001: " in command.log


def test_several_repositories_are_checked_together(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    write_pair(one, Router(classes=CLASSES))
    (one / "executor").rename(two / "executor")
    with serving(tmp_path, "--model-repository", one, "--model-repository", two) as command:
        assert answers(command)
        assert ours(command) == []


def test_without_tritonclient_one_line_says_that_it_was_skipped(tmp_path, repository):
    write_pair(repository, Router(classes=CLASSES), Executor(batching=NEITHER))
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text("import sys\nsys.modules['tritonclient'] = None\n")
    environment = {**os.environ, "PYTHONPATH": str(hidden)}
    with serving(tmp_path, "--model-repository", repository, environment=environment) as command:
        assert answers(command)
        skipped, compared = ours(command)
        assert skipped.startswith("priority-router serve: lint was skipped: it needs the package tritonclient")
        assert compared.startswith("priority-router serve: warning: router 'router': ")


def test_the_command_has_the_exit_statuses_it_promises(tmp_path, repository):
    def status(*words):
        command = [sys.executable, "-m", "priority_router.ops.cli", "lint", *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)

    write_pair(repository, Router(classes=CLASSES))
    assert (status("models").returncode, status("models").stdout) == (0, "no findings in 2 models\n")
    (repository / "executor" / "config.pbtxt").write_text("max_batchsize: 4\n")
    done = status("models")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("models/executor/config.pbtxt:1:1: error PR002: ")
    assert status("elsewhere").returncode == 2
    assert status("--explain", "PR000").returncode == 2


@pytest.mark.parametrize("form", ["--json", "--sarif", "--explain=PR103"])
def test_a_report_that_nobody_reads_or_that_cannot_be_written(tmp_path, repository, form):
    write_pair(repository, Router(classes=CLASSES))
    words = [] if "explain" in form else [str(repository)]
    command = [sys.executable, "-m", "priority_router.ops.cli", "lint", form, *words]
    reading, writing = os.pipe()
    os.close(reading)
    gone = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (gone.returncode, gone.stderr) == (0, "")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        2,
        "priority-router lint: error: the report cannot be written (No space left on device)\n",
    )
