# SPDX-License-Identifier: Apache-2.0
"""What the scripts that measure have in common: numbers over several rounds, and the CPU time of processes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from priority_router.ops.bench.stats import Spread


def spreads(rounds: Sequence[Any]) -> Any:
    """The tree that all rounds share, with each number's median, lowest and highest in its place."""
    first = rounds[0]
    if isinstance(first, Mapping):
        return {key: spreads([one[key] for one in rounds]) for key in first if all(key in one for one in rounds)}
    return {key: round(value, 3) for key, value in asdict(Spread.over(rounds)).items()}


def threads(pid: int) -> Iterator[Path]:
    """The folders of a process's living threads; one that ends meanwhile is left out by whoever reads it."""
    yield from Path(f"/proc/{pid}/task").iterdir()


def cpu_seconds(pid: int) -> float:
    """CPU time of a process's living threads, from the scheduler's nanoseconds."""
    total = 0
    for thread in threads(pid):
        with contextlib.suppress(OSError):
            total += int((thread / "schedstat").read_text().split()[0])
    return total / 1e9
