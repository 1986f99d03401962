# SPDX-License-Identifier: Apache-2.0
"""What a decision costs must grow neither with the queue nor with the executor's row limit."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from typing import Any

import pytest
from conformance.worlds import MIXES, MS
from priority_router.core.scheduler import Scheduler
from priority_router.core.values import SECOND, FairBy, Order, Request, SchedulingPolicy, Send, TrafficClass
from priority_router.ops.simulate.arrivals import SignatureMix
from priority_router.ops.simulate.executor import ServiceTimes

AGE = 1_000_000 * SECOND
CLASSES = (
    TrafficClass("online", 1, default_timeout=AGE),
    TrafficClass("batch", 2, max_queue_size=10_000_000, default_timeout=AGE),
)
POLICIES: dict[str, Any] = {
    "order": Order.DEADLINE,
    "max_blocking": 30 * MS,
    "max_wait": AGE,
    "min_share": 0.5,
    "fair_by": FairBy.TENANT,
    "reject_predicted_late": True,
}
TIMES = ServiceTimes(20 * MS, 1 * MS, spread=0.05)


class Steady:
    """A scheduler that has learned, and whose queue keeps its length: as many requests come as go, one in five urgent.

    Whatever the row limit, a dispatch holds about four requests; they differ in rows, and so do dispatches.
    """

    def __init__(
        self,
        queued: int,
        max_batch_size: int,
        mix: SignatureMix,
        classes: tuple[TrafficClass, ...] = CLASSES,
        tenants: int = 1,
    ) -> None:
        self.rng = random.Random(1)
        self.mix = mix
        self.most_rows = max_batch_size // 2
        self.tenants = tenants
        self.scheduler = Scheduler(SchedulingPolicy(classes, max_batch_size=max_batch_size))
        self.now = 0
        self.issued = 0
        self.submit(["batch"] * queued)
        self.flying = [action.dispatch for action in self.scheduler.advance(0) if isinstance(action, Send)]
        for _ in range(4 * max(64, max_batch_size)):
            self.cycle()
        self.learned = len(self.scheduler._executor.times._any_signature.curve)

    def submit(self, class_names: list[str]) -> None:
        first, self.issued = self.issued, self.issued + len(class_names)
        self.scheduler.submit(
            [
                Request(
                    number,
                    name,
                    self.rng.randint(1, self.most_rows),
                    self.mix(self.rng),
                    self.rng.randint(1, AGE),
                    tenant=f"tenant {self.rng.randrange(self.tenants)}",
                )
                for number, name in enumerate(class_names, start=first)
            ],
            self.now,
        )

    def cycle(self) -> None:
        """Arrival, call, answer, decision: all that one dispatch asks of the scheduler."""
        dispatch = self.flying.pop(0)
        self.now += TIMES.draw(dispatch.rows, self.now, self.rng)
        self.scheduler.called(dispatch.id, self.now)
        self.submit(["batch" if self.rng.random() < 0.8 else "online" for _ in dispatch.parts])
        self.scheduler.completed(dispatch.id, self.now)
        self.flying += [action.dispatch for action in self.scheduler.advance(self.now) if isinstance(action, Send)]
        self.scheduler.next_wakeup()


def seconds(steady: Steady, cycles: int = 50) -> float:
    begin = time.perf_counter()
    for _ in range(cycles):
        steady.cycle()
    return time.perf_counter() - begin


def ratio(one: Steady, other: Steady) -> float:
    """What a cycle of ``one`` costs of a cycle of ``other``.

    Alternating, and the quickest of each: what a busy machine adds is not the scheduler's.
    """
    pairs = [(seconds(one), seconds(other)) for _ in range(15)]
    return min(pair[0] for pair in pairs) / min(pair[1] for pair in pairs)


@pytest.mark.parametrize("mix", MIXES)
@pytest.mark.parametrize("max_batch_size", [4, 32, 256])
def test_a_decision_at_100000_queued_costs_at_most_3_times_one_at_100(max_batch_size: int, mix: str) -> None:
    short, long = (Steady(queued, max_batch_size, MIXES[mix]()) for queued in (100, 100_000))
    assert min(short.learned, long.learned) >= max_batch_size // 4
    assert ratio(long, short) <= 3


@pytest.mark.parametrize("mix", MIXES)
def test_a_decision_for_1024_rows_costs_at_most_3_times_one_for_4(mix: str) -> None:
    few, many = (Steady(100, max_batch_size, MIXES[mix]()) for max_batch_size in (4, 1024))
    assert many.learned > 64
    assert ratio(many, few) <= 3


@pytest.mark.parametrize("mix", MIXES)
def test_it_costs_no_more_with_every_policy(mix: str) -> None:
    """Each of docs/policies.md, on both classes; and 10,000 tenants, more than have queues of their own."""
    classes = tuple(replace(each, **POLICIES) for each in CLASSES)
    short, long = (
        Steady(queued, 32, MIXES[mix](), classes, tenants) for queued, tenants in ((100, 10), (100_000, 10_000))
    )
    assert ratio(long, short) <= 3
