# SPDX-License-Identifier: Apache-2.0
"""The scenarios: one table of data. What they mean is in their words, how they run is in ``experiment``."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from priority_router.ops.bench.aims import ALL, ORACLE, Aim, Metric, at_least, at_most, step_name
from priority_router.ops.loads import (
    BACKGROUND,
    BELOW,
    FAST,
    LEVELS,
    LINEAR,
    ONLINE,
    ONLINE_OVERLOAD,
    OVERLOAD,
    QUIET,
    SHARED,
    ClassLoad,
    ExecutorShape,
    Load,
)

COMPARED: tuple[str, ...] = ("flat", "levels", "levels+hooks", "router", "router-plain")
"""What is run unless told otherwise: from what most servers have today to the router in both modes."""


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
        levels: class to level, 1 the most urgent.
        class_keys: by class further keys of its ``[[class]]`` in the policies; limits among them hold on every arm.
        trace: a file of recorded requests that is replayed in place of drawn ones; empty: none.
    """

    name: str
    meaning: str
    executor: ExecutorShape
    loads: tuple[ClassLoad, ...] = ()
    in_flight: tuple[int, ...] = ()
    seconds: float = 15.0
    warmup_seconds: float = 4.0
    grace_seconds: float = 3.0
    rounds: int = 5
    direct: tuple[str, ...] = ()
    aims: tuple[Aim, ...] = ()
    arms: tuple[str, ...] = COMPARED
    levels: Mapping[str, int] = field(default_factory=lambda: LEVELS)
    class_keys: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    trace: str = ""

    @property
    def urgent(self) -> str:
        """The name of the most urgent load that sends anything."""
        sending = [load for load in self.loads if load.rate > 0] or [ClassLoad(name, 0) for name in self.levels]
        return min(sending, key=lambda load: self.levels[load.of]).name

    @property
    def targets(self) -> dict[str, float | None]:
        """By class the latency in ms that its requests are to keep."""
        return {load.name: load.target_ms for load in self.loads}


AIMS: Mapping[str, tuple[Aim, ...]] = {
    "overload": (
        at_least(0.97, Metric("busy")),
        at_most(1.10, Metric("p50_ms", ONLINE), of_floor_ms=OVERLOAD.executor.floor_ms),
        at_most(1.10, Metric("p95_ms", ONLINE), of=ORACLE),
        at_most(1.30, Metric("p99_ms", ONLINE), of=ORACLE),
        # The oracle never rests and fills every batch: its background has what online leaves of the capacity.
        at_least(0.97, Metric("rows_per_s", BACKGROUND), of=ORACLE),
    ),
    "linear": (
        at_most(0.40, Metric("p50_ms", ONLINE), of="levels+hooks"),
        at_least(0.95, Metric("rows_per_s", ALL), of="levels+hooks"),
    ),
    "fast": (at_least(1.00, Metric("rows_per_s", ALL), of="levels+hooks"),),
    "shared": (
        at_most(0.10, Metric("p99_ms", ONLINE), of="router-plain"),
        at_most(1.50, Metric("p99_ms", ONLINE), of="levels+hooks"),
    ),
    "below": (
        at_most(1.10, Metric("p50_ms", ONLINE), of=ORACLE),
        at_most(1.20, Metric("p95_ms", ONLINE), of=ORACLE),
    ),
    "burst": (
        at_most(1.10, Metric("p50_ms", ONLINE), of=ORACLE),
        at_most(1.20, Metric("p95_ms", ONLINE), of=ORACLE),
        at_least(0.97, Metric("rows_per_s", BACKGROUND), of=ORACLE),
    ),
    "online-overload": (at_least(0.97, Metric("rows_per_s", ONLINE), of=ORACLE),),
    "no-contention": (at_most(1.10, Metric("p50_ms", ONLINE), of=ORACLE),),
    "overhead": (
        at_least(0.50, Metric("rows_per_s", step_name(64)), of="levels+hooks"),
        at_most(1.00, Metric("p50_ms", step_name(1)), above="levels+hooks"),
    ),
}
"""What the router is expected to reach, by scenario."""


