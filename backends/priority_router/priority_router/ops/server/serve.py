# SPDX-License-Identifier: Apache-2.0
"""The command ``serve``: one server in the foreground, until a signal."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import threading
import time
from collections.abc import Container, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Final

from priority_router.control import RESTARTS_ENV
from priority_router.errors import PriorityRouterError, SetupError
from priority_router.ops import command_line
from priority_router.ops.server import linting
from priority_router.ops.server.closed import ADMIN_HEADER, CLOSED
from priority_router.ops.server.log import ForwardedLog
from priority_router.ops.server.process import DRAIN_SECONDS, LAST_WORDS_SECONDS, STOP_SECONDS, Server
from priority_router.ops.server.restarts import MOST_IN_A_ROW, Restarts
from priority_router.ops.server.watch import ROUTER_SECONDS, Watch

HTTP_PORT: Final = 8000
GRPC_PORT: Final = 8001
METRICS_PORT: Final = 8002
READY_SECONDS: Final = 600.0
"""Large models load for minutes; the log on stderr shows what happens meanwhile."""

SHORTEST_KEY: Final = 16
"""Characters of a key that opens what is closed."""

_POLL_SECONDS: Final = 0.25
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def main(words: Sequence[str]) -> int:
    """Runs a server until SIGTERM, SIGINT or SIGHUP; one that fails is started again, for a limited number of times.

    Args:
        words: options; what follows ``--`` goes to tritonserver.

    Returns:
        0 after an ordered stop; 1 when the server failed and is not started again, or hung when it was stopped.

    Raises:
        PriorityRouterError: it could not start, with the reason.
    """
    own, passed = _split(words)
    options = _parser().parse_args(own)
    key = _admin_key(options.admin_key_file)
    orders = _Orders()
    try:
        folders = [Path(folder) for folder in options.model_repository]
        outcome = linting.check(folders, passed) if options.lint else linting.Outcome([])
        _say(*outcome.lines)
        return _run(options, passed, key, orders, outcome.said)
    except SetupError:
        if orders.stop.is_set():
            return 0
        raise
    finally:
        orders.end()


@dataclass(frozen=True)
class _Failure:
    """Why a server is no more, though nobody ordered it to stop.

    Attributes:
        reason: in one line.
        served: seconds until then, from when its models served.
        ordered: somebody else has told it to end, so that it is not started again.
    """

    reason: str
    served: float = 0.0
    ordered: bool = False


def _run(
    options: argparse.Namespace,
    passed: Sequence[str],
    key: str | None,
    orders: _Orders,
    said: Container[tuple[str, str]],
) -> int:
    """Starts servers, one after the other, until one is stopped or the last has failed."""
    restarts = Restarts(options.max_restarts)
    numbers = {"http": options.http_port, "grpc": options.grpc_port, "metrics": options.metrics_port}
    while True:
        log = ForwardedLog()
        server = Server(
            options.model_repository,
            host=options.host,
            **{f"{purpose}_port": port for purpose, port in numbers.items()},
            environment={RESTARTS_ENV: str(restarts.count)},
            extra_args=passed,
            log=log,
            ready_timeout=options.ready_timeout,
            closed_apis=[api for api in CLOSED if api not in options.open_apis],
            admin_key=key,
        )
        orders.follow(server)
        try:
            end = _live(server, orders, log, options.router_timeout, said, restarts.count)
        except PriorityRouterError as error:
            if not restarts.count or orders.stop.is_set():
                raise
            end = _Failure(f"it could not be started again: {error}")
        finally:
            server.kill()
            _say(*(f"warning: {text}" for text in server.warnings))
        if not isinstance(end, _Failure):
            return end
        # Whoever has them from the line `ready` finds the next server there, too.
        numbers.update(server.addresses.ports)
        _say(f"error: {end.reason}; its last words are above; all its processes are killed")
        pause = None if end.ordered else restarts.failed(end.served)
        if pause is None:
            if restarts.count:
                _say(f"error: given up after {restarts.count} restarts, the last of them too soon after the one before")
            return 1
        _say(f"restart {restarts.count} follows in {pause:g} s")
        if orders.stop.wait(pause):
            return 0


def _live(
    server: Server,
    orders: _Orders,
    log: ForwardedLog,
    router_seconds: float,
    said: Container[tuple[str, str]],
    restart: int,
) -> int | _Failure:
    """Starts a server and stays with it to its end: the exit status after an ordered one."""
    began = time.monotonic()
    server.start(said)
    orders.started = True
    served = time.monotonic()
    _say(*(f"note: {text}" for text in server.notes), *(f"warning: {text}" for text in server.warnings))
    server.warnings.clear()
    if restart:
        _say(f"serves again after {served - began:.1f} s (restart {restart})")
    else:
        addresses = {purpose: server.addresses.of(purpose) or "off" for purpose in ("http", "grpc", "metrics")}
        _write(1, "ready " + " ".join(f"{purpose}={address}" for purpose, address in addresses.items()))
    watched = Watch(
        server.pid,
        server.addresses.client_host,
        server.addresses.ports["http"],
        log,
        routers=server.routers,
        dead=server.dead_routers,
        headers=server.headers,
        router_seconds=router_seconds,
    )
    with contextlib.closing(watched) as watch:
        while not orders.stop.wait(_POLL_SECONDS):
            status = server.wait(0)
            if status is not None:
                reason = f"tritonserver ended by itself, with {_describe(status)}"
                return _Failure(reason, time.monotonic() - served, ordered=status == 0)
            if fault := watch.fault():
                return _Failure(fault, time.monotonic() - served)
        crashed = watch.crashed
    _say(
        f"stopping: draining for up to {DRAIN_SECONDS:g} s, all ends within {STOP_SECONDS:g} s; "
        "a second signal stops at once"
    )
    server.stop(since=orders.stop_since)
    # One that was killed though it had begun to stop only had calls that did not end.
    hung = server.killed and signal.SIGTERM not in log.signals
    return 1 if crashed or hung else 0


class _Orders:
    """Turns signals into orders: the first stops in good order (during the start: at once), the second at once."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.stop_since: float | None = None
        self.started = False
        self._server: Server | None = None
        self._before = {number: signal.signal(number, self._handle) for number in _SIGNALS}

    def follow(self, server: Server) -> None:
        """The orders are for this server, which is about to start."""
        self.started = False
        self._server = server
        if self.stop.is_set():
            server.hurry()

    def end(self) -> None:
        """Hands the signals back, so that whatever still holds this process up does not hold them up too."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        if self.stop_since is None:
            self.stop_since = time.monotonic()
        if self._server is not None and (self.stop.is_set() or not self.started):
            self._server.hurry()
        self.stop.set()


def _split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    own = list(words)
    if "--" not in own:
        return own, []
    at = own.index("--")
    return own[:at], own[at + 1 :]


def _parser() -> argparse.ArgumentParser:
    parser = command_line.parser(
        "priority-router serve",
        "Starts tritonserver (NVIDIA's in its image, else the CPU server of nvidia-pytriton) with the router's backend "
        "and hooks, and prints one line `ready http=... grpc=... metrics=...` when the models serve. The server's log "
        f"goes to stderr. SIGTERM and Ctrl-C drain the routers and stop within {STOP_SECONDS:g} s.",
        usage="%(prog)s --model-repository DIR [options] [-- ARGUMENTS FOR TRITONSERVER]",
    )
    parser.add_argument(
        "--model-repository", metavar="DIR", action="append", required=True, help="model repository; may be repeated"
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on; 0.0.0.0 = all (default %(default)s)")
    for purpose, port in (("http", HTTP_PORT), ("grpc", GRPC_PORT), ("metrics", METRICS_PORT)):
        parser.add_argument(
            f"--{purpose}-port",
            type=command_line.whole_number(0, 65535),
            default=port,
            metavar="N",
            help="0 = pick a free one (default %(default)s)",
        )
    parser.add_argument(
        "--ready-timeout",
        type=command_line.seconds,
        default=READY_SECONDS,
        metavar="SECONDS",
        help="give up when the models do not serve by then (default %(default)g)",
    )
    parser.add_argument(
        "--router-timeout",
        type=command_line.seconds,
        default=ROUTER_SECONDS,
        metavar="SECONDS",
        help="a router that answers no liveness request for so long is taken for dead (default %(default)g)",
    )
    parser.add_argument(
        "--max-restarts",
        type=command_line.whole_number(0),
        default=MOST_IN_A_ROW,
        metavar="N",
        help="times in a row that a server which failed is started again, with growing pauses; 0 = never (default "
        "%(default)s)",
    )
    parser.add_argument(
        "--open-api",
        dest="open_apis",
        choices=CLOSED,
        action="append",
        default=[],
        help="leave an administrative API of Triton's open to everybody who reaches the ports; may be repeated",
    )
    parser.add_argument(
        "--admin-key-file",
        type=Path,
        metavar="FILE",
        help=f"file with the key that opens the closed APIs, sent as the header {ADMIN_HEADER} (default: a key that "
        "nobody knows)",
    )
    parser.add_argument(
        "--no-lint",
        dest="lint",
        action="store_false",
        help="start whatever `priority-router lint` says of the repositories",
    )
    return parser


def _admin_key(file: Path | None) -> str | None:
    if file is None:
        return None
    try:
        key = file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(f"--admin-key-file {file} cannot be read: {error}") from error
    if len(key) < SHORTEST_KEY or not key.isascii() or not key.isprintable() or " " in key:
        raise SetupError(
            f"--admin-key-file {file}: the key must be one word of at least {SHORTEST_KEY} letters, digits and signs, "
            "as `openssl rand -hex 16` makes one"
        )
    return key


def _describe(status: int) -> str:
    return f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"


def _say(*texts: str) -> None:
    _write(2, *(f"priority-router serve: {text}" for text in texts))


def _write(descriptor: int, *lines: str) -> None:
    # Whoever read our output may be gone or stuck; the server goes on without, and stops when it is told to.
    def write() -> None:
        with contextlib.suppress(OSError):
            os.write(descriptor, "".join(f"{line}\n" for line in lines).encode())

    writer = threading.Thread(target=write, name="say", daemon=True)
    writer.start()
    writer.join(LAST_WORDS_SECONDS)
