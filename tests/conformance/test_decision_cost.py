# SPDX-License-Identifier: Apache-2.0
"""What a decision costs must not grow with the queue."""

from __future__ import annotations

import random
import time

import pytest
from conformance.worlds import MIXES, MS
from priority_router.core.scheduler import Scheduler
from priority_router.core.values import Request, SchedulingPolicy, Send, TrafficClass
from priority_router.ops.simulate.arrivals import SignatureMix

POLICY = SchedulingPolicy(
    (TrafficClass("online", 1, default_timeout=3_600_000 * MS), TrafficClass("batch", 2, max_queue_size=10_000_000)),
    max_batch_size=4,
)


class Steady:
    """A scheduler whose queue keeps its length: four requests come, one dispatch of four goes."""

    def __init__(self, queued: int, mix: SignatureMix) -> None:
        self.rng = random.Random(1)
        self.mix = mix
        self.scheduler = Scheduler(POLICY)
        self.now = 0
        self.issued = 0
        self.submit(queued)
        self.flying = [action.dispatch for action in self.scheduler.advance(0) if isinstance(action, Send)]

    def submit(self, count: int) -> None:
        first, self.issued = self.issued, self.issued + count
        self.scheduler.submit(
            [Request(i, "batch" if i % 5 else "online", 1, self.mix(self.rng)) for i in range(first, self.issued)],
            self.now,
        )

    def cycle(self) -> None:
        """Arrival, call, answer, decision: all that one dispatch asks of the scheduler."""
        self.now += 50 * MS
        dispatch = self.flying.pop(0)
        self.scheduler.called(dispatch.id, self.now)
        self.submit(len(dispatch.parts))
        self.scheduler.completed(dispatch.id, self.now)
        self.flying += [action.dispatch for action in self.scheduler.advance(self.now) if isinstance(action, Send)]
        self.scheduler.next_wakeup()


def seconds(steady: Steady, cycles: int) -> float:
    begin = time.perf_counter()
    for _ in range(cycles):
        steady.cycle()
    return time.perf_counter() - begin


@pytest.mark.parametrize("mix", MIXES)
def test_a_decision_at_100000_queued_costs_at_most_3_times_one_at_100(mix: str) -> None:
    short, long = (Steady(queued, MIXES[mix]()) for queued in (100, 100_000))
    # Alternating, and the quickest of each: what a busy machine adds is not the scheduler's.
    pairs = [(seconds(long, 50), seconds(short, 50)) for _ in range(15)]
    assert min(pair[0] for pair in pairs) <= 3 * min(pair[1] for pair in pairs)
