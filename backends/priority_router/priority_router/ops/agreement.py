# SPDX-License-Identifier: Apache-2.0
"""Does a router agree with its executor? Both load without it; what is wrong then shows under load, or never.

Law: pure; Triton's own configurations as JSON and a policy in, sentences out: what is wrong, where, what to write.
"""

from __future__ import annotations

import difflib
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from priority_router.config import POLICY_FILE, RouterPolicy
from priority_router.interface import CLASS_TENSOR, TIMING_OUTPUTS
from priority_router.policy_fields import LATEST_VERSION

_Config = Mapping[str, Any]

_OVERRIDE: Final = "allow_timeout_override: true"
"""By itself it only stops Triton from preparing a batch ahead, which levels do anyway."""

_STALL: Final = "without the dispatch hook Triton may wait up to 500 ms between batches"


def missing_executor(router: str, policy: RouterPolicy, served: Iterable[str]) -> str:
    """The executor is not there.

    Args:
        router: the router's name.
        policy: its policy.
        served: names of the models that serve.
    """
    others = sorted(set(served) - {router})
    wanted = "" if policy.executor_version == LATEST_VERSION else f" version {policy.executor_version}"
    if policy.executor in others:
        remedy = f"it serves another version; correct executor_version in {router}'s {POLICY_FILE}, or leave it out"
    elif close := difflib.get_close_matches(policy.executor, others, n=1):
        remedy = f'did you mean executor = "{close[0]}" in {router}\'s {POLICY_FILE}?'
    else:
        remedy = f"load it, or correct executor in {router}'s {POLICY_FILE} (served: {', '.join(others) or 'no other'})"
    return (
        f"router {router!r}: its executor {policy.executor!r}{wanted} is not loaded, and the router answers "
        f"UNAVAILABLE; {remedy}"
    )


def disagreements(policy: RouterPolicy, router: _Config, executor: _Config) -> list[str]:
    """Compares a router with its executor.

    Args:
        policy: of the router.
        router: its configuration, as ``GET /v2/models/NAME/config`` answers it.
        executor: that of the model that it calls.

    Returns:
        One sentence for each fault, the router's name first; empty when they agree.
    """
    faults = [
        *_shape(policy, executor),
        *_queue(policy, executor),
        *_router_batching(router),
        *_inputs(router, executor),
        *_outputs(router, executor),
    ]
    return [f"router {_name(router)!r}: {fault}" for fault in faults]


def _shape(policy: RouterPolicy, executor: _Config) -> Iterator[str]:
    declared, actual = policy.scheduling.max_batch_size, _number(executor, "max_batch_size")
    if declared != actual:
        effect = "larger batches fail" if declared > actual else "batches stay smaller than they may be"
        yield _policy_says("max_batch_size", declared, actual, executor, effect)
    instances, found = policy.scheduling.instances, _instances(executor)
    if instances != found and not _is_ensemble(executor):
        effect = "what cannot run yet waits in Triton" if instances > found else "some instances stay idle"
        yield _policy_says("instances", instances, found, executor, effect)


def _policy_says(key: str, declared: int, actual: int, executor: _Config, effect: str) -> str:
    return (
        f"executor_shape.{key} is {declared} in {POLICY_FILE} and {actual} in executor {_name(executor)!r}: {effect}; "
        f"write {key} = {actual} in {POLICY_FILE}"
    )


def _is_ensemble(config: _Config) -> bool:
    """Such a model has no queue and no instances of its own; those of its steps are theirs."""
    return "ensemble_scheduling" in config


def _instances(config: _Config) -> int:
    return sum(
        _number(group, "count") * max(1, len(group.get("gpus") or ()))
        for group in config.get("instance_group") or ()
        if not group.get("passive")
    )


def _queue(policy: RouterPolicy, executor: _Config) -> Iterator[str]:
    """What the executor's own queue does with the router's calls."""
    file = _file(executor)
    if "sequence_batching" in executor:
        yield f"{file} has sequence_batching, so that it refuses the router's calls; write dynamic_batching {{ }}"
        return
    if _is_ensemble(executor):
        return
    batching = executor.get("dynamic_batching") or {}
    levels = _number(batching, "priority_levels")
    if policy.scheduling.levels:
        used = {traffic_class.level for traffic_class in policy.scheduling.classes}
        lowest = max(used)
        if levels < lowest:
            yield (
                f"{POLICY_FILE} uses levels up to {lowest} and {file} has {levels or 'no'} priority_levels: Triton "
                f"serves the others at its default level; write dynamic_batching {{ priority_levels: {lowest} "
                f"default_priority_level: {lowest} }} in {file}"
            )
        strict = [found for found in _strict_policies(batching, used) if found[1] != _OVERRIDE]
        effect = "it turns the router's calls away"
    else:
        if levels:
            yield (
                f'mode = "plain" in {POLICY_FILE} and priority_levels: {levels} in {file}: {_STALL}; remove '
                'priority_levels, or set mode = "levels"'
            )
        strict = list(_strict_policies(batching))
        effect = f"it may turn the router's calls away, and {_STALL}"
    for where, limits in strict:
        yield (
            f"{file} has {limits} in {where}: {effect}; leave the policy empty, and set limits and timeouts in "
            f"[[class]] of {POLICY_FILE}"
        )
    yield from _delay(batching, file)


