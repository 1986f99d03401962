# SPDX-License-Identifier: Apache-2.0
"""The one lock around the scheduler: facts in, decisions handed on.

Law: feeds, drains and acts. Every fact is told to the scheduler and followed by ``advance`` in the same hold of the
lock; what comes out is put into queues, never carried out here, so nobody waits for Triton while holding the lock.

Who answers a caller: a job is the driver's from ``submit`` on. When the scheduler finishes it, the answer goes to the
reply queue and a reply thread sends it; nobody else sends anything for it. A job under a cancel check keeps its answer
until the check is over (``give_back``), because asking about a request that has been answered reads freed memory in the
server.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from priority_router.core.admission import PredictedWaits
from priority_router.core.scheduler import Scheduler
from priority_router.core.values import Dispatch, Part, Request, SchedulingPolicy, Send
from priority_router.errors import InternalFault, PredictedLate, QueueFull, RequestError
from priority_router.runtime.alarm import Alarm
from priority_router.runtime.hand_over import Counted, HandOver
from priority_router.runtime.log import Log
from priority_router.runtime.work import Answer, Call, Job, Tensors

LEAST_SLEEP: Final = 100_000
"""ns between two wake-ups of the timer: whatever moment is asked for, it cannot spin."""


@dataclass(frozen=True, slots=True)
class Observed:
    """What the scheduler looks like at one moment.

    Attributes:
        waiting: requests that wait, per class.
        rows_in_flight: rows the executor has not answered.
        written_off: calls given up whose answer has not come.
        late_answers: answers that came after their call was given up.
        worst_blocking: per class, ns, of the last one to two minutes.
        blocking_budget: ns, of each class that has a ``max_blocking``.
        waiting_bytes: bytes of their inputs, per class.
        over_budget: per class under such a budget, dispatches predicted to exceed it.
        hand_over: from decisions to executor calls.
        predicted_waits: of each class with ``reject_predicted_late``.
        held: requests that wait or are in flight, as the scheduler has them, or whose answer a cancel check holds up.
        handed_on: answers handed out so far.
    """

    waiting: dict[str, int]
    rows_in_flight: int
    written_off: int
    late_answers: int
    worst_blocking: dict[str, int]
    blocking_budget: dict[str, int] = field(default_factory=dict)
    over_budget: dict[str, int] = field(default_factory=dict)
    waiting_bytes: dict[str, int] = field(default_factory=dict)
    hand_over: Counted = Counted()  # noqa: RUF009 - a tuple
    predicted_waits: dict[str, PredictedWaits] = field(default_factory=dict)
    held: int = 0
    handed_on: int = 0


class Driver:
    """Owns the scheduler and the jobs it decides about.

    Attributes:
        alarm: rings when ``tick`` must be called.
        on_send: called, under the lock, after dispatches were handed out while others wait; takes the arrival of the
            longest waiting, ns.
        sent: calls handed out.
        sent_rows: their rows.
        completions: calls that came back.
        faults: exceptions of the scheduler.
    """

    def __init__(
        self,
        policy: SchedulingPolicy,
        clock: Callable[[], int],
        call: Callable[[Call], None],
        answer: Callable[[Answer], None],
        log: Log,
    ) -> None:
        """Starts empty.

        Args:
            policy: for the scheduler.
            clock: monotonic ns.
            call: takes a call for the executor; must return at once.
            answer: takes an answer for a caller; must return at once.
            log: for faults of the router itself.
        """
        self._policy = policy
        self._default_class = ""
        self._scheduler = Scheduler(policy)
        self._epoch = 0
        self._clock = clock
        self._call = call
        self._answer = answer
        self._log = log
        self._lock = threading.Lock()
        self._jobs: dict[int, Job] = {}
        # OrderedDict for the reason given in core.lanes: the first one is asked for with every dispatch.
        self._waiting: dict[str, OrderedDict[int, Job]] = {c.name: OrderedDict() for c in policy.classes}
        self._full: set[str] = set()
        self._draining = False
        self._held_up = 0
        self._handed_on = 0
        self._hand_over = HandOver()
        self.alarm = Alarm(clock)
        self.on_send: Callable[[int], None] = _nothing
        self.sent = 0
        self.sent_rows = 0
        self.completions = 0
        self.faults = 0

    # What happens.

    def submit(self, jobs: Sequence[Job]) -> None:
        """Takes in all requests of one ``execute`` call before the next decision; each job has its ``request``."""
        with self._lock:
            requests = [self._admitted(job.request) for job in jobs if job.request is not None]
            for request, job in zip(requests, jobs, strict=True):
                job.waits_in = request.class_name
                self._jobs[request.id] = self._waiting[request.class_name][request.id] = job
            self._hand_out(self._tell(lambda now: self._scheduler.submit(requests, now)))

    def called(self, call: Call, now: int) -> None:
        """The executor is about to be called."""
        with self._lock:
            self._hand_over.add(now - call.decided)
            if call.epoch == self._epoch:
                self._scheduler.called(call.dispatch.id, now)
        for job in call.jobs:
            if job.first_exec is None:
                job.first_exec = now

    def completed(
        self, call: Call, executor_ns: int, outputs: Sequence[Tensors] | None, error: RequestError | None
    ) -> Call | None:
        """The executor answered: frees the slot, sends what follows, then hands on the replies.

        Args:
            call: as it was handed out.
            executor_ns: time between exec and return.
            outputs: of each part; None after an error.
            error: why the call failed.

        Returns:
            A call that the caller is to carry out at once, in place of the one that is over: handing it to another
            thread would cost the executor the time of a wake-up.
        """
        with self._lock:
            self.completions += 1
            for index, job in enumerate(call.jobs):
                if not job.answered:
                    job.executor_ns += executor_ns
                    if outputs is not None:
                        job.pieces.append((call.dispatch.parts[index].first_row, outputs[index]))
            if call.epoch != self._epoch:
                return None
            calls = self._tell(lambda now: self._scheduler.completed(call.dispatch.id, now, error))
            self._hand_out(calls[1:])
        return calls[0] if calls else None

    def tick(self) -> None:
        """The alarm rang."""
        with self._lock:
            self._hand_out(self._tell(_nothing_new))

    def drain(self) -> None:
        """Takes no more requests; what waits is served."""
        with self._lock:
            self._draining = True
            self._scheduler.drain()

    def adopt(self, policy: SchedulingPolicy, default_class: str) -> dict[str, int]:
        """Goes on under another policy of the same executor; what waits is kept.

        Args:
            policy: for the scheduler.
            default_class: where the requests of classes that are gone wait from now on.

        Returns:
            how many those are, per class that is gone.
        """
        with self._lock:
            before = self._waiting
            self._policy, self._default_class = policy, default_class
            self._waiting = {c.name: OrderedDict() for c in policy.classes}
            for request_id, job in self._jobs.items():
                if job.waits_in not in self._waiting:
                    job.waits_in = default_class
                if job.rows_sent < job.rows:
                    self._waiting[job.waits_in][request_id] = job
            self._hand_out(self._tell(lambda now: self._scheduler.adopt(policy, now, default_class)))
            return {name: len(waiting) for name, waiting in before.items() if name not in self._waiting}

    # Cancel checks.

    def due(self, min_wait: int) -> list[int]:
        """Ids of requests of the next dispatch that have waited over ``min_wait`` ns."""
        with self._lock:
            return self._scheduler.due(self._clock(), min_wait)

    def waiting_ids(self, class_name: str | None = None) -> list[int]:
        """Ids of the waiting requests of one class, oldest first, or of all classes one after the other."""
        ids: list[int] = []
        for waiting in self._waiting.values() if class_name is None else (self._waiting.get(class_name, ()),):
            ids += waiting  # one step for the interpreter, so that a long queue does not hold the lock
        return ids

    def full_classes(self) -> set[str]:
        """Classes that have refused a request, for its limit or as too late, since the last call."""
        with self._lock:
            full, self._full = self._full, set()
        return full

    def borrow(self, ids: Iterable[int], asked_before: int) -> list[Job]:
        """Jobs for a cancel check; ``give_back`` must follow.

        Args:
            ids: whom to look at; those that no longer wait are left out.
            asked_before: ns; those asked later are left out.
        """
        borrowed = []
        with self._lock:
            for request_id in ids:
                job = self._jobs.get(request_id)
                if job is not None and job.rows_sent < job.rows and job.last_poll <= asked_before:
                    job.polling = True
                    borrowed.append(job)
        return borrowed

    def give_back(self, jobs: Sequence[Job], cancelled: Sequence[Job]) -> None:
        """Takes borrowed jobs back; the ``cancelled`` ones end, unless they were sent meanwhile."""
        with self._lock:
            for job in jobs:
                job.polling = False
                held, job.held_answer = job.held_answer, None
                if held is not None:
                    self._held_up -= 1
                    self._hand_on(held)
            if cancelled:
                self._hand_out(self._tell(lambda now: self._cancel(cancelled, now)))

    # What can be seen.

    @property
    def idle(self) -> bool:
        """Nothing waits, nothing is in flight."""
        with self._lock:
            return not self._jobs

    @property
    def backlog(self) -> bool:
        """Something waits."""
        return any(self._waiting.values())

    def observe(self) -> Observed:
        """A consistent view for the metrics."""
        with self._lock:
            scheduler = self._scheduler
            return Observed(
                waiting=dict(scheduler.waiting),
                rows_in_flight=scheduler.rows_in_flight,
                written_off=scheduler.written_off,
                late_answers=scheduler.late_answers,
                worst_blocking=scheduler.worst_blocking(self._clock()),
                blocking_budget={c.name: c.max_blocking for c in self._policy.classes if c.max_blocking},
                over_budget=dict(scheduler.over_budget),
                waiting_bytes=dict(scheduler.waiting_bytes),
                hand_over=self._hand_over.read(),
                predicted_waits={name: replace(waits) for name, waits in scheduler.predicted_waits.items()},
                held=scheduler.accounted_for + self._held_up,
                handed_on=self._handed_on,
            )

    # With the lock held.

    def _tell(self, fact: Callable[[int], object]) -> list[Call]:
        """Tells the scheduler a fact and acts on what it decides; the calls it wants made are returned."""
        now = self._clock()
        calls: list[Call] = []
        try:
            fact(now)
            actions = self._scheduler.advance(now)
            moment = self._scheduler.next_wakeup()
            for action in actions:
                if isinstance(action, Send):
                    calls.append(self._call_for(action.dispatch, now))
                else:
                    self._finish(action.request_id, action.error)
        except Exception as error:  # noqa: BLE001 - a fault of the core must not stop the router
            self._start_over(error)
            calls.clear()
            moment = None
        self.alarm.set(None if moment is None else max(moment, now + LEAST_SLEEP))
        if calls:
            oldest = [next(iter(waiting.values())).arrived for waiting in self._waiting.values() if waiting]
            if oldest:
                self.on_send(min(oldest))
        return calls

    def _hand_out(self, calls: Iterable[Call]) -> None:
        for call in calls:
            self._call(call)

    def _cancel(self, jobs: Sequence[Job], now: int) -> None:
        for job in jobs:
            if job.request is not None:
                self._scheduler.cancel(job.request.id, now)

    def _admitted(self, request: Request) -> Request:
        """The request, in the default class where it was read under a policy whose class is gone since."""
        if request.class_name in self._waiting:
            return request
        return replace(request, class_name=self._default_class)

    def _call_for(self, dispatch: Dispatch, now: int) -> Call:
        self.sent += 1
        self.sent_rows += dispatch.rows
        return Call(dispatch, [self._take_rows(part) for part in dispatch.parts], self._epoch, now)

    def _take_rows(self, part: Part) -> Job:
        job = self._jobs[part.request_id]
        job.rows_sent += part.rows
        if job.rows_sent >= job.rows:
            del self._waiting[job.waits_in][part.request_id]
        return job

    def _finish(self, request_id: int, error: RequestError | None) -> None:
        job = self._jobs.pop(request_id)
        self._waiting[job.waits_in].pop(request_id, None)
        job.answered = True
        if isinstance(error, QueueFull | PredictedLate):
            self._full.add(job.waits_in)
        answer = Answer(job, error)
        if job.polling:
            job.held_answer = answer
            self._held_up += 1
        else:
            self._hand_on(answer)

    def _hand_on(self, answer: Answer) -> None:
        self._answer(answer)
        self._handed_on += 1

    def _start_over(self, error: Exception) -> None:
        """After a fault of the scheduler: answers everything it held, and goes on with a new one."""
        self.faults += 1
        self._log.exception(
            "scheduler", f"the scheduler failed; {len(self._jobs)} requests are answered INTERNAL", error
        )
        self._epoch += 1
        self._scheduler = Scheduler(self._policy)
        if self._draining:
            self._scheduler.drain()
        for request_id in list(self._jobs):
            self._finish(request_id, InternalFault("the scheduler failed"))


def _nothing(oldest: int) -> None:
    pass


def _nothing_new(now: int) -> None:
    pass
