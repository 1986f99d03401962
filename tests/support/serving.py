# SPDX-License-Identifier: Apache-2.0
"""The command `serve` as a process of its own, as a user runs it."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from priority_router.ops.server import children, installation, ports
from priority_router.ops.server.process import RESERVED_REGION_PREFIX

from support import clients, models

READY_SECONDS = 300.0
END_SECONDS = 150.0
"""Ten times what `serve` promises, to which a busy machine adds; the promise itself is tested in test_stop_bound."""

_READY = re.compile(r"ready http=(\S+) grpc=(\S+) metrics=(\S+)\n")
_PATIENT = ("--router-timeout", "600")
"""A test machine may lack CPU for longer than a server should."""

_PICK = ("--http-port", "0", "--grpc-port", "0", "--metrics-port", "0")


class Serving:
    """A `serve` process; `ready` waits for its line."""

    def __init__(
        self,
        folder: Path,
        *words: object,
        environment: Mapping[str, str] | None = None,
        program: Sequence[object] = (sys.executable, "-m", "priority_router.ops.cli"),
        stderr: int | None = None,
    ) -> None:
        """Starts it.

        Args:
            folder: where its stderr goes (``serve.log``).
            words: arguments after ``serve``.
            environment: instead of this process's own.
            program: what runs the command line.
            stderr: descriptor for its stderr instead of the file.
        """
        self.log_path = folder / "serve.log"
        command = [*map(str, program), "serve", *map(str, words)]
        with self.log_path.open("wb") as log:
            self.process = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=log if stderr is None else stderr,
                text=True,
                env=environment,
                start_new_session=True,
            )
        self.lines: list[str] = []
        self.sessions = {self.process.pid}
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def log(self) -> str:
        return self.log_path.read_text(errors="replace")

    def ready(self) -> tuple[str, str, str]:
        """Waits for the line and gives the three addresses."""
        deadline = time.monotonic() + READY_SECONDS
        while not self.lines:
            assert self.process.poll() is None, f"serve ended with {self.process.returncode}:\n{self.log}"
            assert time.monotonic() < deadline, f"not ready:\n{self.log}"
            time.sleep(0.02)
        found = _READY.fullmatch(self.lines[0])
        assert found, self.lines
        http, grpc, metrics = found.groups()
        return http, grpc, metrics

    def tritonserver(self) -> int:
        """Process id of the server, which leads the session that all its processes are in."""
        (pid,) = (
            int(word) for word in Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        )
        self.sessions.add(pid)
        return pid

    def order(self, number: signal.Signals = signal.SIGTERM) -> None:
        self.process.send_signal(number)

    def ended(self, within: float = END_SECONDS) -> int:
        """Waits for the end; fails when it takes longer."""
        status = self.process.wait(within)
        self._reader.join(60)
        return status

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)


@contextlib.contextmanager
def serving(folder: Path, *words: object, pick_ports: bool = True, **options: Any) -> Iterator[Serving]:
    """A `serve` process that is gone, with everything it started, at the end of the block.

    Args:
        folder: see `Serving`.
        words: see `Serving`.
        pick_ports: it takes any free ports.
        options: see `Serving`.
    """
    patient = () if any("--router-timeout" in str(word) for word in words) else _PATIENT
    started = Serving(folder, *(_PICK if pick_ports else ()), *patient, *words, **options)
    try:
        yield started
    finally:
        with contextlib.suppress(OSError, ValueError):
            started.tritonserver()
        for session in started.sessions:
            children.kill_all(session, time.monotonic() + 5)
        started.process.wait(60)
        # A killed `serve` cannot tidy up.
        for name in region_files(started.process.pid):
            Path("/dev/shm", name).unlink(missing_ok=True)
        for left in Path(tempfile.gettempdir()).glob(f"priority-router-{started.process.pid}-*"):
            shutil.rmtree(left, ignore_errors=True)


@dataclass(frozen=True)
class Served:
    """A `serve` process whose models serve.

    Attributes:
        command: the process.
        session: id of the session that all processes of its server are in, and of tritonserver.
        metrics: address of the metrics page.
        records: what each executor ran, by its name.
        sender: a gRPC client.
    """

    command: Serving
    session: int
    metrics: str
    records: dict[str, models.Record]
    sender: clients.Client

    def stub(self, model: str, session: int | None = None) -> int:
        """Process id of a model's first instance, in a later session where the server was started again."""
        found = children.stubs(session or self.session).items()
        return next(pid for pid, name in found if name.startswith(f"{model}_"))

    def metric(self, name: str, model: str = "router", **labels: str) -> float:
        """See `clients.router_metric`."""
        return clients.router_metric(self.metrics, name, model, **labels)

    def held(self, model: str = "router") -> float:
        """See `clients.held_by_router`."""
        return clients.held_by_router(self.metrics, model)

    def left(self) -> list[object]:
        """What of it is still there: processes, shared memory, temporary folders."""
        owner = self.command.process.pid
        folders = Path(tempfile.gettempdir()).glob(f"priority-router-{owner}-*")
        return [*living(self.session), *region_files(owner), *folders]


