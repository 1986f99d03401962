# SPDX-License-Identifier: Apache-2.0
"""From what a recording saw to the numbers of a profile.

Law: pure; replies and counters in, samples in microseconds out. Which time is seen where is told in docs/simulate.md.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean, median
from typing import Any, Final

from priority_router.core.values import MICROSECOND
from priority_router.ops.simulate.clock import Drawn
from priority_router.ops.simulate.profile import MeasuredTimes

USUAL_OVERHEAD_US: Final = 100.0
"""From one batch to the next, where it could not be seen."""

USUAL_TIMER_US: Final = (75.0, 76.0, 80.0, 83.0, 86.0, 88.0, 90.0, 94.0, 99.0, 175.0, 1000.0)
"""Lateness of the router's timer, which nothing outside the router shows: as seen on the embedded server, two cores."""

FEWEST: Final = 3
"""Executions of a row count under load from which their mean is believed."""

BULK: Final = 0.75
"""Share of the times seen in quiet that nothing held up."""

SURELY_WAITED: Final = 2.0
"""Times the usual way into Triton's queue that a dispatch had to spare: then it waited for the one before it."""

_SPREAD: Final = 100
_METRIC: Final = re.compile(r"^priority_router_(\w+)\{(.*)\} (\S+)$", re.MULTILINE)
_LABEL: Final = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


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
class Counters:
    """What Triton has counted of the executor; sums in ns.

    Attributes:
        requests: answered by it, each a dispatch of a router or somebody else's.
        queue: that they waited in Triton's queue.
        executions: by rows of a batch.
        computed: time of these, by rows.
    """

    requests: int
    queue: int
    executions: Mapping[int, int]
    computed: Mapping[int, int]

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> Counters:
        """Reads an entry of ``model_stats``."""
        batches = {int(batch.get("batch_size", 1)): batch for batch in entry.get("batch_stats", ())}
        success = entry.get("inference_stats", {})

        def ns(of: Mapping[str, Any], what: str) -> int:
            return int(of.get(what, {}).get("ns", 0))

        return cls(
            int(success.get("success", {}).get("count", 0)),
            ns(success, "queue"),
            {rows: int(batch.get("compute_infer", {}).get("count", 0)) for rows, batch in batches.items()},
            {
                rows: sum(ns(batch, part) for part in ("compute_input", "compute_infer", "compute_output"))
                for rows, batch in batches.items()
            },
        )

    def since(self, earlier: Counters) -> Counters:
        """What happened between two readings."""
        executions = {rows: count - earlier.executions.get(rows, 0) for rows, count in self.executions.items()}
        return Counters(
            self.requests - earlier.requests,
            self.queue - earlier.queue,
            {rows: count for rows, count in executions.items() if count},
            {rows: self.computed[rows] - earlier.computed.get(rows, 0) for rows, count in executions.items() if count},
        )

    @property
    def means(self) -> dict[int, float]:
        """Mean time of an execution in microseconds, by rows."""
        return {rows: self.computed[rows] / count / MICROSECOND for rows, count in self.executions.items()}


@dataclass(frozen=True, slots=True)
class Page:
    """What a router's metrics say of its own ways.

    Attributes:
        hand_over: decisions that became an executor call within a bound in microseconds, by that bound.
        wake_ups: of the router's timer.
        lateness: of all of those together, in microseconds.
    """

    hand_over: Mapping[float, float]
    wake_ups: float
    lateness: float

    @classmethod
    def of(cls, text: str, model: str) -> Page:
        """Reads a page of metrics; what is not there is empty."""
        found: dict[tuple[str, str], float] = {}
        for name, labels, value in _METRIC.findall(text):
            held = dict(_LABEL.findall(labels))
            if held.get("model") == model:
                found[name, held.get("le", "")] = float(value)
        bounds = {le: value for (name, le), value in found.items() if name == "hand_over_seconds_bucket"}
        return cls(
            {1e6 * float(le.replace("+Inf", "inf")): value for le, value in bounds.items()},
            found.get(("timer_lateness_seconds_count", ""), 0.0),
            1e6 * found.get(("timer_lateness_seconds_sum", ""), 0.0),
        )

    def since(self, earlier: Page) -> Page:
        """What happened between two readings."""
        return Page(
            {bound: value - earlier.hand_over.get(bound, 0.0) for bound, value in self.hand_over.items()},
            self.wake_ups - earlier.wake_ups,
            self.lateness - earlier.lateness,
        )

    def plus(self, other: Page | None) -> Page:
        """Both together."""
        if other is None:
            return self
        bounds = {bound: value + other.hand_over.get(bound, 0.0) for bound, value in self.hand_over.items()}
        return Page(bounds, self.wake_ups + other.wake_ups, self.lateness + other.lateness)

    def hand_over_us(self) -> list[float]:
        """A hundred times from a decision to its call, evenly spread over those counted; none where none was."""
        bounds = sorted(self.hand_over)
        if not bounds or self.hand_over[bounds[-1]] < FEWEST:
            return []
        total = self.hand_over[bounds[-1]]
        found = []
        for place in range(_SPREAD):
            wanted = (place + 0.5) / _SPREAD * total
            at = next(index for index, bound in enumerate(bounds) if self.hand_over[bound] >= wanted)
            low, low_count = (bounds[at - 1], self.hand_over[bounds[at - 1]]) if at else (0.0, 0.0)
            high = bounds[at] if math.isfinite(bounds[at]) else low
            found.append(low + (high - low) * (wanted - low_count) / (self.hand_over[bounds[at]] - low_count))
        return found


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
        usual = max(0.0, median(around)) / 2
        seen = [loaded for load in self.loads if (loaded := load.around()) is not None]
        if seen:
            around = under_load(around, _usual(seen))
        request = median(reply.outside for reply in replies) / MICROSECOND / 2
        answer = [max(0.0, reply.outside / MICROSECOND - request) for reply in self.together or replies]
        return {
            "request": [max(0.0, request)],
            "hand_over": (self.page.hand_over_us() if self.page is not None else [])
            or [reply.queue / MICROSECOND for reply in replies],
            "call": [usual + median(each.gained.queue for each in self.alone) / MICROSECOND],
            "reply": [max(0.0, way - usual) for way in around],
            "timer": self._timer_us(),
            "answer": answer,
        }

    def overhead_us(self) -> float:
        """From the end of a batch to the start of the next one, which waited for it."""
        middles = self._middles()
        way = SURELY_WAITED * median(self.delays_us()["call"]) * MICROSECOND if self.alone else 0.0
        gaps = []
        for before, after in (pair for load in self.loads for pair in pairwise(load.dispatches())):
            spare = before.done - (after.done - after.executor)
            if spare > way and middles is not None:
                gaps.append((after.done - before.done - middles.expected(after.rows, 0)) / MICROSECOND)
        if self.instances > 1 or len(gaps) < 2 * FEWEST:
            return USUAL_OVERHEAD_US
        return max(0.0, median(gaps))

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

    def _middles(self) -> MeasuredTimes | None:
        """The median time of each row count alone."""
        times = self._times_alone()
        if not times:
            return None
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
    least = [min(bulk.at((place + 0.5) / _SPREAD), limit) / MICROSECOND for place in range(_SPREAD)]
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
