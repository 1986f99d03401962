# SPDX-License-Identifier: Apache-2.0
"""Calls in any order that the router could make them in, found and shrunk by hypothesis, under the referee."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from conformance.referee import Foul, Referee
from conformance.worlds import MS
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from priority_router.core.deadlines import Deadlines
from priority_router.core.scheduler import Scheduler
from priority_router.core.values import (
    FairBy,
    Finish,
    Order,
    Request,
    SchedulingPolicy,
    Send,
    TimeoutAction,
    TrafficClass,
)
from priority_router.errors import ExecutorFailed

TIMEOUT = 200 * MS

CLASSES = st.lists(
    st.builds(
        TrafficClass,
        name=st.just(""),
        level=st.integers(1, 3),
        max_queue_size=st.sampled_from((0, 0, 1, 4)),
        default_timeout=st.sampled_from((0, 0, 20 * MS)),
        allow_timeout_override=st.booleans(),
        timeout_action=st.sampled_from(TimeoutAction),
        order=st.sampled_from(Order),
        max_wait=st.sampled_from((0, 0, 10 * MS, 25 * MS)),
        min_share=st.sampled_from((0.0, 0.0, 0.1, 0.25)),
        max_queue_bytes=st.sampled_from((0, 0, 0, 10, 40)),
        max_blocking=st.sampled_from((0, 0, 5 * MS, 20 * MS)),
        fair_by=st.sampled_from(FairBy),
        reject_predicted_late=st.booleans(),
    ),
    min_size=1,
    max_size=4,
)
REQUESTS = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from((1, 1, 1, 2, 3, 9)),
        st.sampled_from("abb"),
        st.sampled_from((0, 30)),
        st.sampled_from(("", "x", "x", "y")),
    ),
    min_size=1,
    max_size=8,
)


class Calls(RuleBasedStateMachine):
    """The router's side of the scheduler. ``make`` builds what is tested."""

    make = Scheduler

    @initialize(
        classes=CLASSES,
        instances=st.integers(1, 3),
        batch=st.sampled_from((0, 1, 4, 5)),
        levels=st.booleans(),
        overtaking=st.booleans(),
        shared=st.booleans(),
        most_bytes=st.sampled_from((0, 0, 100)),
    )
    def begin(
        self,
        classes: list[TrafficClass],
        instances: int,
        batch: int,
        levels: bool,
        overtaking: bool,
        shared: bool,
        most_bytes: int,
    ) -> None:
        named = tuple(replace(each, name=f"c{number}") for number, each in enumerate(classes))
        self.policy = SchedulingPolicy(
            named,
            instances,
            batch,
            levels,
            TIMEOUT,
            overtaking=levels and overtaking,
            shared_executor=levels and shared,
            max_queue_bytes=most_bytes,
        )
        self.referee = Referee(type(self).make(self.policy), self.policy)
        self.now = 0
        self.requests = 0
        self.flying: list[int] = []
        self.uncalled: list[int] = []
        self.lost: list[int] = []

    def decide(self) -> None:
        """As the router does after everything it tells; then sort out which dispatches were written off."""
        for action in self.referee.advance(self.now):
            if isinstance(action, Send):
                self.flying.append(action.dispatch.id)
                self.uncalled.append(action.dispatch.id)
        gone = [dispatch for dispatch in self.flying if dispatch in self.referee._written_off]
        self.lost += gone
        self.flying = [dispatch for dispatch in self.flying if dispatch not in gone]

    @rule(requests=REQUESTS)
    def submit(self, requests: list[tuple[int, int, str, int, str]]) -> None:
        made = []
        for which, rows, signature, timeout, tenant in requests:
            name = self.policy.classes[which % len(self.policy.classes)].name
            rows = rows if self.policy.max_batch_size else 1
            made.append(Request(self.requests, name, rows, signature, timeout * MS, 3 * rows, tenant))
            self.requests += 1
        self.referee.submit(made, self.now)
        self.decide()

    @rule(back=st.integers(0, 20))
    def cancel(self, back: int) -> None:
        self.referee.cancel(self.requests - back, self.now)  # unknown and finished ones too
        self.decide()

    @precondition(lambda self: self.uncalled)
    @rule(which=st.integers(0, 50))
    def called(self, which: int) -> None:
        self.referee.called(self.uncalled.pop(which % len(self.uncalled)), self.now)

    @precondition(lambda self: self.flying)
    @rule(which=st.integers(0, 50), passed=st.integers(0, 60))
    def completed(self, which: int, passed: int) -> None:
        self.wait(passed)
        if self.flying:
            self.referee.completed(self.flying.pop(which % len(self.flying)), self.now)
            self.decide()

    @precondition(lambda self: self.flying)
    @rule(which=st.integers(0, 50))
    def fail(self, which: int) -> None:
        self.referee.completed(self.flying.pop(which % len(self.flying)), self.now, ExecutorFailed("no"))
        self.decide()

    @precondition(lambda self: self.lost)
    @rule(which=st.integers(0, 50))
    def late(self, which: int) -> None:
        self.referee.completed(self.lost.pop(which % len(self.lost)), self.now)
        self.decide()

    @rule(ms=st.sampled_from((0, 1, 5, 20, 201)))
    def wait(self, ms: int) -> None:
        """Time passes, with every wake-up on the way."""
        until = self.now + ms * MS
        while True:
            wakeup = self.referee.next_wakeup()
            if wakeup is None or wakeup > until:
                break
            self.now = max(self.now, wakeup)
            self.decide()
        self.now = until
        self.decide()

    @rule(
        classes=CLASSES,
        kept=st.lists(st.integers(0, 5), min_size=1, max_size=4, unique=True),
        overtaking=st.booleans(),
        most_bytes=st.sampled_from((0, 0, 100)),
        which=st.integers(0, 3),
    )
    def reload(
        self, classes: list[TrafficClass], kept: list[int], overtaking: bool, most_bytes: int, which: int
    ) -> None:
        """Another policy: some classes stay under other rules, some are gone, some are new."""
        named = tuple(replace(each, name=f"c{number}") for each, number in zip(classes, kept, strict=False))
        self.policy = replace(
            self.policy,
            classes=named,
            overtaking=self.policy.levels and overtaking,
            max_queue_bytes=most_bytes,
        )
        self.referee.adopt(self.policy, self.now, named[which % len(named)].name)
        self.decide()

    @rule()
    def drain(self) -> None:
        if self.requests > 20:
            self.referee.drain()
            self.decide()

    @invariant()
    def books_agree(self) -> None:
        if hasattr(self, "referee"):
            scheduler: Any = self.referee.scheduler
            assert scheduler.dispatches_in_flight == len(self.flying)
            assert scheduler.written_off == len(self.lost)
            assert scheduler.held == len(self.referee._records)
            assert set(scheduler.due(self.now, -1)) <= set(self.referee._records)

    def teardown(self) -> None:
        """Whatever happened, everyone is answered once the executor has answered."""
        if not hasattr(self, "referee"):
            return
        while self.flying:
            self.now += 7 * MS
            self.referee.completed(self.flying.pop(0), self.now)
            self.decide()
        scheduler: Any = self.referee.scheduler
        assert scheduler.held == 0
        assert all(not books._accounts and not books._by_charge for books in scheduler._lanes._ledgers.values())


