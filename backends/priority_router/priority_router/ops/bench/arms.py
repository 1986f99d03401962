# SPDX-License-Identifier: Apache-2.0
"""The arms: ways to serve two classes with one executor, each with a model repository and a server of its own.

All arms run the same executor with the same batch size, instances and limits; they differ in who decides the order, if
anybody does.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from priority_router.config import POLICY_FILE
from priority_router.interface import BACKEND, CLASS_TENSOR, EXECUTOR_OUTPUT, QUEUE_OUTPUT
from priority_router.ops.bench.wire import Route
from priority_router.ops.loads import ExecutorShape

EXECUTOR = "executor"
ROUTER = "router"

LIMITS: Final = ("max_queue_size", "default_timeout_microseconds", "allow_timeout_override", "timeout_action")
"""Keys of a class that Triton's own queue policies have under the same names."""

_ROUTER_BATCHES = 16
"""Largest request that a router accepts, in executor batches: what the documents advise."""


ClassKeys = Mapping[str, Mapping[str, Any]]
"""By class further keys of its ``[[class]]`` in ``policy.toml``."""


@dataclass(frozen=True, slots=True)
class Arm:
    """One way to serve.

    Attributes:
        name: as reports and the command line have it.
        meaning: one line for people.
        hooks: the server has the hooks preloaded.
        mode: the router's mode; None means that clients call the executor themselves, without a router.
        executor_levels: the executor has ``priority_levels``.
        alike: all requests go the way of the least urgent class.
    """

    name: str
    meaning: str
    hooks: bool
    mode: str | None
    executor_levels: bool = True
    alike: bool = False


ARMS: Mapping[str, Arm] = {
    arm.name: arm
    for arm in (
        Arm("flat", "all requests alike, stock Triton", hooks=False, mode=None, executor_levels=False, alike=True),
        Arm("flat-levels", "all requests on the lowest of Triton's levels", hooks=False, mode=None, alike=True),
        Arm("levels", "clients set the level, stock Triton", hooks=False, mode=None),
        Arm("levels+hooks", "clients set the level, with the dispatch hook", hooks=True, mode=None),
        Arm("router", "router in levels mode, with the hooks", hooks=True, mode="levels"),
        Arm(
            "router-plain", "router in plain mode, nothing preloaded", hooks=False, mode="plain", executor_levels=False
        ),
        Arm("router-one-class", "router in levels mode, all requests in one class", True, "levels", alike=True),
    )
}


def write_repository(
    repository: Path,
    arm: Arm,
    shape: ExecutorShape,
    levels: Mapping[str, int],
    shared: bool = False,
    class_keys: ClassKeys | None = None,
) -> None:
    """Writes an arm's models.

    Args:
        repository: an existing empty folder.
        arm: decides on the router and on the executor's batching.
        shape: the executor.
        levels: class name to level, 1 the most urgent.
        shared: clients also call the executor directly.
        class_keys: see `ClassKeys`; limits among them are the executor's where there is no router.
    """
    keys = class_keys or {}
    write_executor(repository / EXECUTOR, shape, executor_batching(arm, levels, keys))
    if arm.mode is not None:
        _write_router(
            repository / ROUTER, policy_text(arm.mode, EXECUTOR, shape, known(arm, levels), shared, keys), shape
        )


def known(arm: Arm, levels: Mapping[str, int]) -> dict[str, int]:
    """The classes that an arm's router tells apart, with their levels: all of them, or the least urgent one."""
    lowest = max(levels.values())
    return {name: level for name, level in levels.items() if not arm.alike or level == lowest}


def executor_batching(arm: Arm, levels: Mapping[str, int], class_keys: ClassKeys) -> str:
    """The executor's ``dynamic_batching`` on an arm.

    With a router the limits are the router's. Without, those of a level are those of its first class; where there are
    no levels, all have those of the least urgent class.
    """
    limits: dict[int, Mapping[str, Any]] = {}
    if arm.mode is None:
        for name, level in levels.items():
            limits.setdefault(level, {key: one for key, one in class_keys.get(name, {}).items() if key in LIMITS})
    count = max(levels.values())
    if arm.executor_levels:
        return batching_block(count, limits)
    shared = _queue_policy(limits.get(count, {}))
    return f"dynamic_batching {{ default_queue_policy {shared} }}" if shared != "{ }" else batching_block(0)


