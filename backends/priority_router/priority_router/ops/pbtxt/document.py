# SPDX-License-Identifier: Apache-2.0
"""A ``config.pbtxt`` that can be read: its text, its meaning and the place of each part."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any

from google.protobuf import json_format

from priority_router.ops.pbtxt.error import PbtxtError
from priority_router.ops.pbtxt.outline import Node, Path
from priority_router.ops.pbtxt.reading import Reading, examine
from priority_router.ops.pbtxt.tree import Message


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """Where in a file, for people: both 1-based, the column in characters."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Repeat:
    """A map key that is written more than once.

    Attributes:
        path: of the entry.
        positions: of all its entries in order; the last one counts.
    """

    path: Path
    positions: tuple[Position, ...]


@dataclass(frozen=True, slots=True)
class Octal:
    """A number with a leading 0 that would be another one without it.

    Attributes:
        path: of the value.
        text: as it is written.
        value: what it means.
        position: where.
    """

    path: Path
    text: str
    value: int
    position: Position


class Document:
    """A file without faults.

    Attributes:
        path: as it was given, for messages.
        text: exactly; what is not UTF-8 (in a comment) stands as lone surrogates, line ends are untouched.
        config: a ``tritonclient.grpc.model_config_pb2.ModelConfig``.
        tree: where the text's parts stand.
    """

    def __init__(self, path: str, text: str, reading: Reading) -> None:
        """Use `read` or `parse`."""
        self.path = path
        self.text = text
        self.config: Any = reading.config
        self.tree: Message = reading.tree
        self._outline = reading.outline
        self._lines = reading.lines

    @classmethod
    def read(cls, path: FilePath) -> Document:
        """Reads a file.

        Raises:
            PbtxtError: the first of its faults, or (file) it cannot be opened.
        """
        return cls.parse(read_text(path), str(path))

    @classmethod
    def parse(cls, text: str, name: str) -> Document:
        """Reads a text.

        Args:
            text: of a whole file.
            name: of the file, for messages.

        Raises:
            PbtxtError: the first of its `faults`.
        """
        found = examine(text, name)
        if isinstance(found, Reading):
            return cls(name, text, found)
        raise found[0]

    def encode(self) -> bytes:
        """The file's bytes."""
        return encode(self.text)

    def as_json(self) -> dict[str, Any]:
        """Its meaning as `rules.models.Config` has it: what is written and is no default."""
        found: dict[str, Any] = json_format.MessageToDict(self.config, preserving_proto_field_name=True)
        return found

    def written(self, path: Path) -> bool:
        """Whether the file has that part, be it with the default value."""
        return self._deepest(path)[1]

    def position(self, path: Path) -> Position:
        """Where a part stands, or the deepest part above it that is written; the file's beginning where none is.

        Of a field it is the name, of an element of a list its first character. Of a map key that is written more than
        once it is the last entry, the one that counts.
        """
        return self._position(self._deepest(path)[0].start)

    def repeats(self) -> list[Repeat]:
        """Map keys that are written more than once, in the order in which that begins."""
        return [
            Repeat(path, tuple(self._position(place) for place in places))
            for path, places in self._outline.repeats.items()
        ]

    def octals(self) -> list[Octal]:
        """Numbers that a leading 0 makes octal and thereby others, in order."""
        return [Octal(path, text, int(text, 8), self._position(start)) for path, text, start in self._outline.octals]

    def _deepest(self, path: Path) -> tuple[Node, bool]:
        """The deepest part of a path, and whether it is the path's end."""
        node = self._outline.top
        for step in path:
            below = node.children.get(step)
            if below is None:
                return node, False
            node = below
        return node, True

    def _position(self, offset: int) -> Position:
        return Position(*self._lines.place(offset))


def faults(text: str, name: str) -> list[PbtxtError]:
    """What keeps a text from being a `Document`, in order; empty where nothing does.

    All placeholders, in strings as well, and all unknown fields; of what else cannot be read, at least the first.

    Args:
        text: of a whole file, undecodable bytes as ``errors="surrogateescape"`` gives them.
        name: of the file, for messages.
    """
    found = examine(text, name)
    return [] if isinstance(found, Reading) else found


def read_text(path: FilePath) -> str:
    """A file's text as `faults` and `Document.parse` take it.

    Raises:
        PbtxtError: (file) it cannot be opened.
    """
    try:
        return path.read_bytes().decode("utf-8", "surrogateescape")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise PbtxtError(str(path), 0, 0, "file", f"cannot be read ({reason})", "correct its path or rights") from error


def encode(text: str) -> bytes:
    """The bytes of a file's text; the inverse of what `read_text` does with them."""
    return text.encode("utf-8", "surrogateescape")
