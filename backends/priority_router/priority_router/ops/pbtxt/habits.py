# SPDX-License-Identifier: Apache-2.0
"""What to write instead of a field that does not exist.

In this order: what people mean who write it out of habit, a unit that Triton does not have, the real field where it
belongs, the nearest name.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Mapping
from typing import Any, Final

from priority_router.ops.pbtxt.scan import Sort, Token, shown
from priority_router.ops.pbtxt.tree import Field, Scalar

_LEVELS: Final = ("dynamic_batching", "priority_levels")
_DEFAULT_LEVEL: Final = ("dynamic_batching", "default_priority_level")
_DELAY: Final = ("dynamic_batching", "max_queue_delay_microseconds")
_TIMEOUT: Final = ("dynamic_batching", "default_queue_policy", "default_timeout_microseconds")
_QUEUE: Final = ("dynamic_batching", "default_queue_policy", "max_queue_size")
_OVERRIDE: Final = ("dynamic_batching", "default_queue_policy", "allow_timeout_override")
_ACTION: Final = ("dynamic_batching", "default_queue_policy", "timeout_action")

HABITS: Final[Mapping[str, tuple[str, ...]]] = {
    "priority": _LEVELS,
    "priorities": _LEVELS,
    "priority_level": _LEVELS,
    "levels": _LEVELS,
    "num_priority_levels": _LEVELS,
    "default_priority": _DEFAULT_LEVEL,
    "default_level": _DEFAULT_LEVEL,
    "max_queue_delay": _DELAY,
    "max_delay": _DELAY,
    "max_delay_microseconds": _DELAY,
    "queue_delay": _DELAY,
    "queue_delay_microseconds": _DELAY,
    "batch_delay": _DELAY,
    "timeout": _TIMEOUT,
    "timeout_microseconds": _TIMEOUT,
    "default_timeout": _TIMEOUT,
    "queue_timeout": _TIMEOUT,
    "request_timeout": _TIMEOUT,
    "queue_size": _QUEUE,
    "max_queue": _QUEUE,
    "max_queue_length": _QUEUE,
    "max_size": _QUEUE,
    "allow_override": _OVERRIDE,
    "timeout_override": _OVERRIDE,
    "action": _ACTION,
    "batch_size": ("max_batch_size",),
    "max_batch": ("max_batch_size",),
    "batching": ("dynamic_batching",),
    "batch_sizes": ("dynamic_batching", "preferred_batch_size"),
    "preferred_batch_sizes": ("dynamic_batching", "preferred_batch_size"),
    "instances": ("instance_group", "count"),
    "instance_count": ("instance_group", "count"),
    "num_instances": ("instance_group", "count"),
    "count": ("instance_group", "count"),
    "kind": ("instance_group", "kind"),
    "gpu": ("instance_group", "gpus"),
    "gpu_ids": ("instance_group", "gpus"),
    "device": ("instance_group", "gpus"),
    "type": ("input", "data_type"),
    "dtype": ("input", "data_type"),
    "datatype": ("input", "data_type"),
    "shape": ("input", "dims"),
    "dimensions": ("input", "dims"),
    "inputs": ("input",),
    "outputs": ("output",),
    "model_name": ("name",),
    "framework": ("backend",),
    "decoupled": ("model_transaction_policy", "decoupled"),
    "warmup": ("model_warmup",),
    "cache": ("response_cache", "enable"),
    "ensemble": ("ensemble_scheduling",),
}
"""A name that no message has, or that people write where it does not belong: the real field's path from the top."""

_NEVER_TAKEN_OVER: Final = (_LEVELS, _DEFAULT_LEVEL)
"""The number that people write is a request's or a model's rank, for which Triton has nothing."""

_REMARKS: Final = {_LEVELS: "1 is the most urgent level", _QUEUE: "it counts waiting requests, not rows"}
_UNITS: Final = {
    "_ms": 1000,
    "_msec": 1000,
    "_millis": 1000,
    "_milliseconds": 1000,
    "_s": 1_000_000,
    "_sec": 1_000_000,
    "_seconds": 1_000_000,
    "_us": 1,
    "_usec": 1,
    "_micros": 1,
}
"""What names end with: how many microseconds."""

_VALUES: Final = {
    "FLOAT": "FP32",
    "FLOAT32": "FP32",
    "HALF": "FP16",
    "FLOAT16": "FP16",
    "BFLOAT16": "BF16",
    "DOUBLE": "FP64",
    "FLOAT64": "FP64",
    "INT": "INT32",
    "LONG": "INT64",
    "BYTES": "STRING",
    "STR": "STRING",
    "CUDA": "GPU",
}
"""Of enums, without what all of their names begin with."""

_IN_MICROSECONDS: Final = "_microseconds"
_SHORT: Final = 12
"""Fields of a message that are few enough to name them all."""

_LONGEST_NAME: Final = 64
"""Characters; what is longer is no slip of the pen."""

_LONGEST_ENUM: Final = 10
"""Characters; what is longer may not fit into 32 bits."""

_LONGEST_NUMBER: Final = 16
"""Digits; Triton's own numbers have no more than 20."""


