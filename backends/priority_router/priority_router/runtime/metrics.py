# SPDX-License-Identifier: Apache-2.0
"""Counting: cheap while requests pass, merged when the metrics are flushed.

Law: no Triton here. Each thread that counts owns a tally, so counting takes no lock; ``samples`` turns everything into
named numbers, which ``export`` hands to Triton.
"""

from __future__ import annotations

import itertools
import threading
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from priority_router.core.recent import RecentWorst
from priority_router.errors import Outcome
from priority_router.hooks import HookCounts
from priority_router.runtime import hand_over
from priority_router.runtime.driver import Observed

BUCKETS_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
"""From the router's own share of a request to the default executor timeout, about 2.5 times apart."""

NO_CLASS: Final = "_none"
"""Class label of requests that no class could be found for; no class can be called so."""

_BOUNDS_NS: Final = tuple(int(bound * 1e9) for bound in BUCKETS_SECONDS)
_SECOND: Final = 1e9


class Histogram:
    """Counts of durations per bucket, and their sum in ns."""

    __slots__ = ("counts", "total_ns")

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS_SECONDS) + 1)
        self.total_ns = 0

    def add(self, duration_ns: int) -> None:
        """Counts one duration."""
        self.counts[bisect_left(_BOUNDS_NS, duration_ns)] += 1
        self.total_ns += duration_ns


class Tally:
    """What one reply thread has counted.

    Attributes:
        begun: replies it has taken up.
        ended: of them, those it is through with.
        answered: of them, those that were counted.
        failed_sends: of them, those that Triton did not take.
        outcomes: per class label and outcome.
        queue: time from ``execute`` to the first exec, per class label.
        executor: time between exec and return, per class label.
    """

    __slots__ = ("answered", "begun", "ended", "executor", "failed_sends", "outcomes", "queue")

    def __init__(self, classes: Sequence[str]) -> None:
        self.begun = 0
        self.ended = 0
        self.answered = 0
        self.failed_sends = 0
        self.outcomes: dict[tuple[str, Outcome], int] = {}
        self.queue: dict[str, Histogram] = {}
        self.executor: dict[str, Histogram] = {}
        self.adopt((*classes, NO_CLASS))

    def adopt(self, classes: Sequence[str]) -> None:
        """Counts for these classes from now on, too; what was counted for others stays. From any thread."""
        for label in classes:
            self.executor.setdefault(label, Histogram())
            self.queue.setdefault(label, Histogram())
            for outcome in Outcome:
                self.outcomes.setdefault((label, outcome), 0)

    def count(self, class_name: str | None, outcome: Outcome, queue_ns: int | None, executor_ns: int | None) -> None:
        """Counts one request that has been answered.

        Args:
            class_name: a class of this or an earlier policy; None where the request has none.
            outcome: how it ended.
            queue_ns: time it waited; None where it never reached the executor.
            executor_ns: time with the executor; None where that never answered.
        """
        label = NO_CLASS if class_name is None else class_name
        self.outcomes[label, outcome] += 1
        if queue_ns is not None:
            self.queue[label].add(queue_ns)
        if executor_ns is not None:
            self.executor[label].add(executor_ns)
        self.answered += 1


class Family(NamedTuple):
    """One metric family: its full name, what it says, and whether it only grows."""

    name: str
    help: str
    counter: bool


def _counter(name: str, text: str) -> Family:
    return Family("priority_router_" + name, text, counter=True)


def _gauge(name: str, text: str) -> Family:
    return Family("priority_router_" + name, text, counter=False)


_QUEUE_TEXT: Final = "Time from a request's arrival to its executor call"
_HAND_OVER_TEXT: Final = "Time from a decision to its executor call"
_EXECUTOR_TEXT: Final = "Time between an executor call and its return, waiting inside Triton included"

