# SPDX-License-Identifier: Apache-2.0
"""Small clients of a recording executor or a router in front of one, over gRPC and HTTP."""

from __future__ import annotations

import concurrent.futures
import contextlib
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tritonclient.grpc
import tritonclient.http
from tritonclient.utils import InferenceServerException

Array = np.ndarray[Any, Any]

DEFAULT_TIMEOUT_SECONDS = 120.0
"""Only what never comes takes so long, also on a busy machine."""

_DTYPES = {
    np.dtype(np.float32): "FP32",
    np.dtype(np.int64): "INT64",
    np.dtype(np.int32): "INT32",
    np.dtype(object): "BYTES",
}


@dataclass(frozen=True)
class Call:
    """One request.

    Attributes:
        tag: put into every row's TAG; None sends no TAG.
        rows: length of the batch axis; 0 = the model has none.
        traffic_class: sent as the CLASS tensor.
        class_parameter: sent as the request parameter `class`.
        inputs: further tensors, or others in place of X, TAG and CLASS.
        without: names of tensors left out.
        outputs: names asked for; None = all.
        timeout_us: the request's own queue timeout.
        priority: the request's priority at the model that it is sent to.
        parameters: further request parameters.
        request_id: the request's id.
    """

    tag: int | None = None
    rows: int = 1
    traffic_class: str | None = None
    class_parameter: str | None = None
    inputs: Mapping[str, Array] = field(default_factory=dict)
    without: Sequence[str] = ()
    outputs: Sequence[str] | None = None
    timeout_us: int | None = None
    priority: int = 0
    parameters: Mapping[str, Any] = field(default_factory=dict)
    request_id: str = ""

    def tensors(self) -> dict[str, Array]:
        shape = (self.rows,) if self.rows else ()
        made: dict[str, Array] = {"X": np.full((*shape, 4), self.tag or 0, np.float32)}
        if self.tag is not None:
            made["TAG"] = np.full((*shape, 1), self.tag, np.int64)
        if self.traffic_class is not None:
            made["CLASS"] = np.full((*shape, 1), self.traffic_class.encode(), object)
        made.update(self.inputs)
        return {name: value for name, value in made.items() if name not in self.without}

    def all_parameters(self) -> dict[str, Any] | None:
        own = {"class": self.class_parameter} if self.class_parameter is not None else {}
        return {**own, **self.parameters} or None


@dataclass(frozen=True)
class Reply:
    """What came back.

    Attributes:
        outputs: tensors by name; empty after an error.
        code: ``OK``, or the name of the status: gRPC's (``UNAVAILABLE``), or HTTP's number.
        message: the error's text.
        sent: time.monotonic seconds at sending.
        answered: time.monotonic seconds at the answer.
    """

    outputs: dict[str, Array]
    code: str
    message: str
    sent: float
    answered: float

    @property
    def ok(self) -> bool:
        return self.code == "OK"

    @property
    def seconds(self) -> float:
        return self.answered - self.sent


class Client:
    """Sends calls over ``grpc`` or ``http``; usable from several threads."""

    def __init__(self, address: str, protocol: str = "grpc", concurrency: int = 32) -> None:
        self._address = address
        self._module = tritonclient.grpc if protocol == "grpc" else tritonclient.http
        self._grpc = tritonclient.grpc.InferenceServerClient(address) if protocol == "grpc" else None
        self._pool = concurrent.futures.ThreadPoolExecutor(concurrency)

    def infer(self, model: str, call: Call, timeout: float = DEFAULT_TIMEOUT_SECONDS) -> Reply:
        """Sends one call and waits; an error becomes a reply, too."""
        sent = time.monotonic()
        try:
            result = self._infer(model, call, timeout)
        except InferenceServerException as error:
            status = (error.status() or "").removeprefix("StatusCode.")
            return Reply({}, status, error.message() or "", sent, time.monotonic())
        answered = time.monotonic()
        response = result.get_response()
        outputs = response["outputs"] if isinstance(response, dict) else response.outputs
        names = [output["name"] if isinstance(output, dict) else output.name for output in outputs]
        return Reply({name: result.as_numpy(name) for name in names}, "OK", "", sent, answered)

    def send(self, model: str, call: Call, timeout: float = DEFAULT_TIMEOUT_SECONDS) -> Future[Reply]:
        """Sends one call from a thread of its own and returns at once."""
        return self._pool.submit(self.infer, model, call, timeout)

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)
        if self._grpc is not None:
            self._grpc.close()

    def inputs(self, call: Call) -> list[Any]:
        """The call's tensors as this protocol's client wants them."""
        made = []
        for name, value in call.tensors().items():
            tensor = self._module.InferInput(name, list(value.shape), _DTYPES[value.dtype])
            tensor.set_data_from_numpy(value)
            made.append(tensor)
        return made

    def _infer(self, model: str, call: Call, timeout: float) -> Any:
        options: dict[str, Any] = {
            "request_id": call.request_id,
            "priority": call.priority,
            "timeout": call.timeout_us,
            "parameters": call.all_parameters(),
        }
        if call.outputs is not None:
            options["outputs"] = [self._module.InferRequestedOutput(name) for name in call.outputs]
        if self._grpc is not None:
            return self._grpc.infer(model, self.inputs(call), client_timeout=timeout, **options)
        # The HTTP client is one greenlet's: each call gets its own.
        with tritonclient.http.InferenceServerClient(
            self._address, connection_timeout=timeout, network_timeout=timeout
        ) as own:
            return own.infer(model, self.inputs(call), **options)


@contextlib.contextmanager
def client(address: str, protocol: str = "grpc", concurrency: int = 32) -> Iterator[Client]:
    """A client that is closed at the end of the block, after its calls have been answered."""
    made = Client(address, protocol, concurrency)
    try:
        yield made
    finally:
        made.close()


def metrics(address: str) -> dict[str, float]:
    """Every sample of a server's metrics page: ``name{labels}`` to value."""
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=DEFAULT_TIMEOUT_SECONDS) as page:
        lines = page.read().decode().splitlines()
    samples = (line.rpartition(" ") for line in lines if line and not line.startswith("#"))
    return {name: float(value) for name, _, value in samples}


def router_metric(address: str, name: str, model: str = "router", **labels: str) -> float:
    """One sample of a router on a server's metrics page, by its name without ``priority_router_``."""
    text = ",".join(f'{key}="{value}"' for key, value in sorted({"model": model, **labels}.items()))
    return metrics(address)[f"priority_router_{name}{{{text}}}"]


def held_by_router(address: str, model: str = "router") -> float:
    """Requests that wait in a router, and the rows that it has sent: what it holds, where each request is one row."""
    prefixes = tuple(f"priority_router_{name}{{" for name in ("queue_size", "in_flight_rows"))
    samples = metrics(address).items()
    return sum(value for name, value in samples if name.startswith(prefixes) and f'model="{model}"' in name)


def pending(address: str, model: str) -> float:
    """Requests in Triton's own queue of a model: those that are being executed are not among them."""
    return metrics(address).get(f'nv_inference_pending_request_count{{model="{model}",version="1"}}', 0)
