# SPDX-License-Identifier: Apache-2.0
"""The two files of a router, ``config.pbtxt`` and ``policy.toml``, and the levels that its executor gets.

Law: pure and deterministic; what is known of a model and what was asked for in, text out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from priority_router.interface import (
    BACKEND,
    BATCHES_PER_REQUEST,
    CLASS_PARAMETER,
    CLASS_TENSOR,
    EXECUTOR_OUTPUT,
    QUEUE_OUTPUT,
)
from priority_router.ops.pbtxt.edit import Batching, QueuePolicy
from priority_router.ops.rules.configs import ONE_CPU_INSTANCE, PLAIN_BATCHING
from priority_router.ops.wrap.instances import Instances
from priority_router.ops.wrap.options import Options, WantedClass
from priority_router.ops.wrap.source import ROUTER_VERSION, Source
from priority_router.ops.wrap.tensors import Tensor
from priority_router.ops.wrap.texts import comment, pbtxt_string, sealed, toml_string
from priority_router.policy_checks import POLICY_VERSION
from priority_router.policy_fields import MAX_QUEUE_SIZE

_CLASS = Tensor(CLASS_TENSOR, "TYPE_STRING", (1,), optional=True)
_TIMES = (Tensor(QUEUE_OUTPUT, "TYPE_INT64", (1,)), Tensor(EXECUTOR_OUTPUT, "TYPE_INT64", (1,)))


@dataclass(frozen=True, slots=True)
class RouterFiles:
    """What a router consists of, apart from files with labels.

    Attributes:
        name: of the router.
        config: text of ``config.pbtxt``.
        policy: text of ``policy.toml``.
    """

    name: str
    config: str
    policy: str


def router_files(name: str, source: Source, options: Options) -> RouterFiles:
    """Both files.

    Args:
        name: of the router.
        source: its executor.
        options: what was asked for.
    """
    return RouterFiles(name, sealed(_config(name, source)), sealed(_policy(source, options)))


def batching(options: Options) -> Batching:
    """What the executor's block shall say."""
    policies = dict(_executor_policies(options.classes)) if options.executor_policies else {}
    wanted = _comment(options.plain, bool(policies))
    others = (_comment(*kind) for kind in ((True, False), (False, False), (False, True)))
    return Batching(
        None if options.plain else options.levels,
        policies,
        wanted,
        tuple(other for other in others if other != wanted),
    )


def _comment(plain: bool, limits: bool) -> tuple[str, ...]:
    """Lines above the block, which say what `wrap` was asked for; ``limits``: the policies have some."""
    whose = (
        "The limits and timeouts of the policies are for those who call this model directly."
        if limits
        else "Limits and timeouts are the router's: the policies are empty, one for each level."
    )
    text = f"The router calls at the level of the caller's class. {whose} No queue delay, ever."
    if plain:
        text = (
            "The router decides who is next and forms the batches: no levels (its policy is in plain mode), and no "
            "queue delay, ever."
        )
    return tuple(line.removeprefix("# ") for line in comment(text))


def _executor_policies(classes: Sequence[WantedClass]) -> Iterator[tuple[int, QueuePolicy]]:
    """Of each level that has classes: never stricter than what one of them was promised."""
    for level in sorted({wanted.level for wanted in classes}):
        sharing = [wanted for wanted in classes if wanted.level == level]
        sizes, timeouts = [wanted.max_queue for wanted in sharing], [wanted.timeout_us for wanted in sharing]
        timeout = max(timeouts) if all(timeouts) else 0
        yield (
            level,
            QueuePolicy(
                max_queue_size=min(sum(sizes), MAX_QUEUE_SIZE) if all(sizes) else 0,
                default_timeout_microseconds=timeout,
                # Without a timeout there is nothing to shorten.
                allow_timeout_override=bool(timeout) and any(wanted.override for wanted in sharing),
            ),
        )


