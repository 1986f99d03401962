# SPDX-License-Identifier: Apache-2.0
"""Finds what a template left in a text, and the fields that it was meant for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from priority_router.ops.pbtxt import scan
from priority_router.ops.pbtxt.scan import Sort, Token

_MOST_NAMES: Final = 16
"""Innermost fields that are named; Triton's own definitions have fewer in each other."""


class _Opened:
    """A bracket that has been opened and not yet closed, or the whole text."""

    def __init__(self, name: str, is_list: bool) -> None:
        """Opens it.

        Args:
            name: of the field that has it, with its index where it is not the first; empty for the whole text.
            is_list: whether it is a ``[``.
        """
        self.name = name
        self.is_list = is_list
        self._messages: Counter[str] = Counter()

    def inner(self, bracket: str, name: str) -> _Opened:
        """What is opened in it.

        Args:
            bracket: the character.
            name: that stands in front; of no meaning in a list.
        """
        if bracket == "[":
            return _Opened(name, True)
        field = self.name if self.is_list else name
        index = self._messages[field]
        self._messages[field] += 1
        return _Opened(f"{field}[{index}]" if field and (self.is_list or index) else field, False)


def placeholders(tokens: Iterable[Token]) -> Iterator[tuple[Token, list[str]]]:
    """All placeholders, in strings as well, also of a text with other faults.

    Args:
        tokens: of the whole text.

    Yields:
        A placeholder and the names of the fields that it is in, from the top, with the index of a message in a list and
        of one whose name stands there again.
    """
    opened = [_Opened("", False)]
    name, value_next, value_end = "", False, -1
    for token in tokens:
        if token.sort is Sort.MARK:
            if token.text in "{<[":
                opened.append(opened[-1].inner(token.text, name))
                name = ""
            elif token.text in "}>]":
                name = ""
                if len(opened) > 1:
                    opened.pop()
            value_next = token.text == ":"
        else:
            quoted = token.sort in (Sort.STRING, Sort.UNCLOSED)
            is_value = value_next or opened[-1].is_list or quoted or token.start == value_end
            for placeholder in left_in(token):
                messages = [level.name for level in opened[-_MOST_NAMES:-1] if level.name and not level.is_list]
                names = [*messages, *filter(None, [opened[-1].name])]
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
