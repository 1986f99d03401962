# SPDX-License-Identifier: Apache-2.0
"""Who is refused, on arrival or when it is about to be sent, and why.

Law: looks at who waits, decides who may not, and changes neither. What came is judged once ``advance`` has sent what it
can, since what was sent or has ended has made room.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from priority_router.core.batching import Batch
from priority_router.core.executor_model import ExecutorModel, Flight
from priority_router.core.forecast import Forecast, refuses_early
from priority_router.core.lanes import Lanes
from priority_router.core.lines import Entry
from priority_router.core.shares import Shares
from priority_router.core.values import MICROSECOND, MILLISECOND, SchedulingPolicy, TrafficClass
from priority_router.errors import PredictedLate, QueueFull, RequestError


@dataclass(slots=True)
class PredictedWaits:
    """What was predicted of the requests of a class that have run since, and what came true.

    Attributes:
        requests: how many.
        predicted: ns from their arrivals to their starts, as predicted when they came.
        actual: the same as it was.
    """

    requests: int = 0
    predicted: int = 0
    actual: int = 0


class Admission:
    """The requests that came since the last decision, and what they must keep to.

    Attributes:
        predicted_waits: of each class whose requests are refused by prediction.
    """

    def __init__(self, policy: SchedulingPolicy, lanes: Lanes, executor: ExecutorModel, shares: Shares) -> None:
        self._executor = executor
        self._shares = shares
        self._arrivals: list[Entry] = []
        self.predicted_waits: dict[str, PredictedWaits] = {}
        self._follow(policy, lanes)

    def _follow(self, policy: SchedulingPolicy, lanes: Lanes) -> None:
        self._policy = policy
        self._lanes = lanes
        self._forecast: Forecast | None = None
        early = [each.name for each in policy.classes if refuses_early(each)]
        self.predicted_waits = {name: PredictedWaits() for name in early} | self.predicted_waits
        if early:
            self._forecast = lanes.watch = Forecast(policy, lanes, self._executor, self._shares)

    def adopt(self, policy: SchedulingPolicy, lanes: Lanes, waiting: Iterable[Entry]) -> None:
        """Judge by another policy from now on; ``waiting`` are those in its lanes, in order of arrival."""
        self._follow(policy, lanes)
        if self._forecast is not None:
            new = {entry.sequence for entry in self._arrivals}
            for entry in waiting:
                if entry.sequence not in new:
                    self._forecast.add(entry)

    def arrived(self, entry: Entry) -> None:
        """Take in a request that waits as of now."""
        self._arrivals.append(entry)

    def refusals(self, now: int) -> Iterator[tuple[Entry, RequestError]]:
        """Those who may not wait, and what to answer; end each before asking for the next.

        Who would be too late takes nobody's place: only then the newest past the limits are refused. One that has begun
        is kept, even where the delayed requests that it passed fill the class. Where all classes together are past
        their limit the less urgent are refused first.
        """
        arrivals, self._arrivals = self._arrivals, []
        if self._forecast is not None:
            yield from self._predicted_late(self._forecast, arrivals, now)
        if self._policy.max_queue_bytes:
            arrivals.sort(key=lambda entry: entry.level)  # stable, so each level stays by arrival
        for entry in reversed(arrivals):
            full = None if entry.next_row else self._full(entry.traffic_class)
            if full is not None:
                yield entry, QueueFull(full)

    def too_late(self, batch: Batch, now: int) -> Sequence[tuple[Entry, RequestError]]:
        """Of those about to be sent, who would start after its queue timeout has passed, and what to answer.

        Whose timeout has passed already was kept to be served late (DELAY, under the policy of that time).
        """
        if self._forecast is None:
            return ()
        start = self._forecast.start_of_next(batch.level, now)
        classes = self._forecast.classes
        picks = [entry for entry, _ in batch.picks if entry.traffic_class.name in classes and not entry.next_row]
        # What expires by now was answered before, if it was to be.
        return [
            (entry, _too_late(entry, start))
            for entry in picks
            if _is_late(entry, start) and not _is_late(entry, now + 1)
        ]

    def shortened(self, entry: Entry) -> None:
        """Some rows of this request were sent, and the rest waits."""
        if self._forecast is not None:
            self._forecast.moved(entry)

    def ran(self, flight: Flight, entries: Mapping[int, Entry]) -> None:
        """A dispatch has ended; ``entries`` are the requests without an answer."""
        if self._forecast is None or flight.started is None:
            return
        for part in flight.dispatch.parts:
            entry = entries.get(part.request_id)
            if entry is not None and part.first_row == 0 and entry.predicted is not None:
                waits = self.predicted_waits.setdefault(entry.traffic_class.name, PredictedWaits())
                waits.requests += 1
                waits.predicted += entry.predicted
                waits.actual += flight.started - entry.arrived

    def _predicted_late(
        self, forecast: Forecast, arrivals: Sequence[Entry], now: int
    ) -> Iterator[tuple[Entry, RequestError]]:
        for entry in sorted(arrivals, key=lambda entry: entry.level):
            forecast.left(entry)  # where it has moved since it came
            if not entry.unsent:
                continue
            if entry.traffic_class.name in forecast.classes and not entry.next_row:
                start = forecast.start(entry, now)
                if start is not None and _is_late(entry, start):
                    yield entry, _too_late(entry, start)
                    continue
                entry.predicted = None if start is None else start - entry.arrived
            forecast.add(entry)

    def _full(self, traffic_class: TrafficClass) -> str | None:
        """Which limit the class is past; None where it is past none."""
        name, lanes = traffic_class.name, self._lanes
        if traffic_class.max_queue_size and lanes.waiting[name] > traffic_class.max_queue_size:
            return f"class {name!r}: queue is full, max_queue_size is {traffic_class.max_queue_size}"
        if traffic_class.max_queue_bytes and lanes.waiting_bytes[name] > traffic_class.max_queue_bytes:
            return f"class {name!r}: queue is full, its max_queue_bytes is {traffic_class.max_queue_bytes}"
        limit = self._policy.max_queue_bytes
        if limit and sum(lanes.waiting_bytes.values()) > limit:
            return f"the queue of all classes is full, its max_queue_bytes is {limit}"
        return None


def _is_late(entry: Entry, start: int) -> bool:
    return entry.deadline is not None and start > entry.deadline


def _too_late(entry: Entry, start: int) -> PredictedLate:
    wait = -(-(start - entry.arrived) // MILLISECOND)
    over = -(-(start - entry.arrived - entry.timeout) // MILLISECOND)
    return PredictedLate(
        f"class {entry.traffic_class.name!r}: predicted to wait {wait} ms, longer than its queue timeout of "
        f"{entry.timeout // MICROSECOND} us; such a request can be served in {over} ms"
    )
