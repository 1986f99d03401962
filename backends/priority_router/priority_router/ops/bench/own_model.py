# SPDX-License-Identifier: Apache-2.0
"""A router of one's own as the thing that is measured: its facts, and a scenario's loads fitted to it.

Law: configurations and numbers in, values out; nothing is asked or started here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from priority_router.errors import SetupError
from priority_router.ops.bench import model_inputs
from priority_router.ops.bench.model_inputs import Input
from priority_router.ops.bench.scenarios import Scenario
from priority_router.ops.loads import ExecutorShape


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a router and its executor.

    Attributes:
        router: name of the router's model; empty where there is none.
        executor: name of the executor's.
        inputs: of both.
        batched: requests have a batch axis.
        max_batch_size: of the executor, at least 1.
        instances: of the executor.
        levels: its ``priority_levels``; 0 without.
    """

    router: str
    executor: str
    inputs: Sequence[Input]
    batched: bool
    max_batch_size: int
    instances: int
    levels: int

    @property
    def takes(self) -> int:
        """Rows that the executor takes at once."""
        return self.max_batch_size * self.instances


def facts(router: str, executor: str, config: Mapping[str, Any]) -> Facts:
    """Of an executor's configuration, as JSON."""
    most = int(config.get("max_batch_size", 0))
    batching = config.get("dynamic_batching") or {}
    groups = config.get("instance_group") or [{}]
    instances = sum(int(group.get("count", 1)) * max(1, len(group.get("gpus", ()))) for group in groups)
    return Facts(
        router=router,
        executor=executor,
        inputs=model_inputs.of_config(config),
        batched=most > 0,
        max_batch_size=max(1, most),
        instances=instances,
        levels=int(batching.get("priority_levels", 0)),
    )


def fitted(scenario: Scenario, known: Facts, capacity: float) -> Scenario:
    """A scenario that asks of an executor what it asked of its own: the same shares of what it can do.

    Args:
        scenario: with an executor of its own.
        known: the executor that there is.
        capacity: its rows per second.

    Raises:
        SetupError: the scenario's executor takes no time, so that its loads are no share of anything.
    """
    if scenario.in_flight:
        return replace(scenario, executor=_shape(known, capacity))
    if not scenario.executor.full_batch_us:
        raise SetupError(f"{scenario.name}: its loads are no share of what an executor can do; write a plan")
    shape = _shape(known, capacity)
    share = capacity / scenario.executor.rows_per_s
    slower = shape.full_batch_us / scenario.executor.full_batch_us
    loads = []
    for load in scenario.loads:
        rows = max(1, min(known.max_batch_size, load.rows))
        target = None if load.target_ms is None else load.target_ms * slower
        loads.append(replace(load, rate=load.rate * share * load.rows / rows, rows=rows, target_ms=target))
    asked = sum(load.rate * load.rows for load in loads) / capacity
    rates = " and ".join(f"{load.name} {load.rate * load.rows:.3g}" for load in loads)
    meaning = f"{scenario.name} on {known.router or known.executor}: {rates} rows/s, {asked:.2f} times its capacity"
    return replace(scenario, executor=shape, loads=tuple(loads), meaning=meaning, aims=())


def _shape(known: Facts, capacity: float) -> ExecutorShape:
    """An executor with that capacity whose batches cost the same whatever their size."""
    return ExecutorShape(round(known.takes / capacity * 1e6), 0, known.max_batch_size, known.instances)


def renamed(scenario: Scenario, names: Sequence[str]) -> Scenario:
    """A scenario whose classes have other names, the most urgent one first.

    Raises:
        SetupError: there are fewer names than classes.
    """
    before = sorted(scenario.levels, key=lambda name: scenario.levels[name])
    if len(names) < len(before):
        raise SetupError(f"{scenario.name} has the classes {', '.join(before)}; name as many of the router's")
    to = dict(zip(before, [*names[: len(before) - 1], names[-1]], strict=True))
    return replace(
        scenario,
        loads=tuple(
            replace(load, name=to.get(load.name, load.name), class_name=to.get(load.class_name, ""))
            for load in scenario.loads
        ),
        direct=tuple(to[name] for name in scenario.direct),
        levels={to[name]: level for name, level in scenario.levels.items()},
        class_keys={to[name]: keys for name, keys in scenario.class_keys.items()},
        aims=(),
    )
