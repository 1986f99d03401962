# SPDX-License-Identifier: Apache-2.0
"""Measures what a server holds of requests that wait in a router, beside the router's own copies of their inputs.

Writes docs/results/memory.json, from which scripts/results.py takes the numbers in docs/policies.md. Run by hand with
the Python of .venv; about a minute on a quiet machine.
"""

from __future__ import annotations

import contextlib
import http.client
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import tritonclient.grpc
import tritonclient.http
from priority_router.ops import command_line, result_file
from priority_router.ops.bench.arms import ARMS, ROUTER, write_repository
from priority_router.ops.loads import LEVELS, ONLINE, ExecutorShape
from priority_router.ops.server import Server
from priority_router.ops.soak import resources

RESULT: Final = Path(__file__).resolve().parents[1] / "docs" / "results" / "memory.json"
ENDLESS: Final = ExecutorShape(batch_us=600_000_000, row_us=0, max_batch_size=1)
"""One request at a time, for longer than this takes."""

WAITING: Final = {64 * 1024: 400, 1024 * 1024: 48, 4 * 1024 * 1024: 24}
"""Requests that wait in the router, by the bytes of their input."""

AT_THE_EXECUTOR: Final = 2
"""Requests before those: one that runs and one that was sent ahead."""

PATIENCE_SECONDS: Final = 120.0
GAUGE: Final = "priority_router_queue_bytes"
SETTLE_SECONDS: Final = 2.0
"""From the last request taken in to looking, so that what is given back has been."""

Send = Callable[[], Any]
Sender = Callable[[Server, int], contextlib.AbstractContextManager[Send]]


def main(words: list[str] | None = None) -> int:
    """Runs the script; returns the exit status."""
    parser = command_line.parser("measure_memory", "Measures what a server holds of requests that wait in a router.")
    parser.add_argument("--json", type=Path, default=RESULT, metavar="FILE", help="file to write (default %(default)s)")
    options = parser.parse_args(words)
    with command_line.interrupted_by_sigterm():
        return command_line.exit_status(parser.prog, lambda: run(options.json))


def run(result: Path) -> int:
    """Measures and writes."""
    result_file.check_writable(result)
    measured = {
        protocol: {str(size): one_run(sender, size, waiting) for size, waiting in WAITING.items()}
        for protocol, sender in (("http", over_http), ("grpc", over_grpc))
    }
    result_file.write(result, {"schema": result_file.MEMORY_SCHEMA, "waiting": WAITING, "times_of_inputs": measured})
    return 0


def one_run(sender: Sender, size: int, waiting: int) -> dict[str, float]:
    """What is held in times of the waiting requests' input bytes, the router's own copies left out.

    Returns:
        ``server``: memory of tritonserver alone; ``model``: that of the router's process beyond its copies; ``shared``:
        memory shared between the two.
    """
    with tempfile.TemporaryDirectory() as folder:
        repository = Path(folder, "models")
        repository.mkdir()
        write_repository(repository, ARMS["router"], ENDLESS, LEVELS)
        for config in repository.glob("*/config.pbtxt"):
            config.write_text(config.read_text().replace("dims: [ 4 ]", "dims: [ -1 ]"))
        with Server(repository, log=Path(folder, "log")) as server, sender(server, size) as send:
            for _ in range(AT_THE_EXECUTOR):
                send()
            until(lambda: queued_bytes(server) == 0 and in_flight(server) == AT_THE_EXECUTOR)
            before = held(server)
            for _ in range(waiting):
                send()
            until(lambda: queued_bytes(server) == size * waiting)
            after = held(server)
    found = {name: (after[name] - before[name]) / (size * waiting) for name in after}
    found["model"] -= 1
    print(f"{size} bytes: {found}", file=sys.stderr)
    return {name: round(factor, 3) for name, factor in found.items()}


def held(server: Server) -> dict[str, int]:
    """Bytes of memory, by who has them."""
    time.sleep(SETTLE_SECONDS)
    (router,) = (pid for name, pid in server.stub_pids().items() if name.startswith(ROUTER))
    return {
        "server": resources.own_bytes(server.pid),
        "model": resources.own_bytes(router),
        "shared": resources.shared_bytes(router),
    }


def metric(server: Server, name: str) -> float:
    """Sum of a metric of the router over its classes."""
    with urllib.request.urlopen(f"http://{server.metrics}/metrics", timeout=10) as reply:
        lines = reply.read().decode().splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{name}{{"))


def queued_bytes(server: Server) -> float:
    """Input bytes of what waits in the router."""
    return metric(server, GAUGE)


def in_flight(server: Server) -> float:
    """Rows at the executor."""
    return metric(server, "priority_router_in_flight_rows")


def until(true: Callable[[], bool]) -> None:
    """Waits.

    Raises:
        TimeoutError: it does not become true.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not true():
        if time.monotonic() > deadline:
            raise TimeoutError("the requests did not arrive in the router")
        time.sleep(0.2)


@contextlib.contextmanager
def over_http(server: Server, size: int) -> Iterator[Send]:
    """Sends requests of so many bytes, each over a connection of its own, without waiting for answers."""
    body, json_bytes = tritonclient.http.InferenceServerClient.generate_request_body(
        [filled(tritonclient.http, size)], parameters={"class": ONLINE}
    )
    with contextlib.ExitStack() as connections:

        def send() -> None:
            connection = connections.enter_context(
                contextlib.closing(http.client.HTTPConnection(server.http, timeout=PATIENCE_SECONDS))
            )
            connection.request(
                "POST", f"/v2/models/{ROUTER}/infer", body, {"Inference-Header-Content-Length": str(json_bytes)}
            )

        yield send


@contextlib.contextmanager
def over_grpc(server: Server, size: int) -> Iterator[Send]:
    """Likewise, over one connection."""
    inputs = [filled(tritonclient.grpc, size)]
    with contextlib.closing(tritonclient.grpc.InferenceServerClient(server.grpc)) as client:
        yield lambda: client.async_infer(ROUTER, inputs, ignore, parameters={"class": ONLINE})


def ignore(*_: object, **__: object) -> None:
    """An answer comes when the server ends."""


def filled(protocol: Any, size: int) -> Any:
    """The input X."""
    tensor = protocol.InferInput("X", [1, size // 4], "FP32")
    tensor.set_data_from_numpy(np.ones((1, size // 4), np.float32))
    return tensor


if __name__ == "__main__":
    sys.exit(main())
