# SPDX-License-Identifier: Apache-2.0
"""Answers to replies: exactly one each, counted once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from priority_router.errors import (
    Cancelled,
    ExecutorFailed,
    InternalFault,
    InvalidRequest,
    Outcome,
    QueueFull,
    RequestError,
)
from priority_router.runtime import shared_memory
from priority_router.runtime.log import Log
from priority_router.runtime.metrics import NO_CLASS, Tally
from priority_router.runtime.replies import Replies
from priority_router.runtime.translate import ErrorCodes
from priority_router.runtime.work import Answer, Job
from support.fake_triton import InferenceResponse, Sender, Triton, TritonError, rows

from .harness import Bench, policy


class Desk:
    """Sends answers and keeps the tally."""

    def __init__(self, batched: bool = True) -> None:
        self.triton = Triton()
        self.tally = Tally(["online", "bulk"])
        log = Log(self.triton.Logger, "router")
        self._replies = Replies(self.triton, ErrorCodes(TritonError), batched, log)

    def send(self, job: Job, error: RequestError | None = None) -> InferenceResponse:
        self._replies.send(Answer(job, error), self.tally)
        sender: Sender = job.sender
        (response,) = sender.sent
        return response


def answered(count: int = 2, outputs: tuple[str, ...] = ("Y", "ROUTER_QUEUE_US", "ROUTER_EXECUTOR_US")) -> Job:
    job = Bench(policy()).job(count=count, outputs=outputs)
    job.first_exec = job.arrived + 1_234_567
    job.executor_ns = 50_000_999
    job.pieces = [(0, [("Y", rows(count, 3))])]
    return job


def test_outputs_and_timings_one_value_per_row() -> None:
    desk = Desk()
    got = desk.send(answered()).arrays()
    assert sorted(got) == ["ROUTER_EXECUTOR_US", "ROUTER_QUEUE_US", "Y"]
    assert got["Y"].tolist() == [[3, 3], [3, 3]]
    for name, value in (("ROUTER_QUEUE_US", 1234), ("ROUTER_EXECUTOR_US", 50000)):
        assert got[name].dtype == np.int64
        assert got[name].tolist() == [[value], [value]]
    assert desk.tally.outcomes["online", Outcome.SUCCESS] == 1
    assert desk.tally.queue["online"].total_ns == 1_234_567
    assert desk.tally.executor["online"].total_ns == 50_000_999


def test_without_a_batch_axis_timings_have_none() -> None:
    got = Desk(batched=False).send(answered(1)).arrays()
    assert got["ROUTER_QUEUE_US"].tolist() == [1234]


@pytest.mark.parametrize(
    "outputs", [("Y",), ("ROUTER_QUEUE_US",), ("ROUTER_EXECUTOR_US", "Y"), ("ROUTER_EXECUTOR_US", "ROUTER_QUEUE_US")]
)
def test_a_caller_gets_what_it_listed(outputs: tuple[str, ...]) -> None:
    assert sorted(Desk().send(answered(outputs=outputs)).arrays()) == sorted(outputs)


def test_what_only_a_neighbour_wanted_is_left_out() -> None:
    job = answered(outputs=("Y",))
    job.pieces = [(0, [("Y", rows(2)), ("Z", rows(2))])]
    assert list(Desk().send(job).arrays()) == ["Y"]


def test_parts_are_put_together_in_row_order() -> None:
    job = answered(6, outputs=("Y",))
    job.pieces = [(4, [("Y", rows(2, 3))]), (0, [("Y", rows(2, 1))]), (2, [("Y", rows(2, 2))])]
    assert Desk().send(job).arrays()["Y"][:, 0].tolist() == [1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize(
    ("error", "code", "outcome"),
    [
        (QueueFull("class 'online': full"), TritonError.UNAVAILABLE, Outcome.QUEUE_FULL),
        (Cancelled("gone"), TritonError.CANCELLED, Outcome.CANCELLED),
        (InvalidRequest("wrong"), TritonError.INVALID_ARG, Outcome.INVALID),
        (ExecutorFailed("broken", "NOT_FOUND"), TritonError.NOT_FOUND, Outcome.EXECUTOR_ERROR),
    ],
)
def test_an_error_keeps_its_text_and_gets_its_code(error: RequestError, code: int, outcome: Outcome) -> None:
    desk = Desk()
    response = desk.send(answered(), error)
    assert response.has_error()
    assert (response.error().message(), response.error().code()) == (str(error), code)
    assert desk.tally.outcomes["online", outcome] == 1


def test_a_fault_of_the_router_is_not_described_to_its_callers() -> None:
    text = Desk().send(answered(), InternalFault("KeyError('/srv/private')")).error().message()
    assert (
        text == "router 'router' failed on this request; the server's log says why (look for 'priority_router router:')"
    )


def test_a_request_without_a_class_is_counted_as_such() -> None:
    desk = Desk()
    desk.send(Job(Sender(), 0), InvalidRequest("wrong"))
    assert desk.tally.outcomes[NO_CLASS, Outcome.INVALID] == 1
    assert desk.tally.answered == 1


def test_a_reply_that_cannot_be_built_becomes_an_error() -> None:
    desk = Desk()
    job = answered()
    job.pieces = []
    response = desk.send(job)
    assert response.error().code() == TritonError.INTERNAL
    assert "IndexError" not in response.error().message()
    assert desk.tally.outcomes["online", Outcome.UNAVAILABLE] == 1
    assert "IndexError" in desk.triton.Logger.lines[0][1]


def test_a_reply_that_cannot_be_sent_is_logged_and_counted() -> None:
    desk = Desk()
    job = answered()
    sender: Any = job.sender
    sender.failure = RuntimeError("the server is gone")
    desk._replies.send(Answer(job, None), desk.tally)
    assert (desk.tally.failed_sends, desk.tally.answered) == (1, 1)
    assert "the server is gone" in desk.triton.Logger.lines[0][1]
    assert desk.tally.outcomes["online", Outcome.SUCCESS] == 0
    assert desk.tally.outcomes["online", Outcome.UNAVAILABLE] == 1


class Narrow:
    """As much shared memory as a test says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, free: int) -> None:
        monkeypatch.setattr(shared_memory, "room", lambda: shared_memory.Room(64 << 20, free))


