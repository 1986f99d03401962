# SPDX-License-Identifier: Apache-2.0
"""Rules about the sources themselves: licence line, length, and what the server side may import."""

import ast
import re
import sys
from collections.abc import Iterable
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
        PACKAGE / "ops/__init__.py",
        *(PACKAGE / "ops/rules").rglob("*.py"),
        PACKAGE / "ops/cli.py",
        PACKAGE / "ops/command_line.py",
        PACKAGE / "ops/install.py",
        PACKAGE / "ops/assets.py",
        PACKAGE / "ops/data_types.py",
        PACKAGE / "ops/sweep.py",
    ]
)
ALLOWED = {*sys.stdlib_module_names, "numpy", "priority_router", "triton_python_backend_utils"}

CORE = sorted([*(PACKAGE / "core").rglob("*.py"), PACKAGE / "errors.py"])
ALLOWED_IN_CORE = {
    "__future__",
    "bisect",
    "collections",
    "dataclasses",
    "enum",
    "heapq",
    "itertools",
    "math",
    "operator",
    "statistics",
    "typing",
    "priority_router.core",
    "priority_router.errors",
}
IMPURE_BUILTINS = {"__import__", "breakpoint", "compile", "eval", "exec", "input", "open", "print"}


def imported(nodes: Iterable[ast.AST]) -> set[str]:
    """Dotted names of all that some syntax nodes import; of ``from a import b`` both ``a`` and ``a.b``."""
    names = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            names |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
    return names


def files_of(modules: set[str]) -> set[Path]:
    """Where the modules lie, of those that are the package's own."""
    below = [Path(*name.split(".")[1:]) for name in modules if name.split(".")[0] == "priority_router"]
    candidates = {PACKAGE / path.with_suffix(".py") for path in below if path.name} | {
        PACKAGE / path / "__init__.py" for path in below
    }
    return {path for path in candidates if path.is_file()}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_licence_line_and_length(path: Path) -> None:
    lines = path.read_text().splitlines()
    assert any(SPDX in line for line in lines[:3]), "no SPDX line at the top"
    assert len(lines) <= MOST_LINES


@pytest.mark.parametrize("path", CORE, ids=lambda path: path.name)
def test_the_core_is_pure(path: Path) -> None:
    """An allowed list, since any other module may bring a clock, threads, files or chance; errors belong to it."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    assert not {
        name for name in imported(nodes) if not any(f"{name}.".startswith(f"{allowed}.") for allowed in ALLOWED_IN_CORE)
    }
    assert not {node.id for node in nodes if isinstance(node, ast.Name)} & IMPURE_BUILTINS


@pytest.mark.parametrize("path", SERVER_SIDE, ids=lambda path: str(path.relative_to(ROOT)))
def test_server_side_needs_only_the_standard_library_and_numpy(path: Path) -> None:
    tree = ast.parse(path.read_text())
    # A model's version folder is on its process's path.
    beside = {other.stem for other in path.parent.glob("*.py")} if MODELS in path.parents else set()
    assert {name.partition(".")[0] for name in imported(ast.walk(tree))} <= ALLOWED | beside
    assert files_of(imported(tree.body)) <= set(SERVER_SIDE), "what runs elsewhere is imported where it is used"


def test_every_shell_script_is_checked() -> None:
    """By name, since the check lists them."""
    (checked,) = [line for line in (ROOT / "scripts/check").read_text().splitlines() if "/shellcheck" in line]
    shells = [path for path in SOURCES if path.suffix == "" and path.read_text().partition("\n")[0].endswith("sh")]
    assert len(shells) > 5
    assert [path for path in shells if not re.search(rf"\b{path.name}\b", checked)] == []
