# SPDX-License-Identifier: Apache-2.0
"""Imports of files that no package holds: scripts, and models as Triton's stub loads them."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any


def load_module(name: str, path: Path) -> Any:
    """Runs a file as a new module of that name, which is not left in ``sys.modules``.

    Raises:
        Exception: whatever the file raises.
    """
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)  # where dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[name]
    return module