def batching_block(levels: int, limits: Mapping[int, Mapping[str, Any]] | None = None) -> str:
    """A ``dynamic_batching`` with an explicit policy for each of ``levels``, empty without limits; plain with 0."""
    if not levels:
        return "dynamic_batching { }"
    given = limits or {}
    policies = ", ".join(
        f"{{ key: {level} value {_queue_policy(given.get(level, {}))} }}" for level in range(1, levels + 1)
    )
    return (
        f"dynamic_batching {{ priority_levels: {levels} default_priority_level: {levels} "
        f"priority_queue_policy [ {policies} ] }}"
    )


def _queue_policy(limits: Mapping[str, Any]) -> str:
    words = [f"{key}: {str(value).lower() if isinstance(value, bool) else value}" for key, value in limits.items()]
    return f"{{ {' '.join(words)} }}" if words else "{ }"


def write_executor(folder: Path, shape: ExecutorShape, batching: str) -> None:
    """Writes the sleeping executor into a model folder."""
    (folder / "1").mkdir(parents=True)
    shutil.copyfile(Path(__file__).with_name("sleeping_executor.py"), folder / "1" / "model.py")
    parameters = "".join(
        f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n'
        for key, value in (("batch_us", shape.batch_us), ("row_us", shape.row_us))
    )
    (folder / "config.pbtxt").write_text(
        f'name: "{folder.name}"\n'
        'backend: "python"\n'
        f"max_batch_size: {shape.max_batch_size}\n"
        'input [ { name: "X" data_type: TYPE_FP32 dims: [ 4 ] } ]\n'
        'output [ { name: "Y" data_type: TYPE_FP32 dims: [ 4 ] } ]\n'
        f"instance_group [ {{ kind: KIND_CPU count: {shape.instances} }} ]\n"
        f"{batching}\n{parameters}"
    )


def _write_router(folder: Path, policy: str, shape: ExecutorShape) -> None:
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").write_text(
        f'name: "{folder.name}"\n'
        f'backend: "{BACKEND}"\n'
        f"max_batch_size: {_ROUTER_BATCHES * shape.max_batch_size}\n"
        'input [ { name: "X" data_type: TYPE_FP32 dims: [ 4 ] },\n'
        f'        {{ name: "{CLASS_TENSOR}" data_type: TYPE_STRING dims: [ 1 ] optional: true }} ]\n'
        'output [ { name: "Y" data_type: TYPE_FP32 dims: [ 4 ] },\n'
        f'         {{ name: "{QUEUE_OUTPUT}" data_type: TYPE_INT64 dims: [ 1 ] }},\n'
        f'         {{ name: "{EXECUTOR_OUTPUT}" data_type: TYPE_INT64 dims: [ 1 ] }} ]\n'
        "instance_group [ { kind: KIND_CPU count: 1 } ]\n"
        "dynamic_batching { }\n"
    )
    (folder / "1" / POLICY_FILE).write_text(policy)


def policy_text(
    mode: str,
    executor: str,
    shape: ExecutorShape,
    levels: Mapping[str, int],
    shared: bool,
    class_keys: ClassKeys | None = None,
) -> str:
    """A ``policy.toml``, without limits and timeouts but those in ``class_keys``.

    Plain mode knows no shared executor, so there it is left out.
    """
    lines = ["policy_version = 1", f'mode = "{mode}"', f"executor = {json.dumps(executor)}"]
    if shared:
        lines.append("shared_executor = true" if mode == "levels" else "guard_executor = false")
    lines += ["[executor_shape]", f"instances = {shape.instances}", f"max_batch_size = {shape.max_batch_size}"]
    for name, level in levels.items():
        lines += ["[[class]]", f"name = {json.dumps(name)}", f"level = {level}"]
        lines += [f"{key} = {json.dumps(value)}" for key, value in (class_keys or {}).get(name, {}).items()]
    return "\n".join(lines) + "\n"


def routes(arm: Arm, levels: Mapping[str, int], direct: Collection[str] = ()) -> dict[str, Route]:
    """How each class is sent on an arm.

    Args:
        arm: the arm.
        levels: class name to level.
        direct: classes that call the executor even where there is a router.

    Returns:
        By class name. The lowest level is the executor's default and is not written into requests; an executor
        without levels gets none at all.
    """
    lowest = max(levels.values())
    made = {}
    for name, level in levels.items():
        if arm.mode is not None and name not in direct:
            made[name] = Route(ROUTER, class_name=None if arm.alike else name)
        else:
            marked = arm.executor_levels and level < lowest and not arm.alike
            made[name] = Route(EXECUTOR, {"priority": level} if marked else None)
    return made
