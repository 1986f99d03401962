# SPDX-License-Identifier: Apache-2.0
"""The version stands in one place; everything else asks there."""

import importlib.metadata
from pathlib import Path

from priority_router import __version__

ROOT = Path(__file__).parents[2]
PLACE = ROOT / "backends/priority_router/priority_router/__init__.py"
SEARCHED = ["pyproject.toml", "README.md", "Dockerfile", "compose.yaml", "backends", "deploy", "docs", "scripts"]


def test_no_other_file_repeats_it():
    files = [path for name in SEARCHED for path in (ROOT / name, *(ROOT / name).rglob("*")) if path.is_file()]
    readable = [path for path in files if path.suffix not in {".so", ".pyc", ".json"}]
    assert [path for path in readable if __version__ in path.read_text()] == [PLACE]


def test_the_installed_package_says_the_same():
    assert importlib.metadata.version("triton-priority-router") == __version__
