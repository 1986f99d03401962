# SPDX-License-Identifier: Apache-2.0
"""Model repositories to be checked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from priority_router.ops.lint.check import Report, check
from support import models

LIMITED = (
    {"name": "interactive", "level": 1, "max_queue_size": 64},
    {"name": "bulk", "level": 2, "max_queue_size": 64},
)


def clean_pair(repository: Path, **router: Any) -> Path:
    """A router and its executor, with which nothing is wrong."""
    repository.mkdir(parents=True, exist_ok=True)
    models.write_pair(repository, models.Router(**{"classes": LIMITED, **router}))
    return repository


def found(repository: Path, *others: Path, **options: Any) -> list[tuple[str, str]]:
    """What is found: ``file:line:column`` below the repository, and the rule's code."""
    return places(check([repository, *others], **options), repository)


def places(report: Report, folder: Path) -> list[tuple[str, str]]:
    return [(_place(located, folder), located.finding.rule.code) for located in report.found]


def codes(report: Report) -> Sequence[str]:
    return [located.finding.rule.code for located in report.found]


def _place(located: Any, folder: Path) -> str:
    file = str(located.file.relative_to(folder)) if located.file.is_relative_to(folder) else str(located.file)
    return f"{file}:{located.position.line}:{located.position.column}" if located.position else file
