# SPDX-License-Identifier: Apache-2.0
"""Rules about a router's own configuration; what the backend refuses at load is an error here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from priority_router.config import SourceKind
from priority_router.interface import CLASS_TENSOR, TIMING_OUTPUTS
from priority_router.ops.rules.catalogue import router as rules
from priority_router.ops.rules.configs import (
    ONE_CPU_INSTANCE,
    PLAIN_BATCHING,
    Tensor,
    at,
    batching,
    config_file,
    levels,
    number,
    policy_file,
    queue_policies,
    section,
    served_versions,
    tensors,
)
from priority_router.ops.rules.finding import Finding
from priority_router.ops.rules.models import Model

_OWN: Final = (
    ("input", Tensor(0, CLASS_TENSOR, "TYPE_STRING", (1,), (1,), optional=True)),
    *(("output", Tensor(0, name, "TYPE_INT64", (1,), (1,), optional=False)) for name in sorted(TIMING_OUTPUTS)),
)
"""Tensors that a router has besides its executor's, wherever they stand."""


def check(router: Model) -> Iterator[Finding]:
    """All rules about a router that need neither its policy nor its executor."""
    yield from _instances(router)
    yield from _scheduling(router)
    yield from queue(router)
    yield from _extras(router)
    yield from _own_tensors(router)
    yield from _bf16(router)


def queue(router: Model) -> Iterator[Finding]:
    """The router's own queue in Triton, which must hand over everything at once; what it loads with all the same."""
    file = config_file(router)
    for policy in queue_policies(router):
        if found := policy.limits():
            yield Finding(
                rules.ROUTER_LIMITS,
                at(router, *policy.path),
                f"{file} has {', '.join(found)} in {policy.where}: Triton would turn requests away before the router "
                "sees them",
                f"write {PLAIN_BATCHING} in {file}, and set limits and timeouts in [[class]] of {policy_file(router)}",
            )
    if delay := number(batching(router), "max_queue_delay_microseconds"):
        yield Finding(
            rules.ROUTER_DELAY,
            at(router, "dynamic_batching", "max_queue_delay_microseconds"),
            f"{file} has max_queue_delay_microseconds: {delay}: every request may wait that much longer, and the "
            "router fills batches without a delay",
            f"write {PLAIN_BATCHING} in {file}",
        )


def _instances(router: Model) -> Iterator[Finding]:
    file = config_file(router)
    found = router.config.get("instance_group") or ()  # passive ones count as well
    written = [f"{number(group, 'count') or 1} x {group.get('kind', 'KIND_AUTO')}" for group in found]
    kinds = {group.get("kind", "KIND_AUTO") for group in found}
    fix = f"write {ONE_CPU_INSTANCE} in {file}"
    if sum(number(group, "count") or 1 for group in found) > 1 or not kinds <= {"KIND_CPU", "KIND_AUTO"}:
        what = (
            f"{file} has instances {', '.join(written)}: each would have a queue of its own, and the router does not "
            "load"
        )
        yield Finding(rules.ROUTER_INSTANCES, at(router, "instance_group"), what, fix)
    elif kinds != {"KIND_CPU"}:
        what = (
            f"{file} leaves the kind of its instance open: on a machine with GPUs there would be one for each, and the "
            "router does not load"
        )
        yield Finding(rules.ROUTER_KIND, at(router, "instance_group"), what, fix)
    versions = served_versions(router) or ()
    if len(versions) > 1:
        numbers = ", ".join(map(str, versions))
        yield Finding(
            rules.SEVERAL_VERSIONS,
            at(router, "version_policy"),
            f"{file} lets versions {numbers} serve at once: each is a router with a queue of its own",
            f"write version_policy {{ latest {{ num_versions: 1 }} }} in {file}",
        )


