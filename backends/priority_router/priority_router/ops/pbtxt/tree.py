# SPDX-License-Identifier: Apache-2.0
"""Where the parts of a text stand: fields in messages, as they are written, without knowing what they mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Span(NamedTuple):
    """Half-open, in characters of the text."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Scalar:
    """A value that is no message.

    Attributes:
        span: from its first token to the end of its last: strings that stand side by side are one value.
        texts: the tokens as they are written.
    """

    span: Span
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Message:
    """What stands between two brackets, or a whole text.

    Attributes:
        span: brackets included.
        inner: brackets left out.
        fields: in the order of the text.
    """

    span: Span
    inner: Span
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Field:
    """A name with one value; a list of n elements is n fields that share name and list.

    Attributes:
        name: as it is written.
        name_span: where.
        value: what it has.
        span: from the name to the end of the value, or of the list that the value is in; without the separator.
        separator: of a ``,`` or ``;`` behind it; None where there is none.
        list_span: of the list with its brackets; None where the value is in none.
    """

    name: str
    name_span: Span
    value: Scalar | Message
    span: Span
    separator: Span | None = None
    list_span: Span | None = None


def parse(text: str, name: str) -> Message:
    """Reads a text.

    Args:
        text: of a whole file.
        name: of the file, for errors.

    Returns:
        The file's message; its span is the text's.

    Raises:
        PbtxtError: (syntax) at the first place that is not a field.
    """
    raise NotImplementedError
