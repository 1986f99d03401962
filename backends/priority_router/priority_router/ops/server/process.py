# SPDX-License-Identifier: Apache-2.0
"""One tritonserver with the router's backend and hooks: start, wait until it serves, drain, stop within a bound."""

from __future__ import annotations

import contextlib
import os
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Container, Mapping, Sequence
from pathlib import Path
from typing import Final, Self

from priority_router.control import ControlDirectory
from priority_router.errors import SetupError
from priority_router.ops.server import (
    arguments,
    children,
    closed,
    comparison,
    installation,
    invocation,
    launch,
    ports,
    readiness,
    routers,
)
from priority_router.ops.server.layout import Layout
from priority_router.ops.server.log import FileLog, ServerLog

STOP_SECONDS: Final = 15.0
"""From the order to stop until nothing is left."""

DRAIN_SECONDS: Final = 8.0
"""Of these, at most, for queued requests to be served."""

RESERVED_REGION_PREFIX: Final = "triton_python_backend_shm_region_"
"""From 25.07 on Triton lets no client register shared memory of a name that begins so."""

KILL_SECONDS: Final = 1.0
"""Of these, at least, for killing what has not ended by itself and removing what it left."""

LAST_WORDS_SECONDS: Final = 0.25
"""Of these, for the caller to say how it went."""

_POLL_SECONDS: Final = 0.05


