# SPDX-License-Identifier: Apache-2.0
"""What docs/policies.md says of early refusal, on a real server; without its key the same check fails."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from support.clients import Call, Reply
from support.fleet import MODES, Fleet, eventually, fleet
from support.models import BULK, INTERACTIVE, Executor, Router

LEARNED = 20
"""Calls from which the router knows how long the executor takes, whatever it took before."""

AHEAD = 30
"""Requests that are there already: three seconds of work."""

SLOW = Executor("slow", max_batch_size=1, batch_seconds=0.1)
SHORT_US, LONG_US = 2_500_000, 90_000_000


@pytest.fixture(scope="module", params=MODES)
def system(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    def classes(**keys: object) -> list[dict[str, object]]:
        return [{"name": INTERACTIVE, "level": 1}, {"name": BULK, "level": 2, **keys}]

    routers = [
        (Router("without", classes=classes()), SLOW),
        (Router("early", classes=classes(reject_predicted_late=True)), SLOW),
    ]
    with fleet(tmp_path_factory.mktemp("early"), request.param, routers) as made:
        yield made


@dataclass(frozen=True)
class Asked:
    """What came back.

    Attributes:
        short: reply to the request whose timeout is shorter than the work ahead.
        long: reply to the one that can wait.
        ran: tags in the order in which they ran.
    """

    short: Reply
    long: Reply
    ran: list[int]


def learn(system: Fleet, router: str) -> None:
    for _ in range(LEARNED):
        assert system.client.infer(router, Call(tag=0, traffic_class=BULK)).ok
    system.rests(router)
    system.records["slow"].forget()


def ask(system: Fleet, router: str) -> Asked:
    """Behind a queue of known length, of which nothing ends meanwhile: one that cannot start in time, one that can."""
    record = system.records["slow"]
    learn(system, router)
    with record.shut():
        futures = [system.client.send(router, Call(tag=1, traffic_class=BULK))]
        eventually(lambda: record.held() == 1)
        futures += [system.client.send(router, Call(tag=tag, traffic_class=BULK)) for tag in range(2, AHEAD + 1)]
        eventually(lambda: system.held(router) == AHEAD)
        patient = system.client.send(router, Call(tag=200, traffic_class=BULK, timeout_us=LONG_US))
        short = system.client.infer(router, Call(tag=100, traffic_class=BULK, timeout_us=SHORT_US))
    assert all(future.result().ok for future in futures)
    return Asked(short, patient.result(), record.tags())


def refused_early(asked: Asked) -> bool:
    """The law: UNAVAILABLE long before its timeout, with the predicted wait and a hint."""
    text = re.search(
        r"predicted to wait (\d+) ms, longer than its queue timeout of 2500000 us; .* served in (\d+) ms",
        asked.short.message,
    )
    if text is None or asked.short.code != "UNAVAILABLE" or 100 in asked.ran:
        return False
    wait, hint = (int(number) for number in text.groups())
    assert wait > 2500
    assert wait - hint == 2500
    return asked.short.seconds < 1.25


def test_who_cannot_start_in_time_is_refused_at_once_and_who_can_is_served(system: Fleet) -> None:
    outcomes = system.settled_outcomes("early")[BULK, "predicted_late"]
    asked = ask(system, "early")
    assert refused_early(asked), asked.short
    assert asked.long.ok
    assert 200 in asked.ran
    eventually(lambda: system.outcomes("early")[BULK, "predicted_late"] == outcomes + 1)


def test_predictions_are_compared_with_what_came_true(system: Fleet) -> None:
    learn(system, "early")
    names = ("predicted_wait_seconds_count", "predicted_wait_seconds_sum", "actual_wait_seconds_sum")
    before = [system.metric(name, "early", **{"class": BULK}) for name in names]
    futures = [system.client.send("early", Call(tag=tag, traffic_class=BULK)) for tag in range(1, AHEAD + 1)]
    assert [future.result().message for future in futures] == [""] * AHEAD
    eventually(lambda: system.metric(names[0], "early", **{"class": BULK}) >= before[0] + AHEAD - 2)
    after = [system.metric(name, "early", **{"class": BULK}) for name in names]
    _, predicted, actual = (now - was for now, was in zip(after, before, strict=True))
    assert predicted / actual == pytest.approx(1, rel=0.5)


def test_without_the_key_it_waits_for_its_timeout(system: Fleet) -> None:
    asked = ask(system, "without")
    assert not refused_early(asked)
    assert "waited longer than its queue timeout" in asked.short.message
    assert asked.long.ok
