# SPDX-License-Identifier: Apache-2.0
"""Short ways to say what a core test needs."""

from typing import Any

from priority_router.core.scheduler import Scheduler
from priority_router.core.values import MILLISECOND, Dispatch, Finish, Request, SchedulingPolicy, Send, TrafficClass

MS = MILLISECOND
ONLINE = TrafficClass("online", level=1)
BACKGROUND = TrafficClass("background", level=2)


def policy(*classes: TrafficClass, **keys: Any) -> SchedulingPolicy:
    return SchedulingPolicy(classes or (ONLINE, BACKGROUND), **{"max_batch_size": 4, **keys})


class Bench:
    """A scheduler with a hand-driven clock in ms."""

    def __init__(self, *classes: TrafficClass, **keys: Any) -> None:
        self.scheduler = Scheduler(policy(*classes, **keys))
        self.now = 0
        self.next_id = 0
        self.outcomes: dict[int, str] = {}
        self.errors: dict[int, str] = {}
        self.sent: list[Dispatch] = []
        self.names: list[str] = []

    def submit(self, *class_names, rows=1, signature="s", timeout_ms=0, size=0, tenant=""):
        """Submit one request per name, together; returns their ids."""
        ids = list(range(self.next_id, self.next_id + len(class_names)))
        self.next_id += len(class_names)
        self.names += class_names
        self.scheduler.submit(
            [
                Request(i, name, rows, signature, timeout_ms * MS, size, tenant)
                for i, name in zip(ids, class_names, strict=True)
            ],
            self.now,
        )
        return ids

    def at(self, ms):
        self.now = round(ms * MS)
        return self

    def advance(self):
        """Decide; returns the dispatches sent, in order."""
        sends = []
        for action in self.scheduler.advance(self.now):
            if isinstance(action, Send):
                sends.append(action.dispatch)
            elif isinstance(action, Finish):
                assert action.request_id not in self.outcomes
                self.outcomes[action.request_id] = action.outcome.value
                self.errors[action.request_id] = str(action.error)
        self.sent += sends
        return sends

    def complete(self, dispatch, error=None):
        self.scheduler.completed(dispatch.id, self.now, error)
        return self.advance()

    def flying(self):
        """Dispatches without an answer, in sending order."""
        return [flight.dispatch for flight in self.scheduler._executor.flights.values()]

    def learn(self, ms, rows=1, signature="s", times=4, class_name="background"):
        """Let the executor take ``ms`` for ``rows`` rows, a few times, ending idle."""
        for _ in range(times):
            self.submit(*[class_name] * rows, signature=signature)
            (dispatch,) = self.advance()
            self.now += round(ms * MS)
            self.complete(dispatch)


def ids(dispatch):
    return [part.request_id for part in dispatch.parts]
