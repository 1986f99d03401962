# SPDX-License-Identifier: Apache-2.0
"""Triton's HTTP inference protocol as bytes: whole requests in, replies out.

Law: no sockets and no clock. Requests are encoded once before a measurement starts, so that sending one costs a single
system call. The form is that of the KServe protocol with Triton's binary tensor extension.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from priority_router.interface import CLASS_TENSOR

Tensor = NDArray[Any]

_DTYPES = {
    "bool": "BOOL",
    "int8": "INT8",
    "int16": "INT16",
    "int32": "INT32",
    "int64": "INT64",
    "uint8": "UINT8",
    "uint16": "UINT16",
    "uint32": "UINT32",
    "uint64": "UINT64",
    "float16": "FP16",
    "float32": "FP32",
    "float64": "FP64",
}


class ReplyError(Exception):
    """The bytes are not a reply of Triton's HTTP front end."""


class Outcome(enum.IntEnum):
    """How a scheduled request ended, as its client saw it; the value is its code in a ledger."""

    SUCCESS = 0
    TIMEOUT = 1
    QUEUE_FULL = 2
    PREDICTED_LATE = 3
    CANCELLED = 4
    OTHER = 5
    UNANSWERED = 6

    @property
    def label(self) -> str:
        """The name used in reports."""
        return self.name.lower()


# Where an error text of Triton or of the router names its outcome; the first that fits counts. Several outcomes share
# a status, and some have two, so the status alone cannot tell.
_TEXTS = (
    ("predicted to wait", Outcome.PREDICTED_LATE),
    ("Exceeds maximum queue size", Outcome.QUEUE_FULL),
    ("max_queue_size", Outcome.QUEUE_FULL),
    ("max_queue_bytes", Outcome.QUEUE_FULL),
    ("Request timeout expired", Outcome.TIMEOUT),
    ("queue timeout", Outcome.TIMEOUT),
    ("cancelled", Outcome.CANCELLED),
)


@dataclass(frozen=True, slots=True)
class Route:
    """Where requests of one class go and how they are marked.

    Attributes:
        model: name of the model that is called.
        parameters: request parameters, such as ``{"priority": 1}``.
        class_name: value of the ``CLASS`` tensor in every row; None sends no such tensor.
        batched: tensors have a batch axis; decides the shape of ``CLASS``.
    """

    model: str
    parameters: Mapping[str, str | int] | None = None
    class_name: str | None = None
    batched: bool = True


ID_PLACE: Final = b"0" * 16
"""Stands for the id in an encoded request that is to have one."""


