# SPDX-License-Identifier: Apache-2.0
"""An HTTP server that answers inference requests as a test scripts it, and counts what it got."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator

Answer = Callable[[int, socket.socket], None]
"""Takes the request's number (from 0, in order of arrival) and the connection to answer on."""


def reply(status: int, body: bytes) -> bytes:
    """A reply in the form of Triton's front end."""
    return (
        f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
    )


OK = reply(200, b'{"outputs":[]}')


class ScriptedServer:
    """Attributes:
    address: ``host:port``.
    received: requests that arrived whole.
    bodies: their bytes, head included.
    """

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.received = 0
        self.bodies: list[bytes] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._open:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self._open.append(connection)
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        data = b""
        with contextlib.suppress(OSError, ValueError):
            while True:
                while (end := data.find(b"\r\n\r\n")) < 0:
                    data += self._more(connection)
                head = data[:end].lower()
                whole = end + 4 + int(head.split(b"\r\ncontent-length: ")[1].split(b"\r\n")[0])
                while len(data) < whole:
                    data += self._more(connection)
                with self._lock:
                    number = self.received
                    self.received += 1
                    self.bodies.append(data[:whole])
                data = data[whole:]
                self._answer(number, connection)

    def _more(self, connection: socket.socket) -> bytes:
        data = connection.recv(1 << 20)
        if not data:
            raise ValueError("closed")
        return data


@contextlib.contextmanager
def serving(answer: Answer) -> Iterator[ScriptedServer]:
    """A running server that ends with the block."""
    server = ScriptedServer(answer)
    try:
        yield server
    finally:
        server.close()


def after(seconds: float, data: bytes) -> Answer:
    """Answers each request with the same bytes after a while, each connection by itself."""

    def answer(_: int, connection: socket.socket) -> None:
        time.sleep(seconds)
        connection.sendall(data)

    return answer