def advice(top: Any, path: tuple[str, ...], message: Any, field: Field) -> str:
    """What to write instead.

    Args:
        top: descriptor of the whole file's message.
        path: names of the fields that the unknown one is in, from the top.
        message: descriptor of the message that it is in.
        field: the unknown one.
    """
    name = field.name.lower()
    base, factor = _without_unit(name)
    target = _habit(message, path, base) or _habit(message, path, name)
    if target is None and factor and f"{base}{_IN_MICROSECONDS}" in message.fields_by_name:
        target = (*path, f"{base}{_IN_MICROSECONDS}")
    if target is None:
        target = _elsewhere(top).get(name) or _elsewhere(top).get(f"{base}{_IN_MICROSECONDS}" if factor else "")
    if target is not None:
        return _sentence(path, target, _value(field, factor, target))
    if close := _nearest(tuple(message.fields_by_name), name, 0.6):
        return _sentence(path, (*path, close), "")
    if close := _nearest((*HABITS, *_elsewhere(top)), name, 0.8):
        return _sentence(path, HABITS.get(close) or _elsewhere(top)[close], "")
    names = list(message.fields_by_name)
    known_here = f" (known here: {', '.join(names)})" if 0 < len(names) <= _SHORT else ""
    return f"remove it{known_here}; if your server knows it, upgrade tritonclient"


def unknown_value(field: Any, token: Token) -> tuple[str, str] | None:
    """What is wrong with the value of an enum and what to write; None where it is one of its names, or a number."""
    values = field.enum_type.values_by_name
    if (token.sort is Sort.NAME and token.text in values) or (
        token.sort is Sort.NUMBER and len(token.text) < _LONGEST_ENUM
    ):
        return None
    bare = token.text[1:-1] if token.sort is Sort.STRING else token.text
    first = f"{next(iter(values)).partition('_')[0]}_"
    shared = first if all(value.startswith(first) for value in values) else ""
    name = bare.upper().removeprefix(shared)
    close = _nearest(tuple(value.removeprefix(shared) for value in values), _VALUES.get(name, name), 0.6)
    advice = f"write {shared}{close}" if close else f"write one of {', '.join(values)}"
    if token.sort is Sort.STRING:
        return f"{field.name} is a name, not a text", f"{advice} without quotes"
    return f"{field.name} has no value {shown(bare)}", advice


def _without_unit(name: str) -> tuple[str, int]:
    """A name without its unit, and the microseconds that the unit has; 0 where it has none."""
    for unit, factor in _UNITS.items():
        if name.endswith(unit):
            return name.removesuffix(unit), factor
    return name, 0


@functools.lru_cache(4096)
def _nearest(known: tuple[str, ...], name: str, alike: float) -> str:
    """The one of several names that is most like another; empty where none is."""
    close = difflib.get_close_matches(name, known, n=1, cutoff=alike) if len(name) < _LONGEST_NAME else []
    return close[0] if close else ""


def _habit(message: Any, path: tuple[str, ...], name: str) -> tuple[str, ...] | None:
    """The real field, in the message itself where that has one of this name."""
    target = HABITS.get(name)
    if target is not None and target[-1] in message.fields_by_name:
        return (*path, target[-1])
    return target


@functools.cache
def _elsewhere(top: Any) -> Mapping[str, tuple[str, ...]]:
    """All fields by name: the path of the one that is nearest to the top, of several the first."""
    found: dict[str, tuple[str, ...]] = {}
    level: list[tuple[tuple[str, ...], Any]] = [((), top)]
    while level:
        below = []
        for path, message in level:
            for field in message.fields:
                if not message.GetOptions().map_entry:
                    found.setdefault(field.name, (*path, field.name))
                if field.message_type is not None:
                    below.append(((*path, field.name), field.message_type))
        level = below
    return found


def _value(field: Field, factor: int, target: tuple[str, ...]) -> str:
    """The number to write, where it can be told."""
    value = field.values[0] if len(field.values) == 1 else None
    if not isinstance(value, Scalar) or value.tokens[0].sort is not Sort.NUMBER:
        return ""
    text = value.tokens[0].text
    if len(text) >= _LONGEST_NUMBER:
        return ""
    if not target[-1].endswith(_IN_MICROSECONDS):
        return "" if target in _NEVER_TAKEN_OVER else text
    if factor and text.isdecimal():
        return str(int(text) * factor)
    return text if field.name.endswith(_IN_MICROSECONDS) else ""


def _sentence(path: tuple[str, ...], target: tuple[str, ...], value: str) -> str:
    """Says where a field belongs."""
    shared = len(path) if target[: len(path)] == path and target != path else 0
    inner = target[shared:]
    written = f"{inner[-1]}: {value}" if value else inner[-1]
    for name in reversed(inner[:-1]):
        written = f"{name} {{ {written} }}"
    where = "" if shared == len(path) else " at the top of the file"
    remark = "in microseconds" if target[-1].endswith(_IN_MICROSECONDS) and not value else _REMARKS.get(target, "")
    return f"write {written}{where}" + (f" ({remark})" if remark else "")