def encode(
    host: str, route: Route, inputs: Mapping[str, Tensor], outputs: Sequence[str] = (), *, identified: bool = False
) -> bytes:
    """Encodes one inference request with all tensors in binary form.

    Args:
        host: value of the Host header, ``name:port``.
        route: model and marking.
        inputs: arrays as the model takes them; dtype object or str is sent as BYTES.
        outputs: names to ask for; empty asks for whatever the model returns.
        identified: the request has an id, for which ``ID_PLACE`` stands once.

    Returns:
        The complete HTTP/1.1 request.

    Raises:
        TypeError: Triton knows no type for an array's dtype.
    """
    described, payload = [], []
    for name, array in tensors(route, inputs).items():
        dtype, data = tensor_bytes(name, array)
        payload.append(data)
        described.append(
            {
                "name": name,
                "shape": list(array.shape),
                "datatype": dtype,
                "parameters": {"binary_data_size": len(data)},
            }
        )
    document: dict[str, object] = {"id": ID_PLACE.decode()} if identified else {}
    document["inputs"] = described
    if outputs:
        document["outputs"] = [{"name": name, "parameters": {"binary_data": True}} for name in outputs]
        document["parameters"] = dict(route.parameters or {})
    else:
        document["parameters"] = {**(route.parameters or {}), "binary_data_output": True}
    header = json.dumps(document, separators=(",", ":")).encode()
    body = header + b"".join(payload)
    head = (
        f"POST /v2/models/{route.model}/infer HTTP/1.1\r\n"
        f"Host: {host}\r\n"
        "Content-Type: application/octet-stream\r\n"
        f"Inference-Header-Content-Length: {len(header)}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def tensors(route: Route, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A request's inputs, the class among them where the route has one."""
    made = dict(inputs)
    if route.class_name is not None:
        rows = len(next(iter(inputs.values()))) if route.batched else 0
        shape = (rows, 1) if route.batched else (1,)
        made[CLASS_TENSOR] = np.full(shape, route.class_name, dtype=object)
    return made


def tensor_bytes(name: str, array: Tensor) -> tuple[str, bytes]:
    """A tensor's type as the protocol spells it, and its binary form.

    Raises:
        TypeError: Triton knows no type for an array's dtype.
    """
    if array.dtype.kind in "OSU":
        items = [item if isinstance(item, bytes) else str(item).encode() for item in array.ravel().tolist()]
        return "BYTES", b"".join(len(item).to_bytes(4, "little") + item for item in items)
    dtype = _DTYPES.get(array.dtype.name)
    if dtype is None:
        raise TypeError(f"input {name!r}: Triton has no type for numpy's {array.dtype}; convert the array first")
    return dtype, np.ascontiguousarray(array).tobytes()


def reply_length(data: bytes | bytearray) -> int | None:
    """Tells how long the reply is that ``data`` begins with.

    Returns:
        Bytes of the whole reply; None while its header is not complete.

    Raises:
        ReplyError: no HTTP/1.1 reply with a Content-Length.
    """
    end = data.find(b"\r\n\r\n")
    if end < 0:
        return None
    head = bytes(data[:end])
    if not head.startswith(b"HTTP/1.1 "):
        raise ReplyError(f"not an HTTP/1.1 reply: {head[:60]!r}")
    length = _header(head, b"content-length")
    if length is None:
        raise ReplyError(f"reply without Content-Length: {head[:60]!r}")
    return end + 4 + length


def _header(head: bytes, name: bytes) -> int | None:
    lowered = head.lower()
    at = lowered.find(b"\r\n" + name + b":")
    if at < 0:
        return None
    return int(lowered[at + len(name) + 3 :].split(b"\r\n", 1)[0])


def status_of(reply: bytes | bytearray) -> int:
    """HTTP status of a complete reply."""
    return int(reply[9:12])


def error_text(reply: bytes | bytearray) -> str:
    """The error text of a complete reply whose status is not 200."""
    body = bytes(reply[reply.find(b"\r\n\r\n") + 4 :])
    try:
        return str(json.loads(body)["error"])
    except (ValueError, KeyError, TypeError):
        return body[:200].decode(errors="replace")


def classify(status: int, text: str) -> Outcome:
    """Names the outcome of a reply by its status and, unless that is 200, its error text."""
    if status == 200:
        return Outcome.SUCCESS
    lowered = text.lower()
    for marker, outcome in _TEXTS:
        if marker.lower() in lowered:
            return outcome
    return Outcome.OTHER


def int64_output(reply: bytes | bytearray, name: str) -> int | None:
    """First value of a binary INT64 output of a complete successful reply; None where the reply has no such output."""
    return identified_int64(reply, name)[1]


def identified_int64(reply: bytes | bytearray, name: str) -> tuple[str, int | None]:
    """The id that a complete successful reply carries, empty without one, and `int64_output`."""
    end = reply.find(b"\r\n\r\n")
    json_length = _header(bytes(reply[:end]), b"inference-header-content-length")
    at = end + 4 + json_length if json_length is not None else len(reply)
    try:
        document = json.loads(bytes(reply[end + 4 : at]))
    except ValueError:
        return "", None
    request_id = str(document.get("id", ""))
    if json_length is None:
        return request_id, None
    for output in document.get("outputs", ()):
        size = output.get("parameters", {}).get("binary_data_size", 0)
        if output["name"] == name:
            value = int.from_bytes(reply[at : at + 8], "little", signed=True) if size >= 8 else None
            return request_id, value
        at += size
    return request_id, None
