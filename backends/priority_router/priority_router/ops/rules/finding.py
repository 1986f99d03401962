# SPDX-License-Identifier: Apache-2.0
"""Rules and findings: what is wrong, where, why it matters, what to write instead."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final

CONFIG_FILE: Final = "config.pbtxt"


class Severity(enum.Enum):
    """How much a finding matters; values as users read them."""

    ERROR = "error"
    """The server refuses to load it, or requests fail or are served in the wrong order."""

    WARNING = "warning"
    """It works, and does something that its owner hardly wants."""

    NOTE = "note"
    """Worth knowing; right for some."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of fault.

    Attributes:
        code: stable, such as ``PR101``; never given to another rule.
        severity: of every finding.
        title: a few words, without a full stop.
        why: what happens if it stays; one or two sentences.
        remedy: what to do in general; a finding's ``fix`` says it for its case.
    """

    code: str
    severity: Severity
    title: str
    why: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a model repository.

    Attributes:
        model: the model's name.
        file: relative to the model's folder, such as CONFIG_FILE or ``1/policy.toml``; empty for the folder itself.
        path: from the file's top, field names, list indices and map keys, such as ``("input", 0, "dims")`` or
            ``("dynamic_batching", "priority_queue_policy", "1")``. Where the last steps do not exist in the file, its
            deepest part that does is meant; empty for the file as a whole.
    """

    model: str
    file: str = CONFIG_FILE
    path: tuple[str | int, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault.

    Attributes:
        rule: its kind.
        place: where to mend it.
        what: what is wrong, with the values; a sentence without a full stop that names models and files.
        fix: what to write, literally, and where; likewise.
    """

    rule: Rule
    place: Place
    what: str
    fix: str

    def sentence(self) -> str:
        """What is wrong and what to do, in one line."""
        return f"{self.what}; {self.fix}"
