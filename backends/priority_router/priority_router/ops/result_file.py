# SPDX-License-Identifier: Apache-2.0
"""Files with measured numbers: refused before minutes of measuring when they could not be written after them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from priority_router.errors import SetupError

AGREEMENT_SCHEMA: Final = "priority-router-agreement/1"
"""Of what scripts/agreement.py writes; see `report.SCHEMA`."""

SIMULATOR_SCHEMA: Final = "priority-router-simulator/1"
"""Likewise of scripts/measure_simulator.py."""

ENSEMBLE_SCHEMA: Final = "priority-router-ensemble/1"
"""Likewise of scripts/measure_ensemble.py."""

HOOKS_SCHEMA: Final = "priority-router-hooks/1"
"""Likewise of scripts/measure_hooks.py."""

OVERHEAD_SCHEMA: Final = "priority-router-overhead/1"
"""Likewise of scripts/measure_overhead.py."""

LATENESS_SCHEMA: Final = "priority-router-lateness/1"
"""Likewise of scripts/measure_lateness.py."""

CHARTS_SCHEMA: Final = "priority-router-policy-charts/1"
"""Likewise of scripts/policy_charts.py."""

POLICIES_SCHEMA: Final = "priority-router-policies/1"
"""Likewise of scripts/measure_policies.py."""

MEMORY_SCHEMA: Final = "priority-router-memory/1"
"""Likewise of scripts/measure_memory.py."""

SOAK_SCHEMA: Final = "priority-router-soak/1"
"""Likewise of scripts/soak."""

SOAK_OVERLOAD_SCHEMA: Final = "priority-router-soak-overload/1"
"""Likewise of scripts/soak overload."""

_NUMBERS: Final = re.compile(r"\[\n([\s\d.,eE+nul-]*?)\n\s*\]")


def check_writable(path: Path, option: str = "--json") -> None:
    """Refuses a path that `write` could not write.

    Args:
        path: the file.
        option: that named it.

    Raises:
        SetupError: it is a folder, or lies in none that can be written to.
    """
    folder = path.absolute().parent
    if path.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise SetupError(
            f"{option} {path}: cannot be written; name a file in a folder that exists and is yours to write"
        )


def write(path: Path, document: Mapping[str, object]) -> None:
    """Writes a document as JSON, as `write_text` does."""
    write_text(path, as_text(document))


def write_text(path: Path, text: str) -> None:
    """Writes a file; a reader sees the old one or the new one, never half of it."""
    draft = path.with_name(path.name + ".new")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)


def read(path: Path, schema: str) -> dict[str, Any]:
    """Reads a document that `write` wrote.

    Args:
        path: the file.
        schema: the form that it must say it has.

    Raises:
        SetupError: it cannot be read, or has another form.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SetupError(f"{path}: cannot be read ({error.strerror}); name a file that exists and is yours") from None
    except (ValueError, RecursionError):
        raise SetupError(f"{path}: is no JSON; name a file of the form {schema}") from None
    found = document.get("schema") if isinstance(document, dict) else None
    if found != schema:
        raise SetupError(
            f"{path}: has the form {found!r} and not {schema!r}; name a file of this one, or measure again"
        )
    result: dict[str, Any] = document
    return result


def as_text(document: Mapping[str, object]) -> str:
    """A document as JSON, indented; a list of numbers stands in one line."""
    return _NUMBERS.sub(lambda found: f"[{' '.join(found[1].split())}]", json.dumps(document, indent=1)) + "\n"


def shown(path: Path) -> str:
    """A path as a file may tell it to others: from the current folder on, or the mere name, never the way to either."""
    try:
        return str(Path(os.path.normpath(path.absolute())).relative_to(Path.cwd()))
    except ValueError:
        return path.name
