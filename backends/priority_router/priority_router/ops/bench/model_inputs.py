# SPDX-License-Identifier: Apache-2.0
"""Inputs for a model of one's own: from a file in perf_analyzer's ``--input-data`` form, or random by type and shape.

Law: values or a file in, arrays out; nothing is sent here.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np

from priority_router.errors import SetupError
from priority_router.interface import CLASS_TENSOR
from priority_router.ops.bench.wire import Tensor

RANDOM_INPUTS: Final = 8
"""Different requests where they are random."""

_LARGEST_RANDOM: Final = 100
"""Of random whole numbers: most are an index into something, and small ones exist in it."""

_DTYPES: Final[Mapping[str, Any]] = {
    "TYPE_BOOL": np.bool_,
    "TYPE_UINT8": np.uint8,
    "TYPE_UINT16": np.uint16,
    "TYPE_UINT32": np.uint32,
    "TYPE_UINT64": np.uint64,
    "TYPE_INT8": np.int8,
    "TYPE_INT16": np.int16,
    "TYPE_INT32": np.int32,
    "TYPE_INT64": np.int64,
    "TYPE_FP16": np.float16,
    "TYPE_FP32": np.float32,
    "TYPE_FP64": np.float64,
    "TYPE_STRING": np.object_,
}


class InputError(SetupError):
    """Inputs cannot be made; the text says of what, and what to write."""


@dataclass(frozen=True, slots=True)
class Input:
    """One input of a model.

    Attributes:
        name: its name.
        dtype: as a configuration spells it, such as ``TYPE_FP32``.
        dims: without the batch axis; -1 where the length is free.
        optional: requests may leave it out.
    """

    name: str
    dtype: str
    dims: tuple[int, ...]
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Inputs:
    """What requests carry, as a `traffic.Payloads`.

    Attributes:
        rows: the inputs of each single row, at least one.
        batched: they get a batch axis.
    """

    rows: Sequence[Mapping[str, Tensor]]
    batched: bool

    def __call__(self, rows: int) -> list[Mapping[str, Tensor]]:
        """Requests of so many rows: one beginning at each row, with those that follow it and have its shapes."""
        if not self.batched:
            return list(self.rows)
        return [self._stacked(first, rows) for first in range(len(self.rows))]

    def _stacked(self, first: int, count: int) -> Mapping[str, Tensor]:
        one = self.rows[first]
        shapes = {name: array.shape for name, array in one.items()}
        following = [self.rows[(first + place) % len(self.rows)] for place in range(count)]
        alike = [
            other if {name: array.shape for name, array in other.items()} == shapes else one for other in following
        ]
        return {name: np.stack([other[name] for other in alike]) for name in one}


def of_config(config: Mapping[str, Any]) -> list[Input]:
    """The inputs of a model's configuration, as JSON; those of the class are left out."""
    return [
        Input(
            entry["name"],
            entry["data_type"],
            tuple(int(length) for length in entry["dims"]),
            bool(entry.get("optional")),
        )
        for entry in config.get("input", ())
        if entry["name"] != CLASS_TENSOR
    ]


def chosen(inputs: Sequence[Input], batched: bool, file: Path | None, seed: int) -> Inputs:
    """What ``--input-data`` names; random inputs where it is left out.

    Raises:
        InputError: the file cannot be read or used, or an input has a type without random values.
    """
    if file is None:
        return random(inputs, batched, seed)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--input-data {file}: cannot be read: {error}") from None
    return parse(text, str(file), inputs, batched)


def random(inputs: Sequence[Input], batched: bool, seed: int) -> Inputs:
    """Random values of each required input: 0 to 1, whole numbers to 100, texts of them; a free length is 1.

    Raises:
        InputError: an input has a type without one.
    """
    generator = np.random.default_rng(seed)
    required = [one for one in inputs if not one.optional] or list(inputs)
    return Inputs([{one.name: _random(one, generator) for one in required} for _ in range(RANDOM_INPUTS)], batched)


def _random(one: Input, generator: np.random.Generator) -> Tensor:
    dtype = _dtype(one)
    shape = tuple(max(1, length) for length in one.dims)
    if one.dtype == "TYPE_STRING":
        return np.array(
            [str(value) for value in generator.integers(_LARGEST_RANDOM, size=math.prod(shape))], object
        ).reshape(shape)
    if np.issubdtype(dtype, np.floating):
        return generator.random(shape).astype(dtype)
    return generator.integers(2 if dtype is np.bool_ else _LARGEST_RANDOM, size=shape).astype(dtype)


