# SPDX-License-Identifier: Apache-2.0
"""What lint takes from a profile of an executor: how long executions were."""

from __future__ import annotations

from pathlib import Path

from priority_router.errors import SetupError
from priority_router.ops.rules.models import Recorded
from priority_router.ops.simulate import profile


def read(path: Path) -> Recorded:
    """Reads a profile.

    Raises:
        SetupError: it cannot be read or used.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(f"--profile {path}: cannot be read ({error}); name a file that exists") from error
    found = profile.parse(text, str(path))
    times = found.times.samples
    return Recorded(
        str(path),
        str(found.recorded.get("model", "")),
        {rows: round(times[rows].at(0.5)) for rows in times},
        {rows: round(times[rows].at(0.9)) for rows in times},
        str(found.recorded.get("executor", "")),
    )
