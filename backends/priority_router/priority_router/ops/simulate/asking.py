# SPDX-License-Identifier: Apache-2.0
"""One model of a running server, over HTTP or gRPC: its configuration, its counters, and answers with their times.

gRPC needs the package tritonclient, which is imported where it is used.
"""

from __future__ import annotations

import http.client
import queue
import time
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np

from priority_router.core.values import SECOND
from priority_router.errors import SetupError
from priority_router.interface import CLASS_TENSOR, EXECUTOR_OUTPUT, QUEUE_OUTPUT
from priority_router.ops import http_json
from priority_router.ops.bench import wire
from priority_router.ops.bench.client import Client, open_loop
from priority_router.ops.simulate.counted import Counters, Page
from priority_router.ops.simulate.observed import Reply

_TIMEOUT_SECONDS: Final = 60.0
_MICROSECOND: Final = 1_000

Inputs = Mapping[str, wire.Tensor]


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """A request to a router.

    Attributes:
        model: the router.
        inputs: by name.
        class_name: class to ask as; None is the policy's default.
        batched: tensors have a batch axis.
    """

    model: str
    inputs: Inputs
    class_name: str | None = None
    batched: bool = True

    @property
    def rows(self) -> int:
        """Length of the batch axis, 1 where there is none."""
        return len(next(iter(self.inputs.values()))) if self.batched else 1


class Server(Protocol):
    """A server, for one thread."""

    def config(self, model: str) -> dict[str, Any]:
        """A model's configuration, as JSON with the names of ``config.pbtxt``."""

    def counters(self, model: str) -> Counters:
        """What it has counted of a model."""

    def ask(self, question: Question) -> Reply:
        """Asks a router and waits for its answer."""

    def many(self, question: Question, due: Sequence[int]) -> list[Reply]:
        """Asks the same again and again, at times in ns from now, answered or not; those answered, in any order."""

    def close(self) -> None:
        """Ends the connection."""


def connect(url: str) -> Server:
    """A connection of one's own to a server.

    Raises:
        SetupError: the address is none.
    """
    parts = urllib.parse.urlsplit(url)
    try:
        usable = parts.scheme in ("http", "grpc") and parts.hostname and parts.port
    except ValueError:
        usable = None
    if not usable:
        raise SetupError(f"--url {url}: write http://HOST:PORT or grpc://HOST:PORT")
    return _Http(url, parts) if parts.scheme == "http" else _Grpc(url, parts.netloc)


def page(url: str, model: str) -> Page:
    """What the metrics of a router say of its own ways.

    Args:
        url: of the server's metrics.
        model: the router.

    Raises:
        SetupError: there is no such page.
    """
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT_SECONDS) as response:
            return Page.of(response.read().decode(errors="replace"), model)
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise SetupError(
            f"--metrics-url {url}: {error}; write the address of the server's metrics, such as "
            "http://127.0.0.1:8002/metrics"
        ) from error


def _reply(url: str, rows: int, sent: int, done: int, queue_us: int | None, executor_us: int | None) -> Reply:
    if queue_us is None or executor_us is None:
        raise SetupError(
            f"{url}: the answer has no {QUEUE_OUTPUT} and {EXECUTOR_OUTPUT}; name a router with --model, whose "
            "config.pbtxt has both outputs"
        )
    return Reply(rows, sent, done, queue_us * _MICROSECOND, executor_us * _MICROSECOND)


