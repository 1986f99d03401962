# SPDX-License-Identifier: Apache-2.0
"""Merges queue levels into a file; everything outside of its ``dynamic_batching`` block, and of the comment that was
written with it, stays byte for byte."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from priority_router.ops.pbtxt import block
from priority_router.ops.pbtxt.block import BLOCK, DEFAULT, LEVELS, POLICIES, one_line, texts
from priority_router.ops.pbtxt.document import Document
from priority_router.ops.pbtxt.error import PbtxtError

MOST_LEVELS: Final = 1000
"""Each gets a line in the file."""

_OURS: Final = (LEVELS, DEFAULT, POLICIES)


@dataclass(frozen=True, slots=True)
class QueuePolicy:
    """A ``ModelQueuePolicy``, with Triton's defaults: unlimited, no timeout.

    Attributes:
        max_queue_size: waiting requests; 0: unlimited.
        default_timeout_microseconds: 0: none.
        allow_timeout_override: callers may shorten it.
        delay: past the timeout a request is served late (``DELAY``) and not refused (``REJECT``).
    """

    max_queue_size: int = 0
    default_timeout_microseconds: int = 0
    allow_timeout_override: bool = False
    delay: bool = False


@dataclass(frozen=True, slots=True)
class Batching:
    """What a ``dynamic_batching`` block shall say.

    Attributes:
        priority_levels: at least 1; None: none, and no policies (plain).
        policies: of levels 1 to ``priority_levels``; of one left out: empty.
        comments: lines above a block that is not there yet, without ``#``.
        former: other comments, which `comments` replace where exactly one of them stands right above the block.
    """

    priority_levels: int | None
    policies: Mapping[int, QueuePolicy] = field(default_factory=dict)
    comments: tuple[str, ...] = ()
    former: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Merge:
    """A file with a `Batching` merged in.

    Attributes:
        text: the whole file; the same text where it said all that before.
        changes: settings of the owner that now say something else, such as
            ``priority_queue_policy 1: max_queue_size: 16 -> empty`` or ``priority_levels: 4 -> removed``.
        kept: other settings of the block, which stay, such as ``max_queue_delay_microseconds: 100``.
    """

    text: str
    changes: tuple[str, ...]
    kept: tuple[str, ...]


def merge_batching(document: Document, wanted: Batching) -> Merge:
    """Merges by key; merging once more changes nothing.

    ``priority_levels``, ``default_priority_level`` (the lowest level, so that unmodified callers never become urgent)
    and each level's policy get our values. More levels than wanted stay, with the policies that they have, or an empty
    one. Policies of levels that do not exist then are removed, since a server refuses them. Without levels
    (plain) the three are removed. All other keys stay.

    Args:
        document: the file.
        wanted: what its block shall say.

    Raises:
        PbtxtError: (unsupported) it has another scheduler, or more levels than can be given policies.
    """
    _check(document, wanted)
    before = document.config.dynamic_batching
    after = _merged(before, wanted)
    text = block.rewritten(document.text, document.tree, before, after, wanted.comments, wanted.former)
    expected = type(document.config)()
    expected.CopyFrom(document.config)
    expected.dynamic_batching.CopyFrom(after)
    expected.dynamic_batching.SetInParent()
    if not _means(text, document.path, expected):
        raise _unsupported(document, (BLOCK,), f"{BLOCK} cannot be edited as it is written", "simplify it")
    repeats = [
        f"{POLICIES} {repeat.path[-1]}: written {len(repeat.positions)} times -> once"
        for repeat in document.repeats()
        if repeat.path[:-1] == (BLOCK, POLICIES)
    ]
    return Merge(text, (*_changes(before, after), *repeats), tuple(_kept(before, after, wanted)))


def _check(document: Document, wanted: Batching) -> None:
    scheduler = document.config.WhichOneof("scheduling_choice")
    if scheduler not in (None, BLOCK):
        raise _unsupported(document, (scheduler,), f"{scheduler} excludes {BLOCK}", "take a model without it")
    asked = wanted.priority_levels
    if asked is not None and asked > MOST_LEVELS:
        raise _unsupported(document, (), f"{asked} levels are asked for", f"ask for at most {MOST_LEVELS}")
    if asked is not None and document.config.dynamic_batching.priority_levels > MOST_LEVELS:
        what = f"{LEVELS} is over {MOST_LEVELS}, and each level gets a policy of its own"
        raise _unsupported(document, (BLOCK, LEVELS), what, f"write at most {MOST_LEVELS}")


def _unsupported(document: Document, path: tuple[str, ...], what: str, fix: str) -> PbtxtError:
    place = document.position(path)
    return PbtxtError(document.path, place.line, place.column, "unsupported", what, fix)


def _means(text: str, name: str, expected: Any) -> bool:
    try:
        found = Document.parse(text, name).config
    except PbtxtError:
        return False
    # Not by comparison: a NaN is none of its equals.
    return bool(found.SerializeToString(deterministic=True) == expected.SerializeToString(deterministic=True))


# What the block shall mean.


def _merged(before: Any, wanted: Batching) -> Any:
    """A ModelDynamicBatching with the wanted levels."""
    after = type(before)()
    after.CopyFrom(before)
    policies = after.priority_queue_policy
    if wanted.priority_levels is None:
        for name in _OURS:
            after.ClearField(name)
        return after
    after.priority_levels = after.default_priority_level = max(before.priority_levels, wanted.priority_levels)
    for key in before.priority_queue_policy:
        if not 1 <= key <= after.priority_levels:
            del policies[key]
    for level in range(1, after.priority_levels + 1):
        policy = policies[level]
        if level <= wanted.priority_levels:
            policy.Clear()
            asked = wanted.policies.get(level, QueuePolicy())
            policy.max_queue_size = asked.max_queue_size
            policy.default_timeout_microseconds = asked.default_timeout_microseconds
            policy.allow_timeout_override = asked.allow_timeout_override
            policy.timeout_action = policy.DELAY if asked.delay else policy.REJECT
    return after


def _changes(before: Any, after: Any) -> Iterator[str]:
    for name in (LEVELS, DEFAULT):
        old, new = getattr(before, name), getattr(after, name)
        if old and old != new:
            yield f"{name}: {old} -> {new or 'removed'}"
    for key, policy in sorted(before.priority_queue_policy.items()):
        stays = key in after.priority_queue_policy
        old, new = one_line(policy), one_line(after.priority_queue_policy[key]) if stays else ""
        if old != new or not stays:
            yield f"{POLICIES} {key}: {old or 'empty'} -> {(new or 'empty') if stays else 'removed'}"


def _kept(before: Any, after: Any, wanted: Batching) -> Iterator[str]:
    for name, text in texts(before).items():
        if name not in _OURS:
            yield text
    if wanted.priority_levels is None:
        return
    if after.priority_levels > wanted.priority_levels:
        yield f"{LEVELS}: {after.priority_levels}"
    for key, policy in sorted(after.priority_queue_policy.items()):
        if key > wanted.priority_levels and one_line(policy):
            yield f"{POLICIES} {key}: {one_line(policy)}"
