# SPDX-License-Identifier: Apache-2.0
"""All findings of some model repositories, each with its file, line and column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from priority_router.ops.lint import reading
from priority_router.ops.lint.locate import Locator
from priority_router.ops.pbtxt.document import Position
from priority_router.ops.rules import repository
from priority_router.ops.rules.finding import Finding, Severity
from priority_router.ops.rules.models import Recorded


@dataclass(frozen=True, slots=True)
class Located:
    """A finding and where it stands.

    Attributes:
        finding: what is wrong.
        file: of the model, or its folder, as it is reached from where the repository was named.
        position: in the file; None of a folder, and of a file that is not there or cannot be read.
    """

    finding: Finding
    file: Path
    position: Position | None


@dataclass(frozen=True, slots=True)
class Report:
    """What is wrong with some repositories.

    Attributes:
        repositories: as they were named.
        models: how many were looked at.
        found: by file, and within it from top to bottom.
        remarks: what was not looked at, one line each.
    """

    repositories: tuple[Path, ...]
    models: int
    found: tuple[Located, ...]
    remarks: tuple[str, ...]

    def of(self, severity: Severity) -> list[Located]:
        """The findings of one severity."""
        return [located for located in self.found if located.finding.rule.severity is severity]


def check(repositories: Sequence[Path], thread_pool_size: int | None = None, profile: Recorded | None = None) -> Report:
    """Checks all that one server would serve.

    Args:
        repositories: their folders.
        thread_pool_size: of Python backends, as the server is started; None where nobody starts one.
        profile: of an executor; None where none was recorded.

    Raises:
        SetupError: one is no folder, one model's own folder, or named twice.
        ModuleNotFoundError: tritonclient or protobuf is not installed.
    """
    contents = reading.read(repositories)
    locator = Locator(contents)
    served = contents.repository(thread_pool_size, profile)
    found = [Located(finding, locator.file(finding.place), position) for finding, position in contents.found] + [
        Located(finding, locator.file(finding.place), locator.position(finding)) for finding in repository.check(served)
    ]
    found.sort(key=_order)
    remarks = [*contents.remarks, *filter(None, [served.profile_of_others()])]
    return Report(tuple(repositories), len(contents.folders), tuple(found), tuple(remarks))


def _order(located: Located) -> tuple[str, Position, str, str]:
    finding = located.finding
    return str(located.file), located.position or Position(0, 0), finding.rule.code, finding.what
