# SPDX-License-Identifier: Apache-2.0
"""What docs/policies.md promises to tenants in numbers, on the virtual clock beside the laws that the referee knows."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import pytest
from conformance.worlds import MS
from priority_router.core import ledger
from priority_router.core.scheduler import Scheduler
from priority_router.core.values import SECOND, Dispatch, FairBy, Request, SchedulingPolicy, TrafficClass
from priority_router.ops.simulate.arrivals import RowMix, SignatureMix, Stream, few_signatures, one_signature, traffic
from priority_router.ops.simulate.executor import Call, ExecutorShape, ServiceTimes
from priority_router.ops.simulate.simulation import NO_DELAYS, Setup, Simulation
from unit.core.build import ONLINE, Bench

EXACT, FLAT = ServiceTimes(4 * MS, 4 * MS), ServiceTimes(50 * MS)
NOISY = replace(EXACT, spread=0.6)
FAIR = TrafficClass("background", 2, fair_by=FairBy.TENANT)


def rows_of(size: int) -> RowMix:
    return lambda _rng: size


@dataclass
class Played:
    """A finished run.

    Attributes:
        of: by request of the class, whose it is.
        arrived: by request, when, ns.
        taken: each dispatch that ran, with its start and end in ns.
    """

    of: dict[int, str] = field(default_factory=dict)
    arrived: dict[int, int] = field(default_factory=dict)
    taken: list[tuple[Dispatch, int, int]] = field(default_factory=list)

    def time_by_tenant(self) -> dict[str, float]:
        """Share of the class's time that each tenant's rows took, after a start, while all have work."""
        until = max(self.arrived.values())
        spent: Counter[str] = Counter()
        for sent, start, end in self.taken:
            if 5 * SECOND < start < until:
                for part in sent.parts:
                    if part.request_id in self.of:
                        spent[self.of[part.request_id]] += round((end - start) * part.rows / sent.rows)
        return {tenant: time / spent.total() for tenant, time in spent.items()}


def play(
    tenants: dict[str, tuple[float, int]],
    times: ServiceTimes,
    shape: tuple[int, int] = (1, 4),
    mix: SignatureMix = one_signature,
    background: TrafficClass = FAIR,
    seconds: int = 30,
) -> Played:
    """Each tenant asks for so many times the executor's rows/s, in requests of so many rows, beside urgent work."""
    instances, rows = shape
    capacity = instances * rows * SECOND / times.expected(rows, 0)
    policy = SchedulingPolicy((TrafficClass("online", 1), background), instances, rows)
    streams = [Stream("online", 0.1 * capacity, signature=mix)] + [
        Stream("background", load * capacity / size, rows_of(size), mix, tenant=tenant)
        for tenant, (load, size) in tenants.items()
    ]
    made = Played()

    class Noting(Scheduler):
        def submit(self, requests: Sequence[Request], now: int) -> None:
            for request in requests:
                made.arrived[request.id] = now
                if request.class_name == "background":
                    made.of[request.id] = request.tenant
            super().submit(requests, now)

    setup = Setup(ExecutorShape(instances, rows), times, NO_DELAYS, dispatch_overhead=0)
    simulation = Simulation(Noting(policy), setup, traffic(streams, 3, seconds * SECOND), 3)
    ended = simulation.executor.on_batch_end

    def take(calls: list[Call]) -> None:
        made.taken += [(call.owner[1], call.start, simulation.loop.now) for call in calls if call.owner is not None]
        ended(calls)

    simulation.executor.on_batch_end = take
    simulation.run(until=seconds * SECOND)
    return made


SIZES = {"small": (1.0, 1), "large": (1.0, 4), "huge": (2.0, 11)}
NUMBERS = {"flood": (3.0, 1), "often": (1.0, 1), "seldom": (0.5, 1)}
ONE_LARGE = {"flood": (3.0, 1), "large": (1.0, 4)}


