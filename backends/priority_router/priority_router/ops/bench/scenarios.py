# SPDX-License-Identifier: Apache-2.0
"""The scenarios: one table of data. What they mean is in their words, how they run is in ``experiment``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from priority_router.ops.bench.aims import ALL, Aim, Metric
from priority_router.ops.bench.arms import ARMS, ExecutorShape
from priority_router.ops.bench.arrivals import ClassLoad

ONLINE = "online"
BACKGROUND = "background"
LEVELS: Mapping[str, int] = {ONLINE: 1, BACKGROUND: 2}


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

    @property
    def floor_ms(self) -> float:
        """Mean time of a newcomer that cannot preempt: half of the batch that runs, and its own, both full."""
        rows = self.executor.max_batch_size
        return 1.5 * (self.executor.batch_us + rows * self.executor.row_us) / 1e3


def step_name(in_flight: int) -> str:
    """What a closed-loop step is called where a class name stands."""
    return f"{in_flight} in flight"


_OVERLOAD_EXECUTOR = ExecutorShape(batch_us=50_000, row_us=0, max_batch_size=4)
_OVERLOAD_FLOOR_MS = 75.0
_OVERLOAD_LOADS = (ClassLoad(ONLINE, 16), ClassLoad(BACKGROUND, 110))

SCENARIOS: Mapping[str, Scenario] = {
    scenario.name: scenario
    for scenario in (
        Scenario(
            "overload",
            "50 ms per batch of up to 4; online 16 and background 110 rows/s, 1.6 times the capacity",
            _OVERLOAD_EXECUTOR,
            _OVERLOAD_LOADS,
            aims=(
                Aim("executor busy", Metric("busy"), 0.96, at_most=False),
                Aim(
                    "online p50 / floor of 75 ms (half a batch + its own)",
                    Metric("p50_ms", ONLINE),
                    1.10,
                    at_most=True,
                    base=_OVERLOAD_FLOOR_MS,
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
        Scenario(
            "linear",
            "4.1 ms per row, batches of up to 8; online 20 and background 230 rows/s, just above the capacity",
            ExecutorShape(batch_us=0, row_us=4_100, max_batch_size=8),
            (ClassLoad(ONLINE, 20), ClassLoad(BACKGROUND, 230)),
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
        Scenario(
            "fast",
            "5 ms per batch of up to 4; online 100 and background 800 rows/s, 1.1 times the capacity",
            ExecutorShape(batch_us=5_000, row_us=0, max_batch_size=4),
            (ClassLoad(ONLINE, 100), ClassLoad(BACKGROUND, 800)),
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
        Scenario(
            "shared",
            "as overload, but background calls the executor directly at its default level",
            _OVERLOAD_EXECUTOR,
            _OVERLOAD_LOADS,
            # On router-plain online waits behind all of the background's backlog, which takes that long to serve.
            grace_seconds=45.0,
            direct=(BACKGROUND,),
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
