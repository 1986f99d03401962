# SPDX-License-Identifier: Apache-2.0
"""Simpler ways to share an executor, to compare the scheduler with.

Law: same calls as the scheduler, no learning. They know no limits, timeouts, cancels, splits or lost dispatches.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from priority_router.core.values import Action, Dispatch, Finish, Part, Request, SchedulingPolicy, Send
from priority_router.errors import RequestError


@dataclass(slots=True)
class FixedDepth:
    """Keep a fixed number of dispatches in flight.

    Attributes:
        policy: classes and executor shape.
        in_flight: dispatches in flight at most; the number of instances is one at a time for each.
        by_level: most urgent first; False = first come, first served.
        joins: fill dispatches with requests of equal signature; False = one request each, as clients send them.
    """

    policy: SchedulingPolicy
    in_flight: int
    by_level: bool = True
    joins: bool = True
    _queues: dict[int, OrderedDict[int, Request]] = field(default_factory=dict)
    _flying: dict[int, Dispatch] = field(default_factory=dict)
    _finished: list[Action] = field(default_factory=list)
    _levels: dict[str, int] = field(default_factory=dict)
    _sent: int = 0

    def __post_init__(self) -> None:
        self._levels = {each.name: each.level for each in self.policy.classes}
        for level in sorted(set(self._levels.values())):
            self._queues[level if self.by_level else 0] = OrderedDict()

    def submit(self, requests: Sequence[Request], now: int) -> None:  # noqa: ARG002 - the scheduler's signature
        """Take in all requests of one ``execute`` call."""
        for request in requests:
            self._queues[self._queue_of(request)][request.id] = request

    def cancel(self, request_id: int, now: int) -> None:
        """Cancels are not looked at."""

    def called(self, dispatch_id: int, now: int) -> None:
        """Nothing is learned."""

    def completed(self, dispatch_id: int, now: int, error: RequestError | None = None) -> None:  # noqa: ARG002
        """The executor answered."""
        dispatch = self._flying.pop(dispatch_id)
        self._finished.extend(Finish(part.request_id, error) for part in dispatch.parts)

    def advance(self, now: int) -> list[Action]:  # noqa: ARG002
        """Decide."""
        actions, self._finished = self._finished, []
        while len(self._flying) < self.in_flight:
            dispatch = self._form()
            if dispatch is None:
                break
            self._flying[dispatch.id] = dispatch
            actions.append(Send(dispatch))
        return actions

    def next_wakeup(self) -> int | None:
        """Never."""
        return None

    def _queue_of(self, request: Request) -> int:
        return self._levels[request.class_name] if self.by_level else 0

    def _form(self) -> Dispatch | None:
        head = next((next(iter(queue.values())) for queue in self._queues.values() if queue), None)
        if head is None:
            return None
        taken: list[Request] = []
        rows = 0
        for level, queue in self._queues.items():
            if level < self._queue_of(head):
                continue
            for request in queue.values():
                if taken and (
                    not self.joins or rows >= self.policy.max_batch_size or request.signature != head.signature
                ):
                    break
                if not taken or rows + request.rows <= self.policy.max_batch_size:
                    taken.append(request)
                    rows += request.rows
        for request in taken:
            del self._queues[self._queue_of(request)][request.id]
        self._sent += 1
        parts = tuple(Part(request.id, 0, request.rows) for request in taken)
        return Dispatch(self._sent, self._levels[head.class_name], head.signature, rows, parts)
