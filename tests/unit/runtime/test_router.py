# SPDX-License-Identifier: Apache-2.0
"""The whole runtime with its threads, against the stand-in for Triton."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from priority_router.config import RouterPolicy
from priority_router.control import ControlDirectory, RouterChannel
from priority_router.runtime import metrics, threads
from priority_router.runtime.intake import Intake
from priority_router.runtime.router import Router, Surroundings, executor_threads
from support.fake_triton import BlsCall, InferenceResponse, Request, Tensor, Triton, TritonError, doubled, rows

from .harness import policy


@pytest.fixture
def triton() -> Triton:
    return Triton()


@pytest.fixture
def router(triton: Triton) -> Iterator[Router]:
    made = Router(triton, policy(), Surroundings("router"))
    yield made
    made.close()


def named(class_name: str, count: int = 1, value: float = 0.0) -> Request:
    return Request({"X": rows(count, value), "CLASS": np.full((count, 1), class_name.encode(), object)})


def test_a_request_comes_back(router: Router) -> None:
    request = named("online", 3, 4.0)
    assert router.execute([request]) is None
    assert request.sender.reply.arrays()["Y"].tolist() == [[8, 8]] * 3


def test_threads_take_turns_often_enough_for_the_timer(triton: Triton, monkeypatch: pytest.MonkeyPatch) -> None:
    intervals: list[float] = []
    monkeypatch.setattr(sys, "setswitchinterval", intervals.append)
    Router(triton, policy(), Surroundings("router")).close()
    assert intervals == [0.0005]


def test_bad_requests_do_not_disturb_their_neighbours(router: Router, triton: Triton) -> None:
    class Unreadable(Request):
        def inputs(self) -> list[Tensor]:
            raise RuntimeError("no memory")

    good = [named("online", 1, index) for index in range(3)]
    unknown, empty, unreadable = named("gold"), Request({"X": rows(0)}), Unreadable({"X": rows(1)})
    router.execute([good[0], unknown, good[1], empty, unreadable, good[2]])
    for index, request in enumerate(good):
        assert request.sender.reply.arrays()["Y"][0, 0] == 2 * index
    codes = [request.sender.reply.error().code() for request in (unknown, empty, unreadable)]
    assert codes == [TritonError.INVALID_ARG, TritonError.INVALID_ARG, TritonError.INTERNAL]
    assert "no memory" in triton.Logger.lines[0][1]


def alive(**parameters: Any) -> Request:
    """Asks whether the router lives; its class, its rows and its parameters are as wrong as they can be."""
    asked = json.dumps({"priority_router_probe": True, "class": 5, **parameters})
    return Request({"CLASS": np.full((2, 2), b"gold", object)}, parameters=asked)


def test_whether_it_lives_is_answered_before_anything_is_read_and_counts_as_nothing(triton: Triton) -> None:
    gate = threading.Event()

    def held(call: BlsCall) -> InferenceResponse:
        assert gate.wait(10)
        return doubled(call)

    triton.answer = held
    router = Router(triton, policy(size=1, bulk="max_queue_size = 1"), Surroundings("router"))
    waiting = [named("bulk") for _ in range(4)]
    router.execute(waiting)
    router._driver.drain()
    asked = [alive(), alive(timeout=1)]
    assert router.execute(asked) is None
    for request in asked:
        assert request.sender.reply.error() is None
        assert request.sender.reply.arrays() == {}
    gate.set()
    assert all(request.sender.reply for request in waiting)
    router.close()
    outcomes = [m.value for name, m in triton.page.items() if name.startswith("priority_router_requests_total")]
    assert sum(outcomes) == 4
    assert router._housekeeping._unanswered() == 0


@pytest.mark.parametrize("value", [False, 1, "true", None])
def test_another_value_is_an_ordinary_request(router: Router, value: Any) -> None:
    request = alive(priority_router_probe=value)
    router.execute([request])
    assert request.sender.reply.error().code() == TritonError.INVALID_ARG


def test_parameters_that_cannot_be_read_do_not_ask_for_life(router: Router) -> None:
    class Garbled(Request):
        def parameters(self) -> str:
            raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")

    garbled, broken = Garbled({"X": rows(1)}), Request({"X": rows(1)}, parameters='{"priority_router_probe": tru')
    router.execute([garbled, broken])
    assert garbled.sender.reply.error().code() == TritonError.INVALID_ARG
    assert broken.sender.reply.error().code() == TritonError.INTERNAL
    assert (router._received.begun, router._received.turned_away) == (2, 2)


def test_the_parameters_of_a_request_are_asked_of_the_server_once(router: Router) -> None:
    class Counted(Request):
        readings = 0

        def parameters(self) -> str:
            self.readings += 1
            return super().parameters()

    request = Counted({"X": rows(1)})
    router.execute([request])
    assert request.sender.reply.error() is None
    assert request.readings == 1


class Senderless(Request):
    def get_response_sender(self) -> Any:
        raise MemoryError("no sender")


def test_a_request_without_a_sender_is_answered_by_execute_and_disturbs_nobody(triton: Triton) -> None:
    router = Router(triton, policy(), Surroundings("router"))
    first, last = named("online", 1, 1.0), named("bulk", 1, 2.0)
    refused, taken, also_refused, taken_too = router.execute([Senderless({}), first, Senderless({}), last]) or []
    assert (taken, taken_too) == (None, None)
    for response in (refused, also_refused):
        assert response.error().code() == TritonError.INTERNAL
        assert response.error().message().startswith("router 'router' failed on this request")
    for value, request in ((1, first), (2, last)):
        assert request.sender.reply.arrays()["Y"][0, 0] == 2 * value
    assert "MemoryError: no sender" in triton.Logger.lines[0][1]
    router.close()
    assert triton.page.read('priority_router_requests_total{class="_none",model="router",outcome="unavailable"}') == 2
    assert router._housekeeping._unanswered() == 0, "a drain would wait for them in vain"


def test_a_fault_after_the_scheduler_took_a_request_is_not_an_answer_to_the_call(triton: Triton) -> None:
    gate = threading.Event()

    def held(call: BlsCall) -> InferenceResponse:
        assert gate.wait(10)
        return doubled(call)

    def broken(oldest: int) -> None:
        raise RuntimeError("a bug")

    triton.answer = held
    lost_after = "executor_timeout_microseconds = 50000"
    router = Router(triton, policy(size=1, top=lost_after), Surroundings("router"))
    router._driver.on_send = broken
    requests = [named("online", 1, index) for index in range(5)]
    unknown = named("gold")
    assert router.execute([*requests, unknown]) is None
    assert unknown.sender.reply.error().code() == TritonError.INVALID_ARG
    gate.set()
    for request in requests:
        assert request.sender.reply
    assert "RuntimeError: a bug" in triton.Logger.lines[0][1]
    router.close()


def test_execute_does_not_wait_for_the_executor(triton: Triton) -> None:
    gate = threading.Event()

    def held(call: BlsCall) -> InferenceResponse:
        assert gate.wait(10)
        return doubled(call)

    triton.answer = held
    router = Router(triton, policy(size=1), Surroundings("router"))
    requests = [named("bulk", 1, index) for index in range(50)]
    for request in requests:
        router.execute([request])
    assert not any(request.sender.done.is_set() for request in requests)
    gate.set()
    for index, request in enumerate(requests):
        assert request.sender.reply.arrays()["Y"][0, 0] == 2 * index
    router.close()


def test_a_thousand_requests_of_every_kind_are_answered_once(triton: Triton) -> None:
    def moody(call: BlsCall) -> InferenceResponse:
        if 7.0 in call.inputs["X"]:
            raise RuntimeError("seven")
        return doubled(call)

    triton.answer = moody
    router = Router(triton, policy(bulk="max_queue_size = 50"), Surroundings("router"))
    requests = [named(("online", "bulk", "gold")[index % 3], 1 + index % 9, float(index % 11)) for index in range(1000)]
    for first in range(0, 1000, 10):
        router.execute(requests[first : first + 10])
    for request in requests:
        assert len(request.sender.reply.arrays() or [request.sender.reply.error()]) == 1
    router.close()
    outcomes = {
        name: metric.value for name, metric in triton.page.items() if name.startswith("priority_router_requests_total")
    }
    assert sum(outcomes.values()) == 1000
    assert outcomes['priority_router_requests_total{class="_none",model="router",outcome="invalid"}'] == 333


def test_a_fault_of_intake_is_answered_and_told_in_the_log_alone(
    router: Router, triton: Triton, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: Any) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(Intake, "fill", broken)
    request = named("online")
    router.execute([request])
    assert request.sender.reply.error().message() == (
        "router 'router' failed on this request; the server's log says why (look for 'priority_router router:')"
    )
    (line,) = (text for _, text in triton.Logger.lines)
    assert line.startswith("priority_router router: reading a request failed")
    assert "RuntimeError: a bug" in line


@pytest.mark.parametrize(
    ("given", "threads"),
    [
        (policy(), 10),
        (policy(instances=4), 16),
        (policy(instances=4, top="shared_executor = true"), 24),
    ],
)
def test_the_number_of_executor_threads(given: RouterPolicy, threads: int) -> None:
    assert executor_threads(given) == threads


def threads_of(before: set[threading.Thread]) -> set[threading.Thread]:
    return set(threading.enumerate()) - before


def ended(threads: Iterable[threading.Thread]) -> bool:
    """They are told to end; a busy machine may take its time."""
    for thread in threads:
        thread.join(10)
    return not any(thread.is_alive() for thread in threads)


def test_a_stuck_call_of_the_executor_keeps_nothing_else_from_ending(
    triton: Triton, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("priority_router.runtime.router.STOP_SECONDS", 0.1)
    gate, begun = threading.Event(), threading.Event()
    stuck: list[threading.Thread] = []

    def held(call: BlsCall) -> InferenceResponse:
        stuck.append(threading.current_thread())
        begun.set()
        assert gate.wait(60)
        return doubled(call)

    triton.answer = held
    control = ControlDirectory(tmp_path / "control")
    before = set(threading.enumerate())
    router = Router(triton, policy(), Surroundings("router", channel=RouterChannel(control.path, "router")))
    started = threads_of(before)
    router.execute([named("online")])
    assert begun.wait(10)
    router.close()
    assert ended(started - set(stuck))
    assert [thread.is_alive() for thread in stuck] == [True]
    assert control.undrained() == []
    gate.set()
    assert ended(stuck)


def test_a_router_whose_threads_cannot_all_be_started_leaves_none(
    triton: Triton, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = threads.start

    def start(name: str, target: Any) -> threading.Thread:
        if name == "housekeeping":
            raise RuntimeError("can't start new thread")
        return real(name, target)

    monkeypatch.setattr(threads, "start", start)
    control = ControlDirectory(tmp_path / "control")
    before = set(threading.enumerate())
    with pytest.raises(RuntimeError, match="can't start new thread"):
        Router(triton, policy(), Surroundings("router", channel=RouterChannel(control.path, "router")))
    assert ended(threads_of(before))
    assert control.undrained() == []


def test_a_fault_at_the_timer_does_not_end_it(router: Router, triton: Triton, monkeypatch: pytest.MonkeyPatch) -> None:
    ticked = threading.Event()

    def broken() -> None:
        monkeypatch.setattr(router._driver, "tick", ticked.set)
        router._driver.alarm.set(0)
        raise RuntimeError("a bug")

    monkeypatch.setattr(router._driver, "tick", broken)
    router._driver.alarm.set(0)
    assert ticked.wait(10)
    assert "RuntimeError: a bug" in triton.Logger.lines[0][1]


def test_the_timers_lateness_is_counted_when_it_wakes(router: Router, monkeypatch: pytest.MonkeyPatch) -> None:
    ticked = threading.Event()
    monkeypatch.setattr(router._driver, "tick", ticked.set)
    router._driver.alarm.set(0)
    assert ticked.wait(10)
    counters = router._counters()
    assert counters[metrics.LATENESS_COUNT] == 1
    assert counters[metrics.LATENESS_WORST] == counters[metrics.LATENESS_SUM] > 0


def test_closing_ends_every_thread(triton: Triton) -> None:
    before = set(threading.enumerate())
    router = Router(triton, policy(), Surroundings("router"))
    started = set(threading.enumerate()) - before
    assert len(started) == 10 + 4 + 3
    request = named("online")
    router.execute([request])
    assert request.sender.reply
    router.close()
    assert ended(started)
