# SPDX-License-Identifier: Apache-2.0
"""Who runs next, proven by what the executor wrote down; with FIFO and with swapped levels the same check fails."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from support.clients import Call
from support.fleet import MODES, Fleet, eventually, fleet
from support.models import BULK, INTERACTIVE, Batch, Executor, Router, stalls

BATCH_SECONDS = 0.05
ROWS = 4
SENT_BY_BOTH = 6
"""Two dispatches of each of two routers, and two more of the other's while the urgent ones are on their way; of 20."""

MOST_STALLS = 2
"""A machine that stalls may have so many, too."""

EXECUTOR = Executor("executor", batch_seconds=BATCH_SECONDS, max_batch_size=ROWS)
OTHER = Executor("other", batch_seconds=BATCH_SECONDS, max_batch_size=ROWS)


def levels(interactive: int, bulk: int) -> list[dict[str, object]]:
    return [{"name": INTERACTIVE, "level": interactive}, {"name": BULK, "level": bulk}]


@pytest.fixture(scope="module", params=MODES)
def system(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    routers = [
        (Router("router"), EXECUTOR),
        (Router("fifo", classes=levels(1, 1)), EXECUTOR),
        (Router("swapped", classes=levels(2, 1)), EXECUTOR),
        (Router("fresh"), EXECUTOR),  # has learned nothing from batches that were held
    ]
    shared = {"shared_executor": True} if request.param == "levels" else {"guard_executor": False}
    routers += [
        (Router("beside", policy=shared), OTHER),
        (Router("beside_fifo", classes=levels(2, 2), policy=shared), OTHER),
    ]
    with fleet(tmp_path_factory.mktemp("order"), request.param, routers) as made:
        yield made


def batches_before(record: list[Batch], urgent: range, from_time: float) -> int:
    """Batches without urgent rows that began after ``from_time`` and before the last urgent row's."""
    begun = sorted(batch.start for batch in record if set(batch.tags) & set(urgent))
    return sum(not set(batch.tags) & set(urgent) and from_time < batch.start < begun[-1] for batch in record)


def urgent_behind_backlog(system: Fleet, router: str, backlog: int = 40, urgent: int = 3, to: str | None = None) -> int:
    """Sends a backlog, then urgent requests, all while the executor is held in a batch; then it goes on.

    Args:
        to: model that the backlog is sent to, default the router.

    Returns:
        How many batches of backlog began from then on before the urgent requests were done.
    """
    executor = "other" if router.startswith("beside") else "executor"
    record, tags = system.records[executor], range(1000, 1000 + urgent)
    record.forget()
    system.rests(router)
    with record.shut():
        bulk = [
            system.client.send(to or router, Call(tag=tag, traffic_class=None if to else BULK))
            for tag in range(backlog)
        ]
        eventually(lambda: (system.pending(executor) + record.held_rows() if to else system.held(router)) == backlog)
        queued, sent = system.pending(executor), system.metric("dispatches_total", router)
        fast = [system.client.send(router, Call(tag=tag, traffic_class=INTERACTIVE)) for tag in tags]
        eventually(lambda: system.held(router) == urgent + (0 if to else backlog))
        if to:  # what the router has sent must be in the executor's queue, too
            eventually(lambda: system.pending(executor) - queued == system.metric("dispatches_total", router) - sent)
        going_on = time.monotonic()
    replies = [future.result() for future in [*bulk, *fast]]
    assert [reply.code for reply in replies] == ["OK"] * len(replies), [
        reply.message for reply in replies if not reply.ok
    ]
    assert sorted(record.tags()) == [*range(backlog), *tags]
    return batches_before(record.batches(), tags, going_on)


def overtakes(system: Fleet, router: str, to: str | None = None) -> bool:
    """The law: once it has arrived, urgent work waits for what was sent already, one dispatch per instance, and a batch
    that it may share with the backlog."""
    return urgent_behind_backlog(system, router, to=to) <= 2


def test_urgent_work_overtakes_the_backlog(system: Fleet) -> None:
    assert overtakes(system, "router")


def test_the_same_check_fails_when_all_classes_share_a_level(system: Fleet) -> None:
    assert not overtakes(system, "fifo")


def test_the_same_check_fails_when_the_levels_are_swapped(system: Fleet) -> None:
    assert not overtakes(system, "swapped")


def test_two_routers_on_one_executor_serve_everybody_and_keep_their_order(system: Fleet) -> None:
    """Urgent work of one waits for what both have sent, not for the other's backlog."""
    ours, others, executor = "beside", "beside_fifo", "other"
    record, tags, backlog = system.records[executor], range(1000, 1003), range(80)
    record.forget()
    for router in (ours, others):
        system.rests(router)
    with record.shut():
        sent = [system.client.send((ours, others)[tag % 2], Call(tag=tag, traffic_class=BULK)) for tag in backlog]
        eventually(lambda: system.held(ours) + system.held(others) == len(backlog))
        sent += [system.client.send(ours, Call(tag=tag, traffic_class=INTERACTIVE)) for tag in tags]
        eventually(lambda: system.held(ours) == len(backlog) // 2 + len(tags))
        going_on = time.monotonic()
    assert all(future.result().ok for future in sent)
    assert sorted(record.tags()) == [*backlog, *tags]
    assert batches_before(record.batches(), tags, going_on) <= SENT_BY_BOTH


@pytest.mark.parametrize("system", ["levels"], indirect=True)
def test_work_that_others_push_is_overtaken_with_levels(system: Fleet) -> None:
    """It never was in the router: Triton's own queue puts the routed urgent class first."""
    assert overtakes(system, "beside", to="other")
    assert not overtakes(system, "beside_fifo", to="other")


@pytest.mark.parametrize("system", ["plain"], indirect=True)
def test_work_that_others_push_cannot_be_overtaken_without_levels(system: Fleet) -> None:
    assert not overtakes(system, "beside", to="other")


def test_batches_are_full_whatever_triton_passes_in(system: Fleet) -> None:
    """Case 13: the size of a batch is decided when it is sent, not by how requests arrived."""
    record = system.records["executor"]
    for requests in (20, 40, 80):
        record.forget()
        system.rests("fresh")
        with record.shut():
            replies = [system.client.send("fresh", Call(tag=tag, traffic_class=BULK)) for tag in range(requests)]
            eventually(lambda: system.held("fresh") == requests)  # noqa: B023 - called in this round
        assert all(future.result().ok for future in replies)
        sizes = [sum(batch.rows) for batch in record.batches()]
        assert sum(sizes) == requests
        # The first few went out before the others had arrived.
        assert len(sizes) <= requests / ROWS + 3, sizes


def test_the_executor_is_kept_busy(system: Fleet) -> None:
    record = system.records["executor"]
    record.forget()
    replies = [system.client.send("router", Call(tag=tag, traffic_class=BULK)) for tag in range(160)]
    assert all(future.result().ok for future in replies)
    batches = record.batches()
    assert len(batches) >= 160 / ROWS
    assert stalls(batches) <= MOST_STALLS, "a stalled batcher lets every fifth batch wait for half a second"


def test_the_backlog_is_seen_in_the_router_and_little_is_in_flight(system: Fleet) -> None:
    """Case 4: the queue builds where priority lives."""
    system.rests()
    with system.records["executor"].shut():
        futures = [system.client.send("router", Call(tag=tag, traffic_class=BULK)) for tag in range(100)]
        eventually(lambda: system.held() == 100)
        assert 1 <= system.metric("in_flight_rows") <= 2 * ROWS
        assert system.metric("queue_size", **{"class": BULK}) >= 100 - 2 * ROWS
    assert all(future.result().ok for future in futures)
    eventually(lambda: system.metric("queue_size", **{"class": BULK}) == 0)
    eventually(lambda: system.metric("in_flight_rows") == 0)
