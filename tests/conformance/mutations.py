# SPDX-License-Identifier: Apache-2.0
"""The scheduler with one rule removed, and the check that must notice.

One entry per rule or piece of it. ``remove`` patches the scheduler's parts; the patches are undone after the check.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

Patch = pytest.MonkeyPatch


@dataclass(frozen=True)
class Mutation:
    """A rule removed.

    Attributes:
        rule: number in docs/design.md, 0 for what is promised outside the numbered rules.
        piece: what is removed.
        check: name of the check that must fail.
        remove: patches it away.
        says: how the failure must begin: a law of the referee, or anything.
    """

    rule: int
    piece: str
    check: str
    remove: Callable[[Patch], None]
    says: str = ""


MUTATIONS: list[Mutation] = []


def removed(
    rule: int, piece: str, check: str, says: str = ""
) -> Callable[[Callable[[Patch], None]], Callable[[Patch], None]]:
    def enter(remove: Callable[[Patch], None]) -> Callable[[Patch], None]:
        MUTATIONS.append(Mutation(rule, piece, check, remove, says))
        return remove

    return enter


def swap(rule: int, piece: str, check: str, target: Any, name: str, value: Any, says: str = "") -> None:
    """The usual case: one attribute replaced."""
    MUTATIONS.append(Mutation(rule, piece, check, lambda patch: patch.setattr(target, name, value), says))


def always(value: Any) -> Callable[..., Any]:
    return lambda *_args, **_keys: value


LAWS = "laws_with_joins_splits_and_limits"