@contextlib.contextmanager
def served(
    folder: Path,
    *pairs: tuple[models.Router, models.Executor],
    words: Sequence[object] = (),
    passed: Sequence[str] = (),
    **options: Any,
) -> Iterator[Served]:
    """A `serve` process over routers and their recording executors, ready when the block begins.

    Args:
        folder: an empty folder.
        pairs: default one router and one executor without any delay.
        words: further options of `serve`.
        passed: options for tritonserver.
        options: see `Serving`.
    """
    repository = folder / "repository"
    records = {
        executor.name: models.write_pair(repository, router, executor)
        for router, executor in pairs or [(models.Router(), models.Executor())]
    }
    after = ("--", *passed) if passed else ()
    with serving(folder, "--model-repository", repository, *words, *after, **options) as command:
        _, grpc, metrics = command.ready()
        with clients.client(grpc, concurrency=200) as sender:
            yield Served(command, command.tritonserver(), metrics, records, sender)


def in_small_memory(mebibytes: int) -> list[object]:
    """A `program` for `Serving` that sees a shared memory of its own, of that size; Linux with user namespaces."""
    mount = f'mount -t tmpfs -o size={mebibytes}m tmpfs /dev/shm && exec "$@"'
    return ["unshare", "-Urm", "sh", "-c", mount, "sh", sys.executable, "-m", "priority_router.ops.cli"]


def installation_of(program: ModuleType, folder: Path) -> installation.Installation:
    """An installation whose tritonserver is a Python module, run as a program."""
    binary = folder / "bin" / "tritonserver"
    binary.parent.mkdir(parents=True)
    binary.write_text(f"#!{sys.executable}\n{Path(str(program.__file__)).read_text()}")
    binary.chmod(0o755)
    (folder / "backends").mkdir()
    return installation.Installation(binary, folder / "backends")


@contextlib.contextmanager
def full_pipe() -> Iterator[int]:
    """The writing end of a pipe that nobody reads and into which nothing fits."""
    reading, writing = os.pipe()
    try:
        fill(writing)
        yield writing
    finally:
        os.close(reading)
        os.close(writing)


def fill(pipe: int) -> None:
    """Writes into a pipe until nothing more fits."""
    # Opened anew, since the flag would hold for every owner of the descriptor.
    own = os.open(f"/proc/self/fd/{pipe}", os.O_WRONLY | os.O_NONBLOCK)
    for size in (4096, 1):
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(own, bytes(size))
    os.close(own)


def free_ports() -> list[int]:
    """Three ports on which a server could listen: HTTP, gRPC, metrics."""
    taken: list[int] = []
    for _ in range(3):
        taken.append(ports.pick_free("127.0.0.1", taken))
    return taken


def living(session: int) -> list[int]:
    """Processes of a session that still live."""
    return children.members(session)


def region_files(owner: int) -> list[str]:
    """Shared memory of the servers that a `serve` process started."""
    prefix = f"{RESERVED_REGION_PREFIX}priority_router_{owner}_"
    return [name for name in os.listdir("/dev/shm") if name.startswith(prefix)]
