# SPDX-License-Identifier: Apache-2.0
"""A policy under a load on the modelled executor, summed up as the benchmark sums up a real server.

Law: values in, summaries out; the same plan and seed give the same numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

import numpy as np

from priority_router.core.scheduler import Scheduler
from priority_router.core.values import SECOND, SchedulingPolicy
from priority_router.ops.bench import wire
from priority_router.ops.bench.ledger import Ledger
from priority_router.ops.bench.stats import RoundSummary, summarise
from priority_router.ops.simulate.arrivals import Arrival
from priority_router.ops.simulate.executor import ExecutorShape
from priority_router.ops.simulate.oracle import Oracle
from priority_router.ops.simulate.profile import Profile
from priority_router.ops.simulate.simulation import Setup, Simulation

ROUTER: Final = "router"
ORACLE: Final = "oracle"
ARMS: Final = {
    ROUTER: "the scheduler, on the modelled executor",
    ORACLE: "the best that could be: true mean times, nothing travels, no limits, no timeouts",
}


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be simulated.

    Attributes:
        policy: of every router; its executor shape is that of the executor.
        profile: the executor's times and the ways around it.
        arrivals: a seed to requests in order of time; classes are those of the policy.
        duration: ns during which they arrive.
        warmup: ns at the start that do not count.
        routers: routers in front of the one executor; request by request each gets its turn.
        settle: classes whose answers are waited for after the last arrival; None = those of the most urgent level.
        grace: ns for how long at most; what has no answer then is unanswered.
    """

    policy: SchedulingPolicy
    profile: Profile
    arrivals: Callable[[int], Iterable[Arrival]]
    duration: int
    warmup: int = 0
    routers: int = 1
    settle: Collection[str] | None = None
    grace: int = 3 * SECOND

    @property
    def window(self) -> tuple[int, int]:
        """Ns from and to which busy time and rows count."""
        return self.warmup, self.duration


def routed(plan: Plan, seed: int) -> RoundSummary:
    """One run of the router or routers."""
    policy, profile = plan.policy, plan.profile
    setup = Setup(
        ExecutorShape(policy.instances, policy.max_batch_size, policy.levels),
        profile.times,
        profile.delays,
        profile.dispatch_overhead,
        measured=plan.window,
    )
    runs: list[Simulation] = []
    for place in range(plan.routers):
        own = plan.arrivals(seed) if plan.routers == 1 else islice(plan.arrivals(seed), place, None, plan.routers)
        name = seed if place == 0 else seed + (place << 32)
        runs.append(Simulation(Scheduler(policy), setup, own, name, beside=runs[0] if runs else None))
    runs[0].run(plan.duration + plan.grace)
    executor = runs[0].executor
    ledger = Ledger.merge([_ledger_of(plan, run) for run in runs]) if len(runs) > 1 else _ledger_of(plan, runs[0])
    return _summary(plan, ledger, executor.busy, executor.rows, executor.batches)


def ideal(plan: Plan, seed: int) -> RoundSummary:
    """One run of the oracle on the same requests."""
    oracle = Oracle(plan.policy, plan.profile.times, seed, plan.window)
    oracle.run(plan.arrivals(seed))
    outcomes = [wire.Outcome.SUCCESS] * len(oracle.arrived)
    ledger = _ledger(plan, oracle.class_names, oracle.served, oracle.arrived, oracle.answered, outcomes)
    return _summary(plan, ledger, oracle.busy, oracle.rows, oracle.batches)


def _summary(plan: Plan, ledger: Ledger, busy: int, rows: int, batches: int) -> RoundSummary:
    _cut_off(plan, ledger)
    span = (plan.duration - plan.warmup) * plan.policy.instances
    return summarise(ledger, plan.warmup / SECOND, busy / span, rows / batches if batches else None)


def _cut_off(plan: Plan, ledger: Ledger) -> None:
    """Takes the answers back that nobody waited for."""
    most_urgent = min(each.level for each in plan.policy.classes)
    settle = plan.settle
    if settle is None:
        settle = {each.name for each in plan.policy.classes if each.level == most_urgent}
    watched = np.isin(ledger.class_index, [index for index, name in enumerate(ledger.classes) if name in settle])
    latest = plan.duration + plan.grace
    end = latest
    if (ledger.done[watched] >= 0).all():
        end = min(latest, max(plan.duration, int(ledger.done[watched].max(initial=0))))
    late = (ledger.done > end) | (ledger.done < 0)
    ledger.done[late] = -1
    ledger.outcome[late] = wire.Outcome.UNANSWERED


def _ledger_of(plan: Plan, run: Simulation) -> Ledger:
    other = wire.Outcome.OTHER
    outcomes = [
        wire.Outcome.UNANSWERED if outcome is None else wire.Outcome.__members__.get(outcome.name, other)
        for outcome in run.outcomes
    ]
    return _ledger(plan, run.class_names, run.rows, run.arrived, run.answered, outcomes)


def _ledger(
    plan: Plan,
    class_names: Sequence[str],
    rows: Sequence[int],
    arrived: Sequence[int],
    answered: Sequence[int],
    outcomes: Sequence[wire.Outcome],
) -> Ledger:
    names = tuple(each.name for each in plan.policy.classes)
    place = {name: index for index, name in enumerate(names)}
    scheduled = np.array(arrived, dtype=np.int64)
    return Ledger(
        classes=names,
        class_index=np.array([place[name] for name in class_names], dtype=np.int64),
        rows=np.array(rows, dtype=np.int64),
        scheduled=scheduled,
        sent=scheduled,
        done=np.array(answered, dtype=np.int64),
        outcome=np.array(outcomes, dtype=np.int64),
        queue_us=np.full(len(scheduled), -1, dtype=np.int64),
        failures=Counter(),
        duration=plan.duration,
        cpu_seconds=0.0,
        connections=0,
    )
