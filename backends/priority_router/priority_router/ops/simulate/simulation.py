# SPDX-License-Identifier: Apache-2.0
"""A scheduler between seeded traffic and the modelled executor, called the way the router calls it.

The scheduler is asked for decisions after each arrival, answer, cancel and timer, and nowhere else. What it sends
travels: from the decision to the thread that calls the executor (``called``), to Triton's queue, and back.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from priority_router.core.values import MICROSECOND, Action, Dispatch, Request, Send
from priority_router.errors import Outcome, RequestError
from priority_router.ops.simulate.arrivals import Arrival
from priority_router.ops.simulate.clock import Delay, EventLoop
from priority_router.ops.simulate.executor import Call, ExecutorShape, ModelledExecutor, ServiceTimes


class SchedulerLike(Protocol):
    """What the router needs of a scheduler; see :mod:`priority_router.core.scheduler`."""

    def submit(self, requests: Sequence[Request], now: int) -> None:
        """Take in all requests of one ``execute`` call."""

    def cancel(self, request_id: int, now: int) -> None:
        """The caller went away."""

    def called(self, dispatch_id: int, now: int) -> None:
        """The executor is about to be called."""

    def completed(self, dispatch_id: int, now: int, error: RequestError | None = None) -> None:
        """The executor answered."""

    def advance(self, now: int) -> list[Action]:
        """Decide."""

    def next_wakeup(self) -> int | None:
        """When to ask again at the latest."""


@dataclass(frozen=True, slots=True)
class Delays:
    """The ways of a dispatch outside the executor.

    Attributes:
        hand_over: decision to the call of the executor (``called``).
        call: from there to Triton's queue.
        reply: end of the batch to the router's ``completed``.
        timer: lateness of timers.
    """

    hand_over: Delay
    call: Delay
    reply: Delay
    timer: Delay


# Of the size seen on the embedded server with two cores: 0.3 to 1 ms either way, timers some 0.2 ms late.
USUAL_DELAYS = Delays(
    hand_over=Delay(100 * MICROSECOND, 100 * MICROSECOND),
    call=Delay(200 * MICROSECOND, 150 * MICROSECOND),
    reply=Delay(300 * MICROSECOND, 200 * MICROSECOND),
    timer=Delay(100 * MICROSECOND, 100 * MICROSECOND),
)
NO_DELAYS = Delays(Delay(), Delay(), Delay(), Delay())


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of the answer to a dispatch.

    Attributes:
        error: the executor's error, None = answered.
        extra_delay: ns that the answer comes later; None = it never comes.
    """

    error: RequestError | None = None
    extra_delay: int | None = 0


ANSWERED = Fate()


@dataclass(frozen=True, slots=True)
class Setup:
    """Everything around the scheduler.

    Attributes:
        shape: the executor.
        times: its service times.
        delays: ways outside of it.
        dispatch_overhead: ns the executor needs between two batches.
        fate: what becomes of a dispatch; default: it is answered.
        others: arrivals that go to the executor directly, at ``others_level``.
        others_level: level of those.
        measured: ns from and to which busy time and rows are counted.
    """

    shape: ExecutorShape
    times: ServiceTimes
    delays: Delays = USUAL_DELAYS
    dispatch_overhead: int = 100 * MICROSECOND
    fate: Callable[[Dispatch, random.Random], Fate] | None = None
    others: tuple[Arrival, ...] = ()
    others_level: int = 2
    measured: tuple[int, int] = (0, 1 << 62)


