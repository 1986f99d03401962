# SPDX-License-Identifier: Apache-2.0
"""scripts/test: what it selects, and what it says without a container engine; in a copy, with a stand-in Python."""

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "test"
# Answers the question for an engine, and writes down how pytest was called.
FAKE_PYTHON = """#!/bin/bash
case "$1" in
  -c) [[ $2 == *docker.from_env* ]] && exit "${NO_ENGINE:-0}" ;;
  -m) printf '%s\\n' "$@" > called ;;
esac
"""
CORES = 2
TOOLS = ("bash", "dirname")
NO_ENGINE = "test: no container engine answers, so tests/docker is left out\n"
NO_BROWSER = "test: no chromium is installed, so what pages look like is left out\n"


def side_by_side(workers):
    return ["-m", "pytest", "--numprocesses", str(workers), "--maxprocesses", "4", "--dist", "loadfile"]


@pytest.fixture
def run(tmp_path):
    for name, text in (("scripts/setup", "#!/bin/bash\n"), (".venv/bin/python", FAKE_PYTHON)):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    shutil.copy(SCRIPT, tmp_path / "scripts")

    def run(*words, no_engine="0", browser="google-chrome"):
        tools = tmp_path / "bin"
        shutil.rmtree(tools, ignore_errors=True)
        tools.mkdir()
        for name in (*TOOLS, *([browser] if browser else ())):
            (tools / name).symlink_to(shutil.which(name) or "/bin/true")
        (tools / "nproc").write_text(f"#!/bin/bash\necho {CORES}\n")
        (tools / "nproc").chmod(0o755)
        environment = {"PATH": str(tools), "NO_ENGINE": no_engine}
        script = tmp_path / "scripts" / "test"
        done = subprocess.run([script, *words], env=environment, capture_output=True, text=True, check=True)
        return (tmp_path / "called").read_text().splitlines(), done.stdout + done.stderr

    return run


@pytest.mark.parametrize("no_engine", ["0", "1"])
def test_the_daily_suite_asks_for_no_engine(run, no_engine):
    assert run("tests/unit", no_engine=no_engine) == (
        [*side_by_side(CORES + 1), "-m", "not slow and not docker", "tests/unit"],
        "",
    )


def test_all_is_everything_where_an_engine_answers(run):
    assert run("--all", "-x") == ([*side_by_side(CORES), "-m", "", "-x"], "")


def test_all_says_in_one_line_that_no_engine_answers(run):
    assert run("--all", no_engine="1") == ([*side_by_side(CORES), "-m", "not docker"], NO_ENGINE)


def test_all_says_in_one_line_that_there_is_no_browser(run):
    assert run("--all", browser=None) == ([*side_by_side(CORES), "-m", "not browser"], NO_BROWSER)
    both = run("--all", no_engine="1", browser=None)
    assert both == ([*side_by_side(CORES), "-m", "not docker and not browser"], NO_ENGINE + NO_BROWSER)
