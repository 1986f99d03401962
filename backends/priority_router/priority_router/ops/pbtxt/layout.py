# SPDX-License-Identifier: Apache-2.0
"""Puts fields into a text and takes them out of it as its owner would: in lines or in one, with his brackets.

Law: it moves characters; what they mean is decided elsewhere. Only comments inside of what is taken out go with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from priority_router.ops.pbtxt.tree import Field, Message, Span, Value

_BLANKS: Final = " \t\r\v\f"
"""White space within a line; of its end the carriage return."""

_OPENING: Final = "{<["
_TO_COMMA: Final = re.compile(r"(?:[ \t\n\r\v\f]|\#[^\n]*)*,")
_BLANK_END: Final = re.compile(r"\n[ \t\r]*\n[ \t\r]*\Z")
_LEADING: Final = re.compile(r"[ \t]*")
_UNIT: Final = "  "


@dataclass(frozen=True, slots=True)
class Edit:
    """Puts ``new`` in the place of the characters from ``start`` up to ``end``."""

    start: int
    end: int
    new: str


@dataclass(frozen=True, slots=True)
class Style:
    """How a file is written.

    Attributes:
        line_end: of its lines.
        unit: what a message's fields are indented by.
        opening: bracket of its messages.
        closing: the other one.
        lists: repeated messages are elements of a list, and not fields of the same name.
        one_line: the whole file is one line.
    """

    line_end: str
    unit: str
    opening: str
    closing: str
    lists: bool
    one_line: bool

    def message(self, inner: str) -> str:
        """A message on one line."""
        return f"{self.opening} {inner} {self.closing}" if inner else f"{self.opening} {self.closing}"


@dataclass(frozen=True, slots=True)
class New:
    """A field that is not there yet.

    Attributes:
        name: of the field.
        values: elements of a list, or what stands behind the name each time, such as ``: 2``; on one line each.
        in_list: whether there is a list.
    """

    name: str
    values: tuple[str, ...]
    in_list: bool = False

    def written(self, indent: str | None, style: Style) -> list[str]:
        """The field's text, or the fields' texts.

        Args:
            indent: of its lines but the first; None: all on one line.
            style: of the file.
        """
        if not self.in_list:
            return [f"{self.name}{value}" for value in self.values]
        if indent is None:
            return [f"{self.name} [ {', '.join(self.values)} ]"]
        between = f"{style.line_end}{indent}{style.unit}"
        return [f"{self.name} [{between}{f',{between}'.join(self.values)}{style.line_end}{indent}]"]


def style_of(text: str, tree: Message) -> Style:
    """How a file is written; what it does not show is as Triton's own examples have it."""
    messages = [(field, value) for field in tree.fields for value in field.values if isinstance(value, Message)]
    several = [
        field.list_span is not None for field, _ in messages if field.name in ("input", "output", "instance_group")
    ]
    angles = sum(text[value.span.start] == "<" for _, value in messages)
    opening, closing = "<>" if 2 * angles > len(messages) else "{}"
    first_end = text.find("\n")
    return Style(
        line_end="\r\n" if text[max(first_end - 1, 0) : first_end + 1] == "\r\n" else "\n",
        unit=next(filter(None, (_unit(text, value) for _, value in messages)), _UNIT),
        opening=opening,
        closing=closing,
        lists=several[0] if several else True,
        one_line=len(tree.fields) > 1 and "\n" not in text[tree.fields[0].span.start : tree.fields[-1].span.end],
    )


def applied(text: str, edits: Iterable[Edit]) -> str:
    """A text with edits that do not overlap; those at the same place in their order."""
    pieces, end = [], 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        pieces += [text[end : edit.start], edit.new]
        end = edit.end
    return "".join((*pieces, text[end:]))


def removals(text: str, spans: Iterable[Span]) -> list[Edit]:
    """Takes pieces out, with the lines that have nothing else."""
    edits = []
    for start, end in _runs(text, spans):
        before = len(text[:start].rstrip(_BLANKS))
        behind = _past_blanks(text, end)
        begins_line, ends_line = text[before - 1 : before] == "\n", text[behind : behind + 1] == "\n"
        if begins_line and ends_line:
            edits.append(Edit(before, behind + 1, ""))
        elif ends_line:
            edits.append(Edit(before, behind - (text[behind - 1] == "\r"), ""))
        elif text[start - 1].isspace() or text[start - 1] in _OPENING:
            edits.append(Edit(start, behind, ""))
        else:
            edits.append(Edit(start, end, ""))
    return edits


def element_spans(text: str, field: Field, gone: Callable[[Value], bool]) -> list[Span]:
    """What to take out so that some values of a field are gone, with their commas; where none stays, the field."""
    goes = [gone(value) for value in field.values]
    if all(goes):
        return [field.whole]
    last = max(index for index, going in enumerate(goes) if not going)
    pieces = []
    for index, value in enumerate(field.values):
        if goes[index]:
            comma = _comma_behind(text, field.values[index if index < last else index - 1])
            joined = index < last and not text[value.span.end : comma].strip()
            pieces += [Span(value.span.start, comma + 1)] if joined else [value.span, Span(comma, comma + 1)]
    return pieces