SETTINGS = settings(
    max_examples=60,
    stateful_step_count=60,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


def test_any_order_of_calls() -> None:
    run_state_machine_as_test(Calls, settings=SETTINGS)


@pytest.mark.slow
def test_any_order_of_calls_for_longer() -> None:
    run_state_machine_as_test(Calls, settings=settings(SETTINGS, max_examples=300, stateful_step_count=100))


def test_of_those_that_came_together_one_that_has_begun_is_kept() -> None:
    """The newer is first by its deadline and begins; of what can still be refused the older is then the newest."""
    traffic_class = TrafficClass("only", 1, order=Order.DEADLINE, max_queue_bytes=10)
    policy = SchedulingPolicy((traffic_class,), max_batch_size=1)
    referee = Referee(Scheduler(policy), policy)
    referee.submit([Request(0, "only", 1, "a", 0, 3), Request(1, "only", 3, "a", 30 * MS, 9)], 0)
    actions = referee.advance(0)
    assert {part.request_id for action in actions if isinstance(action, Send) for part in action.dispatch.parts} == {1}
    assert [action.request_id for action in actions if isinstance(action, Finish)] == [0]


def test_who_was_delayed_is_not_refused_as_late_under_a_policy_that_refuses() -> None:
    """Its timeout has passed already, and it was kept to be served late."""
    delaying = TrafficClass("only", 1, default_timeout=10 * MS, timeout_action=TimeoutAction.DELAY)
    policy = SchedulingPolicy((delaying,), max_batch_size=1)
    referee = Referee(Scheduler(policy), policy)
    referee.submit([Request(number, "only", 1, "a") for number in range(3)], 0)
    flying = [action.dispatch.id for action in referee.advance(0) if isinstance(action, Send)]
    referee.advance(10 * MS)
    refusing = replace(delaying, timeout_action=TimeoutAction.REJECT, reject_predicted_late=True)
    referee.adopt(replace(policy, classes=(refusing,)), 11 * MS, "only")
    sent = []
    for dispatch in flying:
        referee.completed(dispatch, 12 * MS)
        sent += [action for action in referee.advance(12 * MS) if isinstance(action, Send)]
    assert [part.request_id for action in sent for part in action.dispatch.parts] == [2]


class _LosesCancels(Scheduler):
    def cancel(self, request_id: int, now: int) -> None:
        """Forgets it."""


class _LosesOneWithThePolicy(Scheduler):
    def adopt(self, policy: SchedulingPolicy, now: int, default_class: str) -> None:
        """Whoever came last is gone."""
        super().adopt(policy, now, default_class)
        waiting = [entry for entry in self._entries.values() if entry.unsent]
        for entry in waiting[-1:]:
            for watch in (self._lanes, self._deadlines, self._ages):
                watch.remove(entry)
            del self._entries[entry.request.id]


class _TurnsTheQueue(Scheduler):
    def adopt(self, policy: SchedulingPolicy, now: int, default_class: str) -> None:
        """Whoever came first comes last."""
        waiting = [entry for entry in self._entries.values() if entry.unsent]
        for entry, place in zip(waiting, sorted((entry.sequence for entry in waiting), reverse=True), strict=True):
            entry.sequence = entry.place = entry.turn = entry.turn_alike = place
        super().adopt(policy, now, default_class)


class _ForgetsDeadlines(Scheduler):
    def adopt(self, policy: SchedulingPolicy, now: int, default_class: str) -> None:
        """Nobody who waits expires any more."""
        super().adopt(policy, now, default_class)
        self._deadlines = Deadlines()


@pytest.mark.parametrize("broken", [_LosesCancels, _LosesOneWithThePolicy, _TurnsTheQueue, _ForgetsDeadlines])
def test_a_broken_scheduler_is_found(broken: type[Scheduler]) -> None:
    machine = type("Broken", (Calls,), {"make": broken})
    with pytest.raises(Foul):
        run_state_machine_as_test(
            machine, settings=settings(SETTINGS, phases=(Phase.generate,), report_multiple_bugs=False)
        )
