# SPDX-License-Identifier: Apache-2.0
"""A report as text for people, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, TextIO

from priority_router import __version__
from priority_router.ops.lint.check import Located, Report
from priority_router.ops.rules.finding import Severity

JSON_VERSION: Final = 1
"""Of the JSON form; ``docs/lint.schema.json`` describes it. A new key does not change it."""

_COLOURS: Final = {Severity.ERROR: "1;31", Severity.WARNING: "1;33", Severity.NOTE: "1;36"}
_BOLD: Final = "1"


def uses_colour(stream: TextIO, environment: Mapping[str, str]) -> bool:
    """Whether colour is for people who look at a terminal and have not said that they want none (no-color.org)."""
    return stream.isatty() and not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"


def plain(text: str) -> str:
    """A text that cannot do anything to a terminal or a line: what is not printable stands as its escape."""
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape", "surrogatepass").decode() for letter in text
    )


def place(located: Located) -> str:
    """``file:line:column``, or the file alone."""
    file = plain(str(located.file))
    position = located.position
    return f"{file}:{position.line}:{position.column}" if position is not None else file


def line(located: Located, colour: bool = False) -> str:
    """A finding in one line: where, how bad, which rule, what."""
    rule = located.finding.rule
    where, kind = place(located), f"{rule.severity.value} {rule.code}"
    if colour:
        where, kind = _painted(where, _BOLD), _painted(kind, _COLOURS[rule.severity])
    return f"{where}: {kind}: {plain(located.finding.what)}"


def paragraph(located: Located, colour: bool = False) -> str:
    """A finding in three lines: what is wrong and where, why it matters, what to do."""
    return f"{line(located, colour)}\n  why: {located.finding.rule.why}\n  fix: {plain(located.finding.fix)}"


def text(report: Report, colour: bool = False) -> str:
    """Everything, with a closing line that counts.

    Args:
        report: what was found.
        colour: for a terminal.
    """
    lines = [paragraph(located, colour) for located in report.found]
    lines += [f"not looked at: {plain(remark)}" for remark in report.remarks]
    return "\n".join([*lines, closing(report)])


def closing(report: Report) -> str:
    """How many findings of each severity, and in how many models."""
    counts = [(len(report.of(severity)), severity.value) for severity in Severity]
    words = [counted(number, word) for number, word in counts if number]
    return f"{', '.join(words) or 'no findings'} in {counted(report.models, 'model')}"


def as_json(report: Report) -> str:
    """For programs; see ``docs/lint.schema.json``."""
    document = {
        "version": JSON_VERSION,
        "tool": {"name": "priority-router lint", "version": __version__},
        "repositories": [encodable(str(path)) for path in report.repositories],
        "models": report.models,
        "counts": {severity.value: len(report.of(severity)) for severity in Severity},
        "findings": [_as_dict(located) for located in report.found],
        "not_looked_at": [encodable(remark) for remark in report.remarks],
    }
    return json.dumps(document, indent=2)


def encodable(text: str) -> str:
    """A text that every reader of JSON takes: bytes of names that are not UTF-8 stand as escapes."""
    return text.encode("utf-8", "backslashreplace").decode()


def _as_dict(located: Located) -> dict[str, Any]:
    finding, position = located.finding, located.position
    return {
        "code": finding.rule.code,
        "severity": finding.rule.severity.value,
        "title": finding.rule.title,
        "model": encodable(finding.place.model),
        "file": encodable(str(located.file)),
        "line": None if position is None else position.line,
        "column": None if position is None else position.column,
        "path": [encodable(step) if isinstance(step, str) else step for step in finding.place.path],
        "what": encodable(finding.what),
        "why": finding.rule.why,
        "fix": encodable(finding.fix),
    }


def counted(number: int, word: str) -> str:
    """A number of things."""
    return f"{number} {word}{'' if number == 1 else 's'}"


def _painted(text: str, code: str) -> str:
    return f"\x1b[{code}m{text}\x1b[0m"
