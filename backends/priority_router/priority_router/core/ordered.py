# SPDX-License-Identifier: Apache-2.0
"""Items kept in order while they come and go anywhere.

Law: order only. Short sorted lists side by side: an addition or a removal searches, then moves no more than one short
list, so it costs about the logarithm of the number of items.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import Any, Final

LONGEST: Final = 512
"""Items of one short list; past this it is cut in two. Moving so many is as quick as the search for the place."""


class Ordered:
    """Tuples in ascending order, all different."""

    __slots__ = ("_last", "_lists")

    def __init__(self) -> None:
        self._lists: list[list[tuple[Any, ...]]] = []
        self._last: list[tuple[Any, ...]] = []

    def __bool__(self) -> bool:
        return bool(self._lists)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """Items in order; do not change them while iterating."""
        for items in self._lists:
            yield from items

    def first(self) -> tuple[Any, ...]:
        """The smallest.

        Raises:
            IndexError: there is none.
        """
        return self._lists[0][0]

    def rank(self, item: tuple[Any, ...]) -> int:
        """How many are smaller."""
        at = bisect_left(self._last, item)
        before = sum(map(len, self._lists[:at]))
        return before if at == len(self._lists) else before + bisect_left(self._lists[at], item)

    def add(self, item: tuple[Any, ...]) -> None:
        """Put an item in its place."""
        if not self._lists:
            self._lists.append([item])
            self._last.append(item)
            return
        at = min(bisect_left(self._last, item), len(self._last) - 1)
        items = self._lists[at]
        insort(items, item)
        if len(items) > LONGEST:
            half = LONGEST // 2
            self._lists.insert(at + 1, items[half:])
            self._last.insert(at + 1, items[-1])
            del items[half:]
        self._last[at] = items[-1]

    def remove(self, item: tuple[Any, ...]) -> None:
        """Take out an item that is there."""
        at = bisect_left(self._last, item)
        items = self._lists[at]
        del items[bisect_left(items, item)]
        if items:
            self._last[at] = items[-1]
        else:
            del self._lists[at], self._last[at]
