# SPDX-License-Identifier: Apache-2.0
"""Rules about a router's policy by itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from priority_router.config import RouterPolicy
from priority_router.core.values import MICROSECOND, TimeoutAction, TrafficClass
from priority_router.ops.rules.catalogue import executor, files, together
from priority_router.ops.rules.configs import in_policy, joined, policy_file
from priority_router.ops.rules.finding import Finding
from priority_router.ops.rules.models import Model
from priority_router.ops.rules.queues import MILLISECOND

_URGENT: Final = {"online", "interactive", "realtime", "urgent"}
_PATIENT: Final = {"offline", "background", "batch", "bulk"}

_QUEUE_SIZE: Final = 256
"""A limit to begin with where one must be written: seconds of work for most models, and little memory."""


def check(router: Model) -> Iterator[Finding]:
    """All rules about a policy; none where it cannot be read."""
    if router.policy is None:
        return
    for index, traffic_class in enumerate(router.policy.scheduling.classes):
        yield from _class(router, index, traffic_class)
    yield from _upside_down(router, router.policy)


def _class(router: Model, index: int, traffic_class: TrafficClass) -> Iterator[Finding]:
    name, file = traffic_class.name, policy_file(router)
    timeout = traffic_class.default_timeout // MICROSECOND
    if 0 < timeout < MILLISECOND:
        yield Finding(
            files.MILLISECONDS,
            in_policy(router, "class", index, "default_timeout_microseconds"),
            f"class {name!r} in {file} has default_timeout_microseconds = {timeout}, less than a millisecond: nearly "
            "every request expires",
            f"write default_timeout_microseconds = {timeout * MILLISECOND} in {file}, if {timeout} ms are meant",
        )
    if traffic_class.timeout_action is TimeoutAction.DELAY and (timeout or traffic_class.allow_timeout_override):
        yield Finding(
            executor.DELAY,
            in_policy(router, "class", index, "timeout_action"),
            f'class {name!r} in {file} has timeout_action = "DELAY": under steady load what is past its timeout is '
            "never served",
            f'write timeout_action = "REJECT" in {file}, unless that is wanted',
        )
    if not traffic_class.max_queue_size:
        yield Finding(
            together.UNLIMITED,
            in_policy(router, "class", index, "max_queue_size"),
            f"class {name!r} in {file} has no max_queue_size: nothing bounds its queue, nor the memory that it takes",
            f"write max_queue_size = {_QUEUE_SIZE}, or how many requests may wait, for the class in {file}",
        )


def _upside_down(router: Model, policy: RouterPolicy) -> Iterator[Finding]:
    """Classes whose names say the opposite of their levels."""
    classes = policy.scheduling.classes
    urgent = [found for found in classes if _words(found.name) & _URGENT]
    patient = [found for found in classes if _words(found.name) & _PATIENT]
    if not urgent or not patient:
        return
    last = max(urgent, key=lambda found: found.level)
    first = min(patient, key=lambda found: found.level)
    if last.level <= first.level:
        return
    used = sorted({found.level for found in classes})
    turned = dict(zip(used, reversed(used), strict=True))
    levels = joined([f"level = {turned[found.level]} for {found.name!r}" for found in classes])
    file = policy_file(router)
    yield Finding(
        files.LARGER_IS_HIGHER,
        in_policy(router, "class", classes.index(last), "level"),
        f"class {last.name!r} has level {last.level} in {file} and {first.name!r} has {first.level}: 1 is the most "
        f"urgent level, so that {first.name!r} is served first",
        f"write {levels} in {file}",
    )


def _words(name: str) -> set[str]:
    """The words of a class name; those that stand apart in "real-time" belong together."""
    lower = name.lower().replace("real-time", "realtime").replace("real_time", "realtime")
    return set(re.split(r"[^a-z]+", lower))
