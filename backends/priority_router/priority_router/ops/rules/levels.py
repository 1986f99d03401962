# SPDX-License-Identifier: Apache-2.0
"""The block ``dynamic_batching`` that an executor needs in levels mode, and what one lacks of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from priority_router.config import RouterPolicy
from priority_router.ops.rules.catalogue import executor as rules
from priority_router.ops.rules.configs import (
    PLAIN_BATCHING,
    at,
    batching,
    config_file,
    joined,
    levels,
    number,
    queue_policies,
)
from priority_router.ops.rules.finding import Finding
from priority_router.ops.rules.models import Model

MOST_POLICIES: Final = 32
"""Up to so many levels each needs its policy; of more, only those that are used."""


def used(policy: RouterPolicy) -> set[int]:
    """Levels at which a router calls."""
    return {traffic_class.level for traffic_class in policy.scheduling.classes}


def block(policy: RouterPolicy) -> str:
    """The whole block, as an executor without one needs it."""
    return f"dynamic_batching {{ {' '.join(_block_lines(policy))} }}"


def _block_lines(policy: RouterPolicy) -> list[str]:
    count = max(used(policy))
    return [
        f"priority_levels: {count}",
        f"default_priority_level: {count}",
        *(_empty_policy(level) for level in _own_policies(count, used(policy))),
    ]


def to_write(executor: Model, policy: RouterPolicy) -> str:
    """What an executor with too few levels, or none, lacks, and its file."""
    if not batching(executor):
        place = f" in place of {PLAIN_BATCHING}" if "dynamic_batching" in executor.config else ""
        return f"{block(policy)}{place} in {config_file(executor)}"
    present = {found.level for found in queue_policies(executor)}
    count = max(used(policy))
    lines = [
        f"priority_levels: {count}",
        *(
            []
            if number(batching(executor), "default_priority_level") == count
            else [f"default_priority_level: {count}"]
        ),
        *(_empty_policy(level) for level in _own_policies(count, used(policy)) if level not in present),
    ]
    return f"{joined(lines)} into dynamic_batching in {config_file(executor)}"


def without_policy(executor: Model, policy: RouterPolicy) -> Iterator[Finding]:
    """Levels of an executor that Triton makes and removes as requests come and go."""
    count = levels(executor)
    if not policy.scheduling.levels or not count:
        return
    present = {found.level for found in queue_policies(executor)}
    default = number(batching(executor), "default_priority_level")
    wanted = {level for level in used(policy) | {default} if 1 <= level <= count}
    missing = [level for level in _own_policies(count, wanted) if level not in present]
    if missing and count >= max(used(policy)):
        lines = [_empty_policy(level) for level in missing]
        which = f"level {missing[0]}" if len(missing) == 1 else f"levels {joined([str(level) for level in missing])}"
        yield Finding(
            rules.NO_QUEUE_POLICY,
            at(executor, "dynamic_batching", "priority_queue_policy"),
            f"{config_file(executor)} has no priority_queue_policy for {which}: Triton removes such a queue whenever "
            "it is empty",
            f"write {joined(lines)} into dynamic_batching in {config_file(executor)}",
        )


def _own_policies(count: int, used_levels: set[int]) -> list[int]:
    return list(range(1, count + 1)) if count <= MOST_POLICIES else sorted(used_levels)


def _empty_policy(level: int) -> str:
    return f"priority_queue_policy {{ key: {level} value {{ }} }}"
