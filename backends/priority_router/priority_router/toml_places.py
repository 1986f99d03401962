# SPDX-License-Identifier: Apache-2.0
"""Where the keys of a TOML text stand, which `tomllib` does not tell.

Law: what the text means is `tomllib`'s alone. Here only places are looked for, in a text that may be broken: the places
up to the fault are found all the same.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Mapping
from typing import Final

Path = tuple[str | int, ...]

_SPACE: Final = " \t\r\n"
_END_OF_NAME: Final = _SPACE + ".=[]{},#\"'"


class _Lost(Exception):
    """The text does not go on as TOML does."""


def places(text: str) -> Mapping[Path, int]:
    """Every key, table and list element.

    Args:
        text: TOML, or nearly.

    Returns:
        Path, such as ``("class", 0, "level")``, to the index of its first character: of a key that is its name, of a
        table the bracket of its header. What is written twice has the first place.
    """
    scan = _Scan(text)
    with contextlib.suppress(_Lost, IndexError, RecursionError):
        scan.run()
    return scan.found


class _Scan:
    """One walk through a text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._counts: dict[Path, int] = {}
        self.found: dict[Path, int] = {}

    def run(self) -> None:
        table: Path = ()
        while True:
            self._blank()
            if self._at >= len(self._text):
                return
            if self._text[self._at] == "[":
                table = self._header()
            else:
                self._entry(table)

    def _header(self) -> Path:
        start = self._at
        several = self._text.startswith("[[", start)
        self._at += 2 if several else 1
        names = [name for name, _ in self._names("]")]
        self._at += 2 if several else 1
        path: Path = ()
        for name in names[:-1]:
            path = self._latest((*path, name))
            self._note(path, start)
        path = (*path, names[-1])
        self._note(path, start)
        if several:
            self._counts[path] = self._counts.get(path, -1) + 1
            path = self._latest(path)
            self._note(path, start)
        return path

    def _latest(self, path: Path) -> Path:
        """Of a list of tables, its last element so far; of any other table, itself."""
        return (*path, self._counts[path]) if path in self._counts else path

    def _entry(self, table: Path) -> None:
        path = table
        for name, at in self._names("="):
            path = (*path, name)
            self._note(path, at)
        self._at += 1
        self._blank()
        self._value(path)

    def _names(self, end: str) -> list[tuple[str, int]]:
        """The parts of a dotted key up to a character, each with its place."""
        names = []
        while True:
            self._blank()
            start = self._at
            if self._text[start] in "\"'":
                self._string()
                names.append((_unquoted(self._text[start : self._at]), start))
            else:
                while self._text[self._at] not in _END_OF_NAME:
                    self._at += 1
                if self._at == start:
                    raise _Lost
                names.append((self._text[start : self._at], start))
            self._blank()
            if self._text[self._at] == end:
                return names
            if self._text[self._at] != ".":
                raise _Lost
            self._at += 1

    def _value(self, path: Path) -> None:
        first = self._text[self._at]
        if first in "\"'":
            self._string()
        elif first == "[":
            self._at += 1
            for index in itertools.count():
                if self._closed("]"):
                    return
                self._note((*path, index), self._at)
                self._value((*path, index))
        elif first == "{":
            self._at += 1
            while not self._closed("}"):
                self._entry(path)
        else:
            start = self._at
            while self._at < len(self._text) and self._text[self._at] not in ",]}#\n":
                self._at += 1
            if self._at == start:
                raise _Lost

    def _closed(self, bracket: str) -> bool:
        """Passes what stands between elements, and the closing bracket where it comes next."""
        self._blank(",")
        if self._text[self._at] != bracket:
            return False
        self._at += 1
        return True

    def _string(self) -> None:
        quote = self._text[self._at]
        if self._text.startswith(3 * quote, self._at):
            quote *= 3
        self._at += len(quote)
        while not self._text.startswith(quote, self._at):
            if len(quote) == 1 and self._text[self._at] == "\n":
                raise _Lost
            self._at += 2 if self._text[self._at] == "\\" and quote[0] == '"' else 1
        self._at += len(quote)
        if len(quote) == 3:
            # Up to two quotes may stand before the closing ones, and belong to the text.
            while self._text.startswith(quote[0], self._at):
                self._at += 1

    def _blank(self, further: str = "") -> None:
        """Passes white space, comments and some other characters."""
        while self._at < len(self._text):
            if self._text[self._at] == "#":
                end = self._text.find("\n", self._at)
                self._at = len(self._text) if end < 0 else end
            elif self._text[self._at] in _SPACE or self._text[self._at] in further:
                self._at += 1
            else:
                return

    def _note(self, path: Path, at: int) -> None:
        self.found.setdefault(path, at)


def _unquoted(name: str) -> str:
    """A quoted key without its quotes; escapes stay as they are, since no key of a policy has one."""
    return name[1:-1]
