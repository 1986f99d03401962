# SPDX-License-Identifier: Apache-2.0
"""The inputs and outputs of a ``model.onnx``, however large its weights are.

Law: what a tensor's description means is the package ``onnx``'s alone. Here the file is only walked, from one field to
the next, so that nodes and weights are passed by unread.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from priority_router.ops.rules.models import OnnxTensors

_GRAPH: Final = 7
"""Number of the field of a ``ModelProto``; those below are of a ``GraphProto``."""

_INITIALIZER: Final = 5
_INPUT: Final = 11
_OUTPUT: Final = 12

_INITIALIZER_NAME: Final = 8
"""Of a ``TensorProto``."""

_NAMES: Final = (
    "FP32",
    "UINT8",
    "INT8",
    "UINT16",
    "INT16",
    "INT32",
    "INT64",
    "STRING",
    "BOOL",
    "FP16",
    "FP64",
    "UINT32",
    "UINT64",
)
_TYPES: Final = {number: f"TYPE_{name}" for number, name in enumerate(_NAMES, 1)}
"""Of ONNX, by number, as Triton names them."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
"""Wire types of protobuf."""


class OnnxError(Exception):
    """The file cannot be read as a model."""


def read(path: Path) -> OnnxTensors:
    """What a model says of its own tensors.

    Tensors of unknown rank, and values that are no tensors, are left out; so are inputs that are weights.

    Args:
        path: the file; its external data is not looked at.

    Raises:
        OnnxError: it is no ONNX model, or cut short.
        OSError: it cannot be read.
        ModuleNotFoundError: the package ``onnx`` is not installed.
    """
    import onnx
    from google.protobuf.message import DecodeError

    with path.open("rb") as file:
        try:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError as error:
            raise OnnxError("it is empty") from error
    with data:
        inputs: dict[str, tuple[int | None, ...]] = {}
        outputs: dict[str, tuple[int | None, ...]] = {}
        types: dict[str, dict[str, str]] = {"input": {}, "output": {}}
        weights = set()
        for number, start, end in _graph(data):
            if number == _INITIALIZER:
                weights |= {data[a:b] for field, a, b in _fields(data, start, end) if field == _INITIALIZER_NAME}
            elif number in (_INPUT, _OUTPUT):
                try:
                    value = onnx.ValueInfoProto.FromString(data[start:end])
                except DecodeError as error:
                    raise OnnxError("the description of a tensor cannot be read") from error
                kind = "input" if number == _INPUT else "output"
                types[kind][value.name] = _TYPES.get(value.type.tensor_type.elem_type, "")
                shape = _shape(value)
                if shape is not None:
                    (inputs if number == _INPUT else outputs)[value.name] = shape
    return OnnxTensors({name: shape for name, shape in inputs.items() if name.encode() not in weights}, outputs, types)


def _shape(value: Any) -> tuple[int | None, ...] | None:
    kind = value.type
    if not kind.HasField("tensor_type") or not kind.tensor_type.HasField("shape"):
        return None
    lengths = (length.dim_value if length.HasField("dim_value") else -1 for length in kind.tensor_type.shape.dim)
    return tuple(length if length >= 0 else None for length in lengths)


def _graph(data: mmap.mmap) -> Iterator[tuple[int, int, int]]:
    graphs = [(start, end) for number, start, end in _fields(data, 0, len(data)) if number == _GRAPH]
    if len(graphs) != 1:
        raise OnnxError("it has no graph")
    yield from _fields(data, *graphs[0])


def _fields(data: mmap.mmap, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Number, start and end of the value of each field that has a length; others are passed."""
    while at < end:
        tag, at = _varint(data, at, end)
        kind = tag & 7
        if kind == _BYTES:
            length, at = _varint(data, at, end)
            if at + length > end:
                raise OnnxError("it is cut short")
            yield tag >> 3, at, at + length
            at += length
        elif kind == _VARINT:
            _, at = _varint(data, at, end)
        elif kind in (_FIXED64, _FIXED32):
            at += 8 if kind == _FIXED64 else 4
        else:
            raise OnnxError("it is no ONNX model")


def _varint(data: mmap.mmap, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise OnnxError("it is cut short")