def _dtype(one: Input) -> Any:
    if one.dtype not in _DTYPES:
        raise InputError(f"input {one.name}: no values of {one.dtype} can be made; leave it out, or use another model")
    return _DTYPES[one.dtype]


def parse(text: str, source: str, inputs: Sequence[Input], batched: bool) -> Inputs:
    """Reads a file in perf_analyzer's form.

    Args:
        text: ``{"data": [{"NAME": values}, ...]}``; values are a list, ``{"content": list, "shape": list}`` or
            ``{"b64": text, "shape": list}``. Shapes are without the batch axis. Lists within ``data``, which stand for
            sequences there, are taken one after the other.
        source: its name, for errors.
        inputs: of the model.
        batched: requests have a batch axis.

    Raises:
        InputError: it cannot be used.
    """
    try:
        document = json.loads(text)
    except ValueError as error:
        raise InputError(f"{source}: not JSON ({error})") from None
    if not isinstance(document, dict) or not isinstance(document.get("data"), list):
        raise InputError(f'{source}: write {{"data": [...]}}, one object for each request')
    entries: list[Any] = []
    for one in document["data"]:
        entries += one if isinstance(one, list) else [one]
    reader = _Reader(source, {one.name: one for one in inputs})
    rows = [reader.row(f"data[{place}]", entry) for place, entry in enumerate(entries)]
    if not rows:
        raise InputError(f"{source}: data is empty; write at least one request")
    return Inputs(rows, batched)


class _Reader:
    def __init__(self, source: str, inputs: Mapping[str, Input]) -> None:
        self._source = source
        self._inputs = inputs

    def row(self, place: str, entry: Any) -> dict[str, Tensor]:
        if not isinstance(entry, dict):
            self._refuse(place, 'write an object, such as {"NAME": [1, 2]}')
        if unknown := sorted(set(entry) - set(self._inputs)):
            self._refuse(f"{place}.{unknown[0]}", f"the model has no such input; it has {', '.join(self._inputs)}")
        if missing := [name for name, one in self._inputs.items() if not one.optional and name not in entry]:
            self._refuse(place, f"it lacks the input {missing[0]}")
        return {name: self._array(f"{place}.{name}", self._inputs[name], value) for name, value in entry.items()}

    def _array(self, place: str, one: Input, value: Any) -> Tensor:
        given = value if isinstance(value, dict) else {"content": value}
        raw = self._bytes(place, given["b64"]) if "b64" in given else None
        shape = self._shape(place, one, given, value)
        count = math.prod(shape)
        dtype = _dtype(one)
        if raw is not None:
            if one.dtype == "TYPE_STRING":
                return np.array([raw] * count, dtype=object).reshape(shape)
            if len(raw) != count * np.dtype(dtype).itemsize:
                self._refuse(place, f"its {len(raw)} bytes are not those of {count} values of {one.dtype}")
            return np.frombuffer(raw, dtype=dtype).reshape(shape)
        try:
            found = np.array(_flat(given.get("content")), dtype=dtype)
        except (TypeError, ValueError, OverflowError):
            self._refuse(place, f"its values are not those of {one.dtype}")
        if found.size != count:
            self._refuse(place, f"it has {found.size} values, and its shape {list(shape)} takes {count}")
        return found.reshape(shape)

    def _shape(self, place: str, one: Input, given: Mapping[str, Any], value: Any) -> tuple[int, ...]:
        shape = given.get("shape")
        if shape is None:
            free = [length for length in one.dims if length < 0]
            if not free:
                return one.dims
            if len(one.dims) == 1 and "b64" not in given:
                return (len(_flat(given.get("content", value))),)
            self._refuse(place, "the model leaves its shape open; write an object with content and shape")
        if not isinstance(shape, list) or not all(isinstance(length, int) and length >= 0 for length in shape):
            self._refuse(f"{place}.shape", "write a list of lengths, without the batch axis")
        fits = len(shape) == len(one.dims) and all(
            wanted in (-1, length) for wanted, length in zip(one.dims, shape, strict=True)
        )
        if not fits:
            self._refuse(f"{place}.shape", f"it is {shape}, and the model takes {list(one.dims)}")
        return tuple(shape)

    def _bytes(self, place: str, text: object) -> bytes:
        try:
            return base64.b64decode(text if isinstance(text, str) else "*", validate=True)
        except (binascii.Error, ValueError):
            self._refuse(f"{place}.b64", "write base64")

    def _refuse(self, what: str, remedy: str) -> NoReturn:
        raise InputError(f"{self._source}: {what}: {remedy}")


def _flat(value: Any) -> list[Any]:
    if not isinstance(value, list):
        return [value]
    return [item for one in value for item in (_flat(one) if isinstance(one, list) else [one])]
