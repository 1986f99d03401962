# SPDX-License-Identifier: Apache-2.0
"""Model configurations for hypothesis: any message, and any of the legal ways to write it."""

from __future__ import annotations

import functools
import itertools
import math
import random
from collections.abc import Sequence
from typing import Any

from google.protobuf import message_factory
from google.protobuf.descriptor import FieldDescriptor
from hypothesis import strategies as st
from tritonclient.grpc import model_config_pb2

_MOST_FIELDS = 4
_COMMENTS = (
    "",
    " plain",
    " { [ < ' \" ${x} \\",
    "\u00e9 \ud55c",
    " \udcff not UTF-8",
    " priority_levels: 7 }",
    "\r odd",
)
_TEXT = st.text(
    st.one_of(st.sampled_from("ab#{}<>[]'\"\\\n\r\t:;,$ 0x"), st.characters(codec="utf-8")), max_size=8
).filter(lambda text: "${" not in text)
"""Not what a template leaves."""

_INTEGERS = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
}
_LETTERS = {
    "\a": ("\\a",),
    "\b": ("\\b",),
    "\f": ("\\f",),
    "\n": ("\\n",),
    "\r": ("\\r",),
    "\t": ("\\t",),
    "\v": ("\\v",),
    "\\": ("\\\\",),
    "'": ("\\'",),
    '"': ('\\"',),
}


# Messages.


@st.composite
def configs(draw: st.DrawFn) -> Any:
    """Any ModelConfig; most have a dynamic_batching block with levels and policies."""
    made = model_config_pb2.ModelConfig()
    _fill(draw, made, 0)
    if draw(st.integers(0, 3)):
        _fill_batching(draw, made.dynamic_batching)
    return made


def _fill(draw: st.DrawFn, message: Any, depth: int) -> None:
    fields = list(message.DESCRIPTOR.fields)
    chosen = draw(st.lists(st.sampled_from(fields), max_size=_MOST_FIELDS, unique=True)) if fields else []
    for field in chosen:
        if is_map(field):
            for _ in range(draw(st.integers(1, 2))):
                key = draw(_scalars(field.message_type.fields_by_name["key"]))
                value = field.message_type.fields_by_name["value"]
                if value.message_type is None:
                    getattr(message, field.name)[key] = draw(_scalars(value))
                else:
                    _fill(draw, getattr(message, field.name)[key], depth + 1)
        elif field.message_type is not None:
            for _ in range(draw(st.integers(1, 2)) if field.is_repeated else 1):
                part = getattr(message, field.name)
                made = part.add() if field.is_repeated else part
                made.SetInParent()
                if depth < 4:
                    _fill(draw, made, depth + 1)
        elif field.is_repeated:
            getattr(message, field.name).extend(draw(st.lists(_scalars(field), max_size=3)))
        else:
            setattr(message, field.name, draw(_scalars(field)))


def _fill_batching(draw: st.DrawFn, block: Any) -> None:
    """As people write it: levels and policies of some of them, all small."""
    block.SetInParent()
    small = st.integers(0, 4)
    block.priority_levels = draw(small)
    block.default_priority_level = draw(small)
    for level in draw(st.lists(small, max_size=4)):
        policy = block.priority_queue_policy[level]
        policy.max_queue_size = draw(small)
        policy.default_timeout_microseconds = draw(st.sampled_from((0, 1000)))
        policy.allow_timeout_override = draw(st.booleans())
        policy.timeout_action = draw(st.integers(0, 1))


@functools.cache
def _scalars(field: FieldDescriptor) -> st.SearchStrategy[Any]:
    if field.cpp_type in _INTEGERS:
        low, high = _INTEGERS[field.cpp_type]
        return st.one_of(st.integers(max(low, -20), 20), st.sampled_from((low, high)), st.integers(low, high))
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return st.booleans()
    if field.cpp_type == FieldDescriptor.CPPTYPE_ENUM:
        return st.sampled_from([value.number for value in field.enum_type.values])
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return _TEXT
    return st.one_of(st.floats(width=32, allow_nan=False), st.just(math.nan))


def is_map(field: FieldDescriptor) -> bool:
    """Whether a field is a map."""
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


# Texts.


@st.composite
def written(draw: st.DrawFn, message: Any) -> str:
    """A text that means a message; how it is written is chance."""
    return Writer(random.Random(draw(st.integers(0, 2**32 - 1)))).text(message)


