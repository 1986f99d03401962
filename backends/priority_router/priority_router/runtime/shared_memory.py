# SPDX-License-Identifier: Apache-2.0
"""The memory through which tensors pass between the server and its Python models: is it too small, and how to say so.

Law: asks the system for free space, allocates nothing. What Triton's Python backend says of it names neither the bytes
that were wanted nor those that are free.
"""

from __future__ import annotations

import os
from typing import Final, NamedTuple

from priority_router.errors import Unavailable

FOLDER: Final = "/dev/shm"

GROWTH: Final = 8 << 20
"""Bytes that a small reply may need: a region grows by steps of one MiB, and other models take some meanwhile."""

_TIMES: Final = 4
"""As often as its size a tensor may take room: a region that is too small grows by more than what is asked for."""

_FULL: Final = "Failed to increase the shared memory pool size"
_MIB: Final = 1 << 20


class Room(NamedTuple):
    """Bytes of the whole, and those of them that are free."""

    total: int
    free: int


def room() -> Room | None:
    """What there is now; None where the system does not say."""
    try:
        found = os.statvfs(FOLDER)
    except OSError:
        return None
    return Room(found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize)


def is_tight(size: int) -> bool:
    """Whether so many bytes might find no room."""
    found = room()
    return found is not None and found.free < GROWTH + _TIMES * size


def is_shortage(text: str) -> bool:
    """Whether an error of Triton's is due to this memory."""
    return _FULL in text


def shortage(what: str, size: int) -> Unavailable:
    """Such an error in words that help: what was needed, what is free, what to do.

    Args:
        what: was on its way.
        size: its bytes.
    """
    found = room()
    there = f"of {_mib(found.total)} in {FOLDER} {_mib(found.free)} are free" if found else f"{FOLDER} is full"
    return Unavailable(
        f"the server's shared memory is too small: {what} of {_mib(size)} found no room, {there}; give the server's "
        "container more of it (--shm-size, shm_size), or send less at once"
    )


def _mib(size: int) -> str:
    return f"{size / _MIB:.1f} MiB"
