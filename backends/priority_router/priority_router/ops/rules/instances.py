# SPDX-License-Identifier: Apache-2.0
"""How many instances an executor has, over all its GPUs, as far as its configuration says it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from priority_router.config import RouterPolicy
from priority_router.ops.rules import backends
from priority_router.ops.rules.catalogue import executor as executor_rules
from priority_router.ops.rules.catalogue import together as rules
from priority_router.ops.rules.configs import (
    at,
    backend,
    config_file,
    cpu_instances,
    groups,
    in_policy,
    is_ensemble,
    number,
    policy_file,
)
from priority_router.ops.rules.finding import Finding
from priority_router.ops.rules.models import Config, Model


@dataclass(frozen=True, slots=True)
class Total:
    """What a configuration says of the number.

    Attributes:
        fixed: numbers that it may be, before those on GPUs that it does not name.
        each: more on every GPU of the machine, or once where there is none; 0 for no more.
    """

    fixed: frozenset[int]
    each: int

    def fits(self, total: int) -> bool:
        """Whether the total may be that."""
        if not self.each:
            return total in self.fixed
        return any(total > base and (total - base) % self.each == 0 for base in self.fixed)

    def nearest(self, total: int) -> int:
        """The largest possible total that is not above one, else the least of all."""
        base = max(self.fixed)
        return base + self.each * max(1, (total - base) // self.each) if self.each else base

    def near(self, total: int) -> str:
        """In words, from the nearest one on: ``2 and 2 more for each further GPU``."""
        return f"{self.nearest(total)}{f' and {self.each} more for each further GPU' if self.each else ''}"


def on_each_device(group: Config, backend_name: str) -> int | None:
    """Instances of a group on each of its devices; None where that is left to the device or to the backend."""
    written = number(group, "count")
    if written > 0:
        return written
    cpu, gpu = (backends.default_count(backend_name, on_cpu=on_cpu) for on_cpu in (True, False))
    kind = group.get("kind", "KIND_AUTO")
    if kind == "KIND_AUTO":
        return gpu if cpu == gpu else None
    return cpu if kind == "KIND_CPU" else gpu


def counted(model: Model) -> Total | None:
    """The number of instances; None without groups, and where a count is left to the machine or to a backend."""
    totals, each = {0}, 0
    for _, group in groups(model):
        count, kind = on_each_device(group, backend(model)), group.get("kind", "KIND_AUTO")
        if count is None:
            return None
        if model.completed or group.get("gpus") or kind in ("KIND_CPU", "KIND_MODEL"):
            # Triton runs a group that names GPUs and no kind on the CPU where one of them is missing.
            choices = {count * _places(group), count} if kind == "KIND_AUTO" else {count * _places(group)}
            totals = {total + choice for total, choice in itertools.product(totals, choices)}
        else:
            each += count
    return Total(frozenset(totals), each) if groups(model) else None


def assumed(model: Model) -> int:
    """The number, where whatever is left to the machine or to a backend counts as one."""
    if (found := counted(model)) is not None:
        return found.nearest(0)
    written = (_places(group) * (on_each_device(group, backend(model)) or 1) for _, group in groups(model))
    return max(1, sum(written))


def check(router: Model, policy: RouterPolicy, executor: Model) -> Iterator[Finding]:
    """The policy's number against the executor's."""
    declared, found = policy.scheduling.instances, counted(executor)
    if found is None or found.fits(declared):
        return
    right = found.nearest(declared)
    per_gpu = f", {found.each} on each GPU" if found.each else ""
    effect = "what cannot run yet waits in Triton" if declared > right else "some instances stay idle"
    yield Finding(
        rules.INSTANCES_DIFFER,
        in_policy(router, "executor_shape", "instances"),
        f"executor_shape.instances is {declared} in {policy_file(router)} and {found.near(declared)} in "
        f"{config_file(executor)}: {effect}",
        f"write instances = {right} in {policy_file(router)}{per_gpu}",
    )


def open_count(executor: Model, policy: RouterPolicy) -> Iterator[Finding]:
    """A number that Triton picks, which need not be the policy's."""
    if executor.completed or is_ensemble(executor) or counted(executor) is not None:
        return
    found = groups(executor)
    file = config_file(executor)
    if not found:
        passive = executor.config.get("instance_group")
        has = "passive instance_groups only" if passive else "no instance_group"
        yield Finding(
            executor_rules.COUNT_MISSING,
            at(executor, "instance_group"),
            f"{file} has {has}: {'none takes calls' if passive else 'Triton picks how many instances there are'}",
            f"write {cpu_instances(policy.scheduling.instances)} in {file}, or the kind that is wanted",
        )
        return
    known = [(index, group, on_each_device(group, backend(executor))) for index, group in found]
    missing = [(index, _places(group)) for index, group, count in known if count is None]
    rest = policy.scheduling.instances - sum(_places(group) * (count or 0) for _, group, count in known)
    count = max(1, rest // sum(places for _, places in missing))
    for index, _ in missing:
        yield Finding(
            executor_rules.COUNT_MISSING,
            at(executor, "instance_group", index),
            f"{file} has an instance_group without a count: Triton picks how many instances there are",
            f"write count: {count} in that instance_group of {file}",
        )


def every_gpu(executor: Model) -> Iterator[Finding]:
    """Groups that Triton starts anew on each GPU."""
    if executor.completed:
        return
    for index, group in groups(executor):
        if group.get("kind") == "KIND_GPU" and not group.get("gpus"):
            yield Finding(
                executor_rules.EVERY_GPU,
                at(executor, "instance_group", index),
                f"{config_file(executor)} has an instance_group of KIND_GPU without gpus: Triton starts its count on "
                "each GPU of the machine",
                f"write gpus: [ 0 ], or those that are meant, in that instance_group of {config_file(executor)}",
            )


def _places(group: Config) -> int:
    return 1 if group.get("kind") == "KIND_CPU" else max(1, len(group.get("gpus") or ()))
