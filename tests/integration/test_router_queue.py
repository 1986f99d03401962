# SPDX-License-Identifier: Apache-2.0
"""The router's queue: limits, timeouts, cancels, and what is counted."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
import tritonclient.grpc
from support.clients import Call
from support.fleet import MODES, PATIENCE_SECONDS, Fleet, eventually, fleet
from support.models import BULK, INTERACTIVE, LEARNED, Executor, Router

BATCH_SECONDS = 0.005

FILLER = {"name": "filler", "level": 1}
"""Most urgent, without limit or timeout: it takes the place that the router may send ahead into Triton's queue."""

PAIRS = [
    (
        Router("router", classes=[FILLER, {"name": INTERACTIVE, "level": 1}, {"name": BULK, "level": 2}]),
        Executor("executor", max_batch_size=1, batch_seconds=BATCH_SECONDS),
    ),
    (
        Router(
            "limited",
            classes=[FILLER, {"name": INTERACTIVE, "level": 1}, {"name": BULK, "level": 2, "max_queue_size": 2}],
        ),
        Executor("limited_executor", max_batch_size=1, batch_seconds=BATCH_SECONDS),
    ),
    (
        Router(
            "timed",
            classes=[
                FILLER,
                {"name": INTERACTIVE, "level": 1, "default_timeout_microseconds": 150_000},
                {"name": BULK, "level": 2, "default_timeout_microseconds": 600_000_000, "timeout_action": "DELAY"},
                {
                    "name": "strict",
                    "level": 3,
                    "default_timeout_microseconds": 300_000,
                    "allow_timeout_override": False,
                },
            ],
        ),
        Executor("timed_executor", max_batch_size=1, batch_seconds=BATCH_SECONDS),
    ),
]


