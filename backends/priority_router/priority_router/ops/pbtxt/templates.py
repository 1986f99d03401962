# SPDX-License-Identifier: Apache-2.0
"""Finds what a template left in a text, and the fields that it was meant for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from priority_router.ops.pbtxt import scan
from priority_router.ops.pbtxt.scan import Sort, Token

_MOST_NAMES: Final = 16
"""Innermost fields that are named; Triton's own definitions have fewer in each other."""


def placeholders(tokens: Iterable[Token]) -> Iterator[tuple[Token, list[str]]]:
    """All placeholders, in strings as well, also of a text with other faults.

    Args:
        tokens: of the whole text.

    Yields:
        A placeholder and the names of the fields that it is in, from the top.
    """
    opened: list[tuple[str, bool]] = []  # Name, empty for a list's element; whether it is a list.
    name, value_next, value_end = "", False, -1
    for token in tokens:
        if token.sort is Sort.MARK:
            if token.text in "{<[":
                opened.append((name, token.text == "["))
                name = ""
            elif token.text in "}>]" and opened:
                opened.pop()
            value_next = token.text == ":"
        else:
            in_list = bool(opened) and opened[-1][1]
            quoted = token.sort in (Sort.STRING, Sort.UNCLOSED)
            is_value = value_next or in_list or quoted or token.start == value_end
            for placeholder in left_in(token):
                names = [found for found, _ in opened[-_MOST_NAMES:] if found]
                yield placeholder, [*names, name] if is_value and name else names
            if is_value:
                value_end = token.end
            else:
                name = token.text if token.sort in (Sort.NAME, Sort.NUMBER) else ""
            value_next = False


def left_in(token: Token) -> Iterable[Token]:
    """The placeholders in one token."""
    if token.sort is Sort.PLACEHOLDER:
        return (token,)
    return scan.quoted_placeholders(token) if token.sort in (Sort.STRING, Sort.UNCLOSED) else ()
