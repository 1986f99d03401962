# SPDX-License-Identifier: Apache-2.0
"""The configurations of ``tests/corpus``, and what its README says of each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from google.protobuf import text_format
from tritonclient.grpc.model_config_pb2 import ModelConfig

from support import pbtxt_reading

FOLDER = Path(__file__).parents[1] / "corpus"
CONFIGS, REFUSED = FOLDER / "configs", FOLDER / "refused"

AS_IT_IS, ON_THE_CPU = "as it is", "on the CPU"

Structure = frozenset[Any]


@dataclass(frozen=True)
class Entry:
    """One file.

    Attributes:
        path: of the file.
        shape: owner and name of the public repository whose file had its shape; empty for none.
    """

    path: Path
    shape: str

    @property
    def name(self) -> str:
        """Of the model."""
        return self.path.stem

    @cached_property
    def text(self) -> str:
        """As it stands in the file; what is not UTF-8 as lone surrogates."""
        return decoded(self.path.read_bytes())

    def config(self) -> Any:
        """What protobuf reads in it."""
        return parsed(self.text)


@dataclass(frozen=True)
class Wrapped(Entry):
    """A model that can stand behind a router.

    Attributes:
        backend: its backend.
        served: AS_IT_IS or ON_THE_CPU.
    """

    backend: str
    served: str

    def cpu_text(self) -> str:
        """As the embedded server can serve it: groups of GPU instances become one of as many on the CPU."""
        groups = [field for field in pbtxt_reading.read(self.text).fields if field.name == "instance_group"]
        if self.served == AS_IT_IS:
            return self.text
        text = f"instance_group {{ kind: KIND_CPU count: {instances(self.config())} }}"
        first, *others = dict.fromkeys((field.start, field.end) for field in groups)
        made = self.text
        for start, end in reversed(others):
            made = made[:start] + made[end:]
        return made[: first[0]] + text + made[first[1] :]


@dataclass(frozen=True)
class Refused(Entry):
    """A model that cannot.

    Attributes:
        reason: a word for it.
        where: line, or line and column, or nothing.
    """

    reason: str
    where: tuple[int, ...]


def decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def parsed(text: str) -> Any:
    """A text's ModelConfig.

    Raises:
        text_format.ParseError: it has none.
    """
    return text_format.Parse(text, ModelConfig())


def wrapped() -> list[Wrapped]:
    """The table of models that can be wrapped."""
    return [
        Wrapped(CONFIGS / f"{name}.pbtxt", shape, backend, served)
        for name, backend, served, shape, _ in _table("Wrapped")
    ]


def refused() -> list[Refused]:
    """The table of models that cannot."""
    return [
        Refused(REFUSED / f"{name}.pbtxt", shape, reason, tuple(int(number) for number in where.split(":") if number))
        for name, reason, where, shape, _ in _table("Refused")
    ]


def _table(heading: str) -> list[list[str]]:
    _, _, section = (FOLDER / "README.md").read_text().partition(f"\n## {heading}\n")
    section = section.partition("\n## ")[0]
    _, _, *rows = [line for line in section.splitlines() if line.startswith("|")]
    return [["" if cell.strip() == "-" else cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def instances(config: Any) -> int:
    """Instances over all devices; of a group that leaves its cards to the server, those on one."""
    return sum((group.count or 1) * max(1, len(group.gpus)) for group in config.instance_group)


def structure(message: Any) -> Structure:
    """Which fields a message has, and which theirs have: without values, and like siblings once."""
    return frozenset((descriptor.name, _below(descriptor, value)) for descriptor, value in message.ListFields())


def _below(descriptor: Any, value: Any) -> Structure:
    if descriptor.type != descriptor.TYPE_MESSAGE:
        return frozenset()
    if not descriptor.is_repeated:
        return structure(value)
    entries = value.values() if descriptor.message_type.GetOptions().map_entry else value
    return frozenset(structure(entry) for entry in entries if hasattr(entry, "ListFields"))
