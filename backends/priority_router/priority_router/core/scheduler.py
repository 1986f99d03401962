# SPDX-License-Identifier: Apache-2.0
"""The scheduler: calls in, decisions out.

Law: one mutable object, used by one thread at a time. Facts are told to it (``submit``, ``cancel``, ``called``,
``completed``, ``adopt``); decisions come out of ``advance`` alone. It is told the time and never asks for it.

Late binding, just in time: a request stays here, where it can still be passed, cancelled, expired or refused, until the
executor is about to be free. The rules are those of ``docs/design.md``.
"""

from __future__ import annotations

from collections.abc import Sequence

from priority_router.core.admission import Admission, PredictedWaits
from priority_router.core.batching import Batch, blocking_budgets, charge, propose
from priority_router.core.deadlines import Deadlines
from priority_router.core.executor_model import ExecutorModel, Flight
from priority_router.core.fill_budget import FillBudget
from priority_router.core.lanes import Lanes
from priority_router.core.lines import Entry
from priority_router.core.recent import RecentWorst
from priority_router.core.shares import Shares
from priority_router.core.succession import succeed
from priority_router.core.values import (
    MICROSECOND,
    Action,
    Dispatch,
    Finish,
    Part,
    Request,
    SchedulingPolicy,
    Send,
    TimeoutAction,
    TrafficClass,
)
from priority_router.errors import Cancelled, QueueTimeout, RequestError, Unavailable

MAX_WRITTEN_OFF = 8
"""Dispatches without an answer at which the executor counts as gone (rule 6); each holds a thread of the adapter."""


