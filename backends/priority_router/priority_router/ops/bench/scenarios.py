# SPDX-License-Identifier: Apache-2.0
"""The scenarios: one table of data. What they mean is in their words, how they run is in ``experiment``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from priority_router.ops.bench.aims import ALL, Aim, Metric
from priority_router.ops.bench.arms import ARMS
from priority_router.ops.loads import FAST, LINEAR, ONLINE, OVERLOAD, SHARED, ClassLoad, ExecutorShape, Load


@dataclass(frozen=True, slots=True)
class Scenario:
    """One experiment.

    Attributes:
        name: as on the command line.
        meaning: one line for people.
        executor: the executor of all arms.
        loads: open-loop classes; empty when ``in_flight`` is given.
        in_flight: closed-loop steps, each so many requests of class online at a time; empty when ``loads`` is given.
        seconds: that count, per arm and round (closed loop: per step).
        warmup_seconds: before them, not counted.
        grace_seconds: after the last arrival, how long at most to wait for the replies of class online.
        rounds: how often each arm runs.
        direct: classes that call the executor even on the router's arms.
        aims: what is expected.
        arms: in the order in which the first round runs them.
    """

    name: str
    meaning: str
    executor: ExecutorShape
    loads: tuple[ClassLoad, ...] = ()
    in_flight: tuple[int, ...] = ()
    seconds: float = 25.0
    warmup_seconds: float = 5.0
    grace_seconds: float = 3.0
    rounds: int = 3
    direct: tuple[str, ...] = ()
    aims: tuple[Aim, ...] = ()
    arms: tuple[str, ...] = tuple(ARMS)


def step_name(in_flight: int) -> str:
    """What a closed-loop step is called where a class name stands."""
    return f"{in_flight} in flight"


def _open_loop(name: str, load: Load, aims: tuple[Aim, ...], **times: float) -> Scenario:
    return Scenario(
        name,
        _meaning(load),
        load.executor,
        load.classes,
        direct=load.direct,
        aims=aims,
        **times,  # type: ignore[arg-type]
    )


def _meaning(load: Load) -> str:
    executor = load.executor
    costs = ((executor.batch_us, "batch"), (executor.row_us, "row"))
    times = " and ".join(f"{cost / 1e3:g} ms per {unit}" for cost, unit in costs if cost)
    rates = " and ".join(f"{one.name} {one.rate:g}" for one in load.classes)
    words = f"{times}, up to {executor.max_batch_size} rows; {rates} rows/s, {load.demand:.2f} times the capacity"
    direct = "".join(f"; {name} calls the executor directly, at its default level" for name in load.direct)
    return words + direct


SCENARIOS: Mapping[str, Scenario] = {
    scenario.name: scenario
    for scenario in (
        _open_loop(
            "overload",
            OVERLOAD,
            aims=(
                Aim("executor busy", Metric("busy"), 0.96, at_most=False),
                Aim(
                    "online p50 / floor of 75 ms (half a batch + its own)",
                    Metric("p50_ms", ONLINE),
                    1.10,
                    at_most=True,
                    base=OVERLOAD.executor.floor_ms,
                ),
                Aim(
                    "online p99 / that of levels",
                    Metric("p99_ms", ONLINE),
                    0.6,
                    at_most=True,
                    base=Metric("p99_ms", ONLINE, "levels"),
                ),
            ),
        ),
        _open_loop(
            "linear",
            LINEAR,
            seconds=20.0,
            aims=(
                Aim(
                    "online p50 / that of levels+hooks",
                    Metric("p50_ms", ONLINE),
                    0.5,
                    at_most=True,
                    base=Metric("p50_ms", ONLINE, "levels+hooks"),
                ),
                Aim(
                    "rows/s / those of levels+hooks",
                    Metric("rows_per_s", ALL),
                    0.95,
                    at_most=False,
                    base=Metric("rows_per_s", ALL, "levels+hooks"),
                ),
            ),
        ),
        _open_loop(
            "fast",
            FAST,
            seconds=15.0,
            warmup_seconds=4.0,
            aims=(
                Aim(
                    "rows/s / those of levels+hooks",
                    Metric("rows_per_s", ALL),
                    0.95,
                    at_most=False,
                    base=Metric("rows_per_s", ALL, "levels+hooks"),
                ),
            ),
        ),
        _open_loop(
            "shared",
            SHARED,
            # On router-plain online waits behind all of the background's backlog, which takes that long to serve.
            grace_seconds=45.0,
            aims=(
                Aim(
                    "online p99 / that of router-plain",
                    Metric("p99_ms", ONLINE),
                    0.1,
                    at_most=True,
                    base=Metric("p99_ms", ONLINE, "router-plain"),
                    arms=("router",),
                ),
                Aim(
                    "online p99 / that of levels+hooks",
                    Metric("p99_ms", ONLINE),
                    1.5,
                    at_most=True,
                    base=Metric("p99_ms", ONLINE, "levels+hooks"),
                ),
            ),
        ),
        Scenario(
            "overhead",
            "an executor that does nothing, batches of up to 32; closed loop, 1 and 64 requests in flight",
            ExecutorShape(batch_us=0, row_us=0, max_batch_size=32),
            in_flight=(1, 64),
            seconds=5.0,
            warmup_seconds=1.0,
            aims=(
                Aim(
                    "rows/s at 64 in flight / those of levels+hooks",
                    Metric("rows_per_s", step_name(64)),
                    0.40,
                    at_most=False,
                    base=Metric("rows_per_s", step_name(64), "levels+hooks"),
                ),
                Aim(
                    "p50 at 1 in flight - that of levels+hooks, ms",
                    Metric("p50_ms", step_name(1)),
                    1.2,
                    at_most=True,
                    base=Metric("p50_ms", step_name(1), "levels+hooks"),
                    by="difference",
                ),
            ),
        ),
    )
}
