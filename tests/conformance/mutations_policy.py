# SPDX-License-Identifier: Apache-2.0
"""Removed: what an owner may ask for on top of the rules (docs/policies.md)."""

from __future__ import annotations

from typing import Any

from conformance.mutations import Patch, removed
from priority_router.core import lines

# Order inside a class.


@removed(0, "order by deadline", "a_class_by_deadline_serves_the_earliest_first")
def _(patch: Patch) -> None:
    patch.setattr(lines, "_QUEUES", dict.fromkeys(lines._QUEUES, lines._Arrivals))


@removed(0, "turns by arrival", "the_order_inside_a_class_takes_no_turn_from_another")
def _(patch: Patch) -> None:
    def keep(self: Any, entry: Any, turn: int) -> None:
        self.leave(entry, turn)

    patch.setattr(lines._Deadlines, "serve", keep)
