# SPDX-License-Identifier: Apache-2.0
"""One ``wrap`` at a time in a repository, from the first look at it to the last rename."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def held(repository: Path) -> Iterator[bool]:
    """Locks a repository's folder itself, so that nothing is left behind whatever ends the process.

    Args:
        repository: where it is missing nothing is locked: a folder that two make is refused to the second.

    Yields:
        Whether it is locked: not every network file system can, and not every folder may be opened. Files that changed
        meanwhile are refused without it as well.
    """
    with contextlib.ExitStack() as stack:
        locked = False
        with contextlib.suppress(OSError):
            folder = os.open(repository, os.O_RDONLY | os.O_DIRECTORY)
            stack.callback(os.close, folder)
            _lock(folder, repository)
            locked = True
        yield locked


def _lock(folder: int, repository: Path) -> None:
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        if sys.stderr is not None:
            with contextlib.suppress(OSError):
                print(f"priority-router wrap: waiting for another wrap in {repository}", file=sys.stderr, flush=True)
        fcntl.flock(folder, fcntl.LOCK_EX)