@pytest.mark.parametrize("tenants", [SIZES, NUMBERS, ONE_LARGE], ids=["sizes", "numbers", "one large"])
@pytest.mark.parametrize(("times", "shape"), [(EXACT, (1, 4)), (FLAT, (1, 4)), (NOISY, (2, 4)), (EXACT, (1, 1))])
def test_tenants_with_work_get_the_same_time(
    tenants: dict[str, tuple[float, int]], times: ServiceTimes, shape: tuple[int, int]
) -> None:
    shares = play(tenants, times, shape).time_by_tenant()
    most = 0.1 if times is NOISY else 0.05
    assert shares == pytest.approx(dict.fromkeys(tenants, 1 / len(tenants)), rel=most), "predicted time is shared"


def test_without_the_key_they_get_what_they_ask_for() -> None:
    shares = play(NUMBERS, EXACT, background=replace(FAIR, fair_by=FairBy.NONE)).time_by_tenant()
    assert shares["flood"] > 0.6


def test_so_they_do_where_signatures_differ() -> None:
    shares = play(NUMBERS, EXACT, mix=few_signatures(3)).time_by_tenant()
    assert shares == pytest.approx(dict.fromkeys(NUMBERS, 1 / 3), rel=0.05)


def test_who_asks_for_little_hardly_waits_behind_a_flood() -> None:
    made = play({"flood": (3.0, 1), "little": (0.05, 1)}, EXACT)
    waits = [
        start - made.arrived[part.request_id]
        for sent, start, _ in made.taken
        for part in sent.parts
        if made.of.get(part.request_id) == "little"
    ]
    assert len(waits) > 100
    assert max(waits) < 0.5 * SECOND, "the flood's queue is minutes long at the end"


def test_past_a_number_of_tenants_names_share_what_they_get(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "MOST_TENANTS", 2)
    shares = play({f"t{number}": (1.0, 1) for number in range(4)}, EXACT).time_by_tenant()
    assert min(shares.values()) > 0.2


def furthest_apart(traffic_class: TrafficClass, seed: int) -> float:
    """How far two tenants' charges were ever apart while all had work, in largest requests of the two together."""
    rng = random.Random(seed)
    rows = {"a": 8, "b": 2, "c": 1}
    bench = Bench(ONLINE, traffic_class, max_batch_size=8, batch_efficiency=1.0)
    for count in (8, 4, 2, 1):
        bench.learn(EXACT.expected(count, 0) / MS, count, class_name="online")
    bench.learn(EXACT.expected(1, 0) / MS, times=1)
    of: dict[int, str] = {}
    left = dict.fromkeys(rows, 0)
    for tenant, most in rows.items():
        for _ in range(4000 // most):
            count = rng.randint(1, most)
            of[bench.submit("background", rows=count, tenant=tenant)[0]] = tenant
            left[tenant] += count
    charged, largest = dict.fromkeys(rows, 0.0), dict.fromkeys(rows, 0.0)
    sent, worst = bench.advance(), 0.0
    while all(left.values()):
        for dispatch in sent:
            estimate = bench.scheduler._executor.flights[dispatch.id].estimate
            for part in dispatch.parts:
                cost = estimate * part.rows / dispatch.rows
                left[of[part.request_id]] -= part.rows
                charged[of[part.request_id]] += cost
                largest[of[part.request_id]] = max(largest[of[part.request_id]], cost)
        for one, other in combinations(rows, 2):
            apart = abs(charged[one] - charged[other])
            worst = max(worst, apart / (largest[one] + largest[other] or 1))
        running = bench.flying()[0]
        bench.now += EXACT.draw(running.rows, bench.now, rng)
        sent = bench.complete(running)
    return worst


@pytest.mark.parametrize("seed", range(5))
def test_two_tenants_with_work_are_never_further_apart_than_a_request_of_each(seed: int) -> None:
    assert furthest_apart(FAIR, seed) <= 1
    assert furthest_apart(replace(FAIR, fair_by=FairBy.NONE), seed) > 10
