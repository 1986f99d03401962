# SPDX-License-Identifier: Apache-2.0
"""All rules over all models of a repository."""

from __future__ import annotations

from collections.abc import Iterator

from priority_router.ops.rules import (
    ensembles,
    executor,
    files,
    levels,
    pair,
    policy,
    promises,
    queues,
    router,
    server,
    sharing,
    values,
)
from priority_router.ops.rules.configs import is_ensemble
from priority_router.ops.rules.finding import Finding
from priority_router.ops.rules.models import Model, Repository


def check(repository: Repository) -> list[Finding]:
    """Everything that is wrong, each once, model by model in the order of the repository."""
    found = [finding for model in repository.models.values() for finding in _model(model, repository)]
    return list(dict.fromkeys(found))


def _model(model: Model, repository: Repository) -> Iterator[Finding]:
    yield from files.check(model)
    yield from values.check(model)
    routers = [other for other in repository.models.values() if other.policy and other.policy.executor == model.name]
    yield from executor.fixed_batch_axis(model, routers)
    yield from executor.misfits(model)
    if is_ensemble(model):
        yield from ensembles.check(model, repository.models, repository.unreadable)
    if model.is_router:
        yield from _router(model, repository)
    else:
        yield from queues.check(model, max(map(_needed_levels, routers), default=0), routed=len(routers) > 0)


def _needed_levels(router: Model) -> int:
    """Levels that a router's executor must have."""
    policy = router.policy
    return max(levels.used(policy)) if policy is not None and policy.scheduling.levels else 0


def _router(model: Model, repository: Repository) -> Iterator[Finding]:
    yield from router.check(model)
    yield from executor.cache(model)
    yield from policy.check(model)
    if model.policy is None:
        return
    declared, models = model.policy, repository.models
    yield from promises.check(model, declared, repository.recorded(model))
    yield from server.check(model, declared, repository.thread_pool_size)
    circles = list(sharing.circle(model, declared, models))
    yield from circles
    called = None if circles else models.get(declared.executor)
    yield from pair.accepted(model, declared, called)
    if called is None:
        if not circles and declared.executor not in repository.unreadable:
            served = [*models, *repository.unreadable]
            yield sharing.missing_executor(model, declared, served, models)
        return
    if sharing.lacks_version(declared, called):
        yield sharing.missing_executor(model, declared, list(models), models)
    if is_ensemble(called):
        yield from sharing.ensemble(model, called, models)
    else:
        yield from executor.check(called, declared)
    yield from sharing.shared(model, declared, models)
    yield from pair.check(model, called, same_tensors=not any(True for _ in executor.misfits(called)))
