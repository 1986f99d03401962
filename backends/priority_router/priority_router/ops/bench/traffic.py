# SPDX-License-Identifier: Apache-2.0
"""What a scenario's classes send: the requests that each may choose from, and the arrivals of a round.

Law: values in, values out; a trace was read by somebody else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from priority_router.core.values import SECOND
from priority_router.ops.bench import arrivals
from priority_router.ops.bench.arrivals import Schedule
from priority_router.ops.bench.load import Variant
from priority_router.ops.bench.scenarios import Scenario
from priority_router.ops.bench.wire import Tensor
from priority_router.ops.simulate.arrivals import Arrival

Inputs = Mapping[str, Tensor]

Payloads = Callable[[int], Sequence[Inputs]]
"""The inputs to choose from for a request of so many rows, at least one."""

Trace = Sequence[Arrival]
"""Recorded requests in order of time."""


def variants(scenario: Scenario, trace: Trace | None, payloads: Payloads) -> dict[str, list[Variant]]:
    """By class the requests that it chooses from: each kind of request with each payload."""
    return {
        load.name: [
            Variant(inputs, tenant) for rows, tenant in _kinds(scenario, trace, load.name) for inputs in payloads(rows)
        ]
        for load in scenario.loads
    }


def schedule(
    scenario: Scenario, trace: Trace | None, choices: Mapping[str, Sequence[Variant]], seed: int, number: int
) -> Schedule:
    """The arrivals of a round, warm-up included, the same on every arm.

    Args:
        scenario: whose loads are sent.
        trace: what is replayed in place of drawn arrivals.
        choices: of `variants`.
        seed: of the run.
        number: of the round.
    """
    duration_s = scenario.warmup_seconds + scenario.seconds
    counts = [len(choices[load.name]) for load in scenario.loads]
    if trace is None:
        return arrivals.drawn(scenario.loads, duration_s, (seed, number), counts, scenario.warmup_seconds)
    random = np.random.default_rng((seed, number))
    times: list[NDArray[np.float64]] = []
    chosen: list[NDArray[np.int64]] = []
    for load, count in zip(scenario.loads, counts, strict=True):
        kinds = {kind: place for place, kind in enumerate(_kinds(scenario, trace, load.name))}
        each = count // len(kinds)
        own = [one for one in trace if one.class_name == load.name]
        times.append(np.array([one.time / SECOND for one in own]))
        first = np.array([kinds[one.rows, one.tenant] * each for one in own], dtype=np.int64)
        chosen.append(first + random.integers(each, size=len(own), dtype=np.int64))
    return arrivals.recorded([load.name for load in scenario.loads], times, chosen, duration_s)


def _kinds(scenario: Scenario, trace: Trace | None, name: str) -> list[tuple[int, str]]:
    """The pairs of rows and tenant that a class sends."""
    if trace is not None:
        found = sorted({(one.rows, one.tenant) for one in trace if one.class_name == name})
        return found or [(1, "")]
    load = next(one for one in scenario.loads if one.name == name)
    return [(load.rows, tenant) for tenant in load.tenants or ("",)]
