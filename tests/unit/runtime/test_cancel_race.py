# SPDX-License-Identifier: Apache-2.0
"""Callers that give up while their requests are answered: each still gets one answer, and the books say which.

The real front end of some releases dies of such races before the router sees them, so they are run here, ten thousand
at the pace of an executor that takes a millisecond.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from typing import Any

import pytest
from priority_router.runtime import cancels
from priority_router.runtime.router import Router, Surroundings
from support.fake_triton import BlsCall, InferenceResponse, Request, Sender, Triton, TritonError, doubled, refused, rows

from .harness import policy

REQUESTS = 10_000
OUTSTANDING = 300
LONGEST_CALL = 0.002
LONGEST_PATIENCE = 0.06
"""Seconds; about as long as requests take, so that as many give up before their turn as after it."""

LIMITED = "max_queue_size = 150\ndefault_timeout_microseconds = 40000\nallow_timeout_override = true"
NEVER = float("inf")
_OUTCOMES = {"queue timeout": "timeout", "max_queue_size": "queue_full", "broken": "executor_error"}


class Impatient(Sender):
    """A sender whose caller leaves at some moment, and that notices when it is answered while it is being asked."""

    def __init__(self, leaves: float) -> None:
        super().__init__()
        self._leaves = leaves
        self.touched_when_gone = False

    def is_cancelled(self) -> bool:
        self.touched_when_gone |= self._taken
        threading.Event().wait(1e-5)  # others go on meanwhile, as in the server
        self.touched_when_gone |= self._taken
        return time.monotonic() >= self._leaves


def impatient(random_: random.Random, number: int) -> Request:
    """Every eighth is patient; of the others some have a queue timeout of their own as well."""
    patient = number % 8 == 0
    class_name = "online" if patient or random_.random() < 0.3 else "bulk"
    timeout = random_.choice((0, random_.randint(200, 40_000))) if class_name == "bulk" else 0
    value = 13.0 if random_.random() < 0.02 and not patient else 1.0
    # Failing rows have another shape, so that no patient one shares a call with them.
    made = rows(random_.randint(1, 9), value)[:, : 1 if value == 13.0 else 2]
    request = Request({"X": made}, parameters=f'{{"class": "{class_name}"}}', timeout=timeout)
    leaves = NEVER if patient else time.monotonic() + random_.uniform(0, LONGEST_PATIENCE)
    request.sender = Impatient(leaves)
    return request


def outcome(response: Any) -> str:
    if not response.has_error():
        return "success"
    if response.error().code() == TritonError.CANCELLED:
        return "cancelled"
    return next(name for text, name in _OUTCOMES.items() if text in response.error().message())


@pytest.fixture
def asking_without_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many questions as one core has time for, about requests of any age."""
    monkeypatch.setattr(cancels, "MIN_WAIT", 0)
    monkeypatch.setattr(cancels, "SWEEP_SHARE", 1.0)
    monkeypatch.setattr(cancels, "PERIOD", 100_000)


@pytest.mark.usefixtures("asking_without_rest")
def test_callers_that_leave_while_they_are_answered_get_one_answer_and_are_counted_once() -> None:
    random_ = random.Random(7)
    triton = Triton()
    calls = random.Random(8)

    def answer(call: BlsCall) -> InferenceResponse:
        threading.Event().wait(calls.uniform(0, LONGEST_CALL))
        if 13.0 in call.inputs["X"]:
            return refused("broken")(call)
        return doubled(call)

    triton.answer = answer
    router = Router(triton, policy(instances=2, bulk=LIMITED), Surroundings("router"))
    requests: list[Request] = []
    while len(requests) < REQUESTS:
        group = [impatient(random_, len(requests) + place) for place in range(random_.randint(1, 20))]
        requests += group
        assert router.execute(group) is None
        if len(requests) > OUTSTANDING:
            assert requests[-OUTSTANDING].sender.done.wait(30), "a request was forgotten"

    got = Counter(outcome(request.sender.reply) for request in requests)
    router.close()
    counted: Counter[str] = Counter()
    for name, metric in triton.page.items():
        if name.startswith("priority_router_requests_total{"):
            counted[name.rpartition('outcome="')[2].rstrip('"}')] += int(metric.value)
    assert +counted == got
    assert got.total() == len(requests)
    assert not [request for request in requests if request.sender.touched_when_gone]  # type: ignore[attr-defined]
    assert {outcome(request.sender.reply) for request in requests[::8]} == {"success"}
    # Otherwise nothing has raced.
    assert min(got[name] for name in ("success", "cancelled", "timeout", "executor_error")) > 0
    assert router._driver.idle
    assert router._housekeeping._unanswered() == 0
    assert [text for level, text in triton.Logger.lines if level == "error"] == []
