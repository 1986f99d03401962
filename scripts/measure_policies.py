# SPDX-License-Identifier: Apache-2.0
"""Measures how far bounds and shares are exceeded when predictions are wrong, by the simulator.

Writes docs/results/policies.json, from which scripts/results.py takes the table in docs/policies.md. The router's own
scheduler on a virtual clock; every run has its seed, so the same numbers come out. Runs with the Python of .venv, in
about half a minute.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from priority_router.core.scheduler import Scheduler
from priority_router.core.values import MILLISECOND, SECOND, Dispatch, SchedulingPolicy, TrafficClass
from priority_router.ops import command_line, result_file
from priority_router.ops.simulate.arrivals import Stream, few_signatures, rows_up_to, traffic
from priority_router.ops.simulate.executor import Call, ExecutorShape, ServiceTimes
from priority_router.ops.simulate.simulation import NO_DELAYS, Setup, Simulation

RESULT: Final = Path(__file__).resolve().parents[1] / "docs" / "results" / "policies.json"
SECONDS: Final = 240
SEED: Final = 1
WARM_UP: Final = 10 * SECOND
"""Not counted: until then some row counts are not measured yet."""

MS: Final = MILLISECOND
ROWS: Final = 8
ACCURATE: Final = ServiceTimes(4 * MS, 4 * MS)
WRONG: Final = 0.6
"""By so much, as a share of the mean, every execution may be shorter or longer."""

SLOWDOWN: Final = 4.0
"""The slowest a drifting executor gets, in times of its fastest: as far apart as the ends of ``WRONG``."""

ARMS: Final[Mapping[str, ServiceTimes]] = {
    "accurate": ACCURATE,
    "each wrong": replace(ACCURATE, spread=WRONG),
    "drifting": replace(ACCURATE, base=1_600_000, per_row=1_600_000, peak=SLOWDOWN, period=60 * SECOND),
}
"""Times of the executor, in the mean alike."""

CAPACITY: Final = ROWS * SECOND / ACCURATE.expected(ROWS, 0)
"""Rows per second."""

BUDGET: Final = 21 * MS
MAX_WAIT: Final = SECOND
SHARES: Final = {"reports": 0.2, "batch": 0.1}


@dataclass(frozen=True, slots=True)
class Execution:
    """One dispatch that ran.

    Attributes:
        dispatch: what was sent.
        start: ns.
        end: ns.
    """

    dispatch: Dispatch
    start: int
    end: int


def play(
    policy: SchedulingPolicy, times: ServiceTimes, streams: Sequence[Stream], seconds: int, seed: int
) -> tuple[Simulation, list[Execution]]:
    """One run without any ways outside the executor, and what ran after the warm-up."""
    setup = Setup(ExecutorShape(policy.instances, policy.max_batch_size), times, NO_DELAYS, dispatch_overhead=0)
    simulation = Simulation(Scheduler(policy), setup, traffic(streams, seed, seconds * SECOND), seed)
    ran: list[Execution] = []
    ended = simulation.executor.on_batch_end

    def note(calls: list[Call]) -> None:
        for call in calls:
            if call.start >= WARM_UP:
                ran.append(Execution(call.owner[1], call.start, simulation.loop.now))
        ended(calls)

    simulation.executor.on_batch_end = note
    simulation.run(seconds * SECOND)
    return simulation, ran


def blocking(times: ServiceTimes, seconds: int = SECONDS, seed: int = SEED) -> dict[str, float]:
    """How far less urgent dispatches exceed ``BUDGET``."""
    policy = SchedulingPolicy(
        (TrafficClass("online", 1, max_blocking=BUDGET), TrafficClass("background", 2)), max_batch_size=ROWS
    )
    mix = few_signatures(2)
    streams = [
        Stream("online", 0.2 * CAPACITY, signature=mix),
        Stream("background", 0.4 * CAPACITY / ROWS, rows_up_to(2 * ROWS), mix, burst=3),
    ]
    _, ran = play(policy, times, streams, seconds, seed)
    took = [each.end - each.start for each in ran if each.dispatch.level > 1]
    return {
        "dispatches": len(took),
        "over_budget_percent": round(100 * sum(time > BUDGET for time in took) / len(took), 2),
        "longest_in_budgets": round(max(took) / BUDGET, 2),
    }


def age(times: ServiceTimes, seconds: int = SECONDS, seed: int = SEED) -> dict[str, float]:
    """How long background waits at most for its start beside urgent bursts: with ``MAX_WAIT``, and by arrival alone."""
    return {
        "longest_wait_ms": round(longest_wait(MAX_WAIT, times, seconds, seed) / MS),
        "by_arrival_ms": round(longest_wait(1, times, seconds, seed) / MS),
    }


def longest_wait(max_wait: int, times: ServiceTimes, seconds: int, seed: int) -> int:
    """Of a background request for its start, ns; a bound of 1 ns serves everybody in order of arrival."""
    policy = SchedulingPolicy((TrafficClass("online", 1), TrafficClass("background", 2, max_wait=max_wait)))
    single = SECOND / ACCURATE.expected(1, 0)
    streams = [Stream("online", 0.75 * single, burst=10), Stream("background", 0.1 * single)]
    simulation, ran = play(policy, times, streams, seconds, seed)
    starts = [(each.dispatch.parts[0].request_id, each.start) for each in ran]
    return max(at - simulation.arrived[who] for who, at in starts if simulation.class_names[who] == "background")


def shares(times: ServiceTimes, seconds: int = SECONDS, seed: int = SEED) -> dict[str, float]:
    """Percent of the executor's time that each class got, of two instances, while all have work."""
    policy = SchedulingPolicy(
        (
            TrafficClass("online", 1),
            TrafficClass("reports", 2, min_share=SHARES["reports"]),
            TrafficClass("batch", 3, min_share=SHARES["batch"]),
        ),
        instances=2,
        max_batch_size=ROWS,
    )
    mix, most = few_signatures(2), 2 * CAPACITY * ACCURATE.per_row / times.per_row
    streams = [
        Stream("online", 1.1 * most, signature=mix),
        Stream("reports", 0.4 * most / ((1 + ROWS) / 2), rows_up_to(ROWS), mix),
        Stream("batch", 0.2 * most / ROWS, rows_up_to(2 * ROWS), mix, burst=4),
    ]
    simulation, ran = play(policy, times, streams, seconds, seed)
    spent = dict.fromkeys((each.name for each in policy.classes), 0.0)
    for each in ran:
        for part in each.dispatch.parts:
            spent[simulation.class_names[part.request_id]] += (each.end - each.start) * part.rows / each.dispatch.rows
    total = sum(spent.values())
    return {f"{name}_percent": round(100 * spent[name] / total, 2) for name in SHARES}


MEASURED: Final[Mapping[str, Callable[[ServiceTimes], dict[str, float]]]] = {
    "blocking": blocking,
    "age": age,
    "shares": shares,
}


def main(words: list[str] | None = None) -> int:
    """Runs the script; returns the exit status."""
    parser = command_line.parser("measure_policies", "Measures what wrong predictions do to bounds and shares.")
    parser.parse_args(words)
    return command_line.exit_status(parser.prog, run)


def run() -> int:
    """Measures and writes."""
    document = {
        "schema": result_file.POLICIES_SCHEMA,
        "seed": SEED,
        "seconds": SECONDS,
        "warmup_seconds": WARM_UP // SECOND,
        "budget_ms": BUDGET // MS,
        "max_wait_ms": MAX_WAIT // MS,
        "share_percent": {name: 100 * share for name, share in SHARES.items()},
        "wrong_percent": 100 * WRONG,
        "slowdown": SLOWDOWN,
        "arms": {arm: {what: measure(times) for what, measure in MEASURED.items()} for arm, times in ARMS.items()},
    }
    result_file.write(RESULT, document)
    return 0


if __name__ == "__main__":
    sys.exit(main())
