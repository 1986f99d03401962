# SPDX-License-Identifier: Apache-2.0
"""Merges queue levels into a file; everything outside of its ``dynamic_batching`` block stays byte for byte."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from priority_router.ops.pbtxt.document import Document


@dataclass(frozen=True, slots=True)
class Edit:
    """Puts ``new`` in the place of the characters from ``start`` up to ``end``."""

    start: int
    end: int
    new: str


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
    """

    priority_levels: int | None
    policies: Mapping[int, QueuePolicy] = field(default_factory=dict)
    comments: tuple[str, ...] = ()


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
    raise NotImplementedError