class Scheduler:
    """Decides who runs next and with whom, and how every request ends.

    Attributes:
        late_answers: answers that came after their dispatch was written off.
        over_budget: per class that more urgent ones set a budget, dispatches sent although predicted to exceed it.
    """

    def __init__(self, policy: SchedulingPolicy) -> None:
        self._policy = policy
        self._classes = {c.name: c for c in policy.classes}
        self._lanes = Lanes(policy)
        self._deadlines = Deadlines()
        self._ages = Deadlines()
        self._executor = ExecutorModel(policy, self._lanes.most_urgent_level)
        self._budget = FillBudget(policy.batch_efficiency)
        self._shares = Shares(policy)
        self._admission = Admission(policy, self._lanes, self._executor, self._shares)
        self._allowed = blocking_budgets(policy)
        self._held_back = False
        self._entries: dict[int, Entry] = {}
        self._written_off: set[int] = set()
        self._finished: list[Finish] = []
        self._draining = False
        self._sequence = 0
        self._dispatch_id = 0
        self._blocking = {name: RecentWorst() for name in self._classes}
        self.late_answers = 0
        self.over_budget = dict.fromkeys(self._allowed, 0)

    # What the scheduler is told.

    def submit(self, requests: Sequence[Request], now: int) -> None:
        """Take in requests that arrived together; limits apply once ``advance`` has sent what it can.

        Raises:
            ValueError: an id that is held already, an unknown class or a row count below 1. A caller's mistake must be
                answered before it gets here.
        """
        for request in requests:
            traffic_class = self._classes.get(request.class_name)
            if traffic_class is None or request.rows < 1 or request.id in self._entries:
                raise ValueError(f"{request}: id already held, class unknown or no rows")
            refusal = self._refusal()
            if refusal is not None:
                self._finished.append(Finish(request.id, refusal))
                continue
            self._sequence += 1
            timeout = _queue_timeout(traffic_class, request.timeout)
            entry = Entry(request, traffic_class, self._sequence, now, timeout)
            self._entries[request.id] = entry
            if not self._lanes.waiting[request.class_name]:
                self._shares.begins(request.class_name)
            self._lanes.add(entry)
            if entry.deadline is not None:
                self._deadlines.add(entry, entry.deadline)
            if traffic_class.max_wait:
                self._ages.add(entry, now + traffic_class.max_wait)
            self._admission.arrived(entry)

    def cancel(self, request_id: int, now: int) -> None:  # noqa: ARG002 - every fact comes with its time
        """The caller of this request went away; only what was not sent yet can still be stopped."""
        entry = self._entries.get(request_id)
        if entry is not None and entry.unsent:
            self._end(entry, Cancelled(f"class {entry.traffic_class.name!r}: cancelled by the caller while it waited"))

    def called(self, dispatch_id: int, now: int) -> None:
        """The executor call of this dispatch is about to start."""
        self._executor.called(dispatch_id, now)

    def completed(self, dispatch_id: int, now: int, error: RequestError | None = None) -> None:
        """The executor answered this dispatch, with ``error`` if it failed; late answers are counted and dropped."""
        if dispatch_id in self._written_off:
            self._written_off.remove(dispatch_id)
            self.late_answers += 1
            self._executor.disturbed()
            return
        flight = self._executor.flights.get(dispatch_id)
        if flight is not None:
            self._note_blocking(flight, now)
            self._settle(flight, now, succeeded=error is None)
            self._executor.completed(flight, now, succeeded=error is None)
            self._answer(flight, error)

    def adopt(self, policy: SchedulingPolicy, now: int, default_class: str) -> None:
        """Go on under another policy with all that waits, is sent or was learned; ``core.succession`` has the rules.

        Args:
            policy: of the same executor: its shape, ``levels`` and ``shared_executor`` are as they were.
            now: ns.
            default_class: where the requests of classes that are gone wait from now on.
        """
        if policy == self._policy:
            return
        waited = self._lanes.waiting
        self._policy = policy
        self._classes = {c.name: c for c in policy.classes}
        entries = self._entries.values()
        self._lanes, self._deadlines, self._ages = succeed(entries, self._lanes, policy, now, default_class)
        self._executor.adopt(policy, self._lanes.most_urgent_level)
        self._budget.adopt(policy.batch_efficiency)
        self._shares.adopt(policy)
        for name, count in self._lanes.waiting.items():
            if count and not waited.get(name):
                self._shares.begins(name)
        self._admission.adopt(policy, self._lanes, (entry for entry in entries if entry.unsent))
        self._allowed = blocking_budgets(policy)
        self._blocking = {name: self._blocking.get(name) or RecentWorst() for name in self._classes}
        self.over_budget = dict.fromkeys(self._allowed, 0) | self.over_budget

    def drain(self) -> None:
        """Refuse whatever comes from now on; what waits is still served."""
        self._draining = True

    # What it decides.

    def advance(self, now: int) -> list[Action]:
        """Everything that is to be done at this time: what to send, then who is to be answered and how."""
        self._write_off_lost(now)
        self._expire(now)
        self._promote(now)
        sends: list[Action] = []
        while (batch := self._next_batch(now)) is not None:
            sends.append(Send(self._dispatch(batch, now)))
        for entry, refusal in self._admission.refusals(now):
            self._end(entry, refusal)
        finished, self._finished = self._finished, []
        return [*sends, *finished]

    def next_wakeup(self) -> int | None:
        """When ``advance`` must be called at the latest, ns; None = not before something else happens."""
        moments = [self._deadlines.earliest(), self._ages.earliest()]
        oldest = self._executor.oldest()
        if oldest is not None:
            moments.append(oldest.sent + self._policy.executor_timeout)
        if len(self._lanes) and not self._held_back:
            moments.append(self._executor.next_ahead())
        return min((moment for moment in moments if moment is not None), default=None)

    # What can be seen.

    def due(self, now: int, min_wait: int) -> list[int]:
        """Requests of the next dispatch that have waited over ``min_wait`` ns: worth asking whether cancelled."""
        batch = self._propose()
        if batch is None:
            return []
        return [entry.request.id for entry, _ in batch.picks if now - entry.arrived > min_wait]

    @property
    def waiting(self) -> dict[str, int]:
        """Requests that wait, per class."""
        return self._lanes.waiting

    @property
    def waiting_bytes(self) -> dict[str, int]:
        """Bytes of the requests that wait, per class."""
        return self._lanes.waiting_bytes

    @property
    def held(self) -> int:
        """Requests without a Finish yet: waiting, in flight, or ending with the next ``advance``."""
        return len(self._entries) + len(self._finished)

    @property
    def accounted_for(self) -> int:
        """Requests that wait, and those whose last row is sent and whose rows are in flight: all, if none was lost."""
        sent = (self._entries.get(request_id) for request_id in self._executor.requests)
        return len(self._lanes) + sum(entry is not None and not entry.unsent for entry in sent)

    @property
    def rows_in_flight(self) -> int:
        """Rows sent to the executor and not answered yet, those written off not counted."""
        return sum(flight.dispatch.rows for flight in self._executor.flights.values())

    @property
    def dispatches_in_flight(self) -> int:
        """Dispatches sent and not answered yet, those written off not counted."""
        return len(self._executor.flights)

    @property
    def written_off(self) -> int:
        """Dispatches written off whose answer has still not come."""
        return len(self._written_off)

    @property
    def predicted_waits(self) -> dict[str, PredictedWaits]:
        """What was predicted and what came true, of each class that is refused by prediction."""
        return self._admission.predicted_waits

    def worst_blocking(self, now: int) -> dict[str, int]:
        """Per class, the longest time in ns that one of its requests stood behind one less urgent dispatch, of late."""
        return {name: worst.read(now) for name, worst in self._blocking.items()}

    # How it is done.

    def _propose(self) -> Batch | None:
        deprived = self._deprived
        return propose(self._lanes, self._executor.times, self._budget, self._policy, self._allowed, deprived)

    @property
    def _deprived(self) -> TrafficClass | None:
        """The class that must come first, since it has had less than its share."""
        name = self._shares.most_deprived(self._lanes.waiting)
        return None if name is None else self._classes[name]

    def _next_batch(self, now: int) -> Batch | None:
        """What goes now; ``_held_back`` tells that only a completion, and no moment, will let the next one go."""
        while True:
            self._held_back = False
            head = self._lanes.head()
            if head is None:
                return None
            level = head.level if self._deprived is None else self._lanes.most_urgent_level
            if not self._executor.may_send(level, now):
                return None
            batch = self._propose()
            if batch is None:
                return None
            merges = self._executor.would_merge(level, batch.head.request.signature, batch.rows)
            self._held_back = merges or self._executor.would_pass_again(level)
            if self._held_back:
                return None
            too_late = self._admission.too_late(batch, now)
            if not too_late:
                return batch
            for entry, refusal in too_late:
                self._end(entry, refusal)

    def _dispatch(self, batch: Batch, now: int) -> Dispatch:
        parts = []
        rows_of: dict[str, int] = {}
        estimate = self._executor.times.estimate(batch.head.request.signature, batch.rows)
        self._lanes.charge(batch.picks, 1.0 if estimate is None else estimate / batch.rows)
        for entry, rows in batch.picks:
            name = entry.traffic_class.name
            rows_of[name] = rows_of.get(name, 0) + rows
            parts.append(Part(entry.request.id, entry.next_row, rows))
            entry.next_row += rows
            self._deadlines.remove(entry)
            if not entry.unsent:
                # next_row is past the end, so the lane is left only now: the entry keeps its place between its parts.
                self._lanes.serve(entry)
                self._ages.remove(entry)
            else:
                self._admission.shortened(entry)
        self._dispatch_id += 1
        head = batch.head
        self._note_budget(batch)
        dispatch = Dispatch(self._dispatch_id, batch.level, head.request.signature, batch.rows, tuple(parts))
        self._executor.send(dispatch, now)
        claimed_for = head.traffic_class.name if batch.claim else None
        self._shares.sent(dispatch.id, rows_of, self._lanes.waiting, estimate or 0, claimed_for)
        charge(batch, self._lanes, self._executor.times, self._budget, self._policy)
        return dispatch

    def _answer(self, flight: Flight, error: RequestError | None) -> None:
        for part in flight.dispatch.parts:
            entry = self._entries.get(part.request_id)
            if entry is None:
                continue  # ended already: another part failed, or its caller cancelled the rest
            entry.unanswered -= part.rows
            if error is not None:
                self._end(entry, error)
            elif not entry.unanswered:
                self._end(entry, None)

    def _end(self, entry: Entry, error: RequestError | None) -> None:
        """Decide how a request ends, and forget it: its place is free at once."""
        if entry.unsent:
            self._lanes.remove(entry)
            self._deadlines.remove(entry)
            self._ages.remove(entry)
            entry.next_row = entry.request.rows
        del self._entries[entry.request.id]
        self._finished.append(Finish(entry.request.id, error))

    def _expire(self, now: int) -> None:
        for entry in self._deadlines.pop_expired(now):
            if entry.traffic_class.timeout_action is TimeoutAction.DELAY:
                entry.expired = True
                if not entry.promoted:
                    self._lanes.delay(entry)
            else:
                name, limit = entry.traffic_class.name, entry.timeout // MICROSECOND
                self._end(entry, QueueTimeout(f"class {name!r}: waited longer than its queue timeout of {limit} us"))

    def _promote(self, now: int) -> None:
        for entry in self._ages.pop_expired(now):
            entry.since = now
            self._lanes.promote(entry)

    def _write_off_lost(self, now: int) -> None:
        while True:
            oldest = self._executor.oldest()
            if oldest is None or now < oldest.sent + self._policy.executor_timeout:
                break
            self._note_blocking(oldest, now)
            self._settle(oldest, now, succeeded=False)
            self._executor.write_off(oldest, now)
            self._written_off.add(oldest.dispatch.id)
            limit = self._policy.executor_timeout // MICROSECOND
            self._answer(oldest, Unavailable(f"the executor gave no answer within executor_timeout of {limit} us"))
        if len(self._lanes) and self._executor_gone:
            for entry in [entry for entry in self._entries.values() if entry.unsent]:
                self._end(entry, self._no_executor())

    @property
    def _executor_gone(self) -> bool:
        return len(self._written_off) >= MAX_WRITTEN_OFF

    def _no_executor(self) -> Unavailable:
        return Unavailable(f"the executor left {len(self._written_off)} calls without an answer")

    def _refusal(self) -> RequestError | None:
        """Why nothing new is taken now; None when it is."""
        if self._draining:
            return Unavailable("the router is shutting down: it serves what waits and takes nothing new")
        return self._no_executor() if self._executor_gone else None

    def _settle(self, flight: Flight, now: int, *, succeeded: bool) -> None:
        took = 0 if flight.started is None else now - flight.started
        self._shares.ended(flight.dispatch.id, took, succeeded=succeeded)
        self._admission.ran(flight, self._entries)

    def _note_budget(self, batch: Batch) -> None:
        name = batch.head.traffic_class.name
        allowed = self._allowed.get(name)
        if allowed is not None:
            times, signature = self._executor.times, batch.head.request.signature
            takes = times.upper(signature, batch.rows)
            exceeds = takes is not None and takes > allowed
            self.over_budget[name] += exceeds and not times.tried(signature, batch.rows, allowed)

    def _note_blocking(self, flight: Flight, now: int) -> None:
        """A slot is freed: note how long the more urgent ones stood behind the dispatch that held it."""
        if flight.started is None:
            return
        head = self._entries.get(flight.dispatch.parts[0].request_id)
        # Its class's, since what is sent at a more urgent level than that still stands before the more urgent classes.
        level = flight.dispatch.level if head is None else head.traffic_class.level
        stood = [lane.head() for lane in self._lanes.more_urgent_than(level)]
        for waiting in self._executor.waiting:
            if waiting.dispatch.level < level:
                stood.append(self._entries.get(waiting.dispatch.parts[0].request_id))
        for entry in stood:
            if entry is not None:
                stood_for = now - max(flight.started, entry.since)
                self._blocking[entry.traffic_class.name].add(stood_for, now)


def _queue_timeout(traffic_class: TrafficClass, asked: int) -> int:
    """The queue timeout in ns that holds for a request; a caller may only shorten what its class gives."""
    default = traffic_class.default_timeout
    if asked <= 0 or not traffic_class.allow_timeout_override:
        return default
    return min(asked, default) if default else asked