def _scheduling(router: Model) -> Iterator[Finding]:
    """What the router refuses to load with, and what makes Triton hand over one request at a time."""
    file, block = config_file(router), batching(router)
    if "sequence_batching" in router.config:
        yield Finding(
            rules.UNUSABLE_ROUTER,
            at(router, "sequence_batching"),
            f"{file} has sequence_batching, and a router joins requests of many callers: it does not load",
            f"write {PLAIN_BATCHING} in place of sequence_batching in {file}",
        )
    elif "dynamic_batching" not in router.config and number(router.config, "max_batch_size"):
        yield Finding(
            rules.NO_ROUTER_BATCHING,
            at(router),
            f"{file} has no dynamic_batching: Triton hands requests over one at a time",
            f"write {PLAIN_BATCHING} in {file}",
        )
    if block.get("preserve_ordering"):
        yield Finding(
            rules.UNUSABLE_ROUTER,
            at(router, "dynamic_batching", "preserve_ordering"),
            f"{file} has preserve_ordering: true, and an urgent answer would wait for every earlier one: the router "
            "does not load",
            f"remove preserve_ordering: true from {file}",
        )
    if section(router.config, "model_transaction_policy").get("decoupled"):
        yield Finding(
            rules.UNUSABLE_ROUTER,
            at(router, "model_transaction_policy", "decoupled"),
            f"{file} is decoupled, which HTTP and unary gRPC refuse: the router does not load",
            f"remove model_transaction_policy from {file}",
        )
    if count := levels(router):
        yield Finding(
            rules.ROUTER_LEVELS,
            at(router, "dynamic_batching", "priority_levels"),
            f"{file} has priority_levels: {count}: clients would order the queue in front of the router by a priority "
            "of their own, and the router does not load",
            f"write {PLAIN_BATCHING} in {file}: the order is that of the classes in {policy_file(router)}",
        )


def _extras(router: Model) -> Iterator[Finding]:
    file = config_file(router)
    for index, group in enumerate(router.config.get("instance_group") or ()):
        if group.get("rate_limiter"):
            yield Finding(
                rules.RATE_LIMITER,
                at(router, "instance_group", index, "rate_limiter"),
                f"{file} has a rate_limiter: with --rate-limit the router waits for resources that its executor holds",
                f"remove rate_limiter from {file}",
            )
    if router.config.get("model_warmup"):
        yield Finding(
            rules.ROUTER_WARMUP,
            at(router, "model_warmup"),
            f"{file} has a model_warmup: Triton runs it as a request, and the router loads only while its executor "
            "serves",
            f"remove model_warmup from {file}, and write it for the executor",
        )


def _own_tensors(router: Model) -> Iterator[Finding]:
    """``CLASS`` and the two times."""
    file = config_file(router)
    for kind, right in _OWN:
        tensor = tensors(router, kind).get(right.name)
        if tensor is not None and (tensor.data_type, tensor.dims) != (right.data_type, right.dims):
            yield Finding(
                rules.OWN_TENSORS,
                at(router, kind, tensor.index),
                f"{right.name} is {tensor.data_type} {list(tensor.dims)} in {file}, and must be {right.data_type} "
                f"{list(right.dims)}: the router does not load",
                f"write {right.entry()} in {file}",
            )
    if router.policy is None or all(source.kind is not SourceKind.TENSOR for source in router.policy.class_sources):
        return
    tensor = tensors(router, "input").get(CLASS_TENSOR)
    if tensor is None:
        what = f"{file} has no input {CLASS_TENSOR}, which class_sources names: requests that bring it are refused"
        yield Finding(
            rules.CLASS_INPUT, at(router, "input"), what, f"write {_OWN[0][1].entry()} among the inputs in {file}"
        )
    elif not tensor.optional:
        what = f"{CLASS_TENSOR} is not optional in {file}: requests without it are refused"
        fix = f"write optional: true for {CLASS_TENSOR} in {file}"
        yield Finding(rules.CLASS_INPUT, at(router, "input", tensor.index), what, fix)


def _bf16(router: Model) -> Iterator[Finding]:
    file = config_file(router)
    executor = router.policy.executor if router.policy is not None else "its executor"
    for kind in ("input", "output"):
        for tensor in tensors(router, kind).values():
            if tensor.data_type == "TYPE_BF16":
                yield Finding(
                    rules.BF16,
                    at(router, kind, tensor.index, "data_type"),
                    f"{kind} {tensor.name!r} is TYPE_BF16 in {file}, which Python cannot hold: the router does not "
                    "load",
                    f"write data_type: TYPE_FP32 for it in {file} and in the configuration of {executor}, which must "
                    "then take and give that",
                )
