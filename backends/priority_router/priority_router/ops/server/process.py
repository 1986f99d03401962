# SPDX-License-Identifier: Apache-2.0
"""One tritonserver with the router's backend and hooks: start, wait until it serves, drain, stop within a bound."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from priority_router.control import CONTROL_DIR_ENV, ControlDirectory
from priority_router.errors import SetupError
from priority_router.hooks import GUARDED_MODELS_ENV, format_guarded_models
from priority_router.ops.server import arguments, children, installation, launch, ports, readiness, routers
from priority_router.ops.server.layout import Layout
from priority_router.ops.server.log import FileLog, ServerLog

STOP_SECONDS: Final = 15.0
"""From the order to stop until nothing is left."""

DRAIN_SECONDS: Final = 8.0
"""Of these, at most, for queued requests to be served."""

_KILL_RESERVE_SECONDS: Final = 1.0
_EXIT_TIMEOUT_SECONDS: Final = 5
_READY_POLL_SECONDS: Final = 0.05
_WILDCARDS: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}


class Server:
    """A running server; a context manager that starts it and stops it.

    The process is stopped when the thread that started it ends, or its process: start it from a thread that lives on.

    Attributes:
        http: ``host:port`` that clients connect to.
        grpc: the same for gRPC; None when it was switched off.
        metrics: the same for metrics; None when they were switched off.
        warnings: what the user should know though the server serves.
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
        guard: bool = True,
        environment: Mapping[str, str] | None = None,
        extra_args: Sequence[str] = (),
        log: ServerLog | Path | str | None = None,
        ready_timeout: float = 120.0,
    ) -> None:
        """Describes a server; nothing is started or checked yet.

        Args:
            repository: one model repository or several.
            host: address to listen on.
            http_port: 0 picks a free one, as for the other two.
            grpc_port: see `http_port`.
            metrics_port: see `http_port`.
            hooks: preload the hooks library.
            guard: close executors to clients where the routers' policies ask for it.
            environment: further variables for the server, winning over everything set here.
            extra_args: arguments for tritonserver.
            log: file for the server's output, or an object that takes it; default a file that goes with the server.
            ready_timeout: seconds until every model must serve.
        """
        single = isinstance(repository, str | Path)
        self._repositories = [Path(repository)] if single else [Path(path) for path in repository]  # type: ignore[arg-type, union-attr]
        self._host = ports.resolve(host)
        self._ports = {"http": http_port, "grpc": grpc_port, "metrics": metrics_port}
        self._hooks = hooks
        self._guard = guard
        self._environment = dict(environment or {})
        self._extra_args = tuple(extra_args)
        self._log_choice = log
        self._ready_timeout = ready_timeout
        self._region_prefix = f"priority_router_{os.getpid()}_{secrets.token_hex(4)}_"
        self._process: subprocess.Popen[bytes] | None = None
        self._layout: Layout | None = None
        self._log: ServerLog | None = None
        self._control: ControlDirectory | None = None
        self._passed: arguments.Passed | None = None
        self.warnings: list[str] = []

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

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
    def log_path(self) -> Path:
        """File with the server's output."""
        if not isinstance(self._log, FileLog):
            raise SetupError("this server does not log to a file")
        return self._log.path

    def log_text(self) -> str:
        """The server's output so far, as far as it is kept."""
        return self._log.text() if self._log is not None else ""

    def start(self) -> None:
        """Checks, starts, and returns when every model serves.

        Raises:
            SetupError: it cannot start, with the reason; nothing is left running.
            PolicyError: a router's policy cannot be used.
        """
        found = routers.find_routers(self._repositories)
        self._passed = arguments.read(self._extra_args, routers.least_pool(found))
        self._choose_ports(self._passed)
        triton = installation.find()
        self._layout = Layout(triton, hooks=self._hooks)
        try:
            self._launch(triton, found, self._layout)
            self._wait_until_ready()
        except BaseException:
            self.kill()
            raise

    def wait(self, timeout: float | None = None) -> int | None:
        """Waits for tritonserver to end by itself.

        Returns:
            Its exit status (negative: the signal that ended it), or None when `timeout` seconds passed first.
        """
        try:
            return self._running().wait(timeout)
        except subprocess.TimeoutExpired:
            return None

    def stop(self, *, drain: bool = True) -> None:
        """Drains the routers, stops tritonserver, and leaves nothing behind; at most 15 s. A second call does nothing.

        Args:
            drain: let the routers serve what is queued first, for up to 8 s.
        """
        if self._process is None:
            return
        started = time.monotonic()
        if drain and self._control is not None:
            self._control.order_drain()
            while self._process.poll() is None and self.undrained() and time.monotonic() < started + DRAIN_SECONDS:
                time.sleep(_READY_POLL_SECONDS)
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        self.wait(max(0.0, started + STOP_SECONDS - _KILL_RESERVE_SECONDS - time.monotonic()))
        self.kill()

    def undrained(self) -> list[str]:
        """Routers that have not reported yet that all their requests are answered."""
        return self._control.undrained() if self._control is not None else []

    def kill(self) -> None:
        """Ends every process of the server at once and removes what they left. A second call does nothing."""
        if self._process is not None:
            left = children.kill_all(self._process.pid, time.monotonic() + _KILL_RESERVE_SECONDS)
            if left:
                self.warnings.append(f"processes {left} did not end")
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_KILL_RESERVE_SECONDS)
            self._process = None
        for region in Path("/dev/shm").glob(self._region_prefix + "*"):
            with contextlib.suppress(OSError):
                region.unlink()
        if self._log is not None:
            self._log.close()
        if self._layout is not None:
            self._layout.remove()
            self._layout = None

    def stub_pids(self) -> dict[str, int]:
        """Python processes of the models: name of the instance, such as ``router_0_0``, to process id."""
        return {name: pid for pid, name in children.stubs(self.pid).items()}

    def _launch(self, triton: installation.Installation, found: Sequence[routers.Router], layout: Layout) -> None:
        self._control = ControlDirectory(layout.control)
        environment = self._child_environment(triton, found, layout)
        if triton.embedded and layout.stub is not None:
            installation.check_numpy(environment)
            installation.check_stub(layout.stub, environment)
        self._log = self._open_log(layout)
        command = [str(triton.binary), *self._command(found, layout)]
        with self._log.writer() as output:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", launch.__file__, str(os.getpid()), *command],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _child_environment(
        self, triton: installation.Installation, found: Sequence[routers.Router], layout: Layout
    ) -> dict[str, str]:
        environment = dict(os.environ)
        if triton.python is not None:
            _prepend(environment, "PATH", triton.python.parent)
        for folder in reversed(triton.libraries):
            _prepend(environment, "LD_LIBRARY_PATH", folder)
        environment[CONTROL_DIR_ENV] = str(layout.control)
        if layout.hooks is not None:
            _prepend(environment, "LD_PRELOAD", layout.hooks)
            closed = routers.guarded_models(found) if self._guard else {}
            environment[GUARDED_MODELS_ENV] = format_guarded_models(closed)
        environment.update(self._environment)
        return environment

    def _command(self, found: Sequence[routers.Router], layout: Layout) -> list[str]:
        assert self._passed is not None
        settings = {
            "thread-pool-size": str(routers.least_pool(found)),
            "shm-region-prefix-name": self._region_prefix,
        }
        command = [f"--model-repository={layout.repository(path)}" for path in self._repositories]
        command.append(f"--backend-directory={layout.backends}")
        command.append(f"--exit-timeout-secs={_EXIT_TIMEOUT_SECONDS}")
        for purpose in self._purposes(self._passed):
            command += [f"--{purpose}-address={self._host}", f"--{purpose}-port={self._ports[purpose]}"]
        for key, value in settings.items():
            if key not in self._passed.backend_settings:
                command.append(f"--backend-config=python,{key}={value}")
        return [*command, *self._passed.words]

    def _choose_ports(self, passed: arguments.Passed) -> None:
        for purpose in self._purposes(passed):
            if self._ports[purpose]:
                ports.check_free(self._host, self._ports[purpose], purpose)
        for purpose in self._purposes(passed):
            if not self._ports[purpose]:
                self._ports[purpose] = ports.pick_free(self._host, self._ports.values())

    def _purposes(self, passed: arguments.Passed) -> list[str]:
        served = {"http": True, "grpc": passed.grpc, "metrics": passed.metrics}
        return [purpose for purpose, on in served.items() if on]

    def _wait_until_ready(self) -> None:
        assert self._passed is not None
        process, host = self._running(), self._client_host()
        deadline = time.monotonic() + self._ready_timeout
        while time.monotonic() < deadline:
            if process.poll() is not None:
                raise SetupError(f"tritonserver did not start: {readiness.explain(self.log_text())}")
            status = readiness.ready_status(host, self._ports["http"])
            if status in (401, 403):
                raise SetupError("the health API is restricted (--http-restricted-api); serve needs it to see the models")
            if status == 200 and all(
                readiness.listening(host, self._ports[purpose]) for purpose in self._purposes(self._passed)
            ):
                return
            time.sleep(_READY_POLL_SECONDS)
        states = readiness.model_states(host, self._ports["http"])
        waiting = [f"{model} is {state} {reason}".strip() for model, (state, reason) in states.items() if state != "READY"]
        raise SetupError(
            f"not every model serves after {self._ready_timeout:g} s"
            + (f": {'; '.join(waiting)}" if waiting else "")
            + f"; the server's last words:\n{readiness.tail(self.log_text())}"
        )

    def _open_log(self, layout: Layout) -> ServerLog:
        if isinstance(self._log_choice, ServerLog):
            return self._log_choice
        return FileLog(Path(self._log_choice) if self._log_choice else layout.root / "server.log")

    def _address(self, purpose: str) -> str:
        if self._passed is None or purpose not in self._purposes(self._passed):
            raise SetupError(f"this server has no {purpose} address: it was not started, or that was switched off")
        host = self._client_host()
        return f"[{host}]:{self._ports[purpose]}" if ":" in host else f"{host}:{self._ports[purpose]}"

    def _client_host(self) -> str:
        return _WILDCARDS.get(self._host, self._host)

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise SetupError("the server is not running")
        return self._process


def _prepend(environment: dict[str, str], name: str, path: Path) -> None:
    earlier = environment.get(name)
    environment[name] = f"{path}{os.pathsep}{earlier}" if earlier else str(path)