class _Http:
    def __init__(self, url: str, parts: urllib.parse.SplitResult) -> None:
        self._url = url
        self._parts = parts
        self._connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_TIMEOUT_SECONDS)

    def config(self, model: str) -> dict[str, Any]:
        found: dict[str, Any] = self._get(model, "config")
        return found

    def counters(self, model: str) -> Counters:
        return Counters.of(self._get(model, "stats")["model_stats"][0])

    def ask(self, question: Question) -> Reply:
        request = self._encoded(question)
        try:
            if self._connection.sock is None:
                self._connection.connect()
            sent = time.monotonic_ns()
            self._connection.sock.sendall(request)
            reply = self._whole_reply()
        except (OSError, wire.ReplyError) as error:
            raise SetupError(f"{self._url}: {error}; is this Triton's HTTP port?") from error
        done = time.monotonic_ns()
        if wire.status_of(reply) != 200:
            raise SetupError(f"{self._url}, model {question.model}: {wire.error_text(reply)}")
        return self._read(question, sent, done, reply)

    def many(self, question: Question, due: Sequence[int]) -> list[Reply]:
        sent = [-1] * len(due)
        done: list[tuple[int, int, bytes]] = []

        def on_end(index: int, now: int, reply: bytes, _reason: str) -> None:
            done.append((index, now, reply))

        client = Client(self._parts.hostname or "", self._parts.port or 0, sent, on_end)
        start = time.monotonic_ns()
        end = start + due[-1]
        give_up = end + round(_TIMEOUT_SECONDS * SECOND)
        requests = [self._encoded(question)] * len(due)
        open_loop(
            client,
            [start + at for at in due],
            requests,
            end,
            lambda now: len(done) == len(due) or now > give_up,
        )
        client.close()
        return [
            self._read(question, sent[index], now, reply)
            for index, now, reply in done
            if reply and wire.status_of(reply) == 200
        ]

    def close(self) -> None:
        self._connection.close()

    def _encoded(self, question: Question) -> bytes:
        route = wire.Route(question.model, None, question.class_name, question.batched)
        return wire.encode(self._parts.netloc, route, question.inputs)

    def _read(self, question: Question, sent: int, done: int, reply: bytes) -> Reply:
        queue_us, executor_us = (wire.int64_output(reply, name) for name in (QUEUE_OUTPUT, EXECUTOR_OUTPUT))
        return _reply(self._url, question.rows, sent, done, queue_us, executor_us)

    def _whole_reply(self) -> bytes:
        data = bytearray()
        while True:
            more = self._connection.sock.recv(1 << 18)
            if not more:
                raise wire.ReplyError("the connection was closed before the answer")
            data += more
            length = wire.reply_length(data)
            if length is not None and len(data) >= length:
                return bytes(data)

    def _get(self, model: str, what: str) -> Any:
        path = f"/v2/models/{urllib.parse.quote(model, safe='')}/{what}"
        return http_json.get(self._connection, path, SetupError)


class _Grpc:
    def __init__(self, url: str, address: str) -> None:
        import tritonclient.grpc
        from tritonclient.utils import InferenceServerException, np_to_triton_dtype

        self._url = url
        self._package = tritonclient.grpc
        self._error = InferenceServerException
        self._type_of = np_to_triton_dtype
        channel = [
            ("grpc.enable_http_proxy", 0),
            ("grpc.max_send_message_length", -1),
            ("grpc.max_receive_message_length", -1),
        ]
        self._client = tritonclient.grpc.InferenceServerClient(address, channel_args=channel)

    def config(self, model: str) -> dict[str, Any]:
        found: dict[str, Any] = self._told(
            model, lambda: self._client.get_model_config(model, as_json=True, client_timeout=_TIMEOUT_SECONDS)
        )["config"]
        return found

    def counters(self, model: str) -> Counters:
        found = self._told(
            model,
            lambda: self._client.get_inference_statistics(model, as_json=True, client_timeout=_TIMEOUT_SECONDS),
        )
        return Counters.of(found["model_stats"][0])

    def ask(self, question: Question) -> Reply:
        inputs = self._inputs(question)
        sent = time.monotonic_ns()
        result = self._told(
            question.model, lambda: self._client.infer(question.model, inputs, client_timeout=_TIMEOUT_SECONDS)
        )
        return self._read(question, sent, time.monotonic_ns(), result)

    def many(self, question: Question, due: Sequence[int]) -> list[Reply]:
        inputs = self._inputs(question)
        done: queue.SimpleQueue[tuple[int, int, Any]] = queue.SimpleQueue()

        def begin(at: int) -> None:
            def ended(result: Any, error: Any) -> None:
                done.put((at, time.monotonic_ns(), None if error is not None else result))

            self._client.async_infer(question.model, inputs, ended, client_timeout=_TIMEOUT_SECONDS)

        start = time.monotonic_ns()
        for offset in due:
            time.sleep(max(0, start + offset - time.monotonic_ns()) / SECOND)
            begin(time.monotonic_ns())
        replies = [done.get(timeout=2 * _TIMEOUT_SECONDS) for _ in due]
        return [self._read(question, sent, now, result) for sent, now, result in replies if result is not None]

    def close(self) -> None:
        self._client.close()

    def _inputs(self, question: Question) -> list[Any]:
        tensors = dict(question.inputs)
        if question.class_name is not None:
            shape = (question.rows, 1) if question.batched else (1,)
            tensors[CLASS_TENSOR] = np.full(shape, question.class_name, dtype=object)
        made = []
        for name, array in tensors.items():
            made.append(self._package.InferInput(name, list(array.shape), self._type_of(array.dtype)))
            made[-1].set_data_from_numpy(array)
        return made

    def _read(self, question: Question, sent: int, done: int, result: Any) -> Reply:
        values = [result.as_numpy(name) for name in (QUEUE_OUTPUT, EXECUTOR_OUTPUT)]
        queue_us, executor_us = (None if value is None else int(value.ravel()[0]) for value in values)
        return _reply(self._url, question.rows, sent, done, queue_us, executor_us)

    def _told(self, model: str, call: Any) -> Any:
        try:
            return call()
        except self._error as error:
            raise SetupError(f"{self._url}, model {model}: {error.message()}") from error
