# SPDX-License-Identifier: Apache-2.0
"""What a scenario's classes send."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from priority_router.core.values import SECOND
from priority_router.ops.bench import traffic
from priority_router.ops.bench.load import Target
from priority_router.ops.bench.scenarios import SCENARIOS
from priority_router.ops.bench.wire import Route
from priority_router.ops.simulate.arrivals import Arrival

SCENARIO = SCENARIOS["overload"]


def payloads(rows):
    """Two inputs of so many rows."""
    return [{"X": np.full((rows, 1), value, np.float32)} for value in (1, 2)]


def target(choices):
    return Target("localhost:1", dict.fromkeys(choices, Route("m")), payloads(1), variants=choices)


def test_every_tenant_of_a_class_sends_every_input_in_requests_of_its_rows():
    online, background = SCENARIO.loads
    crowd = replace(background, rows=3, tenants=("a", "b"))
    scenario = replace(SCENARIO, loads=(online, crowd))
    choices = traffic.variants(scenario, None, payloads)
    assert [one.tenant for one in choices["online"]] == ["", ""]
    assert [one.tenant for one in choices["background"]] == ["a", "a", "b", "b"]
    schedule = traffic.schedule(scenario, None, choices, seed=1, number=0)
    of_crowd = schedule.class_index == 1
    assert set(schedule.payload[of_crowd].tolist()) == {0, 1, 2, 3}
    rows = target(choices).rows(schedule)
    assert set(rows[of_crowd].tolist()) == {3}
    assert set(rows[~of_crowd].tolist()) == {1}


def test_the_tenant_travels_with_the_request_and_beside_its_priority():
    crowd = replace(SCENARIO.loads[0], tenants=("acme",))
    choices = traffic.variants(replace(SCENARIO, loads=(crowd,)), None, payloads)
    sent = replace(target(choices), routes={"online": Route("m", {"priority": 1})}).encoded("online", identified=True)
    assert all(b'"tenant":"acme"' in one and b'"priority":1' in one for one in sent)


def test_rounds_have_their_own_arrivals_and_the_same_seed_the_same_ones():
    choices = traffic.variants(SCENARIO, None, payloads)
    first, again, other = (traffic.schedule(SCENARIO, None, choices, 1, number) for number in (0, 0, 1))
    assert first.at.tolist() == again.at.tolist() != other.at.tolist()


def test_a_trace_decides_on_times_rows_and_tenants():
    trace = [
        Arrival(SECOND // 2, "online", rows=2),
        Arrival(SECOND, "background", tenant="b"),
        Arrival(2 * SECOND, "online", rows=1),
        Arrival(3 * SECOND, "background", tenant="a"),
        Arrival(400 * SECOND, "online"),
    ]
    choices = traffic.variants(SCENARIO, trace, payloads)
    schedule = traffic.schedule(SCENARIO, trace, choices, 1, 0)
    assert (schedule.at / SECOND).tolist() == [0.5, 1, 2, 3]
    assert target(choices).rows(schedule).tolist() == [2, 1, 1, 1]
    sent = [choices[schedule.classes[c]][p] for c, p in zip(schedule.class_index, schedule.payload, strict=True)]
    assert [one.tenant for one in sent] == ["", "b", "", "a"]


def test_a_class_that_a_trace_does_not_have_sends_nothing():
    trace = [Arrival(0, "online")]
    choices = traffic.variants(SCENARIO, trace, payloads)
    assert traffic.schedule(SCENARIO, trace, choices, 1, 0).class_index.tolist() == [0]
