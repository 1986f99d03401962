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
from pathlib import Path
from types import FrameType
from typing import Final

from priority_router.errors import SetupError
from priority_router.ops import command_line
from priority_router.ops.server import linting
from priority_router.ops.server.log import ForwardedLog
from priority_router.ops.server.process import DRAIN_SECONDS, LAST_WORDS_SECONDS, STOP_SECONDS, Server
from priority_router.ops.server.watch import Watch

HTTP_PORT: Final = 8000
GRPC_PORT: Final = 8001
METRICS_PORT: Final = 8002
READY_SECONDS: Final = 600.0
"""Large models load for minutes; the log on stderr shows what happens meanwhile."""

_POLL_SECONDS: Final = 0.25
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def main(words: Sequence[str]) -> int:
    """Runs a server until SIGTERM, SIGINT or SIGHUP, or until it ends by itself.

    Args:
        words: options; what follows ``--`` goes to tritonserver.

    Returns:
        0 after an ordered stop; 1 when the server ended by itself, crashed or hung.

    Raises:
        PriorityRouterError: it could not start, with the reason.
    """
    own, passed = _split(words)
    options = _parser().parse_args(own)
    log = ForwardedLog()
    server = Server(
        options.model_repository,
        host=options.host,
        http_port=options.http_port,
        grpc_port=options.grpc_port,
        metrics_port=options.metrics_port,
        extra_args=passed,
        log=log,
        ready_timeout=options.ready_timeout,
    )
    orders = _Orders(server)
    try:
        folders = [Path(folder) for folder in options.model_repository]
        outcome = linting.check(folders, passed) if options.lint else linting.Outcome([])
        _say(*outcome.lines)
        return _run(server, orders, log, outcome.said)
    except SetupError:
        if orders.stop.is_set():
            return 0
        raise
    finally:
        server.kill()
        _say(*(f"warning: {text}" for text in server.warnings))
        orders.end()


def _run(server: Server, orders: _Orders, log: ForwardedLog, said: Container[tuple[str, str]]) -> int:
    server.start(said)
    orders.started = True
    _say(*(f"note: {text}" for text in server.notes), *(f"warning: {text}" for text in server.warnings))
    server.warnings.clear()
    addresses = {purpose: server.addresses.of(purpose) or "off" for purpose in ("http", "grpc", "metrics")}
    _write(1, "ready " + " ".join(f"{purpose}={address}" for purpose, address in addresses.items()))
    with contextlib.closing(
        Watch(server.pid, server.addresses.client_host, server.addresses.ports["http"], log)
    ) as watch:
        while not orders.stop.wait(_POLL_SECONDS):
            status = server.wait(0)
            if status is not None:
                _say(f"error: tritonserver ended by itself, with {_describe(status)}; its last words are above")
                return 1
            if fault := watch.fault():
                _say(f"error: {fault}; its last words are above; all its processes are killed")
                return 1
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

    def __init__(self, server: Server) -> None:
        self.stop = threading.Event()
        self.stop_since: float | None = None
        self.started = False
        self._server = server
        self._before = {number: signal.signal(number, self._handle) for number in _SIGNALS}

    def end(self) -> None:
        """Hands the signals back, so that whatever still holds this process up does not hold them up too."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        if self.stop_since is None:
            self.stop_since = time.monotonic()
        if self.stop.is_set() or not self.started:
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
        "--no-lint",
        dest="lint",
        action="store_false",
        help="start whatever `priority-router lint` says of the repositories",
    )
    return parser


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
