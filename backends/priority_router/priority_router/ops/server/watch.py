# SPDX-License-Identifier: Apache-2.0
"""Notices a tritonserver that lives and does nothing any more: one that crashed and hangs in its own crash handler, or
that takes no connection. A busy server is not taken for one: it still accepts connections.
"""

from __future__ import annotations

import signal
import threading
import time
from dataclasses import dataclass
from typing import Final

from priority_router.ops.server import children, readiness
from priority_router.ops.server.log import ForwardedLog

CRASH_SECONDS: Final = 10.0
"""From the crash handler's first line to the end of the process, which is normally there within one."""

SILENT_SECONDS: Final = 30.0
"""Longer than a machine under load holds a server up."""

SILENT_CHECKS: Final = 4
"""Unanswered in a row: where this process was held up too, time alone would say nothing about the server."""

_CHECK_SECONDS: Final = 3.0
_ANSWER_SECONDS: Final = 5.0

CRASHES: Final = (signal.SIGILL, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGSEGV)
"""Signals that tritonserver announces and then dies of."""


@dataclass
class Vitals:
    """What was seen of a server. Times are `time.monotonic`.

    Attributes:
        silent_since: when the first of the checks in a row began that were not answered; None after an answer.
        silent_checks: how many those are.
        crash: signal that it announced.
        crash_seen: when that was noticed.
    """

    silent_since: float | None = None
    silent_checks: int = 0
    crash: signal.Signals | None = None
    crash_seen: float = 0.0

    def checked(self, began: float, *, answered: bool, unaccepted: int) -> None:
        """A health check is over.

        Args:
            began: its beginning.
            answered: any answer came.
            unaccepted: connections to the same port that the server has not taken.
        """
        if answered or not unaccepted:
            self.silent_since, self.silent_checks = None, 0
            return
        self.silent_since = began if self.silent_since is None else self.silent_since
        self.silent_checks += 1

    def announced(self, numbers: frozenset[int], at: float) -> None:
        """The signals that the server has said it received so far."""
        if self.crash is None:
            self.crash = next((number for number in CRASHES if number in numbers), None)
            self.crash_seen = at

    def fault(self, now: float) -> str | None:
        """Why the server counts as dead; None while it does not."""
        if self.crash is not None and now - self.crash_seen >= CRASH_SECONDS:
            return f"tritonserver crashed with signal {self.crash.name} and hangs"
        silent = now - self.silent_since if self.silent_since is not None else 0.0
        if self.silent_checks >= SILENT_CHECKS and silent >= SILENT_SECONDS:
            return f"tritonserver hangs: for {silent:.0f} s it has taken no connection on its HTTP port"
        return None


class Watch:
    """Watches one server from a thread of its own, until it is closed."""

    def __init__(self, pid: int, host: str, port: int, log: ForwardedLog) -> None:
        """Begins.

        Args:
            pid: of tritonserver.
            host: of its HTTP API.
            port: likewise.
            log: takes the server's output.
        """
        self._pid = pid
        self._address = (host, port)
        self._log = log
        self._vitals = Vitals()
        self._closed = threading.Event()
        threading.Thread(target=self._check, name="watch", daemon=True).start()

    def close(self) -> None:
        """Asks the server nothing more; a check under way is not waited for."""
        self._closed.set()

    @property
    def crashed(self) -> bool:
        """The server has announced its crash."""
        self._vitals.announced(self._log.signals, time.monotonic())
        return self._vitals.crash is not None

    def fault(self) -> str | None:
        """Why the server counts as dead; None while it does not."""
        now = time.monotonic()
        self._vitals.announced(self._log.signals, now)
        fault = self._vitals.fault(now)
        return None if fault is not None and children.dumps_core(self._pid) else fault

    def _check(self) -> None:
        while not self._closed.wait(_CHECK_SECONDS):
            began = time.monotonic()
            answered = readiness.is_live(*self._address, _ANSWER_SECONDS)
            unaccepted = 0 if answered else children.unaccepted(self._pid, self._address[1])
            self._vitals.checked(began, answered=answered, unaccepted=unaccepted)
