# SPDX-License-Identifier: Apache-2.0
"""Notices a server that lives and does nothing any more: one that crashed and hangs in its own crash handler, that
takes no connection or answers none, or one of whose routers has died or hangs. A busy server is not taken for one: it
still accepts connections, and answers them late.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from priority_router.ops.probe import asking
from priority_router.ops.server import children, readiness
from priority_router.ops.server.log import ForwardedLog

CRASH_SECONDS: Final = 10.0
"""From the crash handler's first line to the end of the process, which is normally there within one."""

SILENT_SECONDS: Final = 30.0
"""No connection taken: longer than a machine under load holds a server up."""

SILENT_CHECKS: Final = 4
"""Unanswered in a row: where this process was held up too, time alone would say nothing about the server."""

MUTE_SECONDS: Final = 60.0
"""Connections taken and not answered, as by a server all of whose threads load models or wait for each other."""

ROUTER_SECONDS: Final = 20.0
"""Default for a router that answers no liveness request, which takes it milliseconds: longer than a machine that lacks
CPU holds one up, since a start may take minutes."""

_ROUTER_CHECKS: Final = 3
_CHECK_SECONDS: Final = 3.0
_ANSWER_SECONDS: Final = 5.0
_ROUTER_CHECK_SECONDS: Final = 2.0

CRASHES: Final = (signal.SIGILL, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGSEGV)
"""Signals that tritonserver announces and then dies of."""


@dataclass
class Silence:
    """Checks in a row without an answer.

    Attributes:
        since: when the first of them began (`time.monotonic`); None after an answer.
        checks: how many they are.
    """

    since: float | None = None
    checks: int = 0

    def checked(self, began: float, *, answered: bool) -> None:
        """A check is over."""
        if answered:
            self.since, self.checks = None, 0
            return
        self.since = began if self.since is None else self.since
        self.checks += 1

    def seconds(self, now: float, least_checks: int) -> float:
        """How long it lasts; 0 before so many checks."""
        return now - self.since if self.since is not None and self.checks >= least_checks else 0.0


@dataclass
class Vitals:
    """What was seen of a server. Times are `time.monotonic`.

    Attributes:
        untaken: health checks without an answer, while the server left connections untaken.
        unanswered: health checks without an answer.
        routers: per router, liveness requests without an answer.
        reasons: why, of the last one of each.
        crash: signal that it announced.
        crash_seen: when that was noticed.
    """

    untaken: Silence = field(default_factory=Silence)
    unanswered: Silence = field(default_factory=Silence)
    routers: dict[str, Silence] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    crash: signal.Signals | None = None
    crash_seen: float = 0.0

    def checked(self, began: float, *, answered: bool, unaccepted: int) -> None:
        """A health check is over.

        Args:
            began: its beginning.
            answered: any answer came.
            unaccepted: connections to the same port that the server has not taken.
        """
        self.untaken.checked(began, answered=answered or not unaccepted)
        self.unanswered.checked(began, answered=answered)

    def asked(self, router: str, began: float, silent: str | None) -> None:
        """A router was asked whether it lives.

        Args:
            router: which.
            began: when.
            silent: why it counts as silent; None after an answer.
        """
        self.reasons[router] = silent or ""
        self.routers.setdefault(router, Silence()).checked(began, answered=silent is None)

    def announced(self, numbers: frozenset[int], at: float) -> None:
        """The signals that the server has said it received so far."""
        if self.crash is None:
            self.crash = next((number for number in CRASHES if number in numbers), None)
            self.crash_seen = at

    def fault(self, now: float, router_seconds: float = ROUTER_SECONDS) -> str | None:
        """Why the server counts as dead; None while it does not."""
        if self.crash is not None and now - self.crash_seen >= CRASH_SECONDS:
            return f"tritonserver crashed with signal {self.crash.name} and hangs"
        silent = self.untaken.seconds(now, SILENT_CHECKS)
        if silent >= SILENT_SECONDS:
            return f"tritonserver hangs: for {silent:.0f} s it has taken no connection on its HTTP port"
        mute = self.unanswered.seconds(now, SILENT_CHECKS)
        if mute >= MUTE_SECONDS:
            return f"tritonserver hangs: for {mute:.0f} s it has taken connections on its HTTP port and answered none"
        # A server that answers nothing has the longer limits above. A copy: threads of their own ask the routers.
        for router, silence in list(self.routers.items()) if self.unanswered.checks == 0 else ():
            silent = silence.seconds(now, _ROUTER_CHECKS)
            if silent >= router_seconds:
                return (
                    f"router {router!r} hangs: for {silent:.0f} s it has answered no liveness request "
                    f"({self.reasons[router]})"
                )
        return None


class Watch:
    """Watches one server from threads of its own, until it is closed."""

    def __init__(
        self,
        pid: int,
        host: str,
        port: int,
        log: ForwardedLog,
        *,
        routers: Sequence[str] = (),
        dead: Callable[[], Sequence[str]] = tuple,
        headers: Mapping[str, str] | None = None,
        router_seconds: float = ROUTER_SECONDS,
    ) -> None:
        """Begins.

        Args:
            pid: of tritonserver.
            host: of its HTTP API.
            port: likewise.
            log: takes the server's output.
            routers: models to ask whether they live.
            dead: names routers whose process is gone.
            headers: for requests to the server.
            router_seconds: that a router may be silent.
        """
        self._pid = pid
        self._address = (host, port)
        self._log = log
        self._dead = dead
        self._headers = dict(headers or {})
        self._router_seconds = router_seconds
        self._vitals = Vitals()
        self._closed = threading.Event()
        threading.Thread(target=self._check, name="watch", daemon=True).start()
        for router in routers:
            threading.Thread(target=self._ask, args=(router,), name=f"watch {router}", daemon=True).start()

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
        if dead := self._dead():
            return f"router {dead[0]!r} is dead: its process has ended, and Triton starts none again"
        self._vitals.announced(self._log.signals, now)
        fault = self._vitals.fault(now, self._router_seconds)
        return None if fault is not None and children.dumps_core(self._pid) else fault

    def _check(self) -> None:
        while not self._closed.wait(_CHECK_SECONDS):
            began = time.monotonic()
            answered = readiness.is_live(*self._address, _ANSWER_SECONDS)
            unaccepted = 0 if answered else children.unaccepted(self._pid, self._address[1])
            self._vitals.checked(began, answered=answered, unaccepted=unaccepted)

    def _ask(self, router: str) -> None:
        url = "http://{}:{}".format(*self._address)
        question = asking.Question(live=True, headers=self._headers)
        while not self._closed.wait(_ROUTER_CHECK_SECONDS):
            began = time.monotonic()
            silent = None
            try:
                asking.ask(url, router, min(_ANSWER_SECONDS, self._router_seconds), question)
            except asking.ProbeFailed as reason:
                # The server answers for a router that is not loaded, or not there any more; that is no silence of its.
                if not reason.answered or asking.DEAD_PROCESS in str(reason):
                    silent = str(reason)
            self._vitals.asked(router, began, silent)
