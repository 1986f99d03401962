# SPDX-License-Identifier: Apache-2.0
"""A tree next to Triton's definitions: which part of a configuration stands where, and what does not fit.

It looks up names, types and map keys; whether a value is legal is protobuf's to say.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from google.protobuf import message_factory, text_format

from priority_router.ops.pbtxt import habits, spelling
from priority_router.ops.pbtxt.error import Kind
from priority_router.ops.pbtxt.scan import Sort, shown
from priority_router.ops.pbtxt.tree import Field, Message, Scalar, Span, Value

Path = tuple[str | int, ...]
"""From the top: field names, indices in repeated fields, map keys as text; as `rules.finding.Place.path`."""

_LONGEST_NUMBER: Final = 32
"""Characters; what is longer does not fit into 64 bits."""


@dataclass(slots=True)
class Node:
    """A part of a configuration.

    Attributes:
        start: where it stands, in characters: its name, or in a list its first one.
        children: by field name, index or map key.
    """

    start: int
    children: dict[str | int, Node] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Misfit:
    """A field that is not read as it stands.

    Attributes:
        kind: of the fault.
        start: where, in characters.
        span: what has to be left out for the rest to be read.
        what: what is wrong; without a full stop.
        fix: what to write; likewise.
    """

    kind: Kind
    start: int
    span: Span
    what: str
    fix: str


@dataclass(frozen=True, slots=True)
class Outline:
    """What a file has, and where.

    Attributes:
        top: the whole file.
        misfits: in order.
        repeats: paths of map entries that are written more than once, with the places of all.
        octals: paths of numbers with a leading 0 that would be others without it, with their text and place.
    """

    top: Node = field(default_factory=lambda: Node(0))
    misfits: list[Misfit] = field(default_factory=list)
    repeats: dict[Path, list[int]] = field(default_factory=dict)
    octals: list[tuple[Path, str, int]] = field(default_factory=list)


def outline(message: Message, descriptor: Any) -> Outline:
    """Looks at a whole file.

    Args:
        message: the file.
        descriptor: of what it is.
    """
    return _Walk(descriptor).walk(message)


def repeated(descriptor: Any) -> bool:
    """Whether a field may be written more than once; older versions of protobuf have no property for it."""
    found = getattr(descriptor, "is_repeated", None)
    return descriptor.label == descriptor.LABEL_REPEATED if found is None else bool(found)


def is_map(descriptor: Any) -> bool:
    """Whether a field is a map, which is written as messages with key and value."""
    return descriptor.message_type is not None and bool(descriptor.message_type.GetOptions().map_entry)


class Keys:
    """Map keys as protobuf reads them."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, tuple[str, ...]], str | None] = {}

    def text(self, entry: Message, descriptor: Any) -> str | None:
        """The key of a map entry as text; None where it cannot be read.

        Args:
            entry: as it is written.
            descriptor: of its type.
        """
        written = [found for found in entry.fields if found.name == "key"]
        value = written[-1].values[0] if written and written[-1].values else None
        if isinstance(value, Message):
            return None
        known_key = descriptor.fields_by_name["key"]
        if value and any(spelling.doubt(known_key, token) for token in value.tokens):
            return None
        tokens = tuple(token.text for token in value.tokens) if value else ()
        known = (descriptor.full_name, tokens)
        if known not in self._known:
            self._known[known] = self._read(tokens, descriptor)
        return self._known[known]

    @staticmethod
    def _read(tokens: tuple[str, ...], descriptor: Any) -> str | None:
        made = message_factory.GetMessageClass(descriptor)()
        try:
            text_format.Parse(f"key: {' '.join(tokens)}" if tokens else "", made)
        except (text_format.ParseError, ValueError):
            return None
        return str(made.key)


