# SPDX-License-Identifier: Apache-2.0
"""Early refusal over a whole run: who is refused could not have been served, and refusing serves no fewer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

import pytest
from conformance.worlds import MS, check_end, run
from priority_router.core import admission
from priority_router.core.forecast import Forecast
from priority_router.core.values import SECOND, Order, SchedulingPolicy, TrafficClass
from priority_router.errors import Outcome
from priority_router.ops.simulate.arrivals import (
    RowMix,
    SignatureMix,
    Stream,
    few_signatures,
    one_row,
    one_signature,
    own_signatures,
    rows_up_to,
)
from priority_router.ops.simulate.executor import ExecutorShape, ServiceTimes
from priority_router.ops.simulate.simulation import NO_DELAYS, Setup

TIMEOUT = 300 * MS
FLAT, LINEAR, SLOPE = ServiceTimes(50 * MS), ServiceTimes(0, 4 * MS), ServiceTimes(20 * MS, 2 * MS)
LEARNED = SECOND
"""After it the times are known, and nobody waits who came before."""


@dataclass(frozen=True)
class Ran:
    """What a run came to.

    Attributes:
        refused: by prediction, once the times were learned.
        in_time: requests that started before their timeout passed.
        bias: sum of predicted waits over that of actual ones, of those that ran; 1 where nothing was predicted.
    """

    refused: set[int]
    in_time: set[int]
    bias: float


def ran(policy: SchedulingPolicy, times: ServiceTimes, streams: list[Stream], requests: int) -> Ran:
    setup = Setup(ExecutorShape(policy.instances, policy.max_batch_size), times, NO_DELAYS, dispatch_overhead=0)
    played = run(policy, setup, streams, requests, seed=1)
    check_end(played)
    simulation = played.simulation
    refused = {number for number, outcome in enumerate(simulation.outcomes) if outcome is Outcome.PREDICTED_LATE}
    started: dict[int, int] = {}
    for dispatch, start, _ in played.taken:
        for part in dispatch.parts:
            started.setdefault(part.request_id, start)
    in_time = {number for number, start in started.items() if start <= simulation.arrived[number] + TIMEOUT}
    waits = list(played.referee.scheduler.predicted_waits.values())  # type: ignore[attr-defined]
    bias = sum(each.predicted for each in waits) / (sum(each.actual for each in waits) or 1) if waits else 1.0
    return Ran({number for number in refused if simulation.arrived[number] > LEARNED}, in_time, bias)


def one_class(
    times: ServiceTimes,
    instances: int,
    rows: int,
    mix: SignatureMix,
    sizes: RowMix = one_row,
    order: Order = Order.ARRIVAL,
) -> tuple[SchedulingPolicy, list[Stream]]:
    """One class that asks for half as much again as the executor can do."""
    early = TrafficClass("only", 1, default_timeout=TIMEOUT, order=order, reject_predicted_late=True)
    joined = rows if mix is not OWN else 1
    capacity = instances * joined * SECOND / times.expected(joined, 0)
    stream = Stream("only", 1.5 * capacity / (1 if sizes is one_row else (1 + rows) / 2), sizes, mix)
    return SchedulingPolicy((early,), instances=instances, max_batch_size=rows), [stream]


def without(policy: SchedulingPolicy) -> SchedulingPolicy:
    """The same with timeouts alone."""
    return replace(policy, classes=tuple(replace(each, reject_predicted_late=False) for each in policy.classes))


OWN = own_signatures()
EXACT = [
    (times, instances, rows, mix)
    for times, instances, (rows, mix) in product(
        (FLAT, LINEAR, SLOPE), (1, 2), ((1, one_signature), (4, one_signature), (1, few_signatures(3)), (4, OWN))
    )
]
"""Worlds in which what is ahead of a request tells its start."""


def spared(patch: pytest.MonkeyPatch, number: int) -> None:
    """Refuse everybody by prediction but this request."""
    is_late = admission._is_late
    patch.setattr(admission, "_is_late", lambda entry, start: entry.request.id != number and is_late(entry, start))


def wrongly_refused(
    patch: pytest.MonkeyPatch, times: ServiceTimes, instances: int, rows: int, mix: SignatureMix
) -> list[int]:
    """Of a few of those refused, who starts in time once it alone is not."""
    policy, streams = one_class(times, instances, rows, mix)
    requests = max(400, round(2 * streams[0].rate))
    refused = sorted(ran(policy, times, streams, requests).refused)
    assert len(refused) > 40, "the world is worth something"
    wrongly = []
    for number in refused[:: len(refused) // 2]:
        with patch.context() as one:
            spared(one, number)
            if number in ran(policy, times, streams, requests).in_time:
                wrongly.append(number)
    return wrongly


@pytest.mark.parametrize(("times", "instances", "rows", "mix"), EXACT)
def test_nobody_is_refused_who_would_have_started_in_time(
    monkeypatch: pytest.MonkeyPatch, times: ServiceTimes, instances: int, rows: int, mix: SignatureMix
) -> None:
    assert wrongly_refused(monkeypatch, times, instances, rows, mix) == []


def test_who_is_refused_without_need_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    start = Forecast.start
    monkeypatch.setattr(Forecast, "start", lambda self, entry, now: (start(self, entry, now) or 0) + 60 * MS)
    assert wrongly_refused(monkeypatch, FLAT, 1, 4, one_signature)


@pytest.mark.parametrize("order", Order)
@pytest.mark.parametrize("spread", [0.0, 0.6])
@pytest.mark.parametrize("times", [FLAT, LINEAR, SLOPE])
@pytest.mark.parametrize(
    ("mix", "sizes"), [(one_signature, one_row), (few_signatures(3), one_row), (one_signature, rows_up_to(4))]
)
def test_no_fewer_start_in_time_than_with_timeouts_alone(
    times: ServiceTimes, spread: float, mix: SignatureMix, sizes: RowMix, order: Order
) -> None:
    """Also where dispatches fill unevenly; where times vary by 60 % either way at most a twentieth fewer do."""
    noisy = replace(times, spread=spread)
    policy, streams = one_class(times, 1, 4, mix, sizes, order)
    early = ran(policy, noisy, streams, 2000)
    plain = ran(without(policy), noisy, streams, 2000)
    assert early.refused
    assert len(early.in_time) >= (0.95 if spread else 0.98) * len(plain.in_time)
    assert 0.8 < early.bias < 1.2


@pytest.mark.parametrize("times", [FLAT, LINEAR, SLOPE])
@pytest.mark.parametrize("rows", [1, 4])
def test_beside_more_urgent_work_no_fewer_start_in_time(times: ServiceTimes, rows: int) -> None:
    """More urgent work that comes later makes starts later than predicted, never earlier."""
    early = TrafficClass("background", 2, default_timeout=TIMEOUT, reject_predicted_late=True)
    policy = SchedulingPolicy((TrafficClass("online", 1), early), max_batch_size=rows)
    capacity = rows * SECOND / times.expected(rows, 0)
    streams = [Stream("online", 0.3 * capacity), Stream("background", 1.1 * capacity)]
    refused = ran(policy, times, streams, 2000)
    plain = ran(without(policy), times, streams, 2000)
    assert refused.refused
    assert len(refused.in_time) >= 0.98 * len(plain.in_time)
    assert 0.5 < refused.bias < 1.05


@pytest.mark.parametrize("times", [FLAT, SLOPE])
def test_where_nobody_has_a_timeout_the_key_changes_nothing(times: ServiceTimes) -> None:
    classes = (TrafficClass("online", 1), TrafficClass("background", 2, reject_predicted_late=True))
    policy = SchedulingPolicy(classes, max_batch_size=4)
    streams = [Stream("online", 20, rows_up_to(2)), Stream("background", 60, rows_up_to(9), burst=3)]
    setup = Setup(ExecutorShape(1, 4), times, NO_DELAYS, dispatch_overhead=0)
    assert run(policy, setup, streams, 400, 1).taken == run(without(policy), setup, streams, 400, 1).taken
