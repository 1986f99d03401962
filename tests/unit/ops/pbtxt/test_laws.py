# SPDX-License-Identifier: Apache-2.0
"""Laws that hold for any configuration in any spelling."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from priority_router.ops.pbtxt.document import Document
from priority_router.ops.pbtxt.edit import Batching, QueuePolicy, merge_batching
from priority_router.ops.pbtxt.outline import Node, Path
from support.config_texts import configs, is_map, written

_ANY = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
_OTHERS = ("sequence_batching", "ensemble_scheduling")
_POLICIES = st.builds(
    QueuePolicy,
    max_queue_size=st.integers(0, 3),
    default_timeout_microseconds=st.sampled_from((0, 1000, 2**64 - 1)),
    allow_timeout_override=st.booleans(),
    delay=st.booleans(),
)


@st.composite
def _spelled(draw: st.DrawFn) -> tuple[Any, str]:
    message = draw(configs())
    return message, draw(written(message))


@st.composite
def _wanted(draw: st.DrawFn) -> Batching:
    levels = draw(st.one_of(st.none(), st.integers(1, 4)))
    policies = draw(st.dictionaries(st.integers(1, levels), _POLICIES)) if levels else {}
    return Batching(levels, policies, tuple(draw(st.lists(st.sampled_from(("", "one line", "x # {")), max_size=2))))


def _same(one: Any, other: Any) -> bool:
    return bool(one.SerializeToString(deterministic=True) == other.SerializeToString(deterministic=True))


@_ANY
@given(_spelled())
def test_what_is_read_is_what_was_meant_and_the_bytes_come_back(spelled):
    message, text = spelled
    document = Document.parse(text, "config.pbtxt")
    assert _same(document.config, message)
    assert document.text == text
    assert document.encode().decode("utf-8", "surrogateescape") == text


def _paths(message: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """All parts that protobuf sees, with the names of their fields."""
    for field, value in message.ListFields():
        inside = (*path, field.name)
        yield inside, field.name
        if is_map(field):
            parts = [((*inside, str(key)), found) for key, found in value.items()]
        elif field.is_repeated:
            parts = [((*inside, index), found) for index, found in enumerate(value)]
        else:
            parts = [(inside, value)]
        for part, found in parts:
            if part != inside:
                yield part, field.name
            if hasattr(found, "ListFields"):
                yield from _paths(found, part)


def _nodes(node: Node, path: Path = ()) -> Iterator[Path]:
    for step, child in node.children.items():
        yield (*path, step)
        yield from _nodes(child, (*path, step))


def _has(message: Any, path: Path) -> bool:
    """Whether protobuf has a part, be it with the default value."""
    found: Any = message
    for step in path:
        if hasattr(found, "ListFields"):
            assert isinstance(step, str)
            field = found.DESCRIPTOR.fields_by_name[step]
            if field.message_type is not None and not field.is_repeated and not found.HasField(step):
                return False
            found = getattr(found, step)
        elif isinstance(step, str):
            keys = {str(key): key for key in found}
            if step not in keys:
                return False
            found = found[keys[step]]
        elif step < len(found):
            found = found[step]
        else:
            return False
    return True


@_ANY
@given(_spelled())
def test_what_protobuf_sees_has_a_place_and_what_has_a_place_protobuf_sees(spelled):
    message, text = spelled
    document = Document.parse(text, "config.pbtxt")
    lines = text.split("\n")
    for path, name in _paths(message):
        assert document.written(path)
        place = document.position(path)
        rest = lines[place.line - 1][place.column - 1 :]
        # Of a list's element its first character, which of a message is its bracket; of all else the name.
        assert rest.startswith(name) or (len(path) > 1 and path[-2] == name), (path, rest)
    for path in _nodes(document._outline.top):
        assert _has(message, path), path


def _merged(message: Any, wanted: Batching) -> Any:
    """The law in terms of protobuf alone."""
    result = type(message)()
    result.CopyFrom(message)
    block = result.dynamic_batching
    block.SetInParent()
    if wanted.priority_levels is None:
        block.priority_levels = block.default_priority_level = 0
        block.priority_queue_policy.clear()
        return result
    levels = max(block.priority_levels, wanted.priority_levels)
    block.priority_levels = block.default_priority_level = levels
    old = dict(message.dynamic_batching.priority_queue_policy.items())
    block.priority_queue_policy.clear()
    for level in range(1, levels + 1):
        policy = block.priority_queue_policy[level]
        if level > wanted.priority_levels:
            if level in old:
                policy.CopyFrom(old[level])
            continue
        ours = wanted.policies.get(level, QueuePolicy())
        policy.max_queue_size = ours.max_queue_size
        policy.default_timeout_microseconds = ours.default_timeout_microseconds
        policy.allow_timeout_override = ours.allow_timeout_override
        policy.timeout_action = int(ours.delay)
    return result


@_ANY
@given(_spelled().filter(lambda spelled: spelled[0].WhichOneof("scheduling_choice") not in _OTHERS), _wanted())
def test_a_merge_means_the_merged_block_and_leaves_all_else_as_it_was(spelled, wanted):
    message, text = spelled
    document = Document.parse(text, "config.pbtxt")
    if document.config.dynamic_batching.priority_levels > 100:
        return
    merge = merge_batching(document, wanted)
    again = Document.parse(merge.text, "config.pbtxt")
    assert _same(again.config, _merged(message, wanted))
    span = next((field.span for field in document.tree.fields if field.name == "dynamic_batching"), None)
    if span is None:
        assert merge.text.startswith(text)
    else:
        behind = len(text) - span.end
        assert merge.text[: span.start] == text[: span.start]
        assert merge.text[len(merge.text) - behind :] == text[span.end :]
        if _same(document.config, again.config):
            assert merge.text == text or document.repeats(), "nothing to change"
    assert not [repeat for repeat in again.repeats() if repeat.path[0] == "dynamic_batching"]
    assert merge_batching(again, wanted).text == merge.text


@_ANY
@given(_spelled(), st.data())
def test_another_line_end_moves_no_line(spelled, data):
    _, text = spelled
    document = Document.parse(text, "config.pbtxt")
    paths = list(itertools.islice(_nodes(document._outline.top), 20))
    if paths and "\r" not in text:
        path = data.draw(st.sampled_from(paths))
        assert Document.parse(text.replace("\n", "\r\n"), "c").position(path) == document.position(path)
