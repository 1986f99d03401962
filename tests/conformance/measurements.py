# SPDX-License-Identifier: Apache-2.0
"""Checks of the rules that show only in numbers: latencies, rows/s and busy share on the virtual clock.

The limits lie between what the scheduler reaches and what is left of it without the rule; both are noted beside them.
"""

from __future__ import annotations

from conformance.checks import check
from priority_router.core.scheduler import Scheduler
from priority_router.core.values import SECOND, SchedulingPolicy
from priority_router.ops.simulate.arrivals import Stream, own_signatures, traffic
from priority_router.ops.simulate.clock import Delay
from priority_router.ops.simulate.comparison import Numbers, simulate
from priority_router.ops.simulate.executor import Call, ExecutorShape
from priority_router.ops.simulate.scenarios import BACKGROUND, ONLINE, SCENARIOS, Scenario
from priority_router.ops.simulate.simulation import USUAL_DELAYS, Delays, Setup, Simulation
from priority_router.ops.simulate.summary import summarize


def _run(name: str, seconds: int, **changes: object) -> Numbers:
    scenario = SCENARIOS[name]
    values = {field: getattr(scenario, field) for field in Scenario.__dataclass_fields__}
    return simulate(Scenario(**{**values, **changes}), Scheduler, 1, seconds * SECOND)


def _times(factor: int) -> Delays:
    usual = USUAL_DELAYS
    return Delays(
        *(
            Delay(factor * way.least, factor * way.mean_extra)
            for way in (usual.hand_over, usual.call, usual.reply, usual.timer)
            if isinstance(way, Delay)
        )
    )


@check
def a_linear_executor_serves_urgent_work_in_small_batches() -> None:
    assert _run("linear", 30).online_p50 < 10


@check
def urgent_work_does_not_cost_the_executor_its_rows() -> None:
    assert _run("base-and-slope", 20).rows_per_s > 0.9 * 613


@check
def the_executor_is_kept_busy() -> None:
    assert _run("fast", 15).busy > 0.95


@check
def the_executor_is_kept_busy_behind_slow_ways() -> None:
    assert _run("fast", 15, delays=_times(2)).busy > 0.93


@check
def a_newcomer_waits_for_half_a_batch_and_its_own() -> None:
    assert _run("overload", 60).online_p50 < 85


@check
def a_newcomer_waits_no_longer_where_every_request_is_of_another_shape() -> None:
    """Their times are known from their row count, so they are sent ahead just in time all the same."""
    duration = 60 * SECOND
    mix = own_signatures()
    streams = [Stream("online", 3, signature=mix), Stream("background", 27, signature=mix)]
    setup = Setup(ExecutorShape(1, 1), SCENARIOS["overload"].times)
    simulation = Simulation(Scheduler(SchedulingPolicy((ONLINE, BACKGROUND))), setup, traffic(streams, 1, duration), 1)
    simulation.run()
    classes = summarize(simulation.arrived, simulation.answered, simulation.class_names, (5 * SECOND, duration))
    assert classes["online"].p50 < 90


@check
def both_instances_are_kept_busy_by_small_dispatches() -> None:
    numbers = _run("two-instances", 25)
    assert numbers.busy > 0.96
    assert numbers.online_p99 < 21


@check
def a_long_execution_is_not_taken_for_the_median() -> None:
    assert _run("two-humped", 120).online_p99 < 900


@check
def a_shared_executor_serves_urgent_work_by_level() -> None:
    assert _run("shared", 60).online_p50 < 90


@check
def at_most_one_dispatch_per_instance_starts_past_a_more_urgent_arrival() -> None:
    for name, levels in (("overload", True), ("linear", False), ("fast", True), ("two-instances", False)):
        scenario = SCENARIOS[name]
        most = most_started_past(scenario, levels, seconds=12)
        assert most <= scenario.instances, f"{name}: {most} less urgent dispatches started past an arrival"


def most_started_past(scenario: Scenario, levels: bool, seconds: int) -> int:
    """Most less urgent dispatches that began to run between a level-1 arrival and the start of its first row.

    Seen from the executor. Counted once every row count was tried: what is not known yet is sent ahead at once.
    """
    duration = seconds * SECOND
    setup = Setup(ExecutorShape(scenario.instances, scenario.max_batch_size, levels), scenario.times, scenario.delays)
    policy = scenario.policy()
    simulation = Simulation(Scheduler(policy), setup, scenario.everything(1, duration), 1)
    started_at: dict[int, int] = {}
    less_urgent: list[int] = []

    def note(calls: list[Call]) -> None:
        for call in calls:
            _, dispatch = call.owner
            if simulation.class_names[dispatch.parts[0].request_id] != "online":
                less_urgent.append(simulation.loop.now)
            for part in dispatch.parts:
                started_at.setdefault(part.request_id, simulation.loop.now)

    simulation.executor.on_batch_start = note
    simulation.run()
    urgent = [
        (simulation.arrived[number], start)
        for number, start in started_at.items()
        if simulation.class_names[number] == "online" and simulation.arrived[number] > 3 * SECOND
    ]
    assert len(urgent) > 50, "too few to tell"
    return max(sum(arrived < start <= begun for start in less_urgent) for arrived, begun in urgent)
