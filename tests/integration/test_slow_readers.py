# SPDX-License-Identifier: Apache-2.0
"""Callers that do not read their replies, or hardly: nobody else waits for them, and the router is rid of them."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from priority_router.ops.server import Server
from support import clients, hostile
from support.clients import Call, Client, client, router_metric
from support.fleet import eventually
from support.server import running

READERS = 12
"""More than the front ends have threads."""

REPLY_MIB = 8
"""Twice what the kernel keeps for a connection."""

GREETING_BYTES = 600
"""What a connection of either protocol needs to begin, and less than a reply."""

ASKED = Call(inputs={"X": np.full((1, 4), 7, np.float32)})


class Reader:
    """A way to a server that hands back the beginning of what the server says, and the rest once it is opened.

    Attributes:
        address: to call in place of the server's.
    """

    def __init__(self, server: str) -> None:
        host, _, port = server.rpartition(":")
        self._server = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets = [self._listener]
        self._opened = threading.Event()
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def open(self) -> None:
        """Reads on."""
        self._opened.set()

    def close(self) -> None:
        self._opened.set()
        for one in self._sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                ours, _ = self._listener.accept()
                theirs = socket.socket()
                theirs.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                theirs.connect(self._server)
                self._sockets += [ours, theirs]
                threading.Thread(target=self._forth, args=(ours, theirs), daemon=True).start()
                threading.Thread(target=self._back, args=(ours, theirs), daemon=True).start()

    def _forth(self, ours: socket.socket, theirs: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := ours.recv(1 << 16):
                theirs.sendall(data)

    def _back(self, ours: socket.socket, theirs: socket.socket) -> None:
        read = 0
        with contextlib.suppress(OSError):
            while data := theirs.recv(min(1 << 16, GREETING_BYTES - read) if read < GREETING_BYTES else 1 << 16):
                ours.sendall(data)
                read += len(data)
                if read >= GREETING_BYTES:
                    self._opened.wait()


@contextlib.contextmanager
def readers(server: str) -> Iterator[list[Reader]]:
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(contextlib.closing(Reader(server))) for _ in range(READERS)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    repository = tmp_path_factory.mktemp("large") / "models"
    hostile.write_large_answers(repository, REPLY_MIB)
    with running(repository, hooks=False) as started:
        yield started


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_nobody_waits_for_a_caller_that_does_not_read(server: Server, protocol: str) -> None:
    def served() -> float:
        return router_metric(server.metrics, "requests_total", **{"class": "bulk", "outcome": "success"})

    with contextlib.ExitStack() as stack:
        others: list[Client] = [
            stack.enter_context(client(server.http, "http")),
            stack.enter_context(client(server.grpc)),
        ]
        slow = stack.enter_context(readers(getattr(server, protocol)))
        callers = []
        for reader in slow:
            callers.append(stack.enter_context(client(reader.address, protocol)))
            stack.callback(reader.open)  # a client is closed when it has its replies
        before = served()
        waiting = [caller.send("router", ASKED) for caller in callers]
        # The router has handed over what they do not read.
        eventually(lambda: served() == before + READERS)
        for other in others:
            replies = [other.send("router", ASKED) for _ in range(READERS)]
            assert all(reply.result().ok for reply in replies)
        assert not any(reply.done() for reply in waiting), "they have read it all"
        eventually(lambda: clients.held_by_router(server.metrics) == 0)
        for reader in slow:
            reader.open()
        for reply in waiting:
            values = reply.result().outputs["BIG"]
            assert values.nbytes == REPLY_MIB * hostile.MEBIBYTE
            assert (values == 7).all()