def _strict_policies(batching: _Config, used: Container[int] | None = None) -> Iterator[tuple[str, str]]:
    """Queue policies that are not Triton's defaults: where, and the settings; of the levels used, or of all."""
    policies = {"default_queue_policy": batching.get("default_queue_policy") or {}}
    for level, found in sorted((batching.get("priority_queue_policy") or {}).items()):
        if used is None or int(level) in used:
            policies[f"priority_queue_policy {level}"] = found
    for where, found in policies.items():
        limits = [
            f"{key}: {_number(found, key)}"
            for key in ("default_timeout_microseconds", "max_queue_size")
            if _number(found, key)
        ]
        if found.get("allow_timeout_override"):
            limits.append(_OVERRIDE)
        if limits:
            yield where, ", ".join(limits)


def _router_batching(router: _Config) -> Iterator[str]:
    """The router's own queue in Triton, which must hand over everything at once."""
    file = _file(router)
    if "sequence_batching" in router:
        yield f"{file} has sequence_batching, so that no request can work; write dynamic_batching {{ }}"
    batching = router.get("dynamic_batching") or {}
    if levels := _number(batching, "priority_levels"):
        yield (
            f"{file} has priority_levels: {levels}: clients would order the queue in front of the router by a priority "
            f"of their own; write dynamic_batching {{ }}, the classes are in {POLICY_FILE}"
        )
    for where, limits in _strict_policies(batching):
        yield (
            f"{file} has {limits} in {where}: Triton would turn requests away before the router sees them; "
            f"write dynamic_batching {{ }}, and set limits and timeouts in [[class]] of {POLICY_FILE}"
        )
    yield from _delay(batching, file)


def _delay(batching: _Config, file: str) -> Iterator[str]:
    if delay := _number(batching, "max_queue_delay_microseconds"):
        yield (
            f"{file} has max_queue_delay_microseconds: {delay}: every request may wait that much longer; remove it, "
            "the router fills batches without a delay"
        )


def _inputs(router: _Config, executor: _Config) -> Iterator[str]:
    routed, called = _tensors(router, "input"), _tensors(executor, "input")
    routed.pop(CLASS_TENSOR, None)
    for name, tensor in routed.items():
        if name not in called:
            yield _unknown("input", name, called, router, executor)
            continue
        yield from _different("input", tensor, called[name], router, executor)
        if tensor.get("optional") and not called[name].get("optional"):
            yield (
                f"input {name!r} is optional in {_file(router)} and not in {_file(executor)}: requests without it "
                f"fail; remove optional: true from {_file(router)}"
            )
    for name, tensor in called.items():
        if name not in routed and not tensor.get("optional"):
            yield (
                f"executor {_name(executor)!r} needs the input {name!r}, which the router does not take: every request "
                f"fails; add {{ {_entry(tensor)} }} to the inputs in {_file(router)}"
            )


def _outputs(router: _Config, executor: _Config) -> Iterator[str]:
    called = _tensors(executor, "output")
    for name, tensor in _tensors(router, "output").items():
        if name in TIMING_OUTPUTS:
            continue
        if name in called:
            yield from _different("output", tensor, called[name], router, executor)
        else:
            yield _unknown("output", name, called, router, executor)


def _unknown(kind: str, name: str, known: Iterable[str], router: _Config, executor: _Config) -> str:
    return (
        f"{kind} {name!r} in {_file(router)} is none of executor {_name(executor)!r} (it has {', '.join(known)}): "
        f"requests with it fail; remove it from {_file(router)}, or correct its name"
    )


def _different(kind: str, ours: _Config, theirs: _Config, router: _Config, executor: _Config) -> Iterator[str]:
    if ours.get("data_type") != theirs.get("data_type") or not _fit(_dims(ours), _dims(theirs)):
        yield (
            f"{kind} {ours['name']!r} is {_kind(ours)} in {_file(router)} and {_kind(theirs)} in executor "
            f"{_name(executor)!r}: requests fail; write {_entry(theirs)} in {_file(router)}"
        )


def _fit(ours: Sequence[int], theirs: Sequence[int]) -> bool:
    """Some shape fits both; -1 is any length."""
    return len(ours) == len(theirs) and all(a == b or -1 in (a, b) for a, b in zip(ours, theirs, strict=True))


def _tensors(config: _Config, kind: str) -> dict[str, _Config]:
    return {str(tensor["name"]): tensor for tensor in config.get(kind) or ()}


def _dims(tensor: _Config) -> list[int]:
    return [int(length) for length in tensor.get("dims") or ()]


def _kind(tensor: _Config) -> str:
    return f"{tensor.get('data_type')} {_dims(tensor)}"


def _entry(tensor: _Config) -> str:
    lengths = ", ".join(map(str, _dims(tensor)))
    return f'name: "{tensor["name"]}" data_type: {tensor.get("data_type")} dims: [ {lengths} ]'


def _number(config: _Config, key: str) -> int:
    return int(config.get(key) or 0)


def _name(config: _Config) -> str:
    return str(config.get("name", ""))


def _file(config: _Config) -> str:
    return f"{_name(config)}/config.pbtxt"
