# SPDX-License-Identifier: Apache-2.0
"""The processes of one server. tritonserver is started as the leader of its own session, and everything it starts
(stubs, and what models start) stays in that session even when its parent dies first.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

_LISTEN = "0A"
"""The state's code in ``/proc/net/tcp``."""


def members(session: int) -> list[int]:
    """Pids of the living processes of a session; the dead whose parents have not collected them do not count."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError, IndexError, ValueError):
            fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
            if int(fields[3]) == session and fields[0] not in ("Z", "X"):
                found.append(int(entry.name))
    return sorted(found)


def stubs(session: int) -> dict[int, str]:
    """Living Python stubs of a session: pid to name of the model instance (``router_0_0``)."""
    found = {}
    for pid in members(session):
        with contextlib.suppress(OSError, IndexError):
            words = Path("/proc", str(pid), "cmdline").read_bytes().split(b"\0")
            if os.path.basename(words[0]) == b"triton_python_backend_stub":
                found[pid] = words[8].decode(errors="replace")
    return found


def listening_ports(pid: int) -> set[int]:
    """TCP ports on which this very process accepts connections, read from /proc and not by connecting to somebody."""
    return {port for port, _ in _listening(pid)}


def unaccepted(pid: int, port: int) -> int:
    """Connections to a port of this process that the kernel has completed and the process has not taken."""
    return sum(waiting for found, waiting in _listening(pid) if found == port)


def dumps_core(pid: int) -> bool:
    """The kernel is writing the memory of a crashed process to a file, which can take minutes."""
    with contextlib.suppress(OSError):
        return "CoreDumping:\t1" in Path("/proc", str(pid), "status").read_text()
    return False


def _listening(pid: int) -> Iterator[tuple[int, int]]:
    """Port, and connections not taken yet, of each listening TCP socket of a process."""
    sockets = set()
    with contextlib.suppress(OSError):
        for entry in Path("/proc", str(pid), "fd").iterdir():
            with contextlib.suppress(OSError):
                sockets.add(os.readlink(entry))
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in Path("/proc", str(pid), "net", table).read_text().splitlines()[1:]:
                fields = line.split()
                local, state, queues, inode = fields[1], fields[3], fields[4], fields[9]
                if state == _LISTEN and f"socket:[{inode}]" in sockets:
                    yield int(local.rpartition(":")[2], 16), int(queues.rpartition(":")[2], 16)


def kill_all(session: int, until: float) -> list[int]:
    """Kills whatever is left of a session.

    Args:
        session: pid of its leader.
        until: time (`time.monotonic`) to give up at.

    Returns:
        Pids that outlived even SIGKILL (stuck in the kernel), normally none.
    """
    while left := members(session):
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() >= until:
            return left
        time.sleep(0.02)
    return []
