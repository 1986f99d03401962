# SPDX-License-Identifier: Apache-2.0
"""A question that any model can be asked: its required inputs, filled with zeros, made from the model's configuration.

Law: values in, values out; what carries the question over the wire is elsewhere.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

from priority_router.interface import CLASS_PARAMETER, CLASS_TENSOR, PROBE_PARAMETER
from priority_router.ops.data_types import ITEM_BYTES

_CLASS_ENTRY: Final = (CLASS_TENSOR, "TYPE_STRING")


class Unanswerable(Exception):
    """No question can be made for this model; the text says why."""


@dataclass(frozen=True)
class ZeroTensor:
    """An input of zeros or, where it is one of texts, of one text over and over.

    Attributes:
        name: the input.
        datatype: as the protocol spells it, such as ``FP32`` or ``BYTES``.
        shape: with the batch axis, every length at least 1.
        text: every element of an input of type ``BYTES``.
    """

    name: str
    datatype: str
    shape: tuple[int, ...]
    text: bytes = b""

    @property
    def raw(self) -> bytes:
        """The tensor in the protocol's binary form."""
        item = bytes(ITEM_BYTES[self.datatype])
        if self.datatype == "BYTES":
            item = len(self.text).to_bytes(ITEM_BYTES["BYTES"], "little") + self.text
        return item * math.prod(self.shape)


def zero_inputs(config: Mapping[str, Any], class_name: str | None = None) -> list[ZeroTensor]:
    """The smallest inputs that a model accepts by its configuration.

    Args:
        config: the model's configuration as JSON, with every field named as in ``config.pbtxt``.
        class_name: sent as the input ``CLASS``; None leaves the class to the router.

    Returns:
        One row of every input that is not optional, or of every input where all are optional. Free lengths become 1.

    Raises:
        Unanswerable: an input has no known type, or the model has no input for the class.
    """
    inputs: Sequence[Mapping[str, Any]] = config.get("input") or []
    required = [entry for entry in inputs if not entry.get("optional")]
    # An empty text is no class, so that input is not among those invented.
    asked = required or [entry for entry in inputs if entry.get("name") != CLASS_TENSOR] or inputs
    batch = (1,) if int(config.get("max_batch_size", 0)) > 0 else ()
    made = {tensor.name: tensor for tensor in (_zeros(entry, batch) for entry in asked)}
    if class_name is not None:
        takes_class = [entry for entry in inputs if (entry.get("name"), entry.get("data_type")) == _CLASS_ENTRY]
        if not takes_class:
            raise Unanswerable(f"the model has no input {CLASS_TENSOR}, so it cannot be asked as class {class_name!r}")
        text = class_name.encode(errors="surrogateescape")
        made[CLASS_TENSOR] = replace(_zeros(takes_class[0], batch), text=text)
    return list(made.values())


def zero_inputs_of_metadata(metadata: Mapping[str, Any]) -> list[ZeroTensor]:
    """The smallest inputs that a model's metadata allows: one of each, since they do not say which are optional.

    Args:
        metadata: as the protocol has it, a free length being -1.

    Raises:
        Unanswerable: an input has no known type.
    """
    return [_filled(entry, entry.get("datatype", ""), entry.get("shape", ())) for entry in metadata.get("inputs") or []]


def row_bytes(entries: Iterable[Mapping[str, Any]]) -> int:
    """Bytes of one row of tensors, every free length being 1; of those without a known type 0.

    Args:
        entries: inputs or outputs of a configuration as JSON.
    """
    total = 0
    for entry in entries:
        with contextlib.suppress(Unanswerable):
            made = _zeros(entry, ())
            total += ITEM_BYTES[made.datatype] * math.prod(made.shape)
    return total


def parameters(class_name: str | None, *, live: bool = False) -> dict[str, str | bool]:
    """The request's parameters.

    Args:
        class_name: named in both ways that need no header, whichever of them is read; None leaves it to the router.
        live: only whether the router lives is asked.
    """
    made: dict[str, str | bool] = {} if class_name is None else {CLASS_PARAMETER: class_name}
    return {**made, PROBE_PARAMETER: True} if live else made


def encode(
    inputs: Sequence[ZeroTensor], parameters: Mapping[str, str | bool] = MappingProxyType({})
) -> tuple[bytes, int]:
    """The body of an infer request in the HTTP protocol's binary form.

    Args:
        inputs: of the request.
        parameters: likewise.

    Returns:
        The body, and the length of the JSON at its beginning.
    """
    header = json.dumps(
        {
            "inputs": [
                {
                    "name": tensor.name,
                    "datatype": tensor.datatype,
                    "shape": tensor.shape,
                    "parameters": {"binary_data_size": len(tensor.raw)},
                }
                for tensor in inputs
            ],
            # Some types have no JSON form.
            "parameters": {"binary_data_output": True, **parameters},
        }
    ).encode()
    return header + b"".join(tensor.raw for tensor in inputs), len(header)


def _zeros(entry: Mapping[str, Any], batch: tuple[int, ...]) -> ZeroTensor:
    datatype = str(entry.get("data_type", "")).removeprefix("TYPE_").replace("STRING", "BYTES")
    return _filled(entry, datatype, (*batch, *entry.get("dims", ())))


def _filled(entry: Mapping[str, Any], datatype: str, shape: Iterable[Any]) -> ZeroTensor:
    if datatype not in ITEM_BYTES:
        raise Unanswerable(f"input {entry.get('name')} has type {datatype or 'unknown'}, which probe cannot fill")
    return ZeroTensor(str(entry["name"]), datatype, tuple(max(1, int(length)) for length in shape))
