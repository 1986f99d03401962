# SPDX-License-Identifier: Apache-2.0
"""Inputs and outputs as the router declares them: what clients of the executor see, and what a router cannot carry.

Law: pure; entries of a model's configuration in, tensors or a refusal out.

What becomes of an entry's settings: ``dims`` stay and ``reshape`` is dropped, since clients send the dims and Triton
reshapes in front of the executor; ``optional``, ``format`` (clients read it) and ``label_filename`` stay;
``allow_ragged_batch`` is dropped, since the router joins equal shapes only and hands unequal ones over one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from priority_router.errors import SetupError
from priority_router.interface import CLASS_TENSOR, TIMING_OUTPUTS
from priority_router.ops.wrap.texts import pbtxt_string

NOT_CARRIED: Final = {"TYPE_BF16": "BF16, which Python cannot hold", "TYPE_INVALID": "of no type"}
"""Types that no router can pass on."""

_NO_FORMAT: Final = "FORMAT_NONE"
_RESERVED: Final = frozenset((CLASS_TENSOR, *TIMING_OUTPUTS))


@dataclass(frozen=True, slots=True)
class Tensor:
    """One input or output.

    Attributes:
        name: any text.
        data_type: Triton's name of its type.
        dims: without the batch axis; -1: any length.
        optional: requests may leave it out.
        format: of an image, ``FORMAT_NHWC`` or ``FORMAT_NCHW``; empty for others.
        label_filename: of an output with labels, relative to the model's folder; empty for others.
        model_dims: what the model itself sees where it is not ``dims`` (Triton's ``reshape``).
    """

    name: str
    data_type: str
    dims: tuple[int, ...]
    optional: bool = False
    format: str = ""
    label_filename: str = ""
    model_dims: tuple[int, ...] | None = None

    def entry(self) -> str:
        """Its line in a list of ``input`` or ``output``, without ``model_dims``."""
        parts = [
            f"name: {pbtxt_string(self.name)}",
            f"data_type: {self.data_type}",
            *([f"format: {self.format}"] if self.format else []),
            f"dims: [ {', '.join(map(str, self.dims))} ]",
            *(["optional: true"] if self.optional else []),
            *([f"label_filename: {pbtxt_string(self.label_filename)}"] if self.label_filename else []),
        ]
        return f"{{ {' '.join(parts)} }}"


def read(config: Any, kind: str, where: Callable[[int, str], str]) -> list[Tensor]:
    """The inputs or outputs of a configuration, as a router declares them.

    Args:
        config: a ``ModelConfig``.
        kind: ``input`` or ``output``.
        where: ``file:line:column`` of a field of the nth entry.

    Raises:
        SetupError: one that a router cannot carry.
    """
    entries = list(getattr(config, kind))
    tensors = []
    for index, entry in enumerate(entries):
        for field, fault in _faults(kind, entry):
            raise SetupError(f"{where(index, field)}: {kind} {entry.name!r} {fault}")
        data_type = type(config).DESCRIPTOR.fields_by_name[kind].message_type.fields_by_name["data_type"]
        name = data_type.enum_type.values_by_number[entry.data_type].name
        check(kind, entry.name, name, lambda field, index=index: where(index, field))  # type: ignore[misc]
        tensors.append(
            Tensor(
                name=entry.name,
                data_type=name,
                dims=tuple(entry.dims),
                optional=kind == "input" and entry.optional,
                format=_format(entry) if kind == "input" else "",
                label_filename=entry.label_filename if kind == "output" else "",
            )
        )
    return tensors


def check(kind: str, name: str, data_type: str, where: Callable[[str], str]) -> None:
    """Refuses a name or a type that a router cannot have.

    Args:
        kind: ``input`` or ``output``.
        name: of the tensor.
        data_type: Triton's name of its type.
        where: place of a field of it.

    Raises:
        SetupError: with the place and the way out.
    """
    if not name:
        raise SetupError(
            f"{where('name')}: {kind} {name!r} has no name, and Triton does not load the model; write the name that "
            "the model gives it"
        )
    if "\0" in name:
        raise SetupError(
            f"{where('name')}: {kind} {name!r} has a zero byte in its name, at which Triton ends it; give the model's "
            "tensor another name"
        )
    if name in _RESERVED:
        raise SetupError(
            f"{where('name')}: {kind} {name!r} has a name that the router adds itself "
            f"({', '.join(sorted(_RESERVED))}); give the model's tensor another name"
        )
    if data_type in NOT_CARRIED:
        raise SetupError(
            f"{where('data_type')}: {kind} {name!r} is {NOT_CARRIED[data_type]}, so that no router can pass it on; let "
            "the model take and give another type, such as TYPE_FP32"
        )


def _faults(kind: str, entry: Any) -> Iterator[tuple[str, str]]:
    """Field and fault of an entry, with the way out."""
    if entry.is_shape_tensor:
        yield (
            "is_shape_tensor",
            "is a shape tensor: it holds for a whole batch, so that the router cannot join requests that bring their "
            "own; build the engine without it (optimization profiles for the sizes you need), or leave this model "
            "without a router",
        )
    if entry.is_non_linear_format_io:
        yield (
            "is_non_linear_format_io",
            "has a non-linear format: its bytes do not follow from its dims, so that the router cannot cut it into "
            "rows; build the engine with linear inputs and outputs",
        )
    if not entry.dims:
        yield "dims", f"has no dims; write them as a client sends them{'' if kind == 'input' else ' (gets them)'}"
    yield from _wrong_lengths("dims", entry.dims)
    if entry.HasField("reshape"):
        yield from _wrong_lengths("reshape", entry.reshape.shape)
        if _sizes(entry.dims) != _sizes(entry.reshape.shape):
            yield (
                "reshape",
                f"has dims {list(entry.dims)} and a reshape to {list(entry.reshape.shape)}, which holds another number "
                "of elements, and Triton does not load the model; write a shape of the same number, before, between "
                "and behind each -1, or remove reshape",
            )


def _wrong_lengths(field: str, lengths: Sequence[int]) -> Iterator[tuple[str, str]]:
    wrong = [length for length in lengths if length < 1 and length != -1]
    if wrong:
        yield (
            field,
            f"has the length {wrong[0]} in its {field}, and Triton does not load the model; write 1 or more, or -1 for "
            "any length",
        )


def _sizes(lengths: Sequence[int]) -> list[int]:
    """Elements between the dimensions of any length: what a reshape must keep (Triton's ``ValidateIOShape``)."""
    sizes = [1]
    for length in lengths:
        if length == -1:
            sizes.append(1)
        else:
            sizes[-1] *= length
    return sizes


def _format(entry: Any) -> str:
    name: str = entry.Format.Name(entry.format)
    return "" if name == _NO_FORMAT else name


def ragged(config: Any) -> Sequence[str]:
    """Names of the inputs that may have another length in each row of a batch."""
    return [entry.name for entry in config.input if entry.allow_ragged_batch]
