# SPDX-License-Identifier: Apache-2.0
"""What docs/policies.md offers, proven by what the executor wrote down; without its key the same check fails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from support.clients import Call
from support.fleet import FILLER, MODES, Fleet, eventually, fleet, held_up
from support.models import BULK, INTERACTIVE, Executor, Router

ONE_ROW = Executor("one_row", max_batch_size=1, batch_seconds=0.02)

BY_ROWS = Executor("by_rows", max_batch_size=16, batch_seconds=0.02, row_seconds=0.01)


def classes(
    interactive: dict[str, object] | None = None, bulk: dict[str, object] | None = None
) -> list[dict[str, object]]:
    """Three classes on two levels, with more keys for two of them."""
    return [
        FILLER,
        {"name": INTERACTIVE, "level": 1, **(interactive or {})},
        {"name": BULK, "level": 2, **(bulk or {})},
    ]


@pytest.fixture(scope="module", params=MODES)
def system(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    routers = [
        (Router("without", classes=classes()), ONE_ROW),
        (Router("unbounded", classes=classes()), BY_ROWS),
        (Router("bounded", classes=classes(interactive={"max_blocking_microseconds": 70_000})), BY_ROWS),
        (Router("aging", classes=classes(bulk={"max_wait_microseconds": 1000})), ONE_ROW),
        (Router("sharing", classes=classes(bulk={"min_share": 0.25})), ONE_ROW),
        (Router("small", classes=classes(bulk={"max_queue_bytes": 60})), ONE_ROW),
        (Router("small_in_all", classes=classes(), policy={"max_queue_bytes": 60}), ONE_ROW),
        (Router("by_deadline", classes=classes(bulk={"order": "deadline"})), ONE_ROW),
    ]
    with fleet(tmp_path_factory.mktemp("policies"), request.param, routers) as made:
        yield made


def served(system: Fleet, router: str, calls: Sequence[Call], *, at_once: bool = False) -> list[int]:
    """Tags of the calls in the order in which they ran, when all had arrived before the first began.

    They arrive in this order, or, ``at_once``, in any.
    """
    record = system.records["one_row"]
    with held_up(system, router, ONE_ROW.name) as futures:
        for count, call in enumerate(calls, start=3):
            futures.append(system.client.send(router, call))
            if not at_once or count == len(calls) + 2:
                eventually(lambda: system.held(router) == count)  # noqa: B023 - called in this round
    assert all(future.result().ok for future in futures)
    return [tag for tag in record.tags() if tag]


def by_deadline(system: Fleet, router: str) -> bool:
    """The law: of one class the earliest timeout comes first, then the requests without one."""
    timeouts = {1: None, 2: 90_000_000, 3: 60_000_000, 4: 80_000_000}
    calls = [Call(tag=tag, traffic_class=BULK, timeout_us=timeout) for tag, timeout in timeouts.items()]
    return served(system, router, calls) == [3, 4, 2, 1]


def test_the_earliest_deadline_of_a_class_is_served_first(system: Fleet) -> None:
    assert by_deadline(system, "by_deadline")


def test_without_the_key_they_are_served_as_they_came(system: Fleet) -> None:
    assert not by_deadline(system, "without")


def largest_bulk(system: Fleet, router: str) -> int:
    """Most rows of a batch of bulk work once each row count has been measured, a request of 16 rows included."""
    record = system.records["by_rows"]
    bulk = [Call(tag=1, traffic_class=BULK, rows=rows) for rows in (1, 2, 4, 8, 16) for _ in range(4)]
    for call in bulk:
        assert system.client.infer(router, call).ok
    record.forget()
    futures = [system.client.send(router, call) for call in bulk]
    assert all(future.result().ok for future in futures)
    assert len(record.tags()) == sum(call.rows for call in bulk)
    return max(sum(batch.rows) for batch in record.batches())


def test_less_urgent_dispatches_keep_to_the_blocking_budget(system: Fleet) -> None:
    assert largest_bulk(system, "bounded") <= 4, "five rows take more than 70 ms"
    assert system.metric("blocking_budget_seconds", "bounded", **{"class": INTERACTIVE}) == 0.07


def test_without_the_key_they_are_filled(system: Fleet) -> None:
    assert largest_bulk(system, "unbounded") > 4


def by_age(system: Fleet, router: str) -> bool:
    """The law: bulk work that has waited for its bound is passed by no urgent work that came after it."""
    calls = [Call(tag=1, traffic_class=INTERACTIVE), Call(tag=2, traffic_class=BULK)]
    calls += [Call(tag=tag, traffic_class=INTERACTIVE) for tag in (3, 4)]
    return served(system, router, calls) == [1, 2, 3, 4]


def test_who_has_waited_for_the_age_bound_is_not_passed(system: Fleet) -> None:
    assert by_age(system, "aging")


def test_without_the_key_urgent_work_passes_it(system: Fleet) -> None:
    assert not by_age(system, "without")


def bulk_share(system: Fleet, router: str) -> float:
    """Share of bulk work among what the executor ran while urgent work waited."""
    bulk, urgent = range(1, 41), range(101, 161)
    calls = [Call(tag=tag, traffic_class=BULK) for tag in bulk] + [
        Call(tag=tag, traffic_class=INTERACTIVE) for tag in urgent
    ]
    ran = served(system, router, calls, at_once=True)
    last = max(at for at, tag in enumerate(ran) if tag in urgent)
    return sum(tag in bulk for tag in ran[:last]) / last


def test_a_class_gets_its_share_while_more_urgent_work_waits(system: Fleet) -> None:
    assert 0.18 < bulk_share(system, "sharing") < 0.35


def test_without_the_key_it_gets_what_is_left(system: Fleet) -> None:
    assert bulk_share(system, "without") < 0.1


def kept(system: Fleet, router: str) -> int:
    """How many of five requests of bulk work, of 24 bytes each, wait while the executor is busy."""
    with held_up(system, router, ONE_ROW.name) as futures:
        bulk = [system.client.send(router, Call(tag=tag, traffic_class=BULK)) for tag in range(1, 6)]
        eventually(lambda: system.held(router) + sum(future.done() for future in bulk) == 7)
        waiting = system.metric("queue_bytes", router, **{"class": BULK})
    assert all(future.result().ok for future in futures)
    answered = [future.result() for future in bulk]
    assert {reply.message.partition("max_queue_bytes")[2] for reply in answered if not reply.ok} <= {" is 60"}
    assert waiting == 24 * sum(reply.ok for reply in answered)
    return sum(reply.ok for reply in answered)


@pytest.mark.parametrize("router", ["small", "small_in_all"])
def test_no_more_bytes_wait_than_may(system: Fleet, router: str) -> None:
    assert kept(system, router) == 2


def test_without_the_key_all_wait(system: Fleet) -> None:
    assert kept(system, "without") == 5
