# SPDX-License-Identifier: Apache-2.0
"""Runs a scenario: every arm in every round, against the same arrivals."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any

from priority_router.core.values import SECOND
from priority_router.errors import PriorityRouterError, SetupError
from priority_router.ops import command_line
from priority_router.ops.bench import client_rate, details, executor_stats, load, oracle, traffic
from priority_router.ops.bench.aims import ORACLE, Verdict, judge, step_name
from priority_router.ops.bench.arms import ARMS, Arm
from priority_router.ops.bench.arrivals import Schedule
from priority_router.ops.bench.client_rate import Client
from priority_router.ops.bench.ledger import Ledger
from priority_router.ops.bench.load import GRPC, LoadError, Target
from priority_router.ops.bench.progress import Listener
from priority_router.ops.bench.requests import Requests, by_class
from priority_router.ops.bench.scenarios import Scenario
from priority_router.ops.bench.stats import RoundSummary, summarise
from priority_router.ops.bench.traffic import Trace
from priority_router.ops.bench.venue import Venue


@dataclass(slots=True)
class Results:
    """What was measured, complete or cut short.

    Attributes:
        scenario: as it was run.
        seed: of all arrivals.
        samples: requests of each class, arm and round that are told one by one.
        rounds: for each round begun the arms that finished, in the order they ran.
        details: likewise what `details.of_round` made of each.
        requests: likewise every counted request, by class.
        ideals: for each round what the oracle made of its arrivals, where there is one.
        client: what sends the load; None before that is known.
        dropped: arms that could not be run, and why.
        url: of the server that was there, empty where each arm had one of its own.
        triton: the server's version, empty before the first server ran.
        interrupted: somebody stopped the run.
        exit_status: of a command that ends with it.
    """

    scenario: Scenario
    seed: int
    samples: int = details.DEFAULT_SAMPLES
    rounds: list[dict[str, RoundSummary]] = field(default_factory=list)
    details: list[dict[str, dict[str, Any]]] = field(default_factory=list)
    requests: list[dict[str, dict[str, Requests]]] = field(default_factory=list)
    ideals: list[RoundSummary | None] = field(default_factory=list)
    client: Client | None = None
    dropped: dict[str, str] = field(default_factory=dict)
    url: str = ""
    triton: str = ""
    interrupted: bool = False
    exit_status: int = 0

    def arms(self) -> list[str]:
        """Those that finished at least one round, in the scenario's order."""
        return [name for name in self.scenario.arms if any(name in finished for finished in self.rounds)]

    def summaries(self, arm: str) -> list[RoundSummary]:
        """An arm's rounds."""
        return [finished[arm] for finished in self.rounds if arm in finished]

    def verdicts(self) -> list[Verdict]:
        """The scenario's aims, judged."""
        beside = zip_longest(self.rounds, self.ideals)
        return judge(self.scenario.aims, [arms if ideal is None else {**arms, ORACLE: ideal} for arms, ideal in beside])


@dataclass(frozen=True, slots=True)
class Plan:
    """How a scenario is run.

    Attributes:
        scenario: what is run.
        seed: with the round's number it gives the arrivals of that round.
        venue: where.
        samples: requests of each class, arm and round that are told one by one.
        processes: of the client; 0 = as many as the load needs.
        trace: what is replayed in place of drawn arrivals.
    """

    scenario: Scenario
    seed: int
    venue: Venue
    samples: int = details.DEFAULT_SAMPLES
    processes: int = 0
    trace: Trace | None = None


def run(plan: Plan, progress: Listener) -> Results:
    """Runs a scenario to its end or until Ctrl-C, which keeps what is complete.

    Args:
        plan: what is run, and how.
        progress: told what happens; a step is an arm in a round.

    Raises:
        PriorityRouterError: a server could not be started, no arm be run, or the load not be generated.
    """
    venue = plan.venue
    dropped = venue.refused(plan.scenario.arms)
    arms = [name for name in plan.scenario.arms if name not in dropped]
    results = Results(plan.scenario, plan.seed, plan.samples, dropped=dropped, url=venue.url)
    if not arms:
        raise SetupError(f"no arm can be run: {'; '.join(f'{name}: {reason}' for name, reason in dropped.items())}")
    for name, reason in dropped.items():
        progress.say(f"without {name}: {reason}")
    due: list[Ledger] = []
    try:
        results.client = _client(plan, progress)
        for number in range(plan.scenario.rounds):
            results.rounds.append({})
            results.details.append({})
            results.requests.append({})
            for name in _rotated(arms, number):
                progress.step(f"round {number + 1} of {plan.scenario.rounds}: {name}")
                measured = _run_arm(plan, ARMS[name], number, results)
                if len(due) == number:
                    due.append(measured.ledger)
                results.requests[number][name] = measured.requests
                results.details[number][name] = measured.details
                results.rounds[number][name] = measured.summary
    except KeyboardInterrupt as order:
        results.interrupted = True
        results.exit_status = command_line.stopped_status(order)
    results.ideals = [
        None if ledger is None else oracle.of_round(plan.scenario, ledger, finished)
        for finished, ledger in zip_longest(results.rounds, due)
    ]
    return results


