# SPDX-License-Identifier: Apache-2.0
"""What ``serve`` and the routers agree on outside Triton: the drain channel, restarts, and the threads a router needs.

The channel is a directory that only the server's user can enter, so no client can reach it. ``serve`` creates it and
hands its path down in the environment; each router announces itself in it, polls for the order to drain and reports::

    <model>.<pid>.router     a router lives; pid is that of its process, which removes this when it ends in good order
    drain                    written by serve: take no new requests, serve what is queued
    <model>.<pid>.drained    written by the router: nothing queued, nothing in flight, every reply sent

Server side (:class:`ControlDirectory`) and router side (:class:`RouterChannel`) both live here, so that the names have
one owner. Standard library only.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from priority_router.core.executor_model import SHARED_IN_FLIGHT
from priority_router.core.scheduler import MAX_WRITTEN_OFF
from priority_router.errors import SetupError

CONTROL_DIR_ENV: Final = "PRIORITY_ROUTER_CONTROL_DIR"
"""Names the control directory; unset where the server was not started by ``serve``."""

RESTARTS_ENV: Final = "PRIORITY_ROUTER_SERVER_RESTARTS"
"""How often ``serve`` has started its server again so far; unset where the server was not started by it."""

DRAIN_POLL_SECONDS: Final = 0.1
"""A router looks for the order to drain at least this often."""

REPLY_THREADS: Final = 4
"""Threads that send replies: one `send` takes about 0.5 ms under load, and more than 4 at once gained nothing."""

WRITTEN_OFF_LIMIT: Final = MAX_WRITTEN_OFF
"""Calls without an answer that a router gives up before it answers UNAVAILABLE; each keeps its thread."""

LATE_BOUND_CALLS_PER_INSTANCE: Final = 2
"""Calls in flight for each executor instance: one that runs and one sent ahead."""

CALLS_PER_INSTANCE: Final = SHARED_IN_FLIGHT
"""The most there can be, with a shared executor."""

OTHER_THREADS: Final = WRITTEN_OFF_LIMIT + REPLY_THREADS
"""Threads that a router needs besides those of its calls in flight."""

TRITON_DEFAULT_POOL: Final = 32
"""Threads Triton itself gives to each instance of a Python-based backend."""

_DRAIN = "drain"
_ANNOUNCED = ".router"
_DRAINED = ".drained"


def thread_pool_size(instances: int) -> int:
    """Threads that the server must keep for one router: each call in flight and each reply being sent holds one.

    Args:
        instances: executor instances over all devices, at least 1.
    """
    return max(TRITON_DEFAULT_POOL, CALLS_PER_INSTANCE * instances + OTHER_THREADS)


def server_restarts(environ: Mapping[str, str]) -> int:
    """What ``serve`` says in an environment about the server's earlier lives; 0 where it says nothing."""
    said = environ.get(RESTARTS_ENV, "")
    return int(said) if said.isascii() and said.isdigit() else 0


class RouterChannel:
    """The router's end. Every method is cheap and may be called from any thread."""

    def __init__(self, directory: Path, model: str, pid: int | None = None) -> None:
        """Announces the router.

        Args:
            directory: the control directory, which must exist.
            model: the router model's name.
            pid: the process that ``serve`` may ask whether it still lives; default this one.

        Raises:
            SetupError: the directory cannot be written.
        """
        stem = f"{model}.{os.getpid() if pid is None else pid}"
        self._drain = directory / _DRAIN
        self._announced = directory / (stem + _ANNOUNCED)
        self._drained = directory / (stem + _DRAINED)
        try:
            self._announced.touch()
        except OSError as error:
            raise SetupError(
                f"{CONTROL_DIR_ENV}={directory} cannot be written ({error.strerror}); it must be the directory that "
                "`priority-router serve` made, or unset"
            ) from error

    @classmethod
    def from_environment(cls, environ: Mapping[str, str], model: str) -> RouterChannel | None:
        """The channel that ``serve`` handed down, or None where it did not start this server."""
        directory = environ.get(CONTROL_DIR_ENV)
        return cls(Path(directory), model) if directory else None

    def drain_requested(self) -> bool:
        """True once ``serve`` has ordered the drain; it is never taken back."""
        return self._drain.exists()

    def report_drained(self) -> None:
        """Says that every request has been answered. Later calls change nothing; a vanished directory is no error."""
        with contextlib.suppress(OSError):
            self._drained.touch()

    def close(self) -> None:
        """Signs off, so that ``serve`` does not wait for a router that was unloaded."""
        for file in (self._announced, self._drained):
            with contextlib.suppress(OSError):
                file.unlink()


class ControlDirectory:
    """The end of ``serve``."""

    def __init__(self, path: Path) -> None:
        """Makes the directory, for this user alone."""
        path.mkdir(mode=0o700)
        self.path = path

    def order_drain(self) -> None:
        """Tells every router, those that load later included, to drain."""
        (self.path / _DRAIN).touch()

    def undrained(self) -> list[str]:
        """Names of the living routers that have not reported yet, sorted."""
        return sorted(
            model
            for announced, model, pid in self._announced()
            if not announced.with_name(announced.name.removesuffix(_ANNOUNCED) + _DRAINED).exists() and _alive(pid)
        )

    def dead(self) -> list[str]:
        """Names of the routers whose process is gone though they have not signed off, sorted."""
        return sorted(model for _, model, pid in self._announced() if not _alive(pid))

    def _announced(self) -> Iterator[tuple[Path, str, str]]:
        """File, model and process id of every router that has not signed off."""
        for announced in self.path.glob("*" + _ANNOUNCED):
            model, _, pid = announced.name.removesuffix(_ANNOUNCED).rpartition(".")
            yield announced, model, pid


def _alive(pid: str) -> bool:
    """False for a process that is gone, and for one that is dead but not yet collected by its parent."""
    try:
        stat = Path("/proc", pid, "stat").read_text(errors="replace")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")
