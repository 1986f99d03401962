# SPDX-License-Identifier: Apache-2.0
"""The scheduler against simpler rules and against the best that could be reached, on the same arrivals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any, Final

from priority_router.core.scheduler import Scheduler
from priority_router.core.values import SECOND, SchedulingPolicy
from priority_router.ops.simulate.baselines import FixedDepth
from priority_router.ops.simulate.oracle import Oracle
from priority_router.ops.simulate.scenarios import BACKGROUND, ONLINE, Scenario
from priority_router.ops.simulate.simulation import SchedulerLike, Simulation
from priority_router.ops.simulate.summary import ClassSummary, summarize

SCHEMA: Final = "priority-router-simulated/1"

WARM_UP: Final = 5 * SECOND
"""Not counted: the scheduler learns, queues fill."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """What one arm did; latencies in ms, of requests that arrived after the warm-up.

    Attributes:
        busy: share of the executor's time spent running.
        rows_per_s: rows that the executor began per second.
        online_p50: of class ``online``, arrival to answer.
        online_p95: the same, 95th percentile.
        online_p99: the same, 99th percentile.
        background_p50: of class ``background``; 0.0 where it does not pass the scheduler.
    """

    busy: float
    rows_per_s: float
    online_p50: float
    online_p95: float
    online_p99: float
    background_p50: float


def _one_at_a_time(policy: SchedulingPolicy) -> SchedulerLike:
    return FixedDepth(policy, policy.instances)


def _two_in_flight(policy: SchedulingPolicy) -> SchedulerLike:
    return FixedDepth(policy, 2 * policy.instances)


def _client_levels(policy: SchedulingPolicy) -> SchedulerLike:
    """Every request goes to Triton's own queue at once, as clients do that set a level; dispatch is prompt."""
    return FixedDepth(policy, in_flight=1 << 62, joins=False)


SCHEDULERS: Final[Mapping[str, Callable[[SchedulingPolicy], SchedulerLike]]] = {
    "router": Scheduler,
    "one at a time": _one_at_a_time,
    "two in flight": _two_in_flight,
    "client-set levels + hook": _client_levels,
}
ORACLE: Final = "oracle"


def simulate(
    scenario: Scenario, make: Callable[[SchedulingPolicy], SchedulerLike], seed: int, duration: int
) -> Numbers:
    """One run of a scheduler over ``duration`` ns of arrivals."""
    window = (WARM_UP, duration)
    scheduler = make(scenario.policy())
    simulation = Simulation(scheduler, scenario.setup(seed, duration, window), scenario.routed(seed, duration), seed)
    simulation.run()
    classes = summarize(simulation.arrived, simulation.answered, simulation.class_names, window)
    return _numbers(scenario, simulation.executor.busy, simulation.executor.rows, classes, window)


def ideal(scenario: Scenario, seed: int, duration: int) -> Numbers:
    """The same for the oracle, to which all requests go, whatever the scenario."""
    window = (WARM_UP, duration)
    oracle = Oracle(scenario.policy(), scenario.times, seed, window)
    oracle.run(scenario.everything(seed, duration))
    classes = summarize(oracle.arrived, oracle.answered, oracle.class_names, window)
    return _numbers(scenario, oracle.busy, oracle.rows, classes, window)


def compare(scenario: Scenario, seeds: Sequence[int], duration: int) -> dict[str, Numbers]:
    """Every arm's numbers, each the mean over the seeds."""
    arms = {ORACLE: _mean([ideal(scenario, seed, duration) for seed in seeds])}
    for name, make in SCHEDULERS.items():
        arms[name] = _mean([simulate(scenario, make, seed, duration) for seed in seeds])
    return arms


def document(results: Mapping[str, Mapping[str, Numbers]], seeds: Sequence[int], duration: int) -> dict[str, Any]:
    """What goes into the result file."""
    return {
        "schema": SCHEMA,
        "seeds": list(seeds),
        "seconds": duration / SECOND,
        "warmup_seconds": WARM_UP / SECOND,
        "scenarios": {
            scenario: {arm: _rounded(numbers) for arm, numbers in arms.items()} for scenario, arms in results.items()
        },
    }


def lines(name: str, arms: Mapping[str, Numbers]) -> Iterator[str]:
    """A scenario as a table to read."""
    yield f"{name:26} {'busy':>6} {'rows/s':>8} {'online p50':>11} {'p95':>8} {'p99 ms':>8} {'background p50':>15}"
    for arm, n in arms.items():
        yield (
            f"  {arm:24} {n.busy:6.3f} {n.rows_per_s:8.1f} {n.online_p50:11.1f} {n.online_p95:8.1f} "
            f"{n.online_p99:8.1f} {n.background_p50:15.1f}"
        )


def _numbers(
    scenario: Scenario, busy: int, rows: int, classes: Mapping[str, ClassSummary], window: tuple[int, int]
) -> Numbers:
    span = window[1] - window[0]
    online, background = classes[ONLINE.name], classes.get(BACKGROUND.name)
    return Numbers(
        busy / (span * scenario.instances),
        rows * SECOND / span,
        online.p50,
        online.p95,
        online.p99,
        background.p50 if background is not None else 0.0,
    )


def _mean(runs: Sequence[Numbers]) -> Numbers:
    columns = zip(*(asdict(run).values() for run in runs), strict=True)
    return Numbers(*(fmean(column) for column in columns))


def _rounded(numbers: Numbers) -> dict[str, float]:
    return {key: round(value, 4 if key == "busy" else 2) for key, value in asdict(numbers).items()}
