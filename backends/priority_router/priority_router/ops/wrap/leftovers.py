# SPDX-License-Identifier: Apache-2.0
"""What a wrap has left behind that was killed before it could tidy up.

Law: names it and removes nothing: among it may be the only copy of a file as it was.
"""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

PREFIX: Final = ".priority-router-wrap-"
"""Of what is built beside or in a repository; what lint looks at lies among temporary files, without dot."""

_SECONDS: Final = 3600.0
"""What is younger may be of a wrap that is at work."""


def of(repository: Path, now: float, *, locked: bool) -> list[Path]:
    """Looks for it.

    Args:
        repository: it may be missing.
        now: seconds since the epoch.
        locked: no other wrap works in the repository, so that age does not matter there.
    """
    root = repository.resolve()
    inside = [path for depth in ("", "*/", "*/*/") for path in root.glob(f"{depth}{PREFIX}*")]
    around = [*root.parent.glob(f"{PREFIX}*"), *Path(tempfile.gettempdir()).glob(f"{PREFIX[1:]}*")]
    found = {*(inside if locked else _old(inside, now)), *_old(around, now, os.geteuid())}
    return sorted(found)


def note(paths: Sequence[Path]) -> str:
    """What to do with some, without a full stop."""
    return (
        "a wrap that was killed has left files behind. What ends in .old is a file as it was before: compare it with "
        f"the file beside it, then rm -r {' '.join(shlex.quote(str(path)) for path in paths)}"
    )


def _old(paths: Sequence[Path], now: float, owner: int | None = None) -> Iterator[Path]:
    for path in paths:
        try:
            status = path.lstat()
        except FileNotFoundError:  # of a wrap that has ended meanwhile
            continue
        # Not the time of its content: what keeps an old file is a link to it.
        if now - status.st_ctime > _SECONDS and owner in (None, status.st_uid):
            yield path
