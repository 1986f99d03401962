# SPDX-License-Identifier: Apache-2.0
"""Files that lie where wrap looks: whatever one is, nothing waits, and nothing huge is read."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from priority_router.errors import SetupError
from priority_router.ops.lint.reading import MOST_BYTES

MOST_LABEL_BYTES: Final = 64_000_000
"""Of a file with labels: a hundred times those of the largest classifiers."""


def content(path: Path, most: int = MOST_BYTES) -> bytes | None:
    """A file's content; None where there is none.

    Args:
        path: of a file, or a link to one.
        most: bytes that it may have.

    Raises:
        SetupError: it is another thing (opening a pipe would wait for its writer), or larger.
        OSError: it cannot be read.
    """
    try:
        _check(path, os.stat(path), most)  # without opening it, which a pipe's writer would notice
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        _check(path, os.fstat(descriptor), most)
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def _check(path: Path, found: os.stat_result, most: int) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise SetupError(f"{path}: {_kind(found.st_mode)}; put a file in its place, or move it away")
    if found.st_size > most:
        raise SetupError(f"{path}: has {found.st_size / 1e6:.0f} MB, and wrap reads up to {most / 1e6:.0f}; correct it")


def _kind(mode: int) -> str:
    """What something that is no file is, in words."""
    for test, word in (
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISCHR, "a device"),
        (stat.S_ISBLK, "a device"),
    ):
        if test(mode):
            return f"is {word} and no file"
    return "is no file"