FULL = "Failed to increase the shared memory pool size for key 'x' to 9 bytes. Error: No space left on device"


@pytest.mark.parametrize(("free", "apart"), [(shared_memory.GROWTH + 63, True), (64 << 20, False)])
def test_where_memory_is_short_the_flag_goes_apart(monkeypatch: pytest.MonkeyPatch, free: int, apart: bool) -> None:
    Narrow(monkeypatch, free)
    job = answered(2, outputs=("Y",))  # 16 bytes
    sender: Any = job.sender
    send, seen = sender.send, []

    def noted(response: InferenceResponse | None = None, flags: int = 0) -> None:
        seen.append((response is not None, flags))
        send(response, flags)

    sender.send = noted
    desk = Desk()
    assert desk.send(job).arrays()["Y"].tolist() == [[3, 3], [3, 3]]
    assert seen == ([(True, 0), (False, 1)] if apart else [(True, 1)])
    assert desk.tally.outcomes["online", Outcome.SUCCESS] == 1


def test_a_reply_that_finds_no_room_leaves_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    Narrow(monkeypatch, 1 << 20)
    desk = Desk()
    job = answered()
    sender: Any = job.sender
    sender.failure = RuntimeError(FULL)
    desk._replies.send(Answer(job, None), desk.tally)
    assert sender.final, "its caller waits for ever"
    assert (desk.tally.failed_sends, desk.tally.outcomes["online", Outcome.UNAVAILABLE]) == (1, 1)
    said = desk.triton.Logger.lines[0][1]
    assert "a reply of 0.0 MiB found no room, of 64.0 MiB in /dev/shm 1.0 MiB are free" in said


def test_parts_of_different_shapes_are_the_executors_fault() -> None:
    desk = Desk()
    job = answered(2)
    job.pieces = [(0, [("Y", np.zeros((1, 3)))]), (1, [("Y", np.zeros((1, 4)))])]
    response = desk.send(job)
    assert "[1, 3] and [1, 4]" in response.error().message()
    assert desk.tally.outcomes["online", Outcome.EXECUTOR_ERROR] == 1
