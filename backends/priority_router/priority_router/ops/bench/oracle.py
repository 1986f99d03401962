# SPDX-License-Identifier: Apache-2.0
"""The oracle beside a run: the best that its arrivals could have had from an executor that takes what this one took.

Law: pure; ledgers and summaries in, summaries out. Times are means by rows of a batch, over all arms of a round, since
Triton counts sums; so the oracle knows no batch that took longer than another of its size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from priority_router.core.values import MILLISECOND, SECOND, SchedulingPolicy, TrafficClass
from priority_router.ops.bench import table
from priority_router.ops.bench.aims import ORACLE
from priority_router.ops.bench.ledger import Ledger
from priority_router.ops.bench.scenarios import Scenario
from priority_router.ops.bench.stats import RoundSummary
from priority_router.ops.simulate import run
from priority_router.ops.simulate.arrivals import Arrival
from priority_router.ops.simulate.clock import Drawn
from priority_router.ops.simulate.counted import FEWEST
from priority_router.ops.simulate.executor import ExecutorShape
from priority_router.ops.simulate.profile import MeasuredTimes, Profile
from priority_router.ops.simulate.simulation import NO_DELAYS

MEANING: Final = "the best that could be, simulated with the executor's own times: nothing travels, nothing is learned"


def of_round(scenario: Scenario, due: Ledger, arms: Mapping[str, RoundSummary]) -> RoundSummary | None:
    """What a round's arrivals could have had.

    Args:
        scenario: that was run.
        due: of any arm; of its requests only class, rows and scheduled time count.
        arms: that finished the round; their executors' times are taken together.

    Returns:
        As of an arm; None where there is no oracle: closed loops, classes with limits or tenants, requests that do not
        fit a batch, or no executions that were counted.
    """
    shape = scenario.executor
    times = execution_ms(list(arms.values()))
    if scenario.in_flight or scenario.class_keys or not times or int(due.rows.max(initial=1)) > shape.max_batch_size:
        return None
    levels = {load.name: scenario.levels[load.of] for load in scenario.loads}
    policy = SchedulingPolicy(
        tuple(TrafficClass(name, level) for name, level in levels.items()),
        instances=shape.instances,
        max_batch_size=shape.max_batch_size,
    )
    measured = MeasuredTimes({rows: Drawn((round(ms * MILLISECOND),)) for rows, ms in times.items()})
    arrivals = [
        Arrival(at, due.classes[index], rows)
        for at, index, rows in zip(due.scheduled.tolist(), due.class_index.tolist(), due.rows.tolist(), strict=True)
    ]
    plan = run.Plan(
        policy,
        Profile(ExecutorShape(shape.instances, shape.max_batch_size), measured, 0, NO_DELAYS),
        lambda _seed: arrivals,
        due.duration,
        int(scenario.warmup_seconds * SECOND),
        settle=[scenario.urgent],
        grace=int(scenario.grace_seconds * SECOND),
    )
    return run.ideal(plan, seed=0)


def execution_ms(summaries: Sequence[RoundSummary]) -> dict[int, float]:
    """Mean time of an execution by its rows over several arms, ms; without row counts that were hardly ever seen."""
    sums: dict[int, float] = {}
    counts: dict[int, int] = {}
    for summary in summaries:
        for rows, mean in summary.execution_ms.items():
            count = summary.batches[rows]
            sums[int(rows)] = sums.get(int(rows), 0.0) + count * mean
            counts[int(rows)] = counts.get(int(rows), 0) + count
    return {rows: sums[rows] / counts[rows] for rows in sorted(sums) if counts[rows] >= FEWEST}


def as_json(rounds: Sequence[Mapping[str, RoundSummary]], ideals: Sequence[RoundSummary | None]) -> Any:
    """The oracle as the result file has it; None without one.

    Args:
        rounds: of the run.
        ideals: the oracle's, for each of them.
    """
    known = [one for one in ideals if one is not None]
    if not known:
        return None
    over = table.over_rounds(known)
    return {
        "meaning": MEANING,
        "classes": {name: _class(one) for name, one in over["classes"].items()},
        "busy": over["busy"],
        "mean_batch": over["mean_batch"],
        "rounds": [
            None
            if ideal is None
            else {
                "execution_ms": {str(rows): mean for rows, mean in execution_ms(list(finished.values())).items()},
                "classes": {
                    name: {"outcomes": one.outcomes, "rows_per_s": one.rows_per_s, "latency": one.latency}
                    for name, one in ideal.classes.items()
                },
                "busy": ideal.busy,
                "mean_batch": ideal.mean_batch,
            }
            for finished, ideal in zip(rounds, ideals, strict=True)
        ],
    }


def _class(one: Mapping[str, Any]) -> dict[str, Any]:
    return {key: one[key] for key in ("outcomes", "rows_per_s", "latency")}


def table_rows(ideals: Sequence[RoundSummary | None]) -> dict[str, Any]:
    """The oracle as one more arm of a `table`; empty without one."""
    known = [one for one in ideals if one is not None]
    return {ORACLE: table.over_rounds(known)} if known else {}
