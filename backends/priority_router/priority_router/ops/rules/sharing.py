# SPDX-License-Identifier: Apache-2.0
"""Who calls which executor: missing ones, circles, ensembles, and executors with more than one caller."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from priority_router.config import RouterPolicy
from priority_router.ops.rules import levels, tensors
from priority_router.ops.rules.catalogue import executor as executor_rules
from priority_router.ops.rules.catalogue import together as rules
from priority_router.ops.rules.configs import (
    at,
    in_policy,
    is_ensemble,
    joined,
    policy_file,
    served_versions,
    steps,
)
from priority_router.ops.rules.configs import levels as level_count
from priority_router.ops.rules.finding import Finding
from priority_router.ops.rules.models import Model
from priority_router.policy_fields import LATEST_VERSION

Models = Mapping[str, Model]

_MOST_NAMED: Final = 4
"""Models that a fix offers to choose from."""


def missing_executor(router: Model, policy: RouterPolicy, served: Collection[str], models: Models) -> Finding:
    """The executor, or its version, is not there.

    Args:
        router: whose executor.
        policy: its policy.
        served: names of the models that are there.
        models: those of them that are known.
    """
    file = policy_file(router)
    others = sorted(set(served) - {router.name})
    wanted = "" if policy.executor_version == LATEST_VERSION else f" version {policy.executor_version}"
    key = "executor"
    if policy.executor in others:
        key = "executor_version"
        fix = f"remove executor_version = {policy.executor_version} from {file}, or correct it"
    elif close := difflib.get_close_matches(policy.executor, others, n=1):
        fix = f"write {_named(router, close, models)}, if that is meant"
    elif candidates := _candidates(router, models):
        fix = f"add that model, or write {_named(router, candidates, models)}"
    else:
        fix = f"load it, or correct executor in {file} (there is {', '.join(others) or 'no other model'})"
    return Finding(
        rules.NO_EXECUTOR,
        in_policy(router, key),
        f"executor {policy.executor!r}{wanted} of router {router.name!r} is not there, and the router answers "
        "UNAVAILABLE",
        fix,
    )


def lacks_version(policy: RouterPolicy, executor: Model) -> bool:
    """Whether the policy asks for a version of the executor that does not serve."""
    served = served_versions(executor)
    return policy.executor_version != LATEST_VERSION and served is not None and policy.executor_version not in served


def circle(router: Model, policy: RouterPolicy, models: Models) -> Iterator[Finding]:
    """A router as executor: itself, another, or behind an ensemble."""
    executor = models.get(policy.executor)
    place, file = in_policy(router, "executor"), policy_file(router)
    if policy.executor == router.name:
        what = f"router {router.name!r} is its own executor in {file}: it does not load"
    elif executor is not None and executor.is_router:
        what = (
            f"executor {policy.executor!r} of router {router.name!r} is a router as well: requests wait in two queues, "
            "and in the second their classes are unknown"
        )
    elif executor is not None and router.name in _reached(executor, models):
        what = (
            f"executor {policy.executor!r} of router {router.name!r} is an ensemble that calls the router: calls never "
            "end"
        )
    else:
        return
    behind = [executor.policy.executor] if executor is not None and executor.policy is not None else []
    inside = _reached(executor, models) if executor is not None else set()
    candidates = [name for name in _candidates(router, models) if name in {*behind, *inside}] or _candidates(
        router, models
    )
    named = _named(router, candidates, models) if candidates else f"the model that does the work, in {file}"
    yield Finding(rules.ROUTER_AS_EXECUTOR, place, what, f"write {named}")


def ensemble(router: Model, executor: Model, models: Models) -> Iterator[Finding]:
    """An ensemble as executor."""
    inside = _reached(executor, models)
    candidates = [name for name in _candidates(router, models) if name in inside]
    file = policy_file(router)
    named = f"write {_named(router, candidates, models)}" if candidates else f"name the model that works in {file}"
    yield Finding(
        executor_rules.ENSEMBLE_EXECUTOR,
        at(executor, "ensemble_scheduling"),
        f"executor {executor.name!r} of router {router.name!r} is an ensemble, without a queue, levels or instances of "
        "its own",
        f"{named}, and let the ensemble call the router in its place",
    )


def shared(router: Model, policy: RouterPolicy, models: Models) -> Iterator[Finding]:
    """Others call the executor as well, and the router does not know."""
    if policy.scheduling.shared_executor or policy.executor not in models:
        return
    others = _other_callers(router, policy.executor, policy.executor_version, models)
    if not others:
        return
    kinds = joined([f"{'router' if other.is_router else 'ensemble'} {other.name!r}" for other in others])
    routers = [router] if policy.scheduling.levels else [router, *(other for other in others if _is_plain(other))]
    yield Finding(
        rules.SHARED,
        in_policy(router, "shared_executor"),
        f"executor {policy.executor!r} of router {router.name!r} is called by {kinds} as well, and "
        f"{policy_file(router)} does not say so",
        f"write {_sharing(routers, policy.executor, models)}",
    )


def _other_callers(router: Model, executor: str, version: int, models: Models) -> list[Model]:
    """Routers and ensembles that call the same version of a model."""
    return [
        other
        for other in models.values()
        if other.name != router.name
        and any(name == executor and _same(version, theirs, models.get(executor)) for name, theirs in _called(other))
    ]


def _called(caller: Model) -> list[tuple[str, int]]:
    if caller.policy is not None:
        return [(caller.policy.executor, caller.policy.executor_version)]
    return list(steps(caller))


def _same(ours: int, theirs: int, executor: Model | None) -> bool:
    """Whether two versions are, or may be, one; any below 1 is the latest."""
    served = served_versions(executor) if executor is not None else None
    latest = max(served) if served else LATEST_VERSION
    first, second = (version if version > 0 else latest for version in (ours, theirs))
    return first == second or LATEST_VERSION in (first, second)


def _sharing(routers: Iterable[Model], executor: str, models: Models) -> str:
    """What to write so that each of some routers knows that others call its executor; plain mode has no way to."""
    parts, plain = [], []
    for router in routers:
        if router.policy is not None and not router.policy.scheduling.levels:
            plain.append(router.policy)
            parts.append(f'mode = "levels" and shared_executor = true in {policy_file(router)}')
        else:
            parts.append(f"shared_executor = true in {policy_file(router)}")
    if plain and executor in models:
        most = max(plain, key=lambda policy: max(levels.used(policy)))
        if level_count(models[executor]) < max(levels.used(most)):
            parts.append(levels.to_write(models[executor], most))
    return joined(parts)


def _named(router: Model, names: Sequence[str], models: Models) -> str:
    """Other executors to name in a policy, with what sharing one of them needs besides."""
    choices = []
    for name in names[:_MOST_NAMED]:
        choice = f'executor = "{name}" in {policy_file(router)}'
        if others := _other_callers(router, name, LATEST_VERSION, models):
            unaware = [
                caller
                for caller in (router, *others)
                if caller.policy is not None and not caller.policy.scheduling.shared_executor
            ]
            choice += f" with {_sharing(unaware, name, models)}" if unaware else ""
        choices.append(choice)
    return joined(choices, "or")


def _candidates(router: Model, models: Models) -> list[str]:
    """Models that may be an executor, those whose tensors the router has before others."""
    found = [
        name for name, model in models.items() if name != router.name and not model.is_router and not is_ensemble(model)
    ]
    return sorted(found, key=lambda name: any(True for _ in tensors.check(router, models[name])))


def _reached(model: Model, models: Models) -> set[str]:
    """All models that an ensemble calls, those of ensembles in it included."""
    found: set[str] = set()
    waiting = [model]
    while waiting:
        for name, _ in steps(waiting.pop()):
            if name not in found:
                found.add(name)
                waiting += [models[name]] if name in models else []
    return found


def _is_plain(model: Model) -> bool:
    return model.policy is not None and not model.policy.scheduling.levels