def _config(name: str, source: Source) -> Iterator[str]:
    size = BATCHES_PER_REQUEST * source.max_batch_size
    yield from comment(
        f"The inputs of {source.name} plus {CLASS_TENSOR}, its outputs plus two times. Who runs next is decided by "
        f"{ROUTER_VERSION}/policy.toml."
    )
    yield f"name: {pbtxt_string(name)}"
    yield f"backend: {pbtxt_string(BACKEND)}"
    yield ""
    yield from comment(
        f"Rows of the largest request accepted, {BATCHES_PER_REQUEST} times the executor's; larger than the executor's "
        "is split by the router."
        if size
        else "As the executor's: tensors have no batch axis, and requests are never joined."
    )
    yield f"max_batch_size: {size}"
    yield ""
    yield "input ["
    yield from (f"  {tensor.entry()}," for tensor in source.inputs)
    yield (
        f"  # A class of {ROUTER_VERSION}/policy.toml; without it the request parameter `{CLASS_PARAMETER}` counts, "
        "then the default class."
    )
    yield f"  {_CLASS.entry()}"
    yield "]"
    yield "output ["
    yield from (f"  {tensor.entry()}," for tensor in source.outputs)
    yield "  # Microseconds in the router's queue, and in the executor with Triton's own queue in front of it."
    yield f"  {_TIMES[0].entry()},"
    yield f"  {_TIMES[1].entry()}"
    yield "]"
    yield ""
    yield "# Exactly one: each instance would have a queue of its own."
    yield ONE_CPU_INSTANCE
    yield ""
    yield "# Hands over everything that has arrived at once; no delay."
    yield PLAIN_BATCHING


def _policy(source: Source, options: Options) -> Iterator[str]:
    yield f"policy_version = {POLICY_VERSION}"
    yield f"mode = {toml_string('plain' if options.plain else 'levels')}"
    yield f"executor = {toml_string(source.name)}"
    if options.executor_policies:
        yield ""
        yield from comment(
            "Clients still call the executor directly: its levels order what they and the router send, and the guard "
            "leaves it open to them. Remove this line, and the limits in the executor's config.pbtxt, when the last of "
            "them has moved."
        )
        yield "shared_executor = true"
    yield ""
    if _is_least_urgent(options):
        yield "# Nobody gets ahead by leaving the class out."
    yield f"default_class = {toml_string(options.default_class)}"
    yield 'unknown_class = "reject"'
    yield ""
    yield "[executor_shape]"
    yield from _instances(source.name, source.instances)
    yield f"instances = {source.instances.count}"
    yield f"max_batch_size = {source.max_batch_size}"
    yield ""
    yield from comment(
        "Level 1 is the most urgent. Limits count requests that wait in the router, timeouts the time they wait there."
    )
    if options.teaching:
        yield from comment("Limits and timeouts are teaching values: measure, then write what you can promise.")
    for index, wanted in enumerate(options.classes):
        if index:
            yield ""
        yield from _class(wanted)


def _class(wanted: WantedClass) -> Iterator[str]:
    yield "[[class]]"
    yield f"name = {toml_string(wanted.name)}"
    yield f"level = {wanted.level}"
    if wanted.max_queue:
        yield f"max_queue_size = {wanted.max_queue:_}"
    if wanted.timeout_us:
        yield f"default_timeout_microseconds = {wanted.timeout_us:_}"
    yield f"allow_timeout_override = {'true' if wanted.override else 'false'}"


def _instances(executor: str, instances: Instances) -> Iterator[str]:
    if not instances.open:
        yield f"# As in the config.pbtxt of {executor}."
    elif instances.stated:
        yield from comment(
            f"As stated to wrap. The config.pbtxt of {executor} leaves the number open: {instances.open}."
        )
    else:
        yield from comment(f"WRITE THE TRUE NUMBER HERE. {instances_warning(executor, instances, 'here')}.")


def instances_warning(executor: str, instances: Instances, where: str) -> str:
    """What an open number of instances means and what to do, without a full stop.

    Args:
        executor: its name.
        instances: what is known of them.
        where: the policy, in words.
    """
    return (
        f"The config.pbtxt of {executor} leaves the number of instances open: {instances.open}. {instances.count} is "
        "written until you say: write count and kind, for GPUs also gpus, into its instance_group and the sum of count "
        f"x gpus over all groups {where}, or run wrap with --instances N"
    )


def _is_least_urgent(options: Options) -> bool:
    return all(wanted.level == options.levels for wanted in options.classes if wanted.name == options.default_class)
