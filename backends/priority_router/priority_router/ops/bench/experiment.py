# SPDX-License-Identifier: Apache-2.0
"""Runs a scenario: every arm in every round, on a server of its own, against the same arrivals.

A server lives for one arm and round: an overloaded arm leaves a backlog behind that no later one should pay for, and
idle servers would share the cores with the one that is measured.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from priority_router.core.values import SECOND
from priority_router.errors import PriorityRouterError
from priority_router.ops import command_line
from priority_router.ops.bench import executor_stats, load
from priority_router.ops.bench.aims import Verdict, judge, step_name
from priority_router.ops.bench.arms import ARMS, EXECUTOR, Arm, routes, write_repository
from priority_router.ops.bench.arrivals import Schedule, poisson
from priority_router.ops.bench.ledger import Ledger
from priority_router.ops.bench.load import Target
from priority_router.ops.bench.scenarios import Scenario
from priority_router.ops.bench.stats import RoundSummary, summarise
from priority_router.ops.loads import LEVELS, ONLINE
from priority_router.ops.server import Server

_PAYLOAD = {"X": np.ones((1, 4), dtype=np.float32)}

Progress = Callable[[str], None]


@dataclass(slots=True)
class Results:
    """What was measured, complete or cut short.

    Attributes:
        scenario: as it was run.
        seed: of all arrivals.
        rounds: for each round begun the arms that finished, in the order they ran.
        triton: the server's version, empty before the first server ran.
        interrupted: somebody stopped the run.
        exit_status: of a command that ends with it.
    """

    scenario: Scenario
    seed: int
    rounds: list[dict[str, RoundSummary]] = field(default_factory=list)
    triton: str = ""
    interrupted: bool = False
    exit_status: int = 0

    def verdicts(self) -> list[Verdict]:
        """The scenario's aims, judged."""
        return judge(self.scenario.aims, self.rounds)


def run(scenario: Scenario, seed: int, progress: Progress) -> Results:
    """Runs a scenario to its end or until Ctrl-C, which keeps what is complete.

    Args:
        scenario: what to run.
        seed: with the round's number it gives the arrivals of that round.
        progress: told in one line what happens now.

    Raises:
        PriorityRouterError: a server could not be started, or the load not be generated.
    """
    results = Results(scenario, seed)
    try:
        for number in range(scenario.rounds):
            finished: dict[str, RoundSummary] = {}
            results.rounds.append(finished)
            for name in _rotated(scenario.arms, number):
                progress(f"round {number + 1} of {scenario.rounds}: {name}")
                finished[name] = _run_arm(scenario, ARMS[name], seed, number, results)
    except KeyboardInterrupt as order:
        results.interrupted = True
        results.exit_status = command_line.stopped_status(order)
    return results


def _rotated(arms: Sequence[str], by: int) -> list[str]:
    """Each round starts with another arm, so that none always runs in the wake of the same one."""
    by %= len(arms)
    return [*arms[by:], *arms[:by]]


def _run_arm(scenario: Scenario, arm: Arm, seed: int, number: int, results: Results) -> RoundSummary:
    with tempfile.TemporaryDirectory(prefix="priority-router-bench-") as folder:
        repository = Path(folder) / "models"
        repository.mkdir()
        write_repository(repository, arm, scenario.executor, LEVELS, shared=bool(scenario.direct))
        try:
            with Server(repository, hooks=arm.hooks, log=Path(folder) / "server.log") as server:
                results.triton = executor_stats.get_json(server.http, "/v2")["version"]
                target = Target(server.http, routes(arm, LEVELS, scenario.direct), [_PAYLOAD])
                return _measure_arm(scenario, target, seed, number)
        except PriorityRouterError as error:
            raise type(error)(f"arm {arm.name}, round {number + 1}: {error}") from error


def _measure_arm(scenario: Scenario, target: Target, seed: int, number: int) -> RoundSummary:
    if scenario.in_flight:
        return _closed_steps(scenario, target)
    schedule = poisson(scenario.loads, scenario.warmup_seconds + scenario.seconds, (seed, number))
    summary, _ = measure(
        target,
        schedule,
        executor=EXECUTOR,
        instances=scenario.executor.instances,
        warmup_s=scenario.warmup_seconds,
        settle=[ONLINE],
        grace_s=scenario.grace_seconds,
    )
    return summary


def measure(
    target: Target,
    schedule: Schedule,
    *,
    executor: str,
    instances: int,
    warmup_s: float,
    settle: Collection[str] | None = None,
    grace_s: float = 3.0,
    processes: int = 1,
) -> tuple[RoundSummary, Ledger]:
    """Replays a schedule on a running server and sums it up, with the executor's busy share in the counted window.

    Args:
        target: where and how to send.
        schedule: what to send, the warm-up included.
        executor: the model whose statistics tell how busy it was.
        instances: that model's instances.
        warmup_s: seconds at the start that do not count.
        settle: classes whose last replies are waited for; None means all.
        grace_s: for how long at most.
        processes: generator processes.

    Returns:
        The sum, and every request of the run, the warm-up included.

    Raises:
        LoadError: the load could not be generated or the server not be asked.
    """
    with load.begin(
        target, schedule, settle=None if settle is None else list(settle), grace_s=grace_s, processes=processes
    ) as running:
        begin, end = running.start + int(warmup_s * SECOND), running.start + schedule.duration
        before, after = executor_stats.over(target.address, executor, begin, end)
        ledger = running.result()
    return summarise(ledger, warmup_s, after.busy_since(before, instances), after.mean_batch_since(before)), ledger


def _closed_steps(scenario: Scenario, target: Target) -> RoundSummary:
    """Runs the closed-loop steps one after the other; in the summary they stand where classes do."""
    parts = []
    for in_flight in scenario.in_flight:
        duration = scenario.warmup_seconds + scenario.seconds
        with load.begin_closed(target, ONLINE, in_flight, duration) as running:
            summary = summarise(running.result(), scenario.warmup_seconds)
        parts.append(replace(summary, classes={step_name(in_flight): summary.classes[ONLINE]}))
    classes = {name: one for part in parts for name, one in part.classes.items()}
    return replace(
        parts[-1],
        classes=classes,
        client_cpu=max(part.client_cpu for part in parts),
        failures=[failure for part in parts for failure in part.failures],
    )
