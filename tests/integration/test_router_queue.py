# SPDX-License-Identifier: Apache-2.0
"""The router's queue: limits, timeouts, cancels, and what is counted."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import tritonclient.grpc
from support.clients import Call, Reply
from support.fleet import MODES, Fleet, eventually, fleet
from support.models import BULK, INTERACTIVE, Executor, Router

SLOW_TAG = 50
SLOW_SECONDS = 1.5
SLOW: dict[str, Any] = {"batch_seconds": 0.02, "sleep_tags": {SLOW_TAG: SLOW_SECONDS, 51: 0.5}}
FILLER = {"name": "filler", "level": 1}
"""Most urgent, without limit or timeout: it takes the place that the router may send ahead into Triton's queue."""

PAIRS = [
    (
        Router("router", classes=[FILLER, {"name": INTERACTIVE, "level": 1}, {"name": BULK, "level": 2}]),
        Executor("executor", max_batch_size=1, **SLOW),
    ),
    (
        Router(
            "limited",
            classes=[FILLER, {"name": INTERACTIVE, "level": 1}, {"name": BULK, "level": 2, "max_queue_size": 2}],
        ),
        Executor("limited_executor", max_batch_size=1, **SLOW),
    ),
    (
        Router(
            "timed",
            classes=[
                FILLER,
                {"name": INTERACTIVE, "level": 1, "default_timeout_microseconds": 150_000},
                {"name": BULK, "level": 2, "default_timeout_microseconds": 100_000, "timeout_action": "DELAY"},
                {
                    "name": "strict",
                    "level": 3,
                    "default_timeout_microseconds": 300_000,
                    "allow_timeout_override": False,
                },
            ],
        ),
        Executor("timed_executor", max_batch_size=1, **SLOW),
    ),
]


