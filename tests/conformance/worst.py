# SPDX-License-Identifier: Apache-2.0
"""Worlds that let requests wait long: executions of any length up to the declared one, and far too much traffic."""

from __future__ import annotations

import random
from dataclasses import dataclass

from conformance.worlds import MIXES, MS, check_end, run
from priority_router.core import worst_case
from priority_router.core.values import SECOND, FairBy, Order, SchedulingPolicy, TimeoutAction, TrafficClass
from priority_router.errors import Outcome
from priority_router.ops.simulate.arrivals import Stream, rows_up_to
from priority_router.ops.simulate.clock import Delay
from priority_router.ops.simulate.executor import ExecutorShape, ServiceTimes
from priority_router.ops.simulate.simulation import NO_DELAYS, Delays, Setup

LONGEST = 50 * MS
HARDLY = MS // 1000


@dataclass(frozen=True)
class UpToLongest(ServiceTimes):
    """Executions of any length up to LONGEST, drawn by ``kind``."""

    kind: str = "longest"

    def draw(self, rows: int, now: int, rng: random.Random) -> int:
        if self.kind == "longest" or (self.kind == "either" and rng.random() < 0.5):
            return LONGEST
        if self.kind == "by rows":
            return LONGEST if rows % 2 else HARDLY
        if self.kind == "waves":
            return LONGEST if now // SECOND % 2 else HARDLY
        return HARDLY if self.kind == "either" else rng.randint(1, LONGEST)


KINDS = ("longest", "either", "any", "by rows", "waves")


WAYS = Delays(Delay(1 * MS), Delay(2 * MS), Delay(3 * MS), Delay(1 * MS))
"""To the executor call, to Triton's queue, back, and of timers: always the same, so that nothing passes on the way."""

OVERHEAD = 1 * MS
THERE = 3 * MS
"""From Send to Triton's queue, which a start comes later than the scheduler sees it."""


def worst_played(
    policy: SchedulingPolicy, streams: list[Stream], kind: str, requests: int, seed: int
) -> dict[str, tuple[int, int]]:
    """Per class the longest until a first row ran, as the scheduler can see it, and until an answer, in ns."""
    far = policy.max_execution > LONGEST
    setup = Setup(
        ExecutorShape(policy.instances, policy.max_batch_size, policy.levels),
        UpToLongest(0, kind=kind),
        WAYS if far else NO_DELAYS,
        dispatch_overhead=OVERHEAD if far else 0,
    )
    unseen = THERE if far else 0
    played = run(policy, setup, streams, requests, seed)
    check_end(played)
    simulation = played.simulation
    worst = {each.name: [0, 0] for each in policy.classes}
    for sent, start, _ in played.taken:
        for part in sent.parts:
            if part.first_row == 0:
                waits = worst[simulation.class_names[part.request_id]]
                waits[0] = max(waits[0], start - unseen - simulation.arrived[part.request_id])
    for number, outcome in enumerate(simulation.outcomes):
        if outcome is Outcome.SUCCESS:
            waits = worst[simulation.class_names[number]]
            waits[1] = max(waits[1], simulation.answered[number] - simulation.arrived[number])
    return {name: (start, answer) for name, (start, answer) in worst.items()}


def compare(policy: SchedulingPolicy, largest: int, played: dict[str, tuple[int, int]]) -> dict[str, float]:
    """Share of the bound that was reached, by class with a bound of its start; fails past a bound."""
    reached = {}
    for bound in worst_case.worst_waits(policy, largest):
        start, answer = played[bound.class_name]
        assert bound.start is None or start <= bound.start, f"{bound}: {start} ns until a start in {policy}"
        assert bound.answer is None or answer <= bound.answer, f"{bound}: {answer} ns until an answer in {policy}"
        if bound.start is not None:
            reached[bound.class_name] = start / bound.start
    return reached


def draw(rng: random.Random) -> tuple[SchedulingPolicy, int, list[Stream], str]:
    """A policy that bounds nearly everything, the largest request, and far too much traffic."""
    levels = rng.random() < 0.7
    rows = rng.choice((0, 1, 1, 2, 4))
    largest = 1 if rows == 0 else rng.choice((1, rows, 3 * rows))
    promise = rng.random() < 0.6
    classes = tuple(
        TrafficClass(
            f"class {number}",
            rng.randint(1, 3),
            max_queue_size=rng.choice((1, 2, 5, 12)),
            default_timeout=rng.choice((0, 0, 300 * MS)),
            allow_timeout_override=rng.random() < 0.5,
            timeout_action=rng.choice(tuple(TimeoutAction)),
            order=rng.choice(tuple(Order)),
            max_blocking=rng.choice((0, 0, 0, 20 * MS)),
            max_wait=rng.choice((0, 0, 1, 100 * MS, SECOND)),
            min_share=rng.choice((0.0, 0.1, 0.2, 0.3)) if promise else 0.0,
            fair_by=rng.choice((FairBy.NONE, FairBy.NONE, FairBy.TENANT)),
            reject_predicted_late=rng.random() < 0.3,
        )
        for number in range(rng.randint(1, 3))
    )
    instances = rng.choice((1, 1, 2, 3))
    policy = SchedulingPolicy(
        classes,
        instances=instances,
        max_batch_size=rows,
        levels=levels,
        batch_efficiency=rng.choice((0.5, 0.95)),
        max_fill_slowdown=rng.choice((0.0, 0.1, 0.1, 1.0)),
        overtaking=levels and rng.random() < 0.3,
        shared_executor=levels and rng.random() < 0.1,
        max_execution=LONGEST + rng.choice((0, THERE + 3 * MS + OVERHEAD)),
    )
    mix = MIXES[rng.choice(tuple(MIXES))]()
    capacity = instances * SECOND / LONGEST
    streams = [
        Stream(
            each.name,
            rng.choice((0.05, 0.5, 3.0)) * capacity / 2,
            rows_up_to(largest),
            mix,
            burst=rng.choice((1, 4, 15)),
            timeout=rng.choice((0, 200 * MS)),
            cancel_share=rng.choice((0.0, 0.0, 0.2)),
            tenant=tenant,
        )
        for each in classes
        for tenant in ("large", "small")
    ]
    return policy, largest, streams, rng.choice(KINDS)


def play_drawn(seed: int, requests: int = 300) -> dict[str, float]:
    policy, largest, streams, kind = draw(random.Random(f"worst case {seed}"))
    return compare(policy, largest, worst_played(policy, streams, kind, requests, seed))
