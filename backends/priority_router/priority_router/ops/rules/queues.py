# SPDX-License-Identifier: Apache-2.0
"""Rules about the queue in front of any model: what Triton refuses, and what it takes and does not mean."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from priority_router.ops.rules import instances
from priority_router.ops.rules.catalogue import executor as rules
from priority_router.ops.rules.catalogue import files
from priority_router.ops.rules.configs import (
    OVERRIDE,
    at,
    batch_limit,
    batching,
    config_file,
    is_ensemble,
    levels,
    listed,
    number,
    queue_policies,
)
from priority_router.ops.rules.finding import Finding
from priority_router.ops.rules.models import Model

MILLISECOND: Final = 1000
"""In microseconds."""

_DELAY_US: Final = 1000 * MILLISECOND
"""A timeout to begin with where one must be written: long enough for a model that is not yet overloaded."""


def check(model: Model, needed: int = 0, *, routed: bool = False) -> Iterator[Finding]:
    """All rules that hold whatever calls the model.

    Args:
        model: any but a router.
        needed: levels that its routers use, and that another finding asks for where it has fewer.
        routed: whether a router calls it.
    """
    yield from _levels(model, needed)
    yield from _ordering(model)
    yield from _preferred(model)
    yield from _policies(model, routed)
    if _decays(model):
        yield from delay(model)


def delay(model: Model) -> Iterator[Finding]:
    """The queue delay; of an executor under any circumstances."""
    found = number(batching(model), "max_queue_delay_microseconds")
    if not found:
        return
    if _decays(model):
        effect = (
            "with levels or a queue policy and several instances throughput decays until the model is loaded anew, and "
            "every request may wait that much longer"
        )
    else:
        effect = "every request may wait that much longer, and the router fills batches without a delay"
    yield Finding(
        rules.QUEUE_DELAY,
        at(model, "dynamic_batching", "max_queue_delay_microseconds"),
        f"{config_file(model)} has max_queue_delay_microseconds: {found}: {effect}",
        f"remove max_queue_delay_microseconds: {found} from {config_file(model)}",
    )


def _decays(model: Model) -> bool:
    """Whether a queue delay slows it down more and more: Triton forms batches only once one of several is free."""
    strict = levels(model) > 0 or any(
        policy.timeout or policy.size or policy.override for policy in queue_policies(model) if policy.level is None
    )
    return strict and instances.assumed(model) > 1


def _levels(model: Model, needed: int) -> Iterator[Finding]:
    count = levels(model)
    if not count:
        return
    most = max(count, needed)
    default = number(batching(model), "default_priority_level")
    place = at(model, "dynamic_batching", "default_priority_level")
    fix = f"write default_priority_level: {most} in {config_file(model)}"
    if not 1 <= default <= most:
        found = f"default_priority_level: {default}" if default else "no default_priority_level"
        what = f"{config_file(model)} has priority_levels: {count} and {found}: Triton refuses to load it"
        yield Finding(rules.DEFAULT_LEVEL, place, what, fix)
    elif default == 1 < count:
        what = (
            f"{config_file(model)} has default_priority_level: 1 of {count}: 1 is the most urgent level, and callers "
            "who name none get it"
        )
        yield Finding(files.LARGER_IS_HIGHER, place, what, fix)
    for policy in queue_policies(model):
        if policy.level is not None and not 1 <= policy.level <= most:
            yield Finding(
                rules.POLICY_KEY,
                at(model, *policy.path),
                f"{config_file(model)} has a priority_queue_policy with key: {policy.level}, and levels go from 1 to "
                f"{most}: Triton refuses to load it",
                f"remove the priority_queue_policy with key: {policy.level} from {config_file(model)}",
            )


def order_conflicts(model: Model, wanted: int = 0) -> list[str]:
    """Settings beside which Triton refuses ``preserve_ordering``; it is to have at least ``wanted`` levels."""
    if not batching(model).get("preserve_ordering"):
        return []
    count = max(levels(model), wanted)
    return [
        *([f"priority_levels: {count}"] if count > 1 else []),
        *(
            f"timeout_action: DELAY in {policy.where}"
            for policy in queue_policies(model)
            if policy.delays and policy.timeout
        ),
    ]


def _ordering(model: Model) -> Iterator[Finding]:
    if against := order_conflicts(model):
        yield Finding(
            rules.ORDER_CONFLICT,
            at(model, "dynamic_batching", "preserve_ordering"),
            f"{config_file(model)} has preserve_ordering: true and {against[0]}: Triton refuses to load it",
            f"remove preserve_ordering: true from {config_file(model)}",
        )


def _preferred(model: Model) -> Iterator[Finding]:
    sizes = [int(size) for size in batching(model).get("preferred_batch_size") or ()]
    # Triton compares before a backend completes the configuration, so that a size which is not written counts as 0.
    most = number(model.config, "max_batch_size")
    if model.completed or is_ensemble(model) or all(0 < size <= most for size in sizes):
        return
    allowed = [size for size in sizes if 0 < size <= most]
    found = f"preferred_batch_size: {listed(sizes)}"
    fix = f"write preferred_batch_size: {listed(allowed)}" if allowed else f"remove {found}"
    limit = f"max_batch_size: {most}" if most or batch_limit(model) is not None else "no max_batch_size"
    yield Finding(
        rules.PREFERRED_SIZE,
        at(model, "dynamic_batching", "preferred_batch_size"),
        f"{config_file(model)} has {found} and {limit}: Triton refuses to load it",
        f"{fix} {'in' if allowed else 'from'} {config_file(model)}",
    )


def _policies(model: Model, routed: bool) -> Iterator[Finding]:
    """Each queue policy by itself."""
    file = config_file(model)
    most = batch_limit(model) or 0
    for policy in queue_policies(model):
        if policy.override and not policy.timeout:
            yield Finding(
                rules.OVERRIDE_WITHOUT_TIMEOUT if routed else rules.OVERRIDE_ELSEWHERE,
                at(model, *policy.path, "allow_timeout_override"),
                f"{file} has {OVERRIDE} in {policy.where} and no default_timeout_microseconds: the timeouts of "
                "requests are ignored",
                f"remove {OVERRIDE} from {policy.where} in {file}, or write default_timeout_microseconds: {_DELAY_US} "
                "beside it",
            )
        if 0 < policy.timeout < MILLISECOND:
            yield Finding(
                files.MILLISECONDS,
                at(model, *policy.path, "default_timeout_microseconds"),
                f"{file} has default_timeout_microseconds: {policy.timeout} in {policy.where}, less than a "
                "millisecond: nearly every request expires",
                f"write default_timeout_microseconds: {policy.timeout * MILLISECOND} in {file}, if {policy.timeout} ms "
                "are meant",
            )
        if policy.delays and policy.timeout:
            yield Finding(
                rules.DELAY,
                at(model, *policy.path, "timeout_action"),
                f"{file} has timeout_action: DELAY in {policy.where}: under steady load what is past its timeout is "
                "never served",
                f"write timeout_action: REJECT in {file}, unless that is wanted",
            )
        if 0 < policy.size < most:
            yield Finding(
                rules.SMALL_QUEUE,
                at(model, *policy.path, "max_queue_size"),
                f"{file} has max_queue_size: {policy.size} in {policy.where} and max_batch_size: {most}: so few "
                "waiting requests of one row do not fill a batch",
                f"write max_queue_size: {most} in {file}, or more",
            )
