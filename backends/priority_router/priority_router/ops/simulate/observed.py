# SPDX-License-Identifier: Apache-2.0
"""From what a recording saw to the numbers of a profile.

Law: pure; replies and counters in, samples in microseconds out. Which time is seen where is told in docs/simulate.md.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean, median
from typing import Final

from priority_router.core.values import MICROSECOND
from priority_router.ops.simulate.clock import Drawn
from priority_router.ops.simulate.counted import FEWEST, SPREAD, Counters, Page
from priority_router.ops.simulate.profile import MeasuredTimes

USUAL_OVERHEAD_US: Final = 100.0
"""From one batch to the next, where it could not be seen."""

USUAL_TIMER_US: Final = (75.0, 76.0, 80.0, 83.0, 86.0, 88.0, 90.0, 94.0, 99.0, 175.0, 1000.0)
"""Lateness of the router's timer, which nothing outside the router shows: as seen on the embedded server, two cores."""

BULK: Final = 0.75
"""Share of the times seen in quiet that nothing held up."""

SURELY_WAITED: Final = 2.0
"""Times the usual way into Triton's queue that a dispatch had to spare: then it waited for the one before it."""


MOST_IN_FLIGHT: Final = 4
"""Dispatches of a router at one time, by instance."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One answered request; times in ns.

    Attributes:
        rows: of the request.
        sent: when its caller sent it.
        done: when the caller had the answer.
        queue: what the router says that it waited: its arrival there to the executor call.
        executor: what the router says that the call took.
    """

    rows: int
    sent: int
    done: int
    queue: int
    executor: int

    @property
    def outside(self) -> int:
        """The ways from the caller to the router and back."""
        return self.done - self.sent - self.queue - self.executor


@dataclass(frozen=True, slots=True)
class Alone:
    """One request that nothing disturbed: its reply, and what the executor's counters gained meanwhile."""

    reply: Reply
    gained: Counters

    @property
    def undisturbed(self) -> bool:
        """It was one execution, and nobody else's."""
        return self.gained.executions == {self.reply.rows: 1} and self.gained.requests == 1

    @property
    def computed(self) -> int:
        """Ns that the execution took."""
        return self.gained.computed[self.reply.rows]


@dataclass(frozen=True, slots=True)
class Loaded:
    """Some seconds of load.

    Attributes:
        replies: to requests of one row each, sent at random times; none where others make the load.
        gained: by the executor's counters meanwhile.
    """

    replies: Sequence[Reply]
    gained: Counters

    def dispatches(self) -> list[Reply]:
        """The calls of the executor behind the replies, in order.

        Requests that one call answered agree on its time to the microsecond, and are answered side by side.
        """
        found: list[Reply] = []
        for reply in sorted(self.replies, key=lambda reply: reply.done):
            before = next((one for one in reversed(found[-4:]) if one.executor == reply.executor), None)
            if before is None:
                found.append(reply)
            else:
                place = found.index(before)
                found[place] = Reply(before.rows + reply.rows, before.sent, before.done, before.queue, before.executor)
        return found

    def around(self) -> float | None:
        """Mean of the ways between router and executor, both together, in microseconds; None where nothing was seen."""
        dispatches = self.dispatches()
        if not dispatches or not self.gained.requests:
            return None
        inside = (self.gained.queue + sum(self.gained.computed.values())) / self.gained.requests
        return max(0.0, (fmean(reply.executor for reply in dispatches) - inside) / MICROSECOND)

    def to_idle(self, times: MeasuredTimes, instances: int) -> float | None:
        """Mean of what calls took beyond their execution whose executor had an instance free, in microseconds.

        That is the ways between router and executor, and the waking of an executor that has nothing to do. None where
        hardly one was seen.
        """
        found = []
        dispatches, most = self.dispatches(), MOST_IN_FLIGHT * instances
        for place in range(most, len(dispatches)):  # the first may have had company that was sent before them
            each = dispatches[place]
            called = each.done - each.executor
            near = dispatches[place - most : place + most]
            running = sum(one is not each and one.done - one.executor <= called < one.done for one in near)
            if running < instances:
                found.append((each.executor - times.expected(each.rows, 0)) / MICROSECOND)
        return max(0.0, fmean(found)) if len(found) >= FEWEST else None

    def longer(self, usual: MeasuredTimes) -> float | None:
        """By how much an execution was longer on average than usual, in microseconds; None where none was seen."""
        seen = self.gained.executions
        if not seen:
            return None
        means = self.gained.means
        longer = sum(count * (means[rows] - usual.expected(rows, 0) / MICROSECOND) for rows, count in seen.items())
        return longer / sum(seen.values())