@pytest.fixture(scope="module", params=MODES)
def system(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with fleet(tmp_path_factory.mktemp("queue"), request.param, PAIRS) as made:
        yield made


@contextlib.contextmanager
def blocked(system: Fleet, router: str) -> Iterator[Callable[[str], float]]:
    """While the block lasts the executor is busy, and what the router has sent ahead is not one of the test's.

    When it begins the metrics page tells of everything that was before.

    Yields:
        Requests of a class that wait in the router.
    """
    record = system.records["executor" if router == "router" else f"{router}_executor"]
    filler = Call(tag=0, traffic_class="filler")
    for _ in range(LEARNED):  # so that it binds late: nothing more goes ahead
        assert system.client.infer(router, filler).ok
    system.rests(router)
    with record.shut():
        fillers = send(system, router, [filler])
        eventually(lambda: record.held() == 1)
        fillers += send(system, router, [filler])
        eventually(lambda: system.metric("in_flight_rows", router) == 2)
        yield lambda class_name: system.metric("queue_size", router, **{"class": class_name})
        assert done(fillers) == 0, "the executor was not busy"
    assert codes(fillers) == {"OK": 2}


def send(system: Fleet, router: str, calls: list[Call]) -> list[Any]:
    return [system.client.send(router, call) for call in calls]


def done(futures: list[Any]) -> int:
    return sum(future.done() for future in futures)


def codes(futures: list[Any]) -> Counter[str]:
    return Counter(future.result().code for future in futures)


class TestLimit:
    """`max_queue_size`: requests that wait in the router, per class (case 10)."""

    def test_as_many_wait_as_may_and_the_rest_hear_at_once(self, system: Fleet) -> None:
        with blocked(system, "limited"):
            before = system.settled_outcomes("limited")[BULK, "queue_full"]
            futures = send(system, "limited", [Call(tag=tag, traffic_class=BULK) for tag in range(1, 6)])
            eventually(lambda: done(futures) == 3)
            for future in futures:
                if future.done():
                    assert future.result().code == "UNAVAILABLE"
                    assert future.result().message == "class 'bulk': queue is full, max_queue_size is 2"
        assert codes(futures) == {"OK": 2, "UNAVAILABLE": 3}
        eventually(lambda: system.outcomes("limited")[BULK, "queue_full"] == before + 3)

    def test_other_classes_are_not_limited_by_it(self, system: Fleet) -> None:
        with blocked(system, "limited") as waiting:
            limited = send(system, "limited", [Call(tag=1, traffic_class=BULK)] * 4)
            eventually(lambda: done(limited) == 2)
            others = send(system, "limited", [Call(tag=2, traffic_class=INTERACTIVE)] * 10)
            eventually(lambda: waiting(INTERACTIVE) == 10)
        assert codes(limited) == {"OK": 2, "UNAVAILABLE": 2}
        assert codes(others) == {"OK": 10}


class TestTimeout:
    """Queue timeouts: the router's answer does not wait for the executor (case 5)."""

    def test_a_class_timeout_is_answered_in_time(self, system: Fleet) -> None:
        with blocked(system, "timed"):
            reply = system.client.infer("timed", Call(tag=1, traffic_class=INTERACTIVE))
        assert reply.code == "UNAVAILABLE"
        assert reply.message == "class 'interactive': waited longer than its queue timeout of 150000 us"
        assert reply.seconds >= 0.15

    def test_a_callers_timeout_counts_without_a_default(self, system: Fleet) -> None:
        """Case 9, where Triton's own override does nothing."""
        with blocked(system, "router"):
            before = system.settled_outcomes()[BULK, "timeout"]
            reply = system.client.infer("router", Call(tag=1, traffic_class=BULK, timeout_us=200_000))
        assert (reply.code, "queue timeout of 200000 us" in reply.message) == ("UNAVAILABLE", True)
        assert reply.seconds >= 0.2
        eventually(lambda: system.outcomes()[BULK, "timeout"] == before + 1)

    @pytest.mark.parametrize(("asked", "counts"), [(50_000, 50_000), (900_000, 150_000)])
    def test_a_callers_timeout_can_only_shorten(self, system: Fleet, asked: int, counts: int) -> None:
        with blocked(system, "timed"):
            reply = system.client.infer("timed", Call(tag=1, traffic_class=INTERACTIVE, timeout_us=asked))
        assert f"queue timeout of {counts} us" in reply.message

    def test_a_caller_may_be_denied_one(self, system: Fleet) -> None:
        with blocked(system, "timed"):
            reply = system.client.infer("timed", Call(tag=1, traffic_class="strict", timeout_us=50_000))
        assert "queue timeout of 300000 us" in reply.message

    def test_delay_serves_after_the_others(self, system: Fleet) -> None:
        record = system.records["timed_executor"]
        with blocked(system, "timed") as waiting:
            record.forget()
            calls = [Call(tag=100 + tag, traffic_class=BULK, timeout_us=1_000) for tag in range(3)]
            late = send(system, "timed", calls)
            eventually(lambda: waiting(BULK) == 3)
            time.sleep(0.05)
            fresh = send(system, "timed", [Call(tag=200 + tag, traffic_class=BULK) for tag in range(3)])
            eventually(lambda: waiting(BULK) == 6)
        assert codes([*late, *fresh]) == {"OK": 6}
        order = [tag for tag in record.tags() if tag >= 100]
        # Two calls are in flight at a time, each in a thread of its own, so that neighbours may change places.
        assert sum(tag < 200 for tag in order[:3]) <= 1, order

    def test_a_request_in_flight_does_not_expire(self, system: Fleet) -> None:
        with system.records["executor"].shut():
            running = system.client.send("router", Call(tag=1, traffic_class=BULK, timeout_us=100_000))
            eventually(lambda: system.records["executor"].held() == 1)
            time.sleep(0.2)
        assert running.result().ok, running.result().message


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
        with blocked(system, "router") as waiting:
            before = system.settled_outcomes()[BULK, "cancelled"]
            given_up = [self.start(system, "router", Call(tag=tag, class_parameter=BULK)) for tag in (301, 302)]
            kept = system.client.send("router", Call(tag=303, traffic_class=BULK))
            eventually(lambda: waiting(BULK) == 3)
            for context, _, _ in given_up:
                context.cancel()
            eventually(lambda: system.outcomes()[BULK, "cancelled"] == before + 2)
        assert kept.result().ok
        assert 303 in record.tags()
        assert not {301, 302} & set(record.tags())
        for _, answered, errors in given_up:
            assert answered.wait(PATIENCE_SECONDS)
            assert "CANCELLED" in str(errors[0].status())

    def test_what_runs_is_not_recalled(self, system: Fleet) -> None:
        record = system.records["executor"]
        record.forget()
        with record.shut():
            context, answered, _ = self.start(system, "router", Call(tag=51, class_parameter=BULK))
            eventually(lambda: record.held() == 1)
            context.cancel()
            assert answered.wait(PATIENCE_SECONDS)
        eventually(lambda: record.tags() == [51])
        assert system.client.infer("router", Call(tag=1)).ok

    def test_a_full_class_finds_the_places_of_those_who_left(self, system: Fleet) -> None:
        with blocked(system, "limited") as waiting:
            before = system.settled_outcomes("limited")[BULK, "cancelled"]
            given_up = [self.start(system, "limited", Call(tag=tag, class_parameter=BULK)) for tag in (301, 302)]
            eventually(lambda: waiting(BULK) == 2)
            for context, _, _ in given_up:
                context.cancel()
            tried: list[Any] = []

            def both_found() -> bool:
                return system.outcomes("limited")[BULK, "cancelled"] == before + 2

            def accepted() -> bool:
                future = system.client.send("limited", Call(tag=303, traffic_class=BULK))
                tried.append(future)
                eventually(lambda: future.done() or (both_found() and waiting(BULK) == 1))
                return not future.done()

            eventually(accepted)
        *refused, served = (future.result() for future in tried)
        assert served.ok
        assert all(reply.code == "UNAVAILABLE" for reply in refused)

    def test_cancels_racing_completions_harm_nobody(self, system: Fleet) -> None:
        """Asking about a request that has just been answered would read freed memory in the server."""
        started = []
        for round_number in range(300):
            started.append(self.start(system, "router", Call(tag=round_number, class_parameter=BULK)))
            if round_number % 2:
                time.sleep(0.002)
                started[-2][0].cancel()
        for _, answered, _ in started:
            assert answered.wait(PATIENCE_SECONDS)
        assert system.client.infer("router", Call(tag=1)).ok
        assert system.metric("failed_replies_total") == 0


def test_everything_received_is_accounted_for(system: Fleet) -> None:
    """Case 8: the router's own counters, since Triton counts errors as successes and refusals not at all."""

    def answered(outcomes: Mapping[tuple[str, str], float]) -> float:
        return sum(count for (name, _), count in outcomes.items() if name in (BULK, "_none"))

    with blocked(system, "limited"):
        before = answered(system.settled_outcomes("limited"))
        futures = send(system, "limited", [Call(tag=1, traffic_class=BULK)] * 6)
        futures += send(system, "limited", [Call(tag=1, traffic_class="gold")] * 2)
        eventually(lambda: done(futures) == 6)
    assert codes(futures) == {"OK": 2, "UNAVAILABLE": 4, "INVALID_ARGUMENT": 2}
    eventually(lambda: answered(system.outcomes("limited")) == before + 8)

    def histograms_agree() -> bool:
        return all(
            system.metric(histogram, "limited", **{"class": name, **labels})
            == system.metric("requests_total", "limited", **{"class": name, "outcome": "success"})
            for name in (INTERACTIVE, BULK)
            for part in ("queue_seconds", "executor_seconds")
            for histogram, labels in ((f"{part}_count", {}), (f"{part}_bucket", {"le": "+Inf"}))
        )

    eventually(histograms_agree)


def test_the_timer_is_measured_in_seconds(system: Fleet) -> None:
    wakes = system.metric("timer_lateness_seconds_count", "timed")
    assert wakes > 0
    # Under 1 ms as a rule; what it is good for is in test_router_lateness.
    assert 0 < system.metric("timer_lateness_seconds_sum", "timed") / wakes < 0.5