def insertions(text: str, message: Message, fields: Sequence[New], style: Style, *, indent: str | None) -> list[Edit]:
    """Puts fields behind those that a message has.

    Args:
        text: that the message is in.
        message: it.
        fields: the new ones.
        style: of the file.
        indent: of the line that the message begins in, if it may become several lines; None: where it is empty and on
            one line it stays on one.
    """
    if not fields:
        return []
    inside = text[message.inner.start : message.inner.end]
    if not message.fields and "\n" not in inside:
        if indent is None:
            return [Edit(*message.inner, f" {' '.join(_written(fields, None, style))} ")]
        inner = indent + style.unit
        return [Edit(*message.inner, f"{style.line_end}{_lines(_written(fields, inner, style), inner, style)}{indent}")]
    closing_line = message.inner.start + inside.rfind("\n") + 1
    closes_line = closing_line > message.inner.start and not text[closing_line : message.inner.end].strip()
    leads = (_own_line(text, field.span.start) for field in message.fields)
    if closes_line:
        inner = next((lead for lead in leads if lead is not None), text[closing_line : message.inner.end] + style.unit)
        written, edits = _separated(text, message, _written(fields, inner, style))
        return [*edits, Edit(closing_line, closing_line, _lines(written, inner, style))]
    last = message.fields[-1]
    lead = _own_line(text, last.span.start)
    written, edits = _separated(text, message, _written(fields, lead, style))
    between = " " if lead is None else f"{style.line_end}{lead}"
    return [*edits, Edit(last.whole.end, last.whole.end, "".join(f"{between}{line}" for line in written))]


def list_insertions(text: str, field: Field, values: Sequence[str], style: Style) -> list[Edit]:
    """Puts values behind those that a list has.

    Args:
        text: that the field is in.
        field: has a list, which may be empty.
        values: as texts on one line; at least one.
        style: of the file.
    """
    start, end = field.list_span or field.span
    if not field.values:
        behind = " " if text[start + 1] == "]" else ""
        return [Edit(start + 1, start + 1, f" {', '.join(values)}{behind}")]
    last = field.values[-1].span
    closing_line = text.rfind("\n", last.end, end) + 1
    lead = _own_line(text, last.start)
    if closing_line and not text[closing_line : end - 1].strip():
        inner = text[closing_line : end - 1] + style.unit if lead is None else lead
        lines = f",{style.line_end}{inner}".join(values)
        return [Edit(last.end, last.end, ","), Edit(closing_line, closing_line, f"{inner}{lines}{style.line_end}")]
    between = ", " if lead is None else f",{style.line_end}{lead}"
    return [Edit(last.end, last.end, "".join(f"{between}{value}" for value in values))]


def new_block(name: str, fields: Sequence[New], comments: Iterable[str], text: str, style: Style) -> str:
    """What to put behind a whole file so that it has one more message.

    Args:
        name: of its field.
        fields: that it has.
        comments: lines above it, without ``#``.
        text: the file's.
        style: of the file.
    """
    end = style.line_end
    has_end = text.endswith("\n")
    lead = "" if has_end or not text else end
    if text.strip() and not style.one_line and not _BLANK_END.search(text):
        lead += end
    if not fields or style.one_line:
        inner = " ".join(_written(fields, None, style))
    else:
        inner = f"{end}{_lines(_written(fields, style.unit, style), style.unit, style)}"
    block = f"{style.opening}{inner}{style.closing}" if inner.startswith(end) else style.message(inner)
    return (
        f"{lead}{_lines((f'# {line}'.rstrip() for line in comments), '', style)}{name} {block}{end if has_end else ''}"
    )


def _written(fields: Iterable[New], indent: str | None, style: Style) -> list[str]:
    return [text for field in fields for text in field.written(indent, style)]


def _lines(texts: Iterable[str], indent: str, style: Style) -> str:
    return "".join(f"{indent}{text}{style.line_end}" for text in texts)


def _separated(text: str, message: Message, written: Sequence[str]) -> tuple[list[str], list[Edit]]:
    """New fields with the separators that those in front of them have, and what the last of those gets for that."""
    *others, last = message.fields or (None,)
    marks = [field.separator for field in others if field] or [last.separator if last else None]
    if last is None or None in marks or marks[0] is None:
        return list(written), []
    mark = text[slice(*marks[0])]
    edits = [] if last.separator else [Edit(last.span.end, last.span.end, mark)]
    return [*(f"{line}{mark}" for line in written[:-1]), written[-1] + (mark if last.separator else "")], edits


def _unit(text: str, value: Message) -> str:
    """How much deeper a message's fields stand; empty where that cannot be seen."""
    outer = _LEADING.match(text, text.rfind("\n", 0, value.span.start) + 1)
    for field in value.fields:
        lead = _own_line(text, field.span.start)
        if lead is not None and outer is not None:
            return lead.removeprefix(outer.group()) if lead.startswith(outer.group()) else ""
    return ""


def _own_line(text: str, start: int) -> str | None:
    """What a line begins with up to a place where its first token stands; None where it has others in front."""
    line = text.rfind("\n", 0, start) + 1
    return text[line:start] if line and not text[line:start].strip() else None


def _runs(text: str, spans: Iterable[Span]) -> list[Span]:
    """Pieces with nothing but white space between them become one."""
    runs: list[Span] = []
    for span in sorted(spans):
        if runs and not text[runs[-1].end : span.start].strip():
            runs[-1] = Span(runs[-1].start, max(span.end, runs[-1].end))
        else:
            runs.append(span)
    return runs


def _past_blanks(text: str, place: int) -> int:
    while text[place : place + 1] in _BLANKS and place < len(text):
        place += 1
    return place


def _comma_behind(text: str, value: Value) -> int:
    """The place of the comma behind an element that is not the last."""
    found = _TO_COMMA.match(text, value.span.end)
    return found.end() - 1 if found else value.span.end
