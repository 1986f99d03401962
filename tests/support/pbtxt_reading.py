# SPDX-License-Identifier: Apache-2.0
"""Protobuf text as it is spelled: tokens, and the tree of fields that they make.

A reading of the tests' own, so that what the product reads is compared with something else. It takes only text that
protobuf accepts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_TOKENS = re.compile(
    r"""(?P<space>\s+)
      | (?P<comment>\#[^\n]*)
      | (?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
      | (?P<name>[A-Za-z_]\w*)
      | (?P<number>[0-9.][\w.+]*)
      | (?P<mark>.)""",
    re.VERBOSE | re.ASCII,
)
_CLOSING = {"{": "}", "<": ">", "[": "]"}


@dataclass(frozen=True)
class Token:
    """A piece of the text; ``kind`` is space, comment, string, name, number or mark."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


@dataclass
class Field:
    """One value of a field, or one entry of its list.

    Attributes:
        name: of the field.
        start: offset of its name, also where the value is one of a list.
        end: offset behind the value, or behind the list that it is in.
        opening: ``{`` or ``<`` of a message, empty for a scalar.
        colon: whether there is one between name and value.
        listed: whether the value stands in ``[ ]``.
        tokens: of a scalar value, in order, comments and spaces left out.
        fields: of a message.
        after: the separator behind it, ``,`` or ``;`` or nothing.
    """

    name: str
    start: int
    end: int = 0
    opening: str = ""
    colon: bool = False
    listed: bool = False
    tokens: list[Token] = field(default_factory=list)
    fields: list[Field] = field(default_factory=list)
    after: str = ""


@dataclass(frozen=True)
class Reading:
    """A text, its tokens, its fields, and the names of fields whose list is empty."""

    text: str
    tokens: list[Token]
    fields: list[Field]
    empty_lists: list[str]

    def walk(self) -> Iterator[Field]:
        """Every field, those of messages behind their message."""
        rest = [*self.fields]
        while rest:
            first = rest.pop(0)
            yield first
            rest = [*first.fields, *rest]


def read(text: str) -> Reading:
    """Reads a whole text."""
    every = [Token(str(m.lastgroup), m.group(), m.start()) for m in _TOKENS.finditer(text)]
    parser = _Parser([token for token in every if token.kind not in ("space", "comment")])
    fields = parser.fields("")
    return Reading(text, every, fields, parser.empty_lists)


class _Parser:
    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self.empty_lists: list[str] = []

    def fields(self, closing: str) -> list[Field]:
        made: list[Field] = []
        while self._peek() != closing:
            made += self._field()
        return made

    def _field(self) -> list[Field]:
        name = self._take()
        assert name.kind == "name", f"a field's name is expected at {name.start}, not {name.text!r}"
        colon = self._skip(":")
        values = self._list(name) if self._skip("[") else [self._value(name)]
        end = self._tokens[self._at - 1].end
        after = self._peek() if self._peek() in (",", ";") else ""
        self._skip(after)
        for value in values:
            value.colon, value.end, value.after = colon, end, after
        return values

    def _list(self, name: Token) -> list[Field]:
        values: list[Field] = []
        while not self._skip("]"):
            values.append(self._value(name))
            values[-1].listed = True
            self._skip(",")
        if not values:
            self.empty_lists.append(name.text)
        return values

    def _value(self, name: Token) -> Field:
        made = Field(name.text, name.start)
        if self._peek() in ("{", "<"):
            made.opening = self._take().text
            made.fields = self.fields(_CLOSING[made.opening])
            self._take()
            return made
        self._skip("-", into=made)
        made.tokens.append(self._take())
        while made.tokens[-1].kind == "string" and self._kind() == "string":
            made.tokens.append(self._take())
        return made

    def _peek(self) -> str:
        return self._tokens[self._at].text if self._at < len(self._tokens) else ""

    def _kind(self) -> str:
        return self._tokens[self._at].kind if self._at < len(self._tokens) else ""

    def _take(self) -> Token:
        self._at += 1
        return self._tokens[self._at - 1]

    def _skip(self, text: str, into: Field | None = None) -> bool:
        if not text or self._peek() != text:
            return False
        token = self._take()
        if into is not None:
            into.tokens.append(token)
        return True
