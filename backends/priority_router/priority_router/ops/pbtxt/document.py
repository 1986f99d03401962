# SPDX-License-Identifier: Apache-2.0
"""A ``config.pbtxt`` that can be read: its text, its meaning and the place of each part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any

from priority_router.ops.pbtxt.error import PbtxtError
from priority_router.ops.pbtxt.tree import Message

Path = tuple[str | int, ...]
"""From the top: field names, indices in repeated fields, map keys as text; as `rules.finding.Place.path`."""


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

    path: str
    text: str
    config: Any
    tree: Message

    @classmethod
    def read(cls, path: FilePath) -> Document:
        """Reads a file.

        Raises:
            PbtxtError: the first of its faults, or (file) it cannot be read.
        """
        raise NotImplementedError

    @classmethod
    def parse(cls, text: str, name: str) -> Document:
        """Reads a text.

        Args:
            text: of a whole file.
            name: of the file, for messages.

        Raises:
            PbtxtError: the first of its `faults`.
        """
        raise NotImplementedError

    def encode(self) -> bytes:
        """The file's bytes."""
        raise NotImplementedError

    def as_json(self) -> Mapping[str, Any]:
        """Its meaning as `rules.models.Config` has it: what is written, defaults left out."""
        raise NotImplementedError

    def written(self, path: Path) -> bool:
        """Whether the file has that part, be it with the default value."""
        raise NotImplementedError

    def position(self, path: Path) -> Position:
        """Where a part stands, or the deepest part above it that is written; the file's beginning where none is.

        Of a field it is the name, of an element of a list its first character. Of a map key that is written more than
        once it is the last entry, and so for other fields.
        """
        raise NotImplementedError

    def repeats(self) -> list[Repeat]:
        """Map keys that are written more than once, in order of their last entries."""
        raise NotImplementedError

    def octals(self) -> list[Octal]:
        """Numbers that a leading 0 makes octal and thereby others, in order."""
        raise NotImplementedError


def faults(text: str, name: str) -> list[PbtxtError]:
    """What keeps a text from being a `Document`, in order; empty where nothing does.

    All placeholders, in strings as well, and all unknown fields; of what else protobuf does not read, the first.

    Args:
        text: of a whole file, undecodable bytes as `errors="surrogateescape"` gives them.
        name: of the file, for messages.
    """
    raise NotImplementedError


def read_text(path: FilePath) -> str:
    """A file's text as `faults` and `Document.parse` take it.

    Raises:
        PbtxtError: (file) it cannot be read.
    """
    raise NotImplementedError
