# SPDX-License-Identifier: Apache-2.0
"""The ``dynamic_batching`` block as text: from what it means to what it shall mean, in as few edits as it takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from google.protobuf import text_format

from priority_router.ops.pbtxt import layout, scan, tree
from priority_router.ops.pbtxt.layout import Edit, New, Style
from priority_router.ops.pbtxt.outline import Keys
from priority_router.ops.pbtxt.tree import Field, Message, Span

BLOCK: Final = "dynamic_batching"
LEVELS: Final = "priority_levels"
DEFAULT: Final = "default_priority_level"
POLICIES: Final = "priority_queue_policy"


def rewritten(
    text: str, message: Message, before: Any, after: Any, comments: Sequence[str], former: Iterable[Sequence[str]] = ()
) -> str:
    """A file whose block means something else.

    Args:
        text: the file's.
        message: its tree.
        before: what the block means, a ModelDynamicBatching; empty where there is none.
        after: what it shall mean, with other levels and queue policies and nothing else that is different.
        comments: lines above a new block, without ``#``.
        former: other such lines, which they replace above a block that is there.
    """
    style = layout.style_of(text, message)
    for written in message.fields:
        if written.name == BLOCK:
            changed = _with_block(text, written, before, after, style)
            return _with_comments(changed, written.span[0], comments, former, style)
    fields = _new_scalars(after, Message(Span(0, 0), Span(0, 0), ()))
    if after.priority_queue_policy:
        fields.append(_new_policies(_entries(after, after.priority_queue_policy, style), style.lists))
    return text + layout.new_block(BLOCK, fields, comments, text, style)


def texts(message: Any) -> dict[str, str]:
    """A message's fields that are no defaults, by name, as protobuf writes them on one line."""
    found = {}
    written = message.ListFields()
    for descriptor, _ in written:
        alone = type(message)()
        alone.CopyFrom(message)
        for other, _ in written:
            if other.name != descriptor.name:
                alone.ClearField(other.name)
        words = text_format.MessageToString(alone, as_one_line=True, use_short_repeated_primitives=True)
        found[descriptor.name] = words.strip()
    return found


def one_line(message: Any) -> str:
    """All of them."""
    return " ".join(texts(message).values())


@dataclass(frozen=True, slots=True)
class _Entry:
    """One queue policy as it is written.

    Attributes:
        level: its key.
        message: key and value.
        policy: the value; None where it is left out.
    """

    level: int
    message: Message
    policy: Message | None


def _with_block(text: str, written: Field, before: Any, after: Any, style: Style) -> str:
    start, end = written.span
    line = text[text.rfind("\n", 0, start) + 1 : start]
    indent = None if line.strip() or style.one_line else line
    block = text[start:end]
    style = (
        replace(style, opening="<", closing=">") if block.endswith(">") else replace(style, opening="{", closing="}")
    )
    block = layout.applied(block, layout.removals(block, _superfluous(block, before, after)))
    block = layout.applied(block, _additions(block, before, after, style, indent))
    return f"{text[:start]}{block}{text[end:]}"


def _with_comments(
    text: str, start: int, comments: Sequence[str], former: Iterable[Sequence[str]], style: Style
) -> str:
    """The lines right above what begins at ``start``, anew where they are known word for word."""
    for lines in former:
        old = _comment(lines, style)
        above = text[: start - len(old)]
        if text[:start] == above + old and above[-1:] in ("", "\n"):
            return above + _comment(comments, style) + text[start:]
    return text


def _comment(lines: Iterable[str], style: Style) -> str:
    """As `layout.new_block` writes it."""
    return "".join(f"{f'# {line}'.rstrip()}{style.line_end}" for line in lines)


def _read(block: str, descriptor: Any) -> tuple[Message, list[_Entry]]:
    """The message of a block and its queue policies, of which there may be several for a level."""
    (message,) = tree.parse(scan.tokens(block), len(block)).fields[0].values
    assert isinstance(message, Message)
    keys = Keys()
    found = []
    for written in message.fields:
        for entry in written.values if written.name == POLICIES else ():
            assert isinstance(entry, Message)
            policies = [value for inner in entry.fields if inner.name == "value" for value in inner.values]
            policy = next((value for value in policies if isinstance(value, Message)), None)
            level = keys.text(entry, descriptor.fields_by_name[POLICIES].message_type)
            found.append(_Entry(int(level or 0), entry, policy))
    return message, found