def _client(plan: Plan, progress: Listener) -> Client:
    """What the client can do and how many processes it takes, told before the first arm runs."""
    scenario, payloads = plan.scenario, plan.venue.payloads
    schedule, rows = None, 1
    if scenario.loads:
        choices = traffic.variants(scenario, plan.trace, payloads)
        schedule = traffic.schedule(scenario, plan.trace, choices, plan.seed, 0)
        rows = max(scenario.loads, key=lambda load: load.rate).rows
    grpc, top = plan.venue.url.startswith(GRPC), None
    if not grpc:
        try:
            top = client_rate.measured(payloads(rows)[0])
        except LoadError as error:
            progress.say(str(error))
    client = client_rate.planned(schedule, top, grpc=grpc, processes=plan.processes)
    progress.say(f"client: {client.words()}")
    if beyond := client.too_much():
        progress.say(f"warning: {beyond}")
    return client


@dataclass(frozen=True, slots=True)
class _Measured:
    """One round on one arm: every request, and the three forms of `Results`."""

    ledger: Ledger
    summary: RoundSummary
    details: dict[str, Any]
    requests: dict[str, Requests]


def _rotated(arms: Sequence[str], by: int) -> list[str]:
    """Each round starts with another arm, so that none always runs in the wake of the same one."""
    by %= len(arms)
    return [*arms[by:], *arms[:by]]


def _run_arm(plan: Plan, arm: Arm, number: int, results: Results) -> _Measured:
    scenario = plan.scenario
    try:
        with plan.venue.stage(arm) as stage:
            results.triton = stage.triton
            choices = traffic.variants(scenario, plan.trace, plan.venue.payloads)
            to = {**stage.routes, **{load.name: stage.routes[load.of] for load in scenario.loads}}
            target = Target(stage.address, to, plan.venue.payloads(1), stage.outputs, choices)
            if scenario.in_flight:
                return _closed_steps(scenario, target, plan.samples)
            schedule = traffic.schedule(scenario, plan.trace, choices, plan.seed, number)
            summary, ledger = measure(
                target,
                schedule,
                executor=stage.executor,
                instances=scenario.executor.instances,
                warmup_s=scenario.warmup_seconds,
                settle=[scenario.urgent],
                grace_s=scenario.grace_seconds,
                processes=results.client.processes if results.client else 1,
                queue_time=True,
            )
            return _measured(scenario, summary, ledger, plan.samples)
    except PriorityRouterError as error:
        raise type(error)(f"arm {arm.name}, round {number + 1}: {error}") from error


def _measured(scenario: Scenario, summary: RoundSummary, ledger: Ledger, samples: int) -> _Measured:
    warmup_s, takes = scenario.warmup_seconds, scenario.executor.max_batch_size * scenario.executor.instances
    told = details.of_round(ledger, warmup_s, scenario.targets, samples, takes)
    return _Measured(ledger, summary, told, by_class(ledger, warmup_s))


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
    queue_time: bool = False,
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
        queue_time: also read the router's own queue time from the replies.

    Returns:
        The sum, and every request of the run, the warm-up included.

    Raises:
        LoadError: the load could not be generated or the server not be asked.
    """
    with load.begin(
        target,
        schedule,
        settle=None if settle is None else list(settle),
        grace_s=grace_s,
        processes=processes,
        queue_time=queue_time,
    ) as running:
        begin, end = running.start + int(warmup_s * SECOND), running.start + schedule.duration
        before, after = executor_stats.over(target.address, executor, begin, end)
        ledger = running.result()
    busy, mean_batch = after.busy_since(before, instances), after.mean_batch_since(before)
    batches, execution_ms = after.batches_since(before), after.execution_ms_since(before)
    return summarise(ledger, warmup_s, busy, mean_batch, batches, execution_ms), ledger


def _closed_steps(scenario: Scenario, target: Target, samples: int) -> _Measured:
    """Runs the closed-loop steps one after the other; in all three forms they stand where classes do."""
    parts: dict[str, _Measured] = {}
    urgent = scenario.urgent
    for in_flight in scenario.in_flight:
        duration = scenario.warmup_seconds + scenario.seconds
        with load.begin_closed(target, urgent, in_flight, duration) as running:
            ledger = running.result()
        summary = summarise(ledger, scenario.warmup_seconds)
        parts[step_name(in_flight)] = _measured(scenario, summary, ledger, samples)
    last = list(parts.values())[-1]
    summary = replace(
        last.summary,
        classes={name: part.summary.classes[urgent] for name, part in parts.items()},
        client_cpu=max(part.summary.client_cpu for part in parts.values()),
        late_max_ms=max(part.summary.late_max_ms for part in parts.values()),
        failures=[failure for part in parts.values() for failure in part.summary.failures],
    )
    told = {**last.details, "classes": {name: part.details["classes"][urgent] for name, part in parts.items()}}
    return _Measured(last.ledger, summary, told, {name: part.requests[urgent] for name, part in parts.items()})
