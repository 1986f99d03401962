# SPDX-License-Identifier: Apache-2.0
"""What is believed to run now, and when to send ahead (rules 3 to 6 and 9).

Law: a model of the executor, corrected by completions: I running slots and the dispatches sent ahead, in the order in
which Triton will start them. Knows dispatches and times, not the requests that wait.
"""

from __future__ import annotations

from collections.abc import Hashable
from heapq import heapify, heapreplace

from priority_router.core.lead import Lead
from priority_router.core.service_times import ServiceTimes
from priority_router.core.values import Dispatch, SchedulingPolicy

SHARED_IN_FLIGHT = 4
"""Dispatches per instance that may be in flight when others share the executor (rule 9)."""

ENOUGH_SAMPLES = 5
"""Samples from which the spread of a dispatch's time is taken into account and not its median alone."""


class Flight:
    """One dispatch between Send and answer.

    Attributes:
        dispatch: what was sent.
        estimate: ns it was expected to take when it was sent; None while nothing was learned.
        sent: time of the decision, ns.
        called: start of the executor call, ns; equals ``sent`` until it is reported.
        started: time from which it is believed to run, ns; None while it waits inside Triton.
        ahead: time from which the next may be sent ahead of its completion, ns; meaningful once it runs.
        freed: time at which the slot it took became free, ns, when it was sent ahead; None otherwise.
        telling: its duration is its own, so a sample can be learned from it.
        passed: a more urgent dispatch was sent past it (rule 5).
    """

    __slots__ = ("ahead", "called", "dispatch", "estimate", "freed", "passed", "sent", "started", "telling")

    def __init__(self, dispatch: Dispatch, sent: int, estimate: int | None) -> None:
        self.dispatch = dispatch
        self.sent = sent
        self.called = sent
        self.ahead = sent
        self.estimate = estimate
        self.started: int | None = None
        self.freed: int | None = None
        self.telling = True
        self.passed = False


