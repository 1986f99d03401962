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
from pathlib import Path
from typing import Any

from priority_router.ops.server import children
from priority_router.ops.server.process import RESERVED_REGION_PREFIX

READY_SECONDS = 60.0
STOP_BOUND_SECONDS = 15.0
_READY = re.compile(r"ready http=(\S+) grpc=(\S+) metrics=(\S+)\n")
_PICK = ("--http-port", "0", "--grpc-port", "0", "--metrics-port", "0")


class Serving:
    """A `serve` process; `ready` waits for its line."""

    def __init__(
        self,
        folder: Path,
        *words: object,
        environment: Mapping[str, str] | None = None,
        program: Sequence[object] = (sys.executable, "-m", "priority_router.ops.cli"),
    ) -> None:
        """Starts it.

        Args:
            folder: where its stderr goes (``serve.log``).
            words: arguments after ``serve``.
            environment: instead of this process's own.
            program: what runs the command line.
        """
        self.log_path = folder / "serve.log"
        command = [*map(str, program), "serve", *map(str, words)]
        with self.log_path.open("wb") as log:
            self.process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment, start_new_session=True
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
        return pid

    def order(self, number: signal.Signals = signal.SIGTERM) -> None:
        self.process.send_signal(number)

    def ended(self, within: float = STOP_BOUND_SECONDS) -> int:
        """Waits for the end; fails when it takes longer."""
        status = self.process.wait(within)
        self._reader.join(5)
        return status

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)


@contextlib.contextmanager
def serving(folder: Path, *words: object, pick_ports: bool = True, **options: Any) -> Iterator[Serving]:
    """A `serve` process that is gone, with everything it started, at the end of the block.

    Args:
        folder: as for `Serving`, like what is not named here.
        pick_ports: on free ports.
    """
    started = Serving(folder, *(_PICK if pick_ports else ()), *words, **options)
    try:
        yield started
    finally:
        with contextlib.suppress(OSError, ValueError):
            started.tritonserver()
        for session in started.sessions:
            children.kill_all(session, time.monotonic() + 5)
        started.process.wait(5)
        # A killed `serve` cannot tidy up.
        for name in region_files(started.process.pid):
            Path("/dev/shm", name).unlink(missing_ok=True)
        for left in Path(tempfile.gettempdir()).glob(f"priority-router-{started.process.pid}-*"):
            shutil.rmtree(left, ignore_errors=True)


def living(session: int) -> list[int]:
    """Processes of a session that still live."""
    return children.members(session)


def region_files(owner: int) -> list[str]:
    """Shared memory of the servers that a `serve` process started."""
    prefix = f"{RESERVED_REGION_PREFIX}priority_router_{owner}_"
    return [name for name in os.listdir("/dev/shm") if name.startswith(prefix)]
