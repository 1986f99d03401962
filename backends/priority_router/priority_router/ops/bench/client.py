# SPDX-License-Identifier: Apache-2.0
"""A many-connection HTTP/1.1 client on one epoll loop, and the two ways to drive it.

Law: this is the measured path of a generator process. Everything it does per request is bytes, integers and system
calls; meaning (what a reply says) is worked out by ``wire``.
"""

from __future__ import annotations

import errno
import heapq
import os
import resource
import select
import socket
import time
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from priority_router.core.values import SECOND
from priority_router.ops.bench import wire

_CHUNK = 1 << 16
# Sends between two looks at the replies: enough to catch up after a late wake-up, few enough not to delay time stamps.
_SENDS_PER_TURN = 16

OnEnd = Callable[[int, int, bytes, str], None]
"""Called once per request with its index, ns when it ended, the reply, and, where there is no reply, why."""

Patience = Callable[[int], int]
"""By the index of a request ns after which its caller gives it up; 0: never."""

GAVE_UP: Final = "cancelled: its caller gave up"
"""Why such a request has no reply."""


class _Connection:
    __slots__ = ("buffer", "index", "length", "pending", "sock")

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.index = -1
        self.pending: memoryview | None = None
        self.buffer = bytearray()
        self.length: int | None = None


