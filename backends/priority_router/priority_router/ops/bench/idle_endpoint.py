# SPDX-License-Identifier: Apache-2.0
"""An HTTP endpoint that answers every inference at once and computes nothing: what a client alone is measured against.

It takes less than the client for each request, so that it is the client that is busy.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import select
import socket
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import Final

from priority_router.interface import EXECUTOR_OUTPUT, QUEUE_OUTPUT
from priority_router.ops.bench import wire
from priority_router.ops.bench.load import LoadError, without_interrupts

_READY_SECONDS: Final = 60.0
_CHUNK: Final = 1 << 20
_ID_MARK: Final = b'{"id":"'


@contextlib.contextmanager
def serving() -> Iterator[str]:
    """Runs one in a process of its own.

    Yields:
        Its address, ``host:port``.

    Raises:
        LoadError: it did not start.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs,), daemon=True)
    with without_interrupts():
        process.start()
    theirs.close()
    try:
        try:
            address = ours.recv() if ours.poll(_READY_SECONDS) else None
        except EOFError:
            address = None
        if not address:
            raise LoadError("the endpoint that the client is measured against did not start")
        yield str(address)
    finally:
        ours.close()
        process.terminate()
        process.join()


def reply() -> bytes:
    """What it answers, in the form of a router's reply, with ``wire.ID_PLACE`` for the id."""
    outputs = [
        {"name": name, "datatype": dtype, "shape": [1, width], "parameters": {"binary_data_size": size}}
        for name, dtype, width, size in (
            ("Y", "FP32", 4, 16),
            (QUEUE_OUTPUT, "INT64", 1, 8),
            (EXECUTOR_OUTPUT, "INT64", 1, 8),
        )
    ]
    document = {"id": wire.ID_PLACE.decode(), "model_name": "idle", "model_version": "1", "outputs": outputs}
    header = json.dumps(document, separators=(",", ":")).encode()
    body = header + bytes(32)
    head = (
        "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n"
        f"Inference-Header-Content-Length: {len(header)}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def _serve(pipe: Connection) -> None:
    """Body of the process: answers until it is ended."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
    listener.setblocking(False)
    epoll = select.epoll()
    epoll.register(listener, select.EPOLLIN)
    open_ones: dict[int, socket.socket] = {}
    left: dict[int, bytearray] = {}
    before, _, after = reply().partition(wire.ID_PLACE)
    host, port = listener.getsockname()
    pipe.send(f"{host}:{port}")
    while True:
        for descriptor, _events in epoll.poll(-1, 64):
            if descriptor == listener.fileno():
                with contextlib.suppress(BlockingIOError):
                    connection, _ = listener.accept()
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    open_ones[connection.fileno()] = connection
                    epoll.register(connection, select.EPOLLIN)
                continue
            connection = open_ones[descriptor]
            try:
                data: bytes | bytearray = connection.recv(_CHUNK)
            except OSError:
                data = b""
            if not data:
                del open_ones[descriptor]
                left.pop(descriptor, None)
                connection.close()
                continue
            if descriptor in left:
                left[descriptor] += data
                data = left[descriptor]
            end = data.find(b"\r\n\r\n")
            if end < 0 or len(data) < end + 4 + _body_length(data[:end]):
                left.setdefault(descriptor, bytearray(data))
                continue
            left.pop(descriptor, None)
            at = data.find(_ID_MARK, end) + len(_ID_MARK)
            with contextlib.suppress(OSError):
                connection.sendall(before + data[at : at + len(wire.ID_PLACE)] + after)


def _body_length(head: bytes | bytearray) -> int:
    """The last of our client's headers is its body's length."""
    return int(head.rpartition(b":")[2])