class Writer:
    """Writes messages in all ways that protobuf and a server read alike."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        # A text of one kind of line ends, brackets and so on is as likely as a mixed one.
        self._line_ends = self._some("\n", "\r\n")
        self._spaces = self._some(" ", "  ", "\t", "\n", "\n\n", "\v\f", "#")
        self._brackets = self._some("{}", "<>")
        self._separators = self._some("", "", ",", ";")
        self._quotes = self._some('"', "'")
        self._lists = self._some(True, False)

    def text(self, message: Any) -> str:
        """A whole file."""
        pieces = [self._space(required=False)]
        last = ""
        for token in self._fields(message):
            touching = bool(last) and _is_word(last[-1]) and _is_word(token[0])
            pieces += [self._space(required=touching), token] if last else [token]
            last = token
        return "".join((*pieces, self._space(required=False)))

    def _some(self, *choices: Any) -> Sequence[Any]:
        return self._chance.sample(choices, self._chance.randint(1, len(choices)))

    def _often(self) -> bool:
        return self._chance.random() < 0.5

    def _space(self, *, required: bool) -> str:
        if not required and self._chance.random() < 0.3:
            return ""
        found = self._chance.choice(self._spaces)
        if found == "#":
            comment = self._chance.choice(_COMMENTS)
            return f"{self._chance.choice((' ', ''))}#{comment}{self._chance.choice(self._line_ends)}"
        return str(found).replace("\n", self._chance.choice(self._line_ends))

    def _fields(self, message: Any) -> list[str]:
        """Tokens of a message's fields, in any order but those of one list, with some that are defaults."""
        present = message.ListFields()
        writes = [(field, self._chunks(field, value)) for field, value in present]
        for field in message.DESCRIPTOR.fields:
            if all(field.name != other.name for other, _ in present) and self._chance.random() < 0.05:
                if field.is_repeated:
                    writes.append((field, [self._list(field, [])]))
                elif field.message_type is None and field.containing_oneof is None:
                    writes.append((field, [self._single(field, field.default_value)]))
        placed: list[tuple[float, list[str]]] = []
        for _, chunks in writes:
            places = sorted(self._chance.random() for _ in chunks)
            placed += zip(places, chunks, strict=True)
        found: list[str] = []
        for _, tokens in sorted(placed, key=lambda pair: pair[0]):
            separator = self._chance.choice(self._separators)
            found += [*tokens, separator] if separator else tokens
        return found

    def _chunks(self, field: FieldDescriptor, value: Any) -> list[list[str]]:
        """What to write for a field, each with its tokens."""
        if not field.is_repeated:
            return [self._single(field, value)]
        values = self._entries(field, value) if is_map(field) else list(value)
        chunks = []
        while values:
            count = self._chance.randint(1, len(values)) if self._chance.choice(self._lists) else 0
            chunks.append(self._list(field, values[:count]) if count else self._single(field, values[0]))
            del values[: max(count, 1)]
        return chunks

    def _entries(self, field: FieldDescriptor, values: Any) -> list[Any]:
        """Of a map: some keys have an entry before the one that counts."""
        made = []
        entry_class = message_factory.GetMessageClass(field.message_type)
        for key, value in values.items():
            entry = entry_class(key=key, value=value)
            if field.message_type.fields_by_name["value"].message_type and not value.ListFields() and self._often():
                entry.ClearField("value")
            made += [entry_class(key=key), entry] if self._chance.random() < 0.1 else [entry]
        return made

    def _list(self, field: FieldDescriptor, values: Sequence[Any]) -> list[str]:
        found = [*self._name(field), "["]
        for index, value in enumerate(values):
            found += [","] if index else []
            found += self._value(field, value)
        return [*found, "]"]

    def _single(self, field: FieldDescriptor, value: Any) -> list[str]:
        return [*self._name(field), *self._value(field, value)]

    def _name(self, field: FieldDescriptor) -> list[str]:
        return [field.name, ":"] if field.message_type is None or self._often() else [field.name]

    def _value(self, field: FieldDescriptor, value: Any) -> list[str]:
        if field.message_type is not None:
            opening, closing = self._chance.choice(self._brackets)
            return [opening, *self._fields(value), closing]
        if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
            return self._strings(value)
        if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
            return [self._chance.choice(("true", "True", "t", "1") if value else ("false", "False", "f", "0"))]
        if field.cpp_type == FieldDescriptor.CPPTYPE_ENUM:
            name = field.enum_type.values_by_number[value].name
            return [self._chance.choice((name, str(value), hex(value)))]
        if field.cpp_type in _INTEGERS:
            return [self._integer(value)]
        return [self._float(value)]

    def _integer(self, value: int) -> str:
        sign, size = "-" if value < 0 else "", abs(value)
        return sign + self._chance.choice((str(size), str(size), f"0x{size:x}", f"0X{size:X}", f"0{size:o}"))

    def _float(self, value: float) -> str:
        text = repr(value)
        if math.isfinite(value):
            return self._chance.choice((text, f"{text}f", f"{text}F"))
        return self._chance.choice((text, text.upper(), text.replace("inf", "Infinity")))

    def _strings(self, value: str) -> list[str]:
        """One literal, or several side by side."""
        cuts = sorted(self._chance.randint(0, len(value)) for _ in range(0 if self._often() else 2))
        edges = [0, *cuts, len(value)]
        return [self._string(value[start:end]) for start, end in itertools.pairwise(edges)]

    def _string(self, value: str) -> str:
        quote = self._chance.choice(self._quotes)
        return f"{quote}{''.join(self._character(letter, quote) for letter in value)}{quote}"

    def _character(self, letter: str, quote: str) -> str:
        if letter not in (quote, "\\", "\n", "\0") and self._chance.random() < 0.8:
            return letter
        code = ord(letter)
        data = letter.encode()
        ways = ["".join(f"\\{byte:03o}" for byte in data), "".join(f"\\x{byte:02x}" for byte in data)]
        if letter != "\\":
            ways += [f"\\u{code:04x}"] if code < 0x10000 else []
            ways.append(f"\\U{code:08X}")
        return str(self._chance.choice([*ways, *_LETTERS.get(letter, ())]))


def _is_word(letter: str) -> bool:
    return letter.isalnum() or letter in "_.+-"