class _Walk:
    """Goes only where the definitions go, so that its depth is theirs."""

    def __init__(self, descriptor: Any) -> None:
        self._descriptor = descriptor
        self._found = Outline()
        self._keys = Keys()

    def walk(self, message: Message) -> Outline:
        self._message(message, self._descriptor, self._found.top, (), ())
        self._found.misfits.sort(key=lambda misfit: misfit.start)
        return self._found

    def _message(self, message: Message, descriptor: Any, node: Node, path: Path, names: tuple[str, ...]) -> None:
        """Looks at a message.

        Args:
            message: as it is written.
            descriptor: of its type.
            node: takes what it has.
            path: of the node.
            names: of the fields that it is in; of a map entry's value that is another than the path.
        """
        for written in message.fields:
            if written.token.sort is Sort.PLACEHOLDER:
                continue
            known = descriptor.fields_by_name.get(written.name)
            if known is None:
                self._unknown(written, descriptor, names)
            elif repeated(known):
                self._repeated(written, known, node, path, names)
            else:
                self._single(written, known, node, path, names)

    def _unknown(self, written: Field, descriptor: Any, names: tuple[str, ...]) -> None:
        what = f"{'.'.join(names) or 'a model configuration'} has no field '{shown(written.name)}'"
        fix = habits.advice(self._descriptor, names, descriptor, written)
        self._misfit("unknown_field", written.token.start, written.whole, what, fix)

    def _single(self, written: Field, known: Any, node: Node, path: Path, names: tuple[str, ...]) -> None:
        start = written.token.start
        if written.list_span is not None:
            what, fix = f"{written.name} takes one value, not a list", "write the value without '[' and ']'"
            self._misfit("syntax", written.list_span.start, written.whole, what, fix)
            return
        if written.name in node.children:
            what, fix = f"{written.name} is written twice in the same message", "remove one of them"
            self._misfit("syntax", start, written.whole, what, fix)
            return
        child = node.children[written.name] = Node(start)
        inside = path if known.containing_type.GetOptions().map_entry else (*path, written.name)
        self._value(written.values[0], written, known, child, inside, names)

    def _repeated(self, written: Field, known: Any, node: Node, path: Path, names: tuple[str, ...]) -> None:
        inside = (*path, written.name)
        many = node.children.setdefault(written.name, Node(written.token.start))
        for value in written.values:
            start = written.token.start if written.list_span is None else value.span.start
            if is_map(known):
                self._entry(value, written, known, many, start, inside, names)
            else:
                index = len(many.children)
                child = many.children[index] = Node(start)
                self._value(value, written, known, child, (*inside, index), names)

    def _entry(
        self, value: Value, written: Field, known: Any, many: Node, start: int, path: Path, names: tuple[str, ...]
    ) -> None:
        """One of a map's entries, which has its value's parts."""
        key = self._keys.text(value, known.message_type) if isinstance(value, Message) else None
        if isinstance(value, Message) and key is not None:
            inside = (*path, key)
            entry = Node(start)
            self._message(value, known.message_type, entry, inside, (*names, written.name))
            if key in many.children:
                places = self._found.repeats.setdefault(inside, [many.children[key].start])
                places.append(start)
            below = entry.children.get("value")
            many.children[key] = Node(start, below.children if below else {})
        else:  # No message, or its key cannot be read.
            self._value(value, written, known, Node(start), path, names)

    def _value(self, value: Value, written: Field, known: Any, node: Node, path: Path, names: tuple[str, ...]) -> None:
        if known.message_type is not None:
            if isinstance(value, Message):
                self._message(value, known.message_type, node, path, (*names, written.name))
            elif value.tokens[0].sort is not Sort.PLACEHOLDER:
                what, fix = f"{written.name} is a message, not {_shown(value)}", self._message_advice(known, value)
                self._misfit("syntax", value.span.start, written.whole, what, fix)
        elif isinstance(value, Message):
            what, fix = f"{written.name} is one value, not a message", f"write {written.name}: VALUE"
            self._misfit("syntax", value.span.start, written.whole, what, fix)
        else:
            self._scalar(value, written, known, path)

    def _scalar(self, value: Scalar, written: Field, known: Any, path: Path) -> None:
        if value.tokens[0].sort is Sort.PLACEHOLDER:
            return
        for token in value.tokens:
            if found := spelling.doubt(known, token):
                start, what, fix = found
                self._misfit("syntax", start, written.whole, what, fix)
                return
        if known.enum_type is not None and (unknown := habits.unknown_value(known, value.tokens[0])):
            self._misfit("syntax", value.span.start, written.whole, *unknown)
            return
        text = value.tokens[0].text
        integer = known.cpp_type in (
            known.CPPTYPE_INT32,
            known.CPPTYPE_INT64,
            known.CPPTYPE_UINT32,
            known.CPPTYPE_UINT64,
        )
        if integer and len(text) < _LONGEST_NUMBER and spelling.OCTAL.fullmatch(text) and int(text, 8) != int(text):
            self._found.octals.append((path, text, value.span.start))

    @staticmethod
    def _message_advice(known: Any, value: Scalar) -> str:
        """For example of a parameter, whose text is one level further down."""
        inner = known.message_type.fields
        if len(inner) == 1 and inner[0].message_type is None:
            return f"write {known.name} {{ {inner[0].name}: {_shown(value)} }}"
        return f"write {known.name} {{ … }}"

    def _misfit(self, kind: Kind, start: int, span: Span, what: str, fix: str) -> None:
        self._found.misfits.append(Misfit(kind, start, span, what, fix))


def _shown(value: Scalar) -> str:
    return shown(" ".join(token.text for token in value.tokens[:2]))