REQUESTS: Final = _counter("requests_total", "Requests answered, by class and outcome")
UNKNOWN_CLASS: Final = _counter("unknown_class_total", "Requests that named a class the policy does not have")
TENANT_CAPPED: Final = _counter(
    "tenant_capped_total", "Requests that asked for more than a [[tenant]] may, by its name and what became of them"
)
QUEUE_BUCKET: Final = _counter("queue_seconds_bucket", _QUEUE_TEXT)
QUEUE_COUNT: Final = _counter("queue_seconds_count", _QUEUE_TEXT)
QUEUE_SUM: Final = _counter("queue_seconds_sum", _QUEUE_TEXT)
EXECUTOR_BUCKET: Final = _counter("executor_seconds_bucket", _EXECUTOR_TEXT)
EXECUTOR_COUNT: Final = _counter("executor_seconds_count", _EXECUTOR_TEXT)
EXECUTOR_SUM: Final = _counter("executor_seconds_sum", _EXECUTOR_TEXT)
HAND_OVER_BUCKET: Final = _counter("hand_over_seconds_bucket", _HAND_OVER_TEXT)
HAND_OVER_COUNT: Final = _counter("hand_over_seconds_count", _HAND_OVER_TEXT)
HAND_OVER_SUM: Final = _counter("hand_over_seconds_sum", _HAND_OVER_TEXT)
QUEUE_SIZE: Final = _gauge("queue_size", "Requests that wait in the router")
QUEUE_BYTES: Final = _gauge("queue_bytes", "Bytes of input of the requests that wait in the router")
IN_FLIGHT_ROWS: Final = _gauge("in_flight_rows", "Rows that the executor has not answered")
WORST_BLOCKING: Final = _gauge(
    "worst_blocking_seconds", "Longest time behind one less urgent executor call, in the last one to two minutes"
)
BLOCKING_BUDGET: Final = _gauge("blocking_budget_seconds", "The class's max_blocking_microseconds, where it has one")
OVER_BUDGET: Final = _counter(
    "over_budget_dispatches_total", "Executor calls of a less urgent class that were predicted to exceed a budget"
)
PREDICTED_SUM: Final = _counter(
    "predicted_wait_seconds_sum", "Waits predicted on arrival, of those that have started since"
)
PREDICTED_COUNT: Final = _counter("predicted_wait_seconds_count", "How many those are")
ACTUAL_SUM: Final = _counter("actual_wait_seconds_sum", "What they waited in truth, from arrival to start")
DISPATCHES: Final = _counter("dispatches_total", "Executor calls")
DISPATCHED_ROWS: Final = _counter("dispatched_rows_total", "Rows sent to the executor")
UNACCOUNTED: Final = _gauge(
    "unaccounted_requests", "Requests received that neither wait, nor are in flight, nor ended: 0, or some were lost"
)
WRITTEN_OFF: Final = _gauge("lost_dispatches", "Executor calls given up whose answer has not come")
LATE_ANSWERS: Final = _counter("late_answers_total", "Answers that came after their executor call was given up")
LATENESS_WORST: Final = _gauge(
    "timer_lateness_worst_seconds", "Latest wake-up of the timer, in the last one to two minutes"
)
LATENESS_SUM: Final = _counter("timer_lateness_seconds_sum", "Lateness of all timer wake-ups")
LATENESS_COUNT: Final = _counter("timer_lateness_seconds_count", "Timer wake-ups")
CANCEL_CHECKS: Final = _counter("cancel_checks_total", "Questions to Triton whether a waiting request was cancelled")
FAILED_SENDS: Final = _counter("failed_replies_total", "Replies that Triton did not take")
FAULTS: Final = _counter("scheduler_faults_total", "Exceptions of the scheduler; each answered what it held")
POLICY_RELOADS: Final = _counter(
    "policy_reloads_total", "Changes of policy.toml that took effect while the router served"
)
POLICY_INVALID: Final = _gauge(
    "policy_invalid", "1 while policy.toml holds what cannot be used: the policy before it stays"
)
SERVER_RESTARTS: Final = _counter("server_restarts_total", "Times that serve has started a failed server again")
GUARD_ACTIVE: Final = _gauge("guard_active", "1 while clients cannot call the executor directly")
HOOK_WORKING: Final = _gauge("hook_working", "0 once a hook was seen to do nothing where it should")
PRIORITIES_SET: Final = _counter("hook_priorities_set_total", "Levels given to executor calls, whole server")
WAITS_CUT: Final = _counter("hook_waits_cut_total", "Stalling waits of Triton's batcher cut short, whole server")
IDLE_WAITS_CUT: Final = _counter("hook_idle_waits_cut_total", "Likewise, its waits for a request, whole server")
CALLS_REFUSED: Final = _counter("hook_calls_refused_total", "Client calls of guarded executors refused, whole server")


class Sample(NamedTuple):
    """One number: family, labels without ``model``, value since the router was loaded."""

    family: Family
    labels: tuple[tuple[str, str], ...]
    value: float


class Lateness:
    """How late the timer woke, in ns; added to by the timer thread alone.

    Attributes:
        count: wake-ups.
        total: their lateness, summed.
    """

    def __init__(self) -> None:
        self.count = 0
        self.total = 0
        self._worst = RecentWorst()
        self._lock = threading.Lock()

    def add(self, late: int, now: int) -> None:
        """Counts one wake-up, of this moment."""
        self.count += 1
        self.total += late
        with self._lock:
            self._worst.add(late, now)

    def worst(self, now: int) -> int:
        """The worst of the last one to two minutes."""
        with self._lock:
            return self._worst.read(now)


