# SPDX-License-Identifier: Apache-2.0
"""Rules about a router with its policy against its executor. Both load without it; what is wrong shows under load."""

from __future__ import annotations

from collections.abc import Iterator

from priority_router.config import RouterPolicy
from priority_router.interface import BATCHES_PER_REQUEST
from priority_router.ops.rules import instances, levels, tensors
from priority_router.ops.rules.catalogue import executor as executor_rules
from priority_router.ops.rules.catalogue import router as router_rules
from priority_router.ops.rules.catalogue import together as rules
from priority_router.ops.rules.configs import (
    OVERRIDE,
    PLAIN_BATCHING,
    QueuePolicy,
    at,
    batch_limit,
    batching,
    config_file,
    in_policy,
    is_ensemble,
    number,
    policy_file,
    queue_policies,
)
from priority_router.ops.rules.configs import levels as level_count
from priority_router.ops.rules.finding import Finding
from priority_router.ops.rules.models import Model

STALL = "without the dispatch hook Triton may wait up to 500 ms between batches"


def check(router: Model, executor: Model, *, same_tensors: bool = True) -> Iterator[Finding]:
    """All rules about the two of them but `accepted`.

    Args:
        router: with its policy; without one there is nothing to compare.
        executor: the model that it names.
        same_tensors: whether its inputs and outputs are to be the router's, and not to be mended first.
    """
    policy = router.policy
    if policy is None:
        return
    yield from _batch_size(router, policy, executor)
    if not is_ensemble(executor):
        yield from instances.check(router, policy, executor)
        yield from _queue(router, policy, executor)
    if same_tensors:
        yield from tensors.check(router, executor)


def accepted(router: Model, policy: RouterPolicy, executor: Model | None) -> Iterator[Finding]:
    """The largest request that the router accepts, against its executor's, or the policy's where that is not known."""
    largest = number(router.config, "max_batch_size")
    size = batch_limit(executor) if executor is not None else None
    source, fails = "", "all requests fail"
    if executor is None or size is None:
        size = policy.scheduling.max_batch_size
        source, fails = f"executor_shape.max_batch_size = {size} in {policy_file(router)}", "the router does not load"
    else:
        source = f"max_batch_size: {size} in {config_file(executor)}"
    one_has_none = bool(largest) != bool(size)
    if largest < 0 or (largest >= size and not one_has_none):
        return
    lacks_block = size and not {"dynamic_batching", "sequence_batching"} & set(router.config)
    block = f" and {PLAIN_BATCHING}" if lacks_block else ""
    yield Finding(
        router_rules.SMALL_ROUTER,
        at(router, "max_batch_size"),
        f"{config_file(router)} has max_batch_size: {largest} beside {source}: "
        + (fails if one_has_none else "requests that the executor would take fail"),
        f"write max_batch_size: {BATCHES_PER_REQUEST * size}{block} in {config_file(router)}",
    )


def _batch_size(router: Model, policy: RouterPolicy, executor: Model) -> Iterator[Finding]:
    declared, actual = policy.scheduling.max_batch_size, batch_limit(executor)
    if actual is None or declared == actual:
        return
    fails = declared > actual or not declared
    yield Finding(
        rules.BATCH_TOO_LARGE if fails else rules.BATCH_TOO_SMALL,
        in_policy(router, "executor_shape", "max_batch_size"),
        f"executor_shape.max_batch_size is {declared} in {policy_file(router)} and {actual} in "
        f"{config_file(executor)}: " + ("its calls fail" if fails else "batches stay smaller than they may be"),
        f"write max_batch_size = {actual} in {policy_file(router)}",
    )


def _queue(router: Model, policy: RouterPolicy, executor: Model) -> Iterator[Finding]:
    """What the executor's own queue does with the router's calls."""
    if "sequence_batching" not in executor.config:
        yield from _levels(router, policy, executor)
        yield from _limits(router, policy, executor)
        return
    block = levels.block(policy) if policy.scheduling.levels else PLAIN_BATCHING
    yield Finding(
        executor_rules.UNUSABLE_EXECUTOR,
        at(executor, "sequence_batching"),
        f"{config_file(executor)} has sequence_batching, so that it refuses the router's calls",
        f"write {block} in place of sequence_batching in {config_file(executor)}",
    )


def _levels(router: Model, policy: RouterPolicy, executor: Model) -> Iterator[Finding]:
    count = level_count(executor)
    if not policy.scheduling.levels:
        if count:
            yield Finding(
                rules.LEVELS_IN_PLAIN_MODE,
                at(executor, "dynamic_batching", "priority_levels"),
                f'{policy_file(router)} has mode = "plain" and {config_file(executor)} has priority_levels: {count}: '
                f"{STALL}",
                f"remove {', '.join(_of_levels(executor))} from {config_file(executor)}",
            )
        return
    lowest = max(levels.used(policy))
    if count < lowest:
        yield Finding(
            executor_rules.TOO_FEW_LEVELS if count else executor_rules.NO_LEVELS,
            at(executor, "dynamic_batching", "priority_levels"),
            f"{policy_file(router)} uses levels up to {lowest} and {config_file(executor)} has {count or 'no'} "
            f"priority_levels: Triton serves {'those above' if count else 'all'} at its default level",
            f"write {levels.to_write(executor, policy)}",
        )


def _of_levels(executor: Model) -> list[str]:
    """All that belongs to levels in its block."""
    block = batching(executor)
    return [
        *(
            f"{key}: {number(block, key)}"
            for key in ("priority_levels", "default_priority_level")
            if number(block, key)
        ),
        *(["priority_queue_policy"] if block.get("priority_queue_policy") else []),
    ]


def _limits(router: Model, policy: RouterPolicy, executor: Model) -> Iterator[Finding]:
    """Limits that meet the router's calls; with ``shared_executor`` they are there for others."""
    if policy.scheduling.shared_executor:
        return
    for found in _met(policy, executor):
        limits = found.limits()
        if not limits or (policy.scheduling.levels and limits == [OVERRIDE]):
            continue
        effect = "it turns the router's calls away"
        if not policy.scheduling.levels:
            effect = f"it may turn the router's calls away, and {STALL}"
        yield Finding(
            executor_rules.EXECUTOR_LIMITS,
            at(executor, *found.path),
            f"{config_file(executor)} has {', '.join(limits)} in {found.where}: {effect}",
            f"remove {', '.join(limits)} from {found.where} in {config_file(executor)}, and set limits and timeouts in "
            f"[[class]] of {policy_file(router)}",
        )


def _met(policy: RouterPolicy, executor: Model) -> Iterator[QueuePolicy]:
    """Queue policies under which the router's calls come; the default one is for levels without one of their own."""
    found = queue_policies(executor)
    if not policy.scheduling.levels:
        yield from found
        return
    used = levels.used(policy)
    own = {queue.level for queue in found}
    for queue in found:
        if queue.level in used or (queue.level is None and not used <= own):
            yield queue
