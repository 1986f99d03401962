# SPDX-License-Identifier: Apache-2.0
"""The preloaded C library as seen from Python: its switches, the mark it leaves, the counters it keeps.

The library (``hooks/priority_router_hooks.c``) marks the environment of the server process it was loaded into, and
every child inherits that mark; a router therefore compares the marked process id with its own parent's. "Loaded" is
not "working": the counters say what each hook did.
"""

from __future__ import annotations

import mmap
import os
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from priority_router.errors import SetupError

LIBRARY_NAME = "libpriority_router_hooks.so"

LEVEL_KEY = "priority_router_level"
"""Integer parameter of a BLS request that becomes the request's priority level (1 and up)."""

PRIORITY = "priority"
DISPATCH = "dispatch"
GUARD = "guard"
SWITCHES: Mapping[str, str] = {
    PRIORITY: "PRIORITY_ROUTER_HOOK_PRIORITY",
    DISPATCH: "PRIORITY_ROUTER_HOOK_DISPATCH",
    GUARD: "PRIORITY_ROUTER_HOOK_GUARD",
}
"""Hook name to the environment variable that turns it off with "0"; unset or "1" is on."""

SLICE_ENV = "PRIORITY_ROUTER_DISPATCH_SLICE_MICROSECONDS"
GUARDED_MODELS_ENV = "PRIORITY_ROUTER_GUARDED_MODELS"
LOADED_ENV = "PRIORITY_ROUTER_HOOKS_LOADED"

_MEMFD_LINK = "/memfd:priority_router_hooks"
_LAYOUT = struct.Struct("@8sQQQQ")
_MAGIC = b"PRHOOKS2"
_MARKER = re.compile(r"pid=(\d{1,10});fd=(-1|\d{1,10});hooks=([a-z,]*)")


@dataclass(frozen=True, slots=True)
class HookMarker:
    """What the library wrote into the server's environment when it was loaded.

    Attributes:
        pid: the server process.
        fd: descriptor of the counters, inherited by every child; -1 where the system refused one.
        hooks: names of the active hooks; an inactive one passes every call through.
    """

    pid: int
    fd: int
    hooks: frozenset[str]

    def active_in(self, parent_pid: int) -> bool:
        """True where the mark was left by ``parent_pid`` itself, not by a server further up."""
        return self.pid == parent_pid


def read_marker(environ: Mapping[str, str]) -> HookMarker | None:
    """The mark in an environment; None where there is none, or none that this version wrote."""
    match = _MARKER.fullmatch(environ.get(LOADED_ENV, ""))
    if match is None:
        return None
    pid, fd, hooks = match.groups()
    return HookMarker(int(pid), int(fd), frozenset(filter(None, hooks.split(","))))


def marker_of_process(pid: int) -> HookMarker | None:
    """The mark that a model's process inherited, read from outside; None where there is none.

    Raises:
        OSError: the process is gone or belongs to somebody else.
    """
    entries = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return read_marker(dict(entry.decode(errors="replace").partition("=")[::2] for entry in entries))


def format_guarded_models(routers: Mapping[str, str]) -> str:
    """The value of ``GUARDED_MODELS_ENV``.

    Args:
        routers: executor's model name to the name of the router that clients are told to call.

    Raises:
        SetupError: a name cannot be written in that form.
    """
    for name in (*routers.keys(), *routers.values()):
        if not name or name != name.strip(" ") or set(name) & {";", "="} or not name.isprintable():
            raise SetupError(
                f"model name {name!r} cannot be guarded: it is empty, has spaces around it, or holds ';', '=' or what "
                "cannot be printed; "
                "rename the model, or set guard_executor = false in its policy.toml"
            )
    return ";".join(f"{executor}={router}" for executor, router in routers.items())


def parse_guarded_models(value: str) -> dict[str, str]:
    """Executor to router names as the library reads ``GUARDED_MODELS_ENV``; of several entries the first counts."""
    routers: dict[str, str] = {}
    for entry in value.split(";"):
        executor, _, router = entry.lstrip(" ").partition("=")
        if executor:
            routers.setdefault(executor, router)
    return routers


@dataclass(frozen=True, slots=True)
class HookCounts:
    """What the hooks of one server did since it started.

    Attributes:
        priorities_set: BLS requests that were given a level.
        waits_cut: waits for an instance that returned before their own deadline because a slice was over.
        calls_refused: client requests for a guarded model.
        idle_waits_cut: likewise, waits for a request.
    """

    priorities_set: int
    waits_cut: int
    calls_refused: int
    idle_waits_cut: int = 0


class HookCounters:
    """A read-only view of the counters, shared memory with the server process; reading costs no system call."""

    def __init__(self, memory: mmap.mmap) -> None:
        self._memory = memory

    @classmethod
    def open(cls, marker: HookMarker) -> HookCounters:
        """Maps the counters of the server that left ``marker``, from that server or a child of it.

        Raises:
            SetupError: the descriptor is gone or something else.
        """
        tried = []
        for path in (f"/proc/self/fd/{marker.fd}", f"/proc/{marker.pid}/fd/{marker.fd}"):
            try:
                if not os.readlink(path).startswith(_MEMFD_LINK):
                    raise OSError("it is another file")
                return cls(_map(path))
            except (OSError, ValueError) as error:
                tried.append(f"{path}: {error}")
        raise SetupError(f"the hook counters cannot be read ({'; '.join(tried)}); restart the server with its hooks")

    def read(self) -> HookCounts:
        """The counts now; each only ever grows."""
        return HookCounts(*_LAYOUT.unpack_from(self._memory)[1:])

    def close(self) -> None:
        """Unmaps; ``read`` may not be called any more."""
        self._memory.close()


def _map(path: str) -> mmap.mmap:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        memory = mmap.mmap(descriptor, _LAYOUT.size, access=mmap.ACCESS_READ)
    finally:
        os.close(descriptor)
    if memory[: len(_MAGIC)] != _MAGIC:
        memory.close()
        raise ValueError("the library there is of another version")
    return memory