def _superfluous(block: str, before: Any, after: Any) -> list[Span]:
    """What is to be taken out: numbers and policies that go, policies that are written again, fields of policies."""
    message, entries = _read(block, before.DESCRIPTOR)
    last = {entry.level: entry for entry in entries}
    gone = {
        entry.message.span
        for entry in entries
        if entry is not last[entry.level] or entry.level not in after.priority_queue_policy
    }
    spans = []
    for written in message.fields:
        if written.name in (LEVELS, DEFAULT) and getattr(before, written.name) and not getattr(after, written.name):
            spans.append(written.whole)
        elif written.name == POLICIES and written.values:
            spans += layout.element_spans(block, written, lambda value: value.span in gone)
    for entry in entries:
        if entry.policy and entry.message.span not in gone:
            old, new = (
                texts(policies[entry.level]) for policies in (before.priority_queue_policy, after.priority_queue_policy)
            )
            spans += [inner.whole for inner in entry.policy.fields if inner.name in old and inner.name not in new]
    return spans


def _additions(block: str, before: Any, after: Any, style: Style, indent: str | None) -> list[Edit]:
    """Other values, and what is not there yet."""
    message, entries = _read(block, before.DESCRIPTOR)
    edits = _other_values(message, texts(before), texts(after))
    for entry in entries:
        old, new = (
            texts(policies[entry.level]) for policies in (before.priority_queue_policy, after.priority_queue_policy)
        )
        edits += _policy_edits(block, entry, old, new, style)
    fields = _new_scalars(after, message)
    missing = sorted(set(after.priority_queue_policy) - {entry.level for entry in entries})
    if missing:
        added = _entries(after, missing, style)
        written = [found for found in message.fields if found.name == POLICIES]
        if written and written[-1].list_span:
            edits += layout.list_insertions(block, written[-1], added, style)
        else:
            fields.append(_new_policies(added, style.lists and not written))
    return edits + layout.insertions(block, message, fields, style, indent=indent)


def _other_values(message: Message, old: Mapping[str, str], new: Mapping[str, str]) -> list[Edit]:
    """Other texts for the numbers that a message has."""
    return [
        Edit(*written.values[0].span, new[written.name].partition(": ")[2])
        for written in message.fields
        if written.name != POLICIES and written.name in new and new[written.name] != old.get(written.name)
    ]


def _policy_edits(
    block: str, entry: _Entry, old: Mapping[str, str], new: Mapping[str, str], style: Style
) -> list[Edit]:
    if entry.policy is None:
        value = New("value", (f" {style.message(' '.join(new.values()))}",))
        return layout.insertions(block, entry.message, [value] if new else [], style, indent=None)
    there = {written.name for written in entry.policy.fields}
    added = [_new_scalar(text) for name, text in new.items() if name not in there]
    return [*_other_values(entry.policy, old, new), *layout.insertions(block, entry.policy, added, style, indent=None)]


def _new_scalars(after: Any, message: Message) -> list[New]:
    there = {written.name for written in message.fields}
    return [_new_scalar(text) for name, text in texts(after).items() if name in (LEVELS, DEFAULT) and name not in there]


def _new_scalar(text: str) -> New:
    name, mark, value = text.partition(":")
    return New(name, (f"{mark}{value}",))


def _entries(after: Any, levels: Iterable[int], style: Style) -> list[str]:
    """Queue policies of some levels, each on one line."""
    policies = after.priority_queue_policy
    return [style.message(f"key: {level} value {style.message(one_line(policies[level]))}") for level in sorted(levels)]


def _new_policies(entries: Iterable[str], in_list: bool) -> New:
    return New(POLICIES, tuple(entries if in_list else (f" {entry}" for entry in entries)), in_list)
