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
from priority_router.ops.simulate.clock import Delay, EventLoop, Way
from priority_router.ops.simulate.executor import Call, ExecutorShape, ModelledExecutor, Times


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


NO_WAY = Delay()


@dataclass(frozen=True, slots=True)
class Delays:
    """The ways of requests and dispatches outside the executor.

    Attributes:
        hand_over: decision to the call of the executor (``called``).
        call: from there to Triton's queue.
        reply: end of the batch to the router's ``completed``.
        timer: lateness of timers.
        request: caller to the router's ``submit``; requests arrive in the order in which they were sent.
        answer: end of a request in the router to its caller.
    """

    hand_over: Way
    call: Way
    reply: Way
    timer: Way
    request: Way = NO_WAY
    answer: Way = NO_WAY


# Of the size seen on the embedded server with two cores: 0.3 to 1 ms either way, timers some 0.2 ms late.
USUAL_DELAYS = Delays(
    hand_over=Delay(100 * MICROSECOND, 100 * MICROSECOND),
    call=Delay(200 * MICROSECOND, 150 * MICROSECOND),
    reply=Delay(300 * MICROSECOND, 200 * MICROSECOND),
    timer=Delay(100 * MICROSECOND, 100 * MICROSECOND),
)
NO_DELAYS = Delays(NO_WAY, NO_WAY, NO_WAY, NO_WAY)


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
    times: Times
    delays: Delays = USUAL_DELAYS
    dispatch_overhead: int = 100 * MICROSECOND
    fate: Callable[[Dispatch, random.Random], Fate] | None = None
    others: tuple[Arrival, ...] = ()
    others_level: int = 2
    measured: tuple[int, int] = (0, 1 << 62)


class Simulation:
    """One router and its traffic. The id of a request is its place in the order of arrival.

    Attributes:
        loop: the virtual clock.
        executor: the modelled executor.
        arrived: ns at which each request's caller sent it.
        answered: ns at which its caller has the answer, -1 before that is on its way.
        class_names: its class.
        rows: its rows.
        outcomes: how it ended.
        wakeups: times a timer asked for decisions.
        sends: dispatches.
    """

    def __init__(
        self,
        scheduler: SchedulerLike,
        setup: Setup,
        arrivals: Iterable[Arrival],
        seed: int,
        beside: Simulation | None = None,
    ) -> None:
        """Prepares a run.

        Args:
            scheduler: of this router.
            setup: everything around it.
            arrivals: its requests, in order of time.
            seed: of all draws.
            beside: another router, whose clock and executor it shares; ``run`` either of them.
        """
        self.scheduler = scheduler
        self.arrived = array("q")
        self.answered = array("q")
        self.class_names: list[str] = []
        self.rows = array("q")
        self.outcomes: list[Outcome | None] = []
        self.wakeups = 0
        self.sends = 0
        self._setup = setup
        self._delays = setup.delays
        self._transport = random.Random(f"{seed}/transport")
        self._callers = random.Random(f"{seed}/callers")
        self._fates = random.Random(f"{seed}/fates")
        if beside is None:
            self.loop = EventLoop()
            self.executor = ModelledExecutor(
                self.loop,
                setup.shape,
                setup.times,
                random.Random(f"{seed}/times"),
                _batch_ended,
                dispatch_overhead=setup.dispatch_overhead,
                window=setup.measured,
            )
            for other in setup.others:
                call = Call(setup.others_level, other.rows, other.signature)
                self.loop.at(other.time, self.executor.enqueue, call)
        else:
            self.loop, self.executor = beside.loop, beside.executor
        self._arrivals = self._reaching(arrivals)
        self._next_arrival = next(self._arrivals, None)
        self._timer_at: int | None = None
        if self._next_arrival is not None:
            self.loop.at(self._next_arrival[0], self._arrive)

    def run(self, until: int | None = None) -> None:
        """Run to the end, or to ``until`` ns."""
        self.loop.run(until)

    def _reaching(self, arrivals: Iterable[Arrival]) -> Iterator[tuple[int, Arrival]]:
        """Requests with the time at which they reach the router; none overtakes another."""
        reached, draw = 0, self._delays.request.draw
        for arrival in arrivals:
            reached = max(reached, arrival.time + draw(self._callers))
            yield reached, arrival

    def _arrive(self, _: Any) -> None:
        now = self.loop.now
        requests = []
        following = self._next_arrival
        while following is not None and following[0] <= now:
            arrival = following[1]
            number = len(self.arrived)
            self.arrived.append(arrival.time)
            self.answered.append(-1)
            self.class_names.append(arrival.class_name)
            self.rows.append(arrival.rows)
            self.outcomes.append(None)
            requests.append(
                Request(
                    number,
                    arrival.class_name,
                    arrival.rows,
                    arrival.signature,
                    arrival.timeout,
                    tenant=arrival.tenant,
                )
            )
            if arrival.cancel_after:
                self.loop.at(now + arrival.cancel_after, self._cancel, number)
            following = next(self._arrivals, None)
        self._next_arrival = following
        if following is not None:
            self.loop.at(following[0], self._arrive)
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
                self.answered[action.request_id] = now + self._delays.answer.draw(self._callers)
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
        call = Call(dispatch.level, dispatch.rows, dispatch.signature, (self, dispatch))
        self.loop.at(now + self._delays.call.draw(self._transport), self.executor.enqueue, call)

    def _ended(self, dispatch: Dispatch) -> None:
        fate = ANSWERED if self._setup.fate is None else self._setup.fate(dispatch, self._fates)
        if fate.extra_delay is not None:
            arrival = self.loop.now + self._delays.reply.draw(self._transport) + fate.extra_delay
            self.loop.at(arrival, self._reply, (dispatch, fate.error))

    def _reply(self, answer: tuple[Dispatch, RequestError | None]) -> None:
        self.scheduler.completed(answer[0].id, self.loop.now, answer[1])
        self._advance()


def _batch_ended(calls: list[Call]) -> None:
    for call in calls:
        if call.owner is not None:
            sender, dispatch = call.owner
            sender._ended(dispatch)
