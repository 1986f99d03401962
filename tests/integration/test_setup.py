# SPDX-License-Identifier: Apache-2.0
"""scripts/setup: which steps it runs when, and what it says when it cannot; in a copy, with a stand-in for Python."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NEEDED = [
    "LICENSE",
    "pyproject.toml",
    "scripts/setup",
    "scripts/hatch_build.py",
    "scripts/copy_model.py",
    "backends/priority_router/priority_router/__init__.py",
    "backends/priority_router/priority_router/errors.py",
    "backends/priority_router/priority_router/control.py",
    "backends/priority_router/priority_router/ops/build_hooks.py",
    "backends/priority_router/hooks/priority_router_hooks.c",
]
TOOLS = ["bash", "cat", "cmp", "dirname", "flock", "mkdir", "mv", "rm", "sha256sum", "touch", "cp"]

# Writes down what it was asked to do, and leaves the files that the real steps leave.
FAKE_PYTHON = """#!/bin/bash
case "$*" in
  "-c "* | "-B -") exit "${UNSUITABLE:-0}" ;;
  "-m venv --clear .venv") mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
  *build_hooks*) touch backends/priority_router/hooks/libpriority_router_hooks.so ;;
  "scripts/copy_model.py")
    for file in executor/{1/model.onnx,1/LICENSE,labels.txt,NOTICE.txt} router/labels.txt \\
        file_type_label/1/rules.json; do
      mkdir -p "model_repository/${file%/*}"
      echo x > "model_repository/$file"
    done ;;
esac
echo "$*" >> calls
"""
MAKE_VENV = "-m venv --clear .venv"
HOOKS = "-m priority_router.ops.build_hooks"
PIP = "-m pip --disable-pip-version-check install --quiet --quiet"
INSTALL = [f"{PIP} --upgrade pip>=25.1", f"{PIP} --editable .[embedded,tools] --group dev"]
MODEL = "scripts/copy_model.py"
EVERYTHING = [MAKE_VENV, HOOKS, *INSTALL, MODEL]


class Clone:
    """A copy of what set-up needs, in a folder with a space in its name."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "a clone"
        for name in NEEDED:
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.root / name)
        shutil.copytree(
            ROOT / "backends/priority_router/priority_router", self.root / "backends/priority_router/priority_router",
            dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"),
        )  # fmt: skip
        self.bin = folder / "bin"
        self.bin.mkdir()
        for tool in TOOLS:
            found = shutil.which(tool)
            assert found is not None, tool
            (self.bin / tool).symlink_to(found)

    def program(self, name, text):
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    def setup(self, **environment):
        return subprocess.run(
            [self.root / "scripts" / "setup"],
            cwd="/",
            env={"PATH": str(self.bin), **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    def calls(self, **environment):
        """Runs set-up, which must succeed, and returns what it asked Python to do."""
        (self.root / "calls").unlink(missing_ok=True)
        done = self.setup(**environment)
        assert done.returncode == 0, done.stderr
        self.said = done.stdout + done.stderr
        return (self.root / "calls").read_text().splitlines() if (self.root / "calls").exists() else []


@pytest.fixture
def clone(tmp_path):
    return Clone(tmp_path)


@pytest.fixture
def ready(clone):
    """A clone that was set up."""
    clone.program("python3", FAKE_PYTHON)
    assert clone.calls() == EVERYTHING
    return clone


def test_the_first_run_does_everything_and_the_second_nothing(ready):
    assert "making .venv with python3" in ready.said
    assert ready.calls() == []
    assert ready.said == ""


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ("pyproject.toml", [HOOKS, *INSTALL, MODEL]),
        ("backends/priority_router/hooks/priority_router_hooks.c", [HOOKS]),
        ("scripts/copy_model.py", [MODEL]),
        ("README.md", []),
    ],
)
def test_a_change_repeats_the_steps_that_depend_on_it(ready, changed, expected):
    with (ready.root / changed).open("a") as file:
        file.write("\n")
    assert ready.calls() == expected
    assert ready.calls() == []


@pytest.mark.parametrize(
    ("removed", "expected"),
    [
        (".venv", EVERYTHING[:-1]),
        ("backends/priority_router/hooks/libpriority_router_hooks.so", [HOOKS]),
        ("model_repository/executor/1/model.onnx", [MODEL]),
        ("model_repository/router/labels.txt", [MODEL]),
    ],
)
def test_what_was_removed_is_made_again(ready, removed, expected):
    path = ready.root / removed
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert ready.calls() == expected
    assert ready.calls() == []


def test_a_clone_that_moved_is_installed_again(ready):
    moved = ready.root.with_name("elsewhere")
    ready.root.rename(moved)
    ready.root = moved
    assert ready.calls() == [HOOKS, *INSTALL, MODEL]


def test_a_failed_step_is_repeated(clone):
    clone.program(
        "python3", FAKE_PYTHON.replace("*build_hooks*)", "*pip*) [ -e allowed ] || exit 7 ;;\n  *build_hooks*)")
    )
    assert clone.setup().returncode == 7
    (clone.root / "allowed").touch()
    assert clone.calls() == [HOOKS, *INSTALL, MODEL]


def test_without_python_it_says_what_is_needed(clone):
    done = clone.setup()
    assert done.returncode == 1
    assert done.stderr == (
        "setup: no suitable Python; CPython 3.11 or 3.12 with a shared libpython is needed. None is on PATH.\n"
    )


def test_unsuitable_pythons_are_listed_with_the_reason(clone):
    clone.program("python3.12", "#!/bin/bash\necho 'it is a static build' >&2\nexit 1\n")
    clone.program("python3", "#!/bin/bash\necho 'Python 3.10' >&2\nexit 1\n")
    done = clone.setup()
    assert done.returncode == 1
    assert "\n  python3.12: it is a static build\n  python3: Python 3.10\n" in done.stderr


def test_the_first_suitable_python_wins_and_PYTHON_before_it(clone):
    for name in ("python3", "python3.11", "python3.12", "mine"):
        clone.program(name, FAKE_PYTHON)
    clone.program("python3.12", "#!/bin/bash\nexit 1\n")
    clone.calls()
    assert "with python3.11 " in clone.said
    shutil.rmtree(clone.root / ".venv")
    clone.calls(PYTHON="mine")
    assert "with mine " in clone.said


def test_without_a_compiler_it_says_what_to_install(clone):
    clone.program("python3", f'#!/bin/bash\nexec {sys.executable} "$@"\n')
    done = clone.setup(HOME=os.environ.get("HOME", "/"))
    assert done.returncode == 1
    assert "no C compiler found" in done.stderr
    assert "apt-get install gcc" in done.stderr
    assert "Traceback" not in done.stderr