class Client:
    """Keep-alive connections to one server, one request at a time on each, opened as they are needed.

    Attributes:
        sent: [n] ns when the last byte of request i went to the kernel, -1 before; shared with the caller.
        opened: connections opened so far.
    """

    def __init__(self, host: str, port: int, sent: list[int], on_end: OnEnd, patience: Patience | None = None) -> None:
        self.sent = sent
        self.opened = 0
        self._on_end = on_end
        self._patience = patience
        self._leaving: list[tuple[int, int, _Connection]] = []
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        self._family, self._address = found[0], found[4]
        self._epoll = select.epoll()
        self._idle: list[_Connection] = []
        self._all: dict[int, _Connection] = {}

    def send(self, index: int, request: bytes) -> None:
        """Sends a request on an idle connection or a new one; never blocks."""
        if self._idle:
            connection = self._idle.pop()
        else:
            try:
                connection = self._open()
            except OSError as error:
                self._on_end(index, time.monotonic_ns(), b"", f"cannot open a connection: {error.strerror}")
                return
        connection.index = index
        if self._patience is not None and (patience := self._patience(index)):
            heapq.heappush(self._leaving, (time.monotonic_ns() + patience, index, connection))
        try:
            count = connection.sock.send(request)
        except BlockingIOError:
            count = 0
        except OSError as error:
            self._drop(connection, f"sending failed: {error.strerror}")
            return
        if count == len(request):
            self.sent[index] = time.monotonic_ns()
        else:
            connection.pending = memoryview(request)[count:]
            self._epoll.modify(connection.sock, select.EPOLLIN | select.EPOLLOUT)

    def turn(self, until: int) -> None:
        """Waits for replies until the monotonic time ``until`` at most, and handles those that are there.

        epoll's own timeout counts in milliseconds; select on the epoll descriptor has a finer one.
        """
        if self._leaving:
            until = min(until, self._leaving[0][0])
        left = until - time.monotonic_ns()
        if left > 0:
            select.select((self._epoll,), (), (), left / SECOND)
        for descriptor, events in self._epoll.poll(0, 64):
            connection = self._all[descriptor]
            if events & select.EPOLLOUT:
                self._continue_sending(connection)
            if events & ~select.EPOLLOUT and descriptor in self._all:
                self._receive(connection)
        if self._leaving:
            self._leave(time.monotonic_ns())

    def close(self) -> None:
        """Closes every connection; requests still without a reply are reported to nobody."""
        for connection in self._all.values():
            connection.sock.close()
        self._all.clear()
        self._idle.clear()
        self._epoll.close()

    def _open(self) -> _Connection:
        sock = socket.socket(self._family, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            code = sock.connect_ex(self._address)
            if code not in (0, errno.EINPROGRESS):
                raise OSError(code, os.strerror(code))
            self._epoll.register(sock, select.EPOLLIN)
        except OSError:
            sock.close()
            raise
        connection = _Connection(sock)
        self._all[sock.fileno()] = connection
        self.opened += 1
        return connection

    def _leave(self, now: int) -> None:
        """Closes the connections of requests whose callers have waited long enough."""
        while self._leaving and self._leaving[0][0] <= now:
            _, index, connection = heapq.heappop(self._leaving)
            if connection.index == index:
                self._drop(connection, GAVE_UP)

    def _continue_sending(self, connection: _Connection) -> None:
        pending = connection.pending
        if pending is None:
            return
        try:
            count = connection.sock.send(pending)
        except BlockingIOError:
            return
        except OSError as error:
            self._drop(connection, f"sending failed: {error.strerror}")
            return
        connection.pending = pending[count:]
        if count == len(pending):
            connection.pending = None
            self.sent[connection.index] = time.monotonic_ns()
            self._epoll.modify(connection.sock, select.EPOLLIN)

    def _receive(self, connection: _Connection) -> None:
        try:
            data: bytes | bytearray = connection.sock.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError as error:
            self._drop(connection, f"receiving failed: {error.strerror}")
            return
        now = time.monotonic_ns()
        if not data:
            self._drop(connection, "the server closed the connection")
            return
        if connection.buffer:
            connection.buffer += data
            data = connection.buffer
        if connection.length is None:
            try:
                connection.length = wire.reply_length(data)
            except wire.ReplyError as error:
                self._drop(connection, str(error))
                return
        if connection.length is None or len(data) < connection.length:
            if data is not connection.buffer:
                connection.buffer += data
            return
        index, reply = connection.index, bytes(data)
        connection.index, connection.length = -1, None
        connection.buffer = bytearray()
        if connection.pending is None:
            self._idle.append(connection)
        else:  # answered before it was all sent: what is left would be taken for the next request
            del self._all[connection.sock.fileno()]
            connection.sock.close()
        self._on_end(index, now, reply, "")

    def _drop(self, connection: _Connection, reason: str) -> None:
        """Forgets a broken connection and, where it carried a request, ends that."""
        index, connection.index = connection.index, -1
        del self._all[connection.sock.fileno()]
        if index < 0:
            self._idle.remove(connection)
        connection.sock.close()
        if index >= 0:
            self._on_end(index, time.monotonic_ns(), b"", reason)


def raise_descriptor_limit() -> None:
    """Lets this process open as many connections as the system allows it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class AnyClient(Protocol):
    """What drives a client needs of it."""

    sent: list[int]

    def send(self, index: int, request: bytes) -> None:
        """Sends a request; never blocks."""

    def turn(self, until: int) -> None:
        """Waits for replies until then at most, and handles those that are there."""


def open_loop(
    client: AnyClient, due: Sequence[int], requests: Sequence[bytes], end: int, settled: Callable[[int], bool]
) -> None:
    """Sends every request when it is due, however many are unanswered.

    Args:
        client: a fresh client.
        due: [n] monotonic ns, ascending.
        requests: [n] encoded requests.
        end: monotonic ns when arrivals end.
        settled: asked with the time, after ``end``, whether to stop waiting for replies.
    """
    following, total = 0, len(due)
    while True:
        now = time.monotonic_ns()
        limit = min(following + _SENDS_PER_TURN, total)
        while following < limit and due[following] <= now:
            client.send(following, requests[following])
            following += 1
        if following == total and now >= end and settled(now):
            return
        wake = due[following] if following < total else max(end, now + SECOND // 100)
        client.turn(wake)


def closed_loop(
    client: AnyClient, in_flight: int, request: Callable[[int], bytes], end: int, give_up: int, ended: list[int]
) -> None:
    """Keeps ``in_flight`` requests unanswered until ``end``, then waits for the rest of them.

    Args:
        client: a fresh client, whose ``on_end`` appends the request's index to ``ended``.
        in_flight: requests at a time.
        request: encodes the next one, by its index.
        end: monotonic ns after which none is sent.
        give_up: monotonic ns when to stop waiting for replies.
        ended: indices of requests that ended since the last look; emptied here.
    """
    started, finished = 0, 0
    for _ in range(in_flight):
        client.sent.append(-1)
        client.send(started, request(started))
        started += 1
    now = time.monotonic_ns()
    while finished < started and now < give_up:
        client.turn(now + SECOND // 100)
        finished += len(ended)
        now = time.monotonic_ns()
        more = len(ended) if now < end else 0
        ended.clear()
        for _ in range(more):
            client.sent.append(-1)
            client.send(started, request(started))
            started += 1