@dataclass(frozen=True, slots=True)
class Readings:
    """Everything that is exported, read at one moment.

    Attributes:
        tallies: of the reply threads.
        observed: of the scheduler.
        counters: families without further labels, to their values.
        hooks: what the hooks did since this router was loaded; None without hooks.
        hook_working: per hook that this router relies on.
        capped: requests that asked for more than a tenant may, by name of the rule and what became of them.
        unaccounted: requests that ``audit`` finds nowhere.
    """

    tallies: Sequence[Tally]
    observed: Observed
    counters: Mapping[Family, float]
    hooks: HookCounts | None = None
    hook_working: Mapping[str, bool] = field(default_factory=dict)
    capped: Mapping[tuple[str, str], int] = field(default_factory=dict)
    unaccounted: int = 0


def samples(readings: Readings) -> Iterator[Sample]:
    """Every number to export; the same set on every call while the policy does not change.

    Counters stay when their class is gone, since its last requests may still be answered; its gauges end.

    Buckets come with the largest bound first, so that a reader who catches a flush half-way never finds a bucket that
    holds more than a wider one.
    """
    tallies, observed = readings.tallies, readings.observed
    for label, outcome in list(tallies[0].outcomes):
        count = sum(tally.outcomes[label, outcome] for tally in tallies)
        yield Sample(REQUESTS, (("class", label), ("outcome", outcome.value)), count)
    for label in list(tallies[0].queue):
        if label == NO_CLASS:
            continue
        queue = [tally.queue[label] for tally in tallies]
        yield from _histogram((QUEUE_BUCKET, QUEUE_COUNT, QUEUE_SUM), label, queue)
        executor = [tally.executor[label] for tally in tallies]
        yield from _histogram((EXECUTOR_BUCKET, EXECUTOR_COUNT, EXECUTOR_SUM), label, executor)
    for label, waiting in observed.waiting.items():
        yield Sample(QUEUE_SIZE, (("class", label),), waiting)
        yield Sample(WORST_BLOCKING, (("class", label),), observed.worst_blocking[label] / _SECOND)
    for label, held in observed.waiting_bytes.items():
        yield Sample(QUEUE_BYTES, (("class", label),), held)
    for label, budget in observed.blocking_budget.items():
        yield Sample(BLOCKING_BUDGET, (("class", label),), budget / _SECOND)
    for label, count in observed.over_budget.items():
        yield Sample(OVER_BUDGET, (("class", label),), count)
    for (rule, action), count in readings.capped.items():
        yield Sample(TENANT_CAPPED, (("tenant", rule), ("action", action)), count)
    yield from _buckets(
        (HAND_OVER_BUCKET, HAND_OVER_COUNT, HAND_OVER_SUM),
        (),
        hand_over.BUCKETS_SECONDS,
        observed.hand_over.counts,
        observed.hand_over.total_ns,
    )
    for label, waits in observed.predicted_waits.items():
        own = ("class", label)
        yield Sample(PREDICTED_SUM, (own,), waits.predicted / _SECOND)
        yield Sample(PREDICTED_COUNT, (own,), waits.requests)
        yield Sample(ACTUAL_SUM, (own,), waits.actual / _SECOND)
    yield Sample(IN_FLIGHT_ROWS, (), observed.rows_in_flight)
    yield Sample(UNACCOUNTED, (), readings.unaccounted)
    yield Sample(WRITTEN_OFF, (), observed.written_off)
    yield Sample(LATE_ANSWERS, (), observed.late_answers)
    yield Sample(FAILED_SENDS, (), sum(tally.failed_sends for tally in tallies))
    for family, value in readings.counters.items():
        yield Sample(family, (), value)
    if readings.hooks is not None:
        yield Sample(PRIORITIES_SET, (), readings.hooks.priorities_set)
        yield Sample(WAITS_CUT, (), readings.hooks.waits_cut)
        yield Sample(IDLE_WAITS_CUT, (), readings.hooks.idle_waits_cut)
        yield Sample(CALLS_REFUSED, (), readings.hooks.calls_refused)
    for hook, working in readings.hook_working.items():
        yield Sample(HOOK_WORKING, (("hook", hook),), working)


def _histogram(families: tuple[Family, Family, Family], label: str, parts: Sequence[Histogram]) -> Iterator[Sample]:
    counts = [sum(column) for column in zip(*(part.counts for part in parts), strict=True)]
    total_ns = sum(part.total_ns for part in parts)
    return _buckets(families, (("class", label),), BUCKETS_SECONDS, counts, total_ns)


def _buckets(
    families: tuple[Family, Family, Family],
    labels: tuple[tuple[str, str], ...],
    bounds: Sequence[float],
    counts: Sequence[int],
    total_ns: int,
) -> Iterator[Sample]:
    bucket, count, total = families
    cumulative = list(itertools.accumulate(counts))
    yield Sample(count, labels, cumulative[-1])
    for le, value in zip(("+Inf", *(f"{bound:g}" for bound in reversed(bounds))), reversed(cumulative), strict=True):
        yield Sample(bucket, (*labels, ("le", le)), value)
    yield Sample(total, labels, total_ns / _SECOND)
