# SPDX-License-Identifier: Apache-2.0
"""Rules about the sources themselves: licence line, length, and what the server side may import."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODELS = ROOT / "model_repository"
PACKAGE = ROOT / "backends/priority_router/priority_router"
SPDX = "SPDX-License-Identifier: Apache-2.0"
MOST_LINES = 400

SOURCES = sorted(
    path
    for folder in ("backends", "deploy", "examples", "model_repository", "scripts", "tests", ".ci")
    for path in (ROOT / folder).rglob("*")
    if path.is_file()
    and "__pycache__" not in path.parts
    and (path.suffix in {".py", ".c", ".h"} or (path.suffix == "" and path.read_bytes()[:2] == b"#!"))
)

SERVER_SIDE = sorted(
    [
        ROOT / "backends/priority_router/model.py",
        *PACKAGE.glob("*.py"),
        *MODELS.rglob("*.py"),
        *(PACKAGE / "core").rglob("*.py"),
        *(PACKAGE / "runtime").rglob("*.py"),
        *(PACKAGE / "ops/server").rglob("*.py"),
        *(PACKAGE / "ops/probe").rglob("*.py"),
        PACKAGE / "ops/cli.py",
        PACKAGE / "ops/install.py",
        PACKAGE / "ops/assets.py",
        PACKAGE / "ops/sweep.py",
    ]
)
ALLOWED = {*sys.stdlib_module_names, "numpy", "priority_router", "triton_python_backend_utils"}


def imported(path: Path) -> set[str]:
    """Top-level names of every package that a file imports, wherever in the file."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module.partition(".")[0])
    return names


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_licence_line_and_length(path: Path) -> None:
    lines = path.read_text().splitlines()
    assert any(SPDX in line for line in lines[:3]), "no SPDX line at the top"
    assert len(lines) <= MOST_LINES


@pytest.mark.parametrize("path", SERVER_SIDE, ids=lambda path: str(path.relative_to(ROOT)))
def test_server_side_needs_only_the_standard_library_and_numpy(path: Path) -> None:
    # A model's version folder is on its process's path.
    beside = {other.stem for other in path.parent.glob("*.py")} if MODELS in path.parents else set()
    assert imported(path) <= ALLOWED | beside
