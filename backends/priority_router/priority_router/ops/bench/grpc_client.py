# SPDX-License-Identifier: Apache-2.0
"""A gRPC client with the face of ``client.Client``: any number of requests at a time, replies handled in one thread.

Law: as there, meaning is worked out elsewhere. Replies are stamped in the thread in which they come.
"""

from __future__ import annotations

import queue
import time

import grpc

from priority_router.core.values import SECOND
from priority_router.ops.bench.client import GAVE_UP, OnEnd, Patience
from priority_router.ops.bench.grpc_wire import OPTIONS, SERVICE


class GrpcClient:
    """One channel to a server.

    Attributes:
        sent: [n] ns when request i was handed to gRPC, -1 before; shared with the caller.
        opened: channels opened.
    """

    def __init__(self, address: str, sent: list[int], on_end: OnEnd, patience: Patience | None = None) -> None:
        self.sent = sent
        self.opened = 1
        self._on_end = on_end
        self._patience = patience
        self._channel = grpc.insecure_channel(address, options=OPTIONS)
        self._infer = self._channel.unary_unary(f"{SERVICE}ModelInfer")
        self._ended: queue.SimpleQueue[tuple[int, int, grpc.Future]] = queue.SimpleQueue()

    def send(self, index: int, request: bytes) -> None:
        """Sends a request; never blocks."""
        patience = self._patience(index) if self._patience is not None else 0
        future = self._infer.future(request, timeout=patience / SECOND or None)
        self.sent[index] = time.monotonic_ns()
        future.add_done_callback(lambda done: self._ended.put((index, time.monotonic_ns(), done)))

    def turn(self, until: int) -> None:
        """Waits for replies until the monotonic time ``until`` at most, and handles those that are there."""
        left = until - time.monotonic_ns()
        try:
            ended = self._ended.get(timeout=left / SECOND) if left > 0 else self._ended.get_nowait()
            while True:
                self._hand_over(*ended)
                ended = self._ended.get_nowait()
        except queue.Empty:
            return

    def close(self) -> None:
        """Ends the channel; requests still without a reply are reported to nobody."""
        self._channel.close()

    def _hand_over(self, index: int, now: int, done: grpc.Future) -> None:
        error = done.exception() if not done.cancelled() else None
        if error is None and not done.cancelled():
            self._on_end(index, now, done.result(), "")
            return
        if isinstance(error, grpc.Call) and error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
            self._on_end(index, now, b"", GAVE_UP)
            return
        code, details = (error.code().name, error.details()) if isinstance(error, grpc.Call) else ("CANCELLED", "")
        self._on_end(index, now, b"", f"{code}: {details}")