def _open_loop(name: str, load: Load, words: str = "", **changes: Any) -> Scenario:
    """A scenario of a load; ``online`` and ``background`` among the changes are those of that class's load."""
    of_class = {one: changes.pop(one, {}) for one in LEVELS}
    classes = tuple(replace(one, **of_class[one.name]) for one in load.classes if one.rate > 0)
    meaning = _meaning(load) + words
    return Scenario(name, meaning, load.executor, classes, direct=load.direct, aims=AIMS.get(name, ()), **changes)


def _many_tenants(load: Load, heavy: float, tenants: int) -> Scenario:
    """One tenant of class background asks for more than there is, many others for a little each."""
    online = load.classes[0]
    names = tuple(f"light-{number}" for number in range(1, tenants + 1))
    light = ClassLoad("light tenants", load.background - heavy, 1000.0, tenants=names, class_name=BACKGROUND)
    one = ClassLoad("heavy tenant", heavy, tenants=("heavy",), class_name=BACKGROUND)
    words = f"; background is {tenants} tenants with {light.rate:g} together and one with {heavy:g}, shared by tenant"
    return Scenario(
        "tenants",
        _meaning(load) + words,
        load.executor,
        (online, light, one),
        class_keys={BACKGROUND: {"fair_by": "tenant"}},
    )


def _closed_loop(name: str, executor: ExecutorShape, in_flight: tuple[int, ...], **times: Any) -> Scenario:
    steps = " and ".join(map(str, in_flight))
    meaning = f"an executor that does nothing, up to {executor.max_batch_size} rows; {steps} requests in flight"
    return Scenario(name, meaning, executor, in_flight=in_flight, aims=AIMS[name], **times)


def _meaning(load: Load) -> str:
    executor = load.executor
    costs = ((executor.batch_us, "batch"), (executor.row_us, "row"))
    times = " and ".join(f"{cost / 1e3:g} ms per {unit}" for cost, unit in costs if cost)
    rates = " and ".join(f"{one.name} {one.rate:g}" for one in load.classes if one.rate > 0)
    words = f"{times}, up to {executor.max_batch_size} rows; {rates} rows/s, {load.demand:.2f} times the capacity"
    direct = "".join(f"; {name} calls the executor directly, at its default level" for name in load.direct)
    return words + direct


SCENARIOS: Mapping[str, Scenario] = {
    scenario.name: scenario
    for scenario in (
        _open_loop("overload", OVERLOAD),
        _open_loop("linear", LINEAR),
        _open_loop("fast", FAST),
        # On router-plain online waits behind all of the background's backlog, which takes that long to serve.
        _open_loop("shared", SHARED, grace_seconds=45.0, arms=COMPARED[1:]),
        _open_loop("below", BELOW),
        _open_loop(
            "burst",
            replace(OVERLOAD, online=8),
            "; online comes 16 at once, into the backlog",
            online={"arrivals": "burst", "burst_size": 16, "burst_start_s": 1.0},
        ),
        _open_loop(
            "large",
            replace(LINEAR, background=224),
            "; background comes in requests of a whole batch",
            background={"rows": 8, "rate": 28},
        ),
        _open_loop("online-overload", ONLINE_OVERLOAD),
        _open_loop("no-contention", QUIET),
        _many_tenants(replace(OVERLOAD, background=120), heavy=100, tenants=20),
        _closed_loop(
            "overhead",
            ExecutorShape(0, 0, max_batch_size=32),
            (1, 64),
            seconds=4.0,
            warmup_seconds=1.0,
            arms=(*COMPARED, "router-one-class"),
        ),
    )
}


def shortened(run: Mapping[str, Any], new_arms: Collection[str] = ()) -> str:
    """What of its scenario a run left out, in words; empty where nothing.

    Args:
        run: the scenario as it was run, as values of JSON; one of another name than any here is whole.
        new_arms: arms that there were not when it was run.
    """
    whole = SCENARIOS.get(run["name"])
    if whole is None:
        return ""
    left_out = [
        f"{run[key]:g} of {full:g} {unit}"
        for key, full, unit in (
            ("rounds", whole.rounds, "rounds"),
            ("seconds", whole.seconds, "s"),
            ("warmup_seconds", whole.warmup_seconds, "s of warm-up"),
        )
        if run[key] < full
    ]
    if missing := [arm for arm in whole.arms if arm not in (*run["arms"], *new_arms)]:
        left_out.append(f"without {', '.join(missing)}")
    return f"shortened: {', '.join(left_out)}" if left_out else ""
