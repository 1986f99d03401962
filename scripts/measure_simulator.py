# SPDX-License-Identifier: Apache-2.0
"""How fast the simulator is: a million requests, and a decision with a long queue, on one core.

The million are Poisson arrivals of two classes at 0.9 of what the modelled executor can do, so queues stay as they are
in service. A decision is one question to the scheduler what is to be done now, as after every arrival and every answer,
with 100,000 requests waiting. Runs with the Python of .venv.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import sys
import time
from collections import deque
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from priority_router.core.scheduler import Scheduler
from priority_router.core.values import MILLISECOND, SECOND, Dispatch, Request, SchedulingPolicy, Send, TrafficClass
from priority_router.ops import command_line, result_file
from priority_router.ops.simulate.arrivals import Stream, traffic
from priority_router.ops.simulate.executor import ExecutorShape, ServiceTimes
from priority_router.ops.simulate.simulation import Setup, Simulation

RESULT = Path(__file__).resolve().parents[1] / "docs" / "results" / "simulator.json"
REQUESTS: Final = 1_000_000
QUEUED: Final = 100_000
ROWS: Final = 8
"""Of a full batch."""

TIMES: Final = ServiceTimes(5 * MILLISECOND, MILLISECOND, spread=0.05)
LOAD: Final = 0.9
"""Of the capacity."""

URGENT: Final = 0.2
"""Share of the requests that are of the urgent class."""

DISPATCHES: Final = 20_000
WARM_UP: Final = 2_000
"""Dispatches before those that count."""

POLICY: Final = SchedulingPolicy((TrafficClass("online", 1), TrafficClass("background", 2)), max_batch_size=ROWS)


def main(words: list[str] | None = None) -> int:
    """Measures and writes; returns the exit status."""
    parser = command_line.parser("measure_simulator", "How fast the simulator is, on one core.")
    number = command_line.whole_number(1)
    parser.add_argument("--requests", type=number, default=REQUESTS, metavar="N", help="(default %(default)s)")
    parser.add_argument("--dispatches", type=number, default=DISPATCHES, metavar="N", help="(default %(default)s)")
    parser.add_argument(
        "--json", type=Path, default=RESULT, metavar="FILE", help="(default docs/results/simulator.json)"
    )
    options = parser.parse_args(words)
    return command_line.exit_status(parser.prog, lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    result_file.check_writable(options.json)
    seconds, dispatches = simulated(options.requests)
    print(f"{options.requests:,} requests in {dispatches:,} dispatches: {seconds:.1f} s of CPU time")
    found = {queued: costs(queued, options.dispatches) for queued in (100, QUEUED)}
    for queued, cost in found.items():
        print(
            f"with {queued:,} queued: a decision {cost.decision:.1f} us, an arrival with its decision "
            f"{cost.arrival:.1f} us, an answer with its decision {cost.dispatch:.1f} us"
        )
    document: dict[str, Any] = {
        "schema": result_file.SIMULATOR_SCHEMA,
        "python": platform.python_version(),
        "cores": len(os.sched_getaffinity(0)),
        "requests": options.requests,
        "dispatches": dispatches,
        "seconds": round(seconds, 2),
        "queued": {str(queued): asdict(cost) for queued, cost in found.items()},
    }
    result_file.write(options.json, document)
    return 0


def simulated(requests: int) -> tuple[float, int]:
    """CPU seconds that so many requests take, and the dispatches that served them."""
    capacity = ROWS * SECOND / TIMES.expected(ROWS, 0)
    rate = LOAD * capacity
    streams = [Stream("online", URGENT * rate), Stream("background", (1 - URGENT) * rate)]
    duration = round(1.01 * requests / rate * SECOND)
    arrivals = (arrival for arrival, _ in zip(traffic(streams, 1, duration), range(requests), strict=False))
    run = Simulation(Scheduler(POLICY), Setup(ExecutorShape(1, ROWS), TIMES), arrivals, seed=1)
    begin = time.process_time()
    run.run()
    seconds = time.process_time() - begin
    if len(run.arrived) != requests or min(run.answered) < 0:
        raise RuntimeError(f"{len(run.arrived)} of {requests} requests arrived, not all were answered")
    return seconds, run.sends


@dataclass(frozen=True, slots=True)
class Costs:
    """Mean microseconds of CPU time.

    Attributes:
        decision: of one question what to do now, whatever the answer.
        arrival: of taking in a request, and that question.
        dispatch: of taking in an answer, that question, and the dispatch that follows from it.
    """

    decision: float
    arrival: float
    dispatch: float


def costs(queued: int, dispatches: int) -> Costs:
    """What the scheduler costs with so many requests waiting: as many come one by one as are sent."""
    rng = random.Random(1)
    scheduler = Scheduler(POLICY)
    clock = time.perf_counter_ns
    now = issued = 0
    decisions: list[int] = []
    arrivals: list[int] = []
    answers: list[int] = []
    flying: deque[Dispatch] = deque()

    def decide(begin: int) -> int:
        asked = clock()
        actions = scheduler.advance(now)
        scheduler.next_wakeup()
        end = clock()
        decisions.append(end - asked)
        flying.extend(action.dispatch for action in actions if isinstance(action, Send))
        return end - begin

    def arrive(name: str) -> None:
        nonlocal issued
        issued += 1
        request = Request(issued, name, 1, 0)
        begin = clock()
        scheduler.submit([request], now)
        arrivals.append(decide(begin))

    scheduler.submit([Request(-place, "background", 1, 0) for place in range(1, queued + 1)], now)
    decide(clock())
    for number in range(WARM_UP + dispatches):
        if number == WARM_UP:
            for kept in (decisions, arrivals, answers):
                kept.clear()
        dispatch = flying.popleft()
        scheduler.called(dispatch.id, now)
        pause = TIMES.draw(dispatch.rows, now, rng) // dispatch.rows
        for _ in range(dispatch.rows):
            now += pause
            arrive("online" if rng.random() < URGENT else "background")
        begin = clock()
        scheduler.completed(dispatch.id, now)
        answers.append(decide(begin))
    return Costs(*(fmean(kept) / 1000 for kept in (decisions, arrivals, answers)))


if __name__ == "__main__":
    sys.exit(main())
