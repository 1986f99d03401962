# SPDX-License-Identifier: Apache-2.0
"""Cuts a text into tokens where protobuf's own tokenizer does, and finds what a template left in it.

Every character is in one token, or in white space or a comment between two. No text is an error here. Linear time.
"""

from __future__ import annotations

import bisect
import enum
import re
from collections.abc import Iterator
from typing import Final, NamedTuple


class Sort(enum.Enum):
    """Of a token."""

    NAME = "name"
    NUMBER = "number"
    STRING = "string"
    UNCLOSED = "unclosed"
    """A string without its closing quote, to the end of the line."""

    PLACEHOLDER = "placeholder"
    MARK = "mark"
    """A bracket, ``:``, ``,`` or ``;``."""

    OTHER = "other"
    """A character that is part of nothing legal, such as white space outside of ASCII or a NUL."""


class Token(NamedTuple):
    """A piece of the text.

    Attributes:
        sort: what it is.
        text: as it is written.
        start: where, in characters of the whole text.
    """

    sort: Sort
    text: str
    start: int

    @property
    def end(self) -> int:
        """The place behind it."""
        return self.start + len(self.text)


_OPEN_PLACEHOLDER: Final = r"\$\{[^{}\n]*\}|\$\([^()\n]*\)|\$[A-Za-z_]\w*|\{\{[^{}\n]*\}\}|\{%[^%\n]*%\}|@[A-Za-z_]\w*@"
"""Outside of strings, where none of them is legal."""

_QUOTED_PLACEHOLDER: Final = re.compile(r"\$\{\s*[A-Za-z_][^{}\n]*\}")
"""In strings, where Triton itself gives a meaning to ``$$NAME``, and Jinja's braces may be the value."""

# Names, numbers and strings as google.protobuf.text_format.Tokenizer has them; white space as the server's parser does.
_TOKEN: Final = re.compile(
    r"(?:[ \t\n\r\v\f]++|\#[^\n]*+)++"
    r"|(?P<name>[a-zA-Z_][0-9a-zA-Z_+-]*)"
    r"|(?P<number>(?:[0-9+-]|\.[0-9])[0-9a-zA-Z_.+-]*)"
    r"""|(?P<string>"(?:[^"\n\\]++|\\[^\n])*+"|'(?:[^'\n\\]++|\\[^\n])*+')"""
    r"""|(?P<unclosed>"(?:[^"\n\\]++|\\[^\n])*+|'(?:[^'\n\\]++|\\[^\n])*+)"""
    rf"|(?P<placeholder>{_OPEN_PLACEHOLDER})"
    r"|(?P<mark>[{}<>\[\]:,;])"
    r"|(?P<other>.)",
    re.DOTALL,
)
_SORTS: Final = {sort.value: sort for sort in Sort}


def tokens(text: str) -> Iterator[Token]:
    """All tokens, without white space and comments."""
    for match in _TOKEN.finditer(text):
        if match.lastgroup:
            yield Token(_SORTS[match.lastgroup], match.group(), match.start())


def quoted_placeholders(token: Token) -> Iterator[Token]:
    """What a template left in a string, or in one without its end."""
    for match in _QUOTED_PLACEHOLDER.finditer(token.text):
        yield Token(Sort.PLACEHOLDER, match.group(), token.start + match.start())


def shown(text: str, most: int = 40) -> str:
    """A piece of a text for a message: on one line, without control characters, shortened."""
    safe = text if text.isprintable() else ascii(text[:most])[1:-1] + text[most:]
    return safe if len(safe) <= most else f"{safe[: most - 3]}..."


class Lines:
    """Lines of a text, which end with a line feed, as in both parsers."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self._length = len(text)

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column of a character, both 1-based."""
        line = bisect.bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def offset(self, line: int, column: int) -> int:
        """The character at a 1-based line and column; the nearest one where there is none."""
        if line > len(self._starts):
            return self._length
        return max(0, min(self._starts[max(line, 1) - 1] + column - 1, self._length))