class Server:
    """A server.

    As a context manager it is started, and killed at the end of the block: for callers who have all the answers they
    want, or want none. `stop` is the orderly end.

    tritonserver ends when the thread that started it ends: start it from one that lives on, such as the main thread.

    Attributes:
        headers: with which every API is open over HTTP; known once the server was started.
        routers: models that are routers, likewise.
        warnings: what the user should know though the server serves, or about how it stopped.
        notes: what follows from right policies and is easily forgotten.
        killed: it did not end by itself when it was stopped.
    """

    def __init__(
        self,
        repository: Path | str | Sequence[Path | str],
        *,
        host: str = "127.0.0.1",
        http_port: int = 0,
        grpc_port: int = 0,
        metrics_port: int = 0,
        hooks: bool = True,
        environment: Mapping[str, str] | None = None,
        extra_args: Sequence[str] = (),
        log: ServerLog | Path | str | None = None,
        ready_timeout: float = 120.0,
        closed_apis: Sequence[str] = (),
        admin_key: str | None = None,
    ) -> None:
        """Describes a server; nothing is started or checked yet.

        Args:
            repository: one model repository or several.
            host: address to listen on.
            http_port: 0 picks a free one, as for the other two.
            grpc_port: see `http_port`.
            metrics_port: see `http_port`.
            hooks: preload the hooks library.
            environment: further variables for the server, winning over everything set here.
            extra_args: arguments for tritonserver.
            log: file for the server's output, or an object that takes it; default a file that goes with the server.
            ready_timeout: seconds until every model must serve.
            closed_apis: Triton's names of the APIs that only requests with the key may use.
            admin_key: that key; default one that nobody is told.
        """
        several = [repository] if isinstance(repository, str | Path) else repository
        self._repositories = [Path(path) for path in several]
        self._host = host
        self._ports = {"http": http_port, "grpc": grpc_port, "metrics": metrics_port}
        self._hooks = hooks
        self._environment = dict(environment or {})
        self._extra_args = tuple(extra_args)
        self._log_choice = log
        self._ready_timeout = ready_timeout
        self._closed_apis = tuple(closed_apis)
        self._admin_key = admin_key or secrets.token_urlsafe(24)
        self._region_prefix = f"{RESERVED_REGION_PREFIX}priority_router_{os.getpid()}_{secrets.token_hex(4)}_"
        self._hurry = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._layout: Layout | None = None
        self._log: ServerLog | None = None
        self._control: ControlDirectory | None = None
        self._addresses: invocation.Addresses | None = None
        self.headers: dict[str, str] = {}
        self.routers: list[str] = []
        self.warnings: list[str] = []
        self.notes: list[str] = []
        self.killed = False

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        """Process id of tritonserver, which is also the id of the session that all its processes are in."""
        return self._running().pid

    @property
    def http(self) -> str:
        """``host:port`` for HTTP clients."""
        return self._address("http")

    @property
    def grpc(self) -> str:
        """``host:port`` for gRPC clients."""
        return self._address("grpc")

    @property
    def metrics(self) -> str:
        """``host:port`` of the metrics; the path is ``/metrics``."""
        return self._address("metrics")

    @property
    def addresses(self) -> invocation.Addresses:
        """Every address; known once the server was started."""
        if self._addresses is None:
            raise SetupError("the server was not started")
        return self._addresses

    def log_text(self) -> str:
        """The server's output so far, as far as it is kept; also after the end."""
        return self._log.text() if self._log is not None else ""

    def stub_pids(self) -> dict[str, int]:
        """Python processes of the models: name of the instance, such as ``router_0_0``, to process id."""
        return {name: pid for pid, name in children.stubs(self.pid).items()}

    def start(self, said: Container[tuple[str, str]] = frozenset()) -> None:
        """Checks, starts, and returns when every model serves.

        Args:
            said: of what is wrong between routers and executors, what its user knows already (see `comparison`).

        Raises:
            SetupError: it cannot start, with the reason, or `hurry` was called; nothing is left running.
            PolicyError: a router's policy cannot be used.
        """
        if self._process is not None:
            raise SetupError("this server runs already")
        found = routers.find_routers(self._repositories)
        pool = routers.least_pool(found)
        passed = arguments.read(self._extra_args, pool)
        closed.check_front_ends(self._closed_apis, passed.sagemaker, passed.vertex_ai, os.environ | self._environment)
        self.routers = [router.model for router in found]
        self.headers = closed.headers(self._admin_key, passed.restrictions)
        self._addresses = self._choose_addresses(passed)
        triton = installation.find()
        self._layout = layout = Layout(triton, hooks=self._hooks)
        try:
            environment = invocation.server_environment(
                os.environ,
                python=triton.python,
                libraries=triton.libraries,
                control=layout.control,
                hooks=layout.hooks,
                guarded=routers.guarded_models(found),
                extra=self._environment,
            )
            if layout.stub is not None:
                installation.check_numpy(environment, self._hurry.is_set)
                installation.check_stub(layout.stub, environment, self._hurry.is_set)
            words = invocation.server_arguments(
                [layout.repository(path) for path in self._repositories],
                layout.backends,
                self._addresses,
                pool=pool,
                region_prefix=self._region_prefix,
                passed=passed,
                restricted=closed.words(self._closed_apis, self._admin_key, passed.restrictions),
            )
            self._launch([str(triton.binary), *words], environment, layout)
            self._wait_until_ready(passed)
            self.notes += routers.probe_notes(found)
            host, http = self.addresses.client_host, self.addresses.ports["http"]
            self.warnings += comparison.warnings(host, http, found, said, passed.loaded, self.headers)
        except BaseException:
            self.kill()
            raise

    def dead_routers(self) -> list[str]:
        """Names of the routers whose process is gone though they were not unloaded."""
        return self._control.dead() if self._control is not None else []

    def wait(self, timeout: float | None = None) -> int | None:
        """Waits for tritonserver to end by itself.

        Returns:
            Its exit status (negative: the signal that ended it), or None when `timeout` seconds passed first.
        """
        try:
            return self._running().wait(timeout)
        except subprocess.TimeoutExpired:
            return None

    def hurry(self) -> None:
        """Ends a `start` or a `stop` in progress at once, by killing; callable from a signal handler."""
        self._hurry.set()

    def stop(self, *, drain: bool = True, since: float | None = None) -> None:
        """Drains the routers, stops tritonserver, and leaves nothing behind, all within STOP_SECONDS.

        A second call does nothing.

        Args:
            drain: let the routers serve what is queued first, for up to DRAIN_SECONDS.
            since: time (`time.monotonic`) of the order to stop; default now.
        """
        if self._process is None:
            return
        # One deadline: what a step leaves over is the next one's, and what it overruns is taken from it.
        ordered = time.monotonic() if since is None else since
        deadline = ordered + STOP_SECONDS - LAST_WORDS_SECONDS
        if drain and self._control is not None:
            self._drain(self._control, ordered + DRAIN_SECONDS)
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        self._wait_while(lambda: True, deadline - KILL_SECONDS)
        if self._process.poll() is None and not self._hurry.is_set():
            self.killed = True
            self.warnings.append("tritonserver did not end by itself and was killed")
        self._end(deadline)

    def kill(self) -> None:
        """Ends every process of the server at once, within KILL_SECONDS, and removes what they left.

        A second call does nothing.
        """
        self._end(time.monotonic() + KILL_SECONDS)

    def _drain(self, control: ControlDirectory, deadline: float) -> None:
        try:
            control.order_drain()
        except OSError as error:
            self.warnings.append(f"the routers cannot be told to drain: {error}")
            return
        self._wait_while(control.undrained, deadline)
        if self._running().poll() is None and not self._hurry.is_set() and (left := control.undrained()):
            self.warnings.append(f"not drained after {DRAIN_SECONDS:g} s: {', '.join(left)}")

    def _end(self, deadline: float) -> None:
        if self._layout is None:
            return
        if self._process is not None:
            left = children.kill_all(self._process.pid, deadline)
            if left:
                self.warnings.append(f"processes {left} outlived SIGKILL")
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_rest(deadline))
            self._process = None
        for region in Path("/dev/shm").glob(self._region_prefix + "*"):
            with contextlib.suppress(OSError):
                region.unlink()
        if self._log is not None:
            self._log.close(_rest(deadline))
        self._layout.remove()
        self._layout = None

    def _choose_addresses(self, passed: arguments.Passed) -> invocation.Addresses:
        host = ports.resolve(self._host)
        on = {"http": True, "grpc": passed.grpc, "metrics": passed.metrics}
        wanted = {purpose: port for purpose, port in self._ports.items() if on[purpose]}
        for purpose, port in wanted.items():
            if port:
                ports.check_free(host, port, purpose)
                if list(wanted.values()).count(port) > 1:
                    raise SetupError(f"{purpose} port {port} is asked for twice; each service needs its own")
        for purpose, port in wanted.items():
            if not port:
                wanted[purpose] = ports.pick_free(host, wanted.values())
        return invocation.Addresses(host, wanted)

    def _launch(self, words: Sequence[str], environment: Mapping[str, str], layout: Layout) -> None:
        self._control = ControlDirectory(layout.control)
        if isinstance(self._log_choice, ServerLog):
            self._log = self._log_choice
        else:
            self._log = FileLog(Path(self._log_choice) if self._log_choice else layout.root / "server.log")
        with self._log.writer() as output:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", launch.__file__, str(os.getpid()), *words],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _wait_until_ready(self, passed: arguments.Passed) -> None:
        host, http = self.addresses.client_host, self.addresses.ports["http"]
        deadline = time.monotonic() + self._ready_timeout
        while time.monotonic() < deadline and not self._hurry.is_set():
            status = readiness.ready_status(host, http, self.headers)
            if status in (401, 403):
                raise SetupError(
                    "the health API is restricted (--http-restricted-api) by a header that another restriction gives "
                    "another value; serve must be able to ask it: use one value, or another header"
                )
            if self._running().poll() is not None:
                self.kill()  # and with it comes the end of the log
                raise SetupError(f"tritonserver did not start:\n{readiness.explain(self._whole_log(passed))}")
            # The answer may be that of another server, which took the port while our models loaded.
            if status is not None and children.listening_ports(self.pid).issuperset(self.addresses.ports.values()):
                if status == 200:
                    return
                if not passed.exit_on_error:
                    # The server opens its ports only after it has tried every model, and may go on without some.
                    self.warnings += self._not_ready()
                    return
            time.sleep(_POLL_SECONDS)
        if self._hurry.is_set():
            raise SetupError("stopped before the models served")
        raise SetupError(
            "\n".join(
                [
                    f"not every model serves after {self._ready_timeout:g} s; if they only need longer, raise "
                    "--ready-timeout",
                    *self._not_ready(),
                    f"the server's last words:\n{readiness.tail(self._whole_log(passed))}",
                ]
            )
        )

    def _not_ready(self) -> list[str]:
        states = readiness.model_states(self.addresses.client_host, self.addresses.ports["http"], self.headers)
        return [
            f"model {model} is {state or 'not loaded'}{': ' if reason else ''}{reason}"
            for model, (state, reason) in states.items()
            if state != "READY"
        ]

    def _whole_log(self, passed: arguments.Passed) -> str:
        own = Path(passed.log_file) if passed.log_file else None
        return self.log_text() + (own.read_text(errors="replace") if own is not None and own.is_file() else "")

    def _wait_while(self, condition: Callable[[], object], deadline: float) -> None:
        """Returns when the server ended, the condition is false, time is up, or somebody is in a hurry."""
        process = self._running()
        while process.poll() is None and condition() and time.monotonic() < deadline and not self._hurry.is_set():
            time.sleep(min(_POLL_SECONDS, _rest(deadline)))

    def _address(self, purpose: str) -> str:
        address = self.addresses.of(purpose)
        if address is None:
            raise SetupError(f"this server has no {purpose} address: that was switched off")
        return address

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise SetupError("the server is not running")
        return self._process


def _rest(deadline: float) -> float:
    """Seconds until a time of `time.monotonic`, 0 when it has passed."""
    return max(0.0, deadline - time.monotonic())