@dataclass(slots=True)
class Recording:
    """Everything that was seen.

    Attributes:
        instances: the executor's.
        alone: requests that were sent one at a time.
        disturbed: others that were, but not alone with the executor.
        loads: times of load. What is usual is their mean without the highest and the lowest, so that a moment in
            which the whole machine stood still is not taken for a property of the executor.
        page: what the router's metrics gained in all of these together; None where they were not read.
    """

    instances: int = 1
    alone: list[Alone] = field(default_factory=list)
    disturbed: int = 0
    loads: list[Loaded] = field(default_factory=list)
    page: Page | None = None

    @property
    def together(self) -> list[Reply]:
        """All replies under load."""
        return [reply for load in self.loads for reply in load.replies]

    @property
    def executions(self) -> Counter[int]:
        """Under load, by rows."""
        return sum((Counter(load.gained.executions) for load in self.loads), Counter())

    def execution_us(self) -> dict[int, list[float]]:
        """Execution times by row count: of requests alone, where need be longer by what the load makes of them.

        Without such requests the means that the counters tell.
        """
        alone = self._times_alone()
        if not alone:
            return self._means()
        usual = MeasuredTimes({rows: _drawn(own) for rows, own in alone.items()})
        seen = [longer for load in self.loads if (longer := load.longer(usual)) is not None]
        return {rows: held_up(own, max(0.0, _usual(seen or [0.0]))) for rows, own in alone.items()}

    def usual_us(self, rows: int) -> float:
        """Median execution time of a row count that was seen, in microseconds."""
        return median(self.execution_us()[rows])

    def delays_us(self) -> dict[str, list[float]]:
        """The ways by the names of a profile."""
        if not self.alone:
            return {}
        replies = [each.reply for each in self.alone]
        around = [(each.reply.executor - each.computed - each.gained.queue) / MICROSECOND for each in self.alone]
        waking = median(each.gained.queue for each in self.alone) / MICROSECOND
        usual = max(0.0, median(around)) / 2
        call = [usual + waking]
        seen = [loaded for load in self.loads if (loaded := load.around()) is not None]
        if seen:
            times = self._times()
            idle = [ways for load in self.loads if (ways := load.to_idle(times, self.instances)) is not None]
            if idle:
                call = held_up(call * SPREAD, max(0.0, _usual(idle) - _usual(seen) - waking))
            around = under_load(around, _usual(seen))
        request = median(reply.outside for reply in replies) / MICROSECOND / 2
        answer = [max(0.0, reply.outside / MICROSECOND - request) for reply in self.together or replies]
        return {
            "request": [max(0.0, request)],
            "hand_over": (self.page.hand_over_us() if self.page is not None else [])
            or [reply.queue / MICROSECOND for reply in replies],
            "call": call,
            "reply": [max(0.0, way - usual) for way in around],
            "timer": self._timer_us(),
            "answer": answer,
        }

    def overhead_us(self) -> float:
        """From the end of a batch to the start of the next one, which waited for it."""
        if self.instances > 1 or not self.alone:
            return USUAL_OVERHEAD_US
        middles = self._middles()
        way = SURELY_WAITED * median(self.delays_us()["call"]) * MICROSECOND
        gaps = []
        for before, after in (pair for load in self.loads for pair in pairwise(load.dispatches())):
            spare = before.done - (after.done - after.executor)
            if spare > way:
                gaps.append((after.done - before.done - middles.expected(after.rows, 0)) / MICROSECOND)
        return max(0.0, median(gaps)) if len(gaps) >= 2 * FEWEST else USUAL_OVERHEAD_US

    def _timer_us(self) -> list[float]:
        """Lateness of the router's timer: the usual one, in proportion to the mean that was seen."""
        page = self.page
        if page is None or page.wake_ups < FEWEST:
            return list(USUAL_TIMER_US)
        return [late * page.lateness / page.wake_ups / fmean(USUAL_TIMER_US) for late in USUAL_TIMER_US]

    def _times_alone(self) -> dict[int, list[float]]:
        times: dict[int, list[float]] = {}
        for each in self.alone:
            times.setdefault(each.reply.rows, []).append(each.computed / MICROSECOND)
        return times

    def _times(self) -> MeasuredTimes:
        """Execution times as the profile has them."""
        return MeasuredTimes({rows: _drawn(own) for rows, own in self.execution_us().items()})

    def _middles(self) -> MeasuredTimes:
        """The median time of each row count alone."""
        times = self._times_alone()
        return MeasuredTimes({rows: Drawn((round(median(own) * MICROSECOND),)) for rows, own in times.items()})

    def _means(self) -> dict[int, list[float]]:
        """Mean times of each time of load, by rows."""
        found: dict[int, list[float]] = {}
        for load in self.loads:
            for rows, mean in load.gained.means.items():
                found.setdefault(rows, []).append(mean)
        return found


def under_load(values: Sequence[float], mean: float) -> list[float]:
    """Times that were seen in quiet, as they are where their mean is another one: the bulk stays, and is held up.

    Args:
        values: seen in quiet.
        mean: to have.
    """
    bulk = _drawn(values)
    limit = bulk.at(BULK)
    least = [min(bulk.at((place + 0.5) / SPREAD), limit) / MICROSECOND for place in range(SPREAD)]
    return held_up(least, max(0.0, mean - fmean(least)))


def held_up(values: Sequence[float], mean: float) -> list[float]:
    """Times in ascending order, each longer by what comes between at random: exponential, of this mean."""
    ordered = sorted(values)
    count = len(ordered)
    shares = [-math.log(1 - (place + 0.5) / count) for place in range(count)]
    return [value + mean * share / fmean(shares) for value, share in zip(ordered, shares, strict=True)]


def _usual(values: Sequence[float]) -> float:
    """The mean without the highest and the lowest, where there are others."""
    return fmean(sorted(values)[1:-1] if len(values) > 2 else values)


def _drawn(values: Sequence[float]) -> Drawn:
    return Drawn(tuple(sorted(round(value * MICROSECOND) for value in values)))