@pytest.fixture(scope="module", params=MODES)
def system(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with fleet(tmp_path_factory.mktemp("queue"), request.param, PAIRS) as made:
        for router, _ in PAIRS:
            teach(made, router.name)
        yield made


def teach(system: Fleet, router: str) -> None:
    """Lets the router learn how long the executor takes, so that it binds late."""
    for tag in range(8):
        assert system.client.infer(router, Call(tag=tag, traffic_class=INTERACTIVE)).ok


class Blocked:
    """While the block lasts the executor is busy, and whatever the router sends ahead is not one of the test's."""

    def __init__(self, system: Fleet, router: str, tag: int = SLOW_TAG) -> None:
        self._system, self._router, self._tag = system, router, tag

    def __enter__(self) -> Blocked:
        self._reply = self._system.client.send(self._router, Call(tag=self._tag, traffic_class="filler"))
        time.sleep(0.1)
        assert not self._reply.done()
        self._ahead = self._system.client.send(self._router, Call(tag=0, traffic_class="filler"))
        time.sleep(0.1)
        return self

    @property
    def over(self) -> bool:
        return self._reply.done()

    def __exit__(self, *_: object) -> None:
        assert self._reply.result().ok
        assert self._ahead.result().ok


def burst(system: Fleet, router: str, calls: list[Call]) -> list[Any]:
    futures = []
    for call in calls:
        futures.append(system.client.send(router, call))
        time.sleep(0.02)
    return futures


class TestLimit:
    """`max_queue_size`: requests that wait in the router, per class (case 10)."""

    def test_as_many_wait_as_may_and_the_rest_hear_at_once(self, system: Fleet) -> None:
        before = system.outcomes("limited").get((BULK, "queue_full"), 0)
        with Blocked(system, "limited") as blocked:
            futures = burst(system, "limited", [Call(tag=tag, traffic_class=BULK) for tag in range(1, 6)])
            eventually(lambda: sum(future.done() for future in futures) >= 3)
            refused = [future.result() for future in futures if future.done()]
            assert not blocked.over
            assert len(refused) == 3
            for reply in refused:
                assert reply.code == "UNAVAILABLE"
                assert reply.message == "class 'bulk': queue is full, max_queue_size is 2"
                assert reply.seconds < 0.5
        assert [future.result().ok for future in futures] == [True, True, False, False, False]
        eventually(lambda: system.outcomes("limited")[BULK, "queue_full"] == before + 3)

    def test_other_classes_are_not_limited_by_it(self, system: Fleet) -> None:
        with Blocked(system, "limited", 51):
            futures = burst(system, "limited", [Call(tag=1, traffic_class=BULK)] * 4)
            futures += burst(system, "limited", [Call(tag=2, traffic_class=INTERACTIVE)] * 10)
        assert [future.result().ok for future in futures] == [True, True, False, False] + [True] * 10


class TestTimeout:
    """Queue timeouts: the router's answer does not wait for the executor (case 5)."""

    def test_a_class_timeout_is_answered_in_time(self, system: Fleet) -> None:
        with Blocked(system, "timed") as blocked:
            reply = system.client.infer("timed", Call(tag=1, traffic_class=INTERACTIVE))
            assert not blocked.over
        assert reply.code == "UNAVAILABLE"
        assert reply.message == "class 'interactive': waited longer than its queue timeout of 150000 us"
        assert 0.15 <= reply.seconds < 0.5

    def test_a_callers_timeout_counts_without_a_default(self, system: Fleet) -> None:
        """Case 9, where Triton's own override does nothing."""
        before = system.outcomes().get((BULK, "timeout"), 0)
        with Blocked(system, "router") as blocked:
            reply = system.client.infer("router", Call(tag=1, traffic_class=BULK, timeout_us=200_000))
            assert not blocked.over
        assert (reply.code, "queue timeout of 200000 us" in reply.message) == ("UNAVAILABLE", True)
        assert 0.2 <= reply.seconds < 0.6
        eventually(lambda: system.outcomes()[BULK, "timeout"] == before + 1)

    @pytest.mark.parametrize(("asked", "counts"), [(50_000, 50_000), (900_000, 150_000)])
    def test_a_callers_timeout_can_only_shorten(self, system: Fleet, asked: int, counts: int) -> None:
        with Blocked(system, "timed"):
            reply = system.client.infer("timed", Call(tag=1, traffic_class=INTERACTIVE, timeout_us=asked))
        assert f"queue timeout of {counts} us" in reply.message

    def test_a_caller_may_be_denied_one(self, system: Fleet) -> None:
        with Blocked(system, "timed"):
            reply = system.client.infer("timed", Call(tag=1, traffic_class="strict", timeout_us=50_000))
        assert "queue timeout of 300000 us" in reply.message

    def test_delay_serves_after_the_others(self, system: Fleet) -> None:
        record = system.records["timed_executor"]
        with Blocked(system, "timed", 51):
            record.forget()
            late = burst(system, "timed", [Call(tag=100 + tag, traffic_class=BULK) for tag in range(3)])
            time.sleep(0.2)
            fresh = burst(system, "timed", [Call(tag=200 + tag, traffic_class=BULK) for tag in range(3)])
        assert all(future.result().ok for future in [*late, *fresh])
        order = [tag for tag in record.tags() if tag >= 100]
        # One of the late may have been sent before the fresh arrived.
        assert sum(tag < 200 for tag in order[:3]) <= 1, order

    def test_a_request_in_flight_does_not_expire(self, system: Fleet) -> None:
        reply = system.client.infer("router", Call(tag=51, traffic_class=BULK, timeout_us=100_000))
        assert reply.ok, reply.message


class TestCancel:
    """gRPC cancels (case 17)."""

    def start(self, system: Fleet, router: str, call: Call) -> tuple[Any, threading.Event, list[Any]]:
        answered, kept = threading.Event(), []

        def callback(result: Any, error: Any) -> None:
            kept.append(error)
            answered.set()

        context = self.raw.async_infer(
            router, system.client.inputs(call), callback, request_id=f"tag {call.tag}", parameters=call.all_parameters()
        )
        return context, answered, kept

    @pytest.fixture(autouse=True)
    def _raw(self, system: Fleet) -> Iterator[None]:
        with tritonclient.grpc.InferenceServerClient(system.server.grpc) as self.raw:
            yield

    def test_what_waits_is_dropped_and_never_run(self, system: Fleet) -> None:
        record = system.records["executor"]
        record.forget()
        before = system.outcomes().get((BULK, "cancelled"), 0)
        with Blocked(system, "router") as blocked:
            given_up = [self.start(system, "router", Call(tag=tag, class_parameter=BULK)) for tag in (301, 302)]
            kept = system.client.send("router", Call(tag=303, traffic_class=BULK))
            time.sleep(0.2)
            for context, _, _ in given_up:
                context.cancel()
            eventually(lambda: system.outcomes().get((BULK, "cancelled"), 0) == before + 2, 5)
            assert not blocked.over, "they were only found when their turn came"
        assert kept.result().ok
        assert 303 in record.tags()
        assert not {301, 302} & set(record.tags())
        for _, answered, errors in given_up:
            assert answered.wait(5)
            assert "CANCELLED" in str(errors[0].status())

    def test_what_runs_is_not_recalled(self, system: Fleet) -> None:
        record = system.records["executor"]
        record.forget()
        context, answered, _ = self.start(system, "router", Call(tag=51, class_parameter=BULK))
        time.sleep(0.2)
        context.cancel()
        assert answered.wait(5)
        eventually(lambda: record.tags() == [51])
        assert system.client.infer("router", Call(tag=1)).ok

    def test_a_full_class_finds_the_places_of_those_who_left(self, system: Fleet) -> None:
        with Blocked(system, "limited") as blocked:
            given_up = [self.start(system, "limited", Call(tag=tag, class_parameter=BULK)) for tag in (301, 302)]
            time.sleep(0.1)
            for context, _, _ in given_up:
                context.cancel()
            replies: list[Reply] = []

            def accepted() -> bool:
                future = system.client.send("limited", Call(tag=303, traffic_class=BULK))
                time.sleep(0.05)
                if future.done():
                    replies.append(future.result())
                return not future.done()

            eventually(accepted, 5)
            assert not blocked.over
        assert all(reply.code == "UNAVAILABLE" for reply in replies)

    def test_cancels_racing_completions_harm_nobody(self, system: Fleet) -> None:
        """Asking about a request that has just been answered would read freed memory in the server."""
        started = []
        for round_number in range(300):
            started.append(self.start(system, "router", Call(tag=round_number, class_parameter=BULK)))
            if round_number % 2:
                time.sleep(0.002)
                started[-2][0].cancel()
        for _, answered, _ in started:
            assert answered.wait(30)
        assert system.client.infer("router", Call(tag=1)).ok
        assert system.metric("failed_replies_total") == 0


def test_everything_received_is_accounted_for(system: Fleet) -> None:
    """Case 8: the router's own counters, since Triton counts errors as successes and refusals not at all."""
    before = sum(system.outcomes("limited").values())
    with Blocked(system, "limited", 51):
        futures = burst(system, "limited", [Call(tag=1, traffic_class=BULK)] * 6)
        futures += burst(system, "limited", [Call(tag=1, traffic_class="gold")] * 2)
    assert [future.result().code for future in futures] == ["OK"] * 2 + ["UNAVAILABLE"] * 4 + ["INVALID_ARGUMENT"] * 2
    eventually(lambda: sum(system.outcomes("limited").values()) == before + 2 + 8)
    success = {name: system.outcomes("limited").get((name, "success"), 0) for name in (INTERACTIVE, BULK)}
    for name, count in success.items():
        for histogram in ("queue_seconds", "executor_seconds"):
            assert system.metric(f"{histogram}_count", "limited", **{"class": name}) == count
            assert system.metric(f"{histogram}_bucket", "limited", **{"class": name, "le": "+Inf"}) == count


def test_the_timer_is_measured_and_not_late(system: Fleet) -> None:
    wakes = system.metric("timer_lateness_seconds_count", "timed")
    assert wakes > 0
    assert system.metric("timer_lateness_seconds_sum", "timed") / wakes < 0.02