class Simulation:
    """One run. The id of a request is its place in the order of arrival.

    Attributes:
        loop: the virtual clock.
        executor: the modelled executor.
        arrived: ns of each request's arrival.
        answered: ns of its answer, -1 before.
        class_names: its class.
        outcomes: how it ended.
        wakeups: times a timer asked for decisions.
        sends: dispatches.
    """

    def __init__(self, scheduler: SchedulerLike, setup: Setup, arrivals: Iterable[Arrival], seed: int) -> None:
        self.loop = EventLoop()
        self.scheduler = scheduler
        self.arrived = array("q")
        self.answered = array("q")
        self.class_names: list[str] = []
        self.outcomes: list[Outcome | None] = []
        self.wakeups = 0
        self.sends = 0
        self._setup = setup
        self._delays = setup.delays
        self._transport = random.Random(f"{seed}/transport")
        self._fates = random.Random(f"{seed}/fates")
        self.executor = ModelledExecutor(
            self.loop,
            setup.shape,
            setup.times,
            random.Random(f"{seed}/times"),
            self._batch_ended,
            dispatch_overhead=setup.dispatch_overhead,
            window=setup.measured,
        )
        self._arrivals: Iterator[Arrival] = iter(arrivals)
        self._next_arrival = next(self._arrivals, None)
        self._timer_at: int | None = None
        if self._next_arrival is not None:
            self.loop.at(self._next_arrival.time, self._arrive)
        for other in setup.others:
            call = Call(setup.others_level, other.rows, other.signature)
            self.loop.at(other.time, self.executor.enqueue, call)

    def run(self, until: int | None = None) -> None:
        """Run to the end, or to ``until`` ns."""
        self.loop.run(until)

    def _arrive(self, _: Any) -> None:
        now = self.loop.now
        requests = []
        arrival = self._next_arrival
        while arrival is not None and arrival.time <= now:
            number = len(self.arrived)
            self.arrived.append(arrival.time)
            self.answered.append(-1)
            self.class_names.append(arrival.class_name)
            self.outcomes.append(None)
            requests.append(Request(number, arrival.class_name, arrival.rows, arrival.signature, arrival.timeout))
            if arrival.cancel_after:
                self.loop.at(now + arrival.cancel_after, self._cancel, number)
            arrival = next(self._arrivals, None)
        self._next_arrival = arrival
        if arrival is not None:
            self.loop.at(arrival.time, self._arrive)
        self.scheduler.submit(requests, now)
        self._advance()

    def _cancel(self, number: int) -> None:
        self.scheduler.cancel(number, self.loop.now)
        self._advance()

    def _advance(self) -> None:
        now = self.loop.now
        for action in self.scheduler.advance(now):
            if isinstance(action, Send):
                self.sends += 1
                self.loop.at(now + self._delays.hand_over.draw(self._transport), self._start, action.dispatch)
            else:
                if self.outcomes[action.request_id] is not None:
                    raise RuntimeError(f"request {action.request_id} ended twice")
                self.outcomes[action.request_id] = action.outcome
                self.answered[action.request_id] = now
        wakeup = self.scheduler.next_wakeup()
        if wakeup is not None and (self._timer_at is None or wakeup < self._timer_at):
            self._timer_at = wakeup
            self.loop.at(wakeup + self._delays.timer.draw(self._transport), self._timer, wakeup)

    def _timer(self, due: int) -> None:
        if due != self._timer_at:
            return
        self._timer_at = None
        wakeup = self.scheduler.next_wakeup()
        if wakeup is None:
            return
        if wakeup > self.loop.now:
            self._timer_at = wakeup
            self.loop.at(wakeup + self._delays.timer.draw(self._transport), self._timer, wakeup)
            return
        self.wakeups += 1
        self._advance()

    def _start(self, dispatch: Dispatch) -> None:
        now = self.loop.now
        self.scheduler.called(dispatch.id, now)
        call = Call(dispatch.level, dispatch.rows, dispatch.signature, dispatch)
        self.loop.at(now + self._delays.call.draw(self._transport), self.executor.enqueue, call)

    def _batch_ended(self, calls: list[Call]) -> None:
        now = self.loop.now
        for call in calls:
            if call.owner is None:
                continue
            fate = ANSWERED if self._setup.fate is None else self._setup.fate(call.owner, self._fates)
            if fate.extra_delay is not None:
                arrival = now + self._delays.reply.draw(self._transport) + fate.extra_delay
                self.loop.at(arrival, self._reply, (call.owner, fate.error))

    def _reply(self, answer: tuple[Dispatch, RequestError | None]) -> None:
        self.scheduler.completed(answer[0].id, self.loop.now, answer[1])
        self._advance()