class ExecutorModel:
    """Which dispatches run, which wait inside Triton, and when the next may follow.

    Attributes:
        times: what was learned.
        flights: every dispatch without an answer by id, in sending order.
        waiting: those believed to wait inside Triton, in starting order.
    """

    def __init__(self, policy: SchedulingPolicy, most_urgent_level: int) -> None:
        self._follow(policy, most_urgent_level)
        self._max_rows = max(policy.max_batch_size, 1)
        self._running: list[Flight] = []
        self._lead = Lead()
        self.times = ServiceTimes(self._max_rows, bounded=_bounded(policy))
        self.flights: dict[int, Flight] = {}
        self.waiting: list[Flight] = []

    def adopt(self, policy: SchedulingPolicy, most_urgent_level: int) -> None:
        """Go on under another policy, of the same executor, with all that was sent and learned."""
        self._follow(policy, most_urgent_level)
        self.times.bound(bounded=_bounded(policy))

    def _follow(self, policy: SchedulingPolicy, most_urgent_level: int) -> None:
        self._policy = policy
        self._most_urgent_level = most_urgent_level
        self._may_be_passed = policy.levels and (policy.instances > 1 or policy.overtaking or policy.shared_executor)
        self._bounded_wait = any(each.max_wait or each.min_share for each in policy.classes)

    def may_send(self, level: int, now: int) -> bool:
        """Whether a dispatch of this level may go now."""
        if self._goes_at_once(level):
            return True
        ahead = self.next_ahead()
        return ahead is not None and ahead <= now

    def _goes_at_once(self, level: int) -> bool:
        """Whether a dispatch of this level need not be timed: a free slot, a shared executor, an overtaker."""
        if len(self._running) < self._policy.instances:
            return True
        if len(self.flights) >= SHARED_IN_FLIGHT * self._policy.instances:
            return False  # overtakers alone come to fewer, beside what another policy sent they might not
        if self._policy.shared_executor and level == self._most_urgent_level:
            return True
        return (
            self._policy.overtaking
            and len(self.waiting) > 0
            and all(level < flight.dispatch.level and not flight.passed for flight in self.waiting)
        )

    def next_ahead(self) -> int | None:
        """When the next dispatch may be sent ahead, ns; None when as many wait inside Triton as may.

        The k-th dispatch ahead follows the k-th earliest predicted completion.
        """
        if len(self.waiting) >= self._policy.instances or len(self._running) < self._policy.instances:
            return None
        return sorted(flight.ahead for flight in self._running)[len(self.waiting)]

    def free_from(self, level: int, now: int) -> list[int]:
        """When each instance has done what comes before a dispatch of this level that is sent next: ns, ascending.

        That is the rest of what runs and what waits inside Triton, unless such a dispatch may pass it.
        """
        free = [now] * (self._policy.instances - len(self._running))
        free += [max(now, (flight.started or 0) + self._least(flight)) for flight in self._running]
        heapify(free)
        for flight in self.waiting:
            if not (self._may_be_passed and level < flight.dispatch.level):
                heapreplace(free, free[0] + self._least(flight))
        return sorted(free)

    def would_merge(self, level: int, signature: Hashable, rows: int) -> bool:
        """Whether Triton would merge such a dispatch, sent ahead, with one that waits: then an instance would idle."""
        return not self._goes_at_once(level) and any(
            self._mergeable(flight.dispatch, signature, rows) for flight in self.waiting
        )

    def would_pass_again(self, level: int) -> bool:
        """Whether such a dispatch, sent ahead, would be the second to pass one that waits.

        Without end that would take from a class what its ``max_wait`` or ``min_share`` promises, so it counts where
        there is such a promise.
        """
        return (
            self._bounded_wait
            and self._policy.levels
            and not self._goes_at_once(level)
            and any(flight.passed and level < flight.dispatch.level for flight in self.waiting)
        )

    def send(self, dispatch: Dispatch, now: int) -> None:
        """Note that this dispatch leaves now."""
        flight = Flight(dispatch, now, self.times.estimate(dispatch.signature, dispatch.rows))
        self.times.sent(dispatch.signature, dispatch.rows)
        self.flights[dispatch.id] = flight
        if len(self._running) < self._policy.instances:
            self._start(flight, now)
            return
        for other in self.waiting:
            if self._mergeable(other.dispatch, dispatch.signature, dispatch.rows):
                other.telling = flight.telling = False
        place = len(self.waiting)
        if self._policy.levels:
            while place and self.waiting[place - 1].dispatch.level > dispatch.level:
                place -= 1
                self.waiting[place].passed = True
        self.waiting.insert(place, flight)

    def called(self, dispatch_id: int, now: int) -> None:
        """The executor call of this dispatch starts now."""
        flight = self.flights.get(dispatch_id)
        if flight is not None:
            flight.called = now
            self._lead.observe_way(now - flight.sent)

    def completed(self, flight: Flight, now: int, *, succeeded: bool) -> None:
        """Free the slot of an answered dispatch, start the first that waits, and learn."""
        self._remove(flight, now)
        if flight.started is None or not flight.telling or not succeeded:
            return
        took = now - flight.started
        if flight.freed is not None and flight.estimate is not None:
            self._lead.observe_ahead(flight.freed - flight.called, took, flight.estimate)
        self.times.learn(flight.dispatch.signature, flight.dispatch.rows, took)

    @property
    def requests(self) -> set[int]:
        """Ids of the requests with rows in flight."""
        return {part.request_id for flight in self.flights.values() for part in flight.dispatch.parts}

    def oldest(self) -> Flight | None:
        """The flight that was sent first."""
        return next(iter(self.flights.values()), None)

    def write_off(self, flight: Flight, now: int) -> None:
        """Stop waiting for this dispatch and free its slot (rule 6)."""
        self._remove(flight, now)
        self.disturbed()

    def disturbed(self) -> None:
        """The executor has been at work that was given up: what is in flight took longer than it would have."""
        for flight in self.flights.values():
            flight.telling = False

    def _remove(self, flight: Flight, now: int) -> None:
        del self.flights[flight.dispatch.id]
        if flight.started is None:
            self.waiting.remove(flight)
            return
        self._running.remove(flight)
        if self.waiting:
            following = self.waiting.pop(0)
            following.freed = now
            self._start(following, now)

    def _start(self, flight: Flight, now: int) -> None:
        flight.started = now
        flight.ahead = now + self._ahead_after(flight)
        self._running.append(flight)

    def _ahead_after(self, flight: Flight) -> int:
        """Time after its start, ns, from which the next may be sent ahead: when its expected rest is within the lead.

        The expectation is the mean rest of those samples that were not over yet, so that a model with short and long
        executions is not taken for its median. A slot of which nothing is learned is taken to be free at once: rather
        early than idle.
        """
        if flight.estimate is None:
            return 0
        lead = self._lead.before(flight.estimate)
        samples = self.times.spread(flight.dispatch.signature, flight.dispatch.rows)
        if len(samples) < ENOUGH_SAMPLES:
            return flight.estimate - lead
        rest, before = sum(samples), 0
        for index, sample in enumerate(samples):
            moment = max(before, rest // (len(samples) - index) - lead)
            if moment < sample:
                return moment
            rest -= sample
            before = sample
        return before

    def _least(self, flight: Flight) -> int:
        return self.times.least(flight.dispatch.signature, flight.dispatch.rows)

    def _mergeable(self, waiting: Dispatch, signature: Hashable, rows: int) -> bool:
        return waiting.signature == signature and waiting.rows + rows <= self._max_rows


def _bounded(policy: SchedulingPolicy) -> bool:
    """Whether a class asks for times that are nearly always kept to."""
    return any(each.max_blocking for each in policy.classes)
