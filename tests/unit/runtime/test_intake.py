# SPDX-License-Identifier: Apache-2.0
"""Requests to jobs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from priority_router.config import parse_policy
from priority_router.errors import InvalidRequest
from priority_router.runtime import intake, parameters
from priority_router.runtime.intake import Intake
from priority_router.runtime.work import Job, Wanted
from support.fake_triton import Request, rows
from support.policy_texts import ONLINE, a_policy


def reader(size: int = 4, extra: str = "") -> Intake:
    return Intake(parse_policy(a_policy(ONLINE, top=extra, size=size)))


def read(made: Intake, request: Request) -> Job:
    job = Job(request.sender, 5)
    made.fill(job, request, parameters.text(request))
    return job


def test_a_request_is_read_completely() -> None:
    request = Request(
        {"X": rows(3), "CLASS": np.full((3, 1), b"online", object), "A": np.zeros((3, 1), np.int64)},
        outputs=("Y", "ROUTER_QUEUE_US"),
        timeout=1500,
    )
    job = read(reader(), request)
    assert job.request is not None
    assert (job.class_name, job.rows, job.request.timeout, job.arrived) == ("online", 3, 1_500_000, 5)
    assert job.request.size == sum(array.nbytes for _, array in job.inputs)
    assert [name for name, _ in job.inputs] == ["A", "X"]
    assert job.wanted == Wanted(frozenset({"Y"}), queue=True, executor=False)


def test_ids_are_never_used_twice() -> None:
    made = reader()
    jobs = [read(made, Request({"X": rows(1)})) for _ in range(5)]
    assert len({job.request.id for job in jobs if job.request is not None}) == 5


def test_the_order_of_a_clients_inputs_does_not_matter() -> None:
    a, x = np.zeros((1, 1)), rows(1)
    made = reader()
    one, other = read(made, Request({"A": a, "X": x})), read(made, Request({"X": x, "A": a}))
    assert one.request is not None
    assert other.request is not None
    assert one.request.signature == other.request.signature


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({}, "no input besides CLASS"),
        ({"CLASS": np.full((1, 1), b"online", object)}, "no input besides CLASS"),
        ({"X": rows(0)}, "the request has no rows"),
        ({"X": rows(2), "Z": rows(3)}, "inputs 'X' and 'Z' have different numbers of rows"),
        ({"X": np.zeros(())}, "input 'X' has no batch axis"),
        ({"X": rows(2), "CLASS": np.full((1, 1), b"online", object)}, "input CLASS must be"),
    ],
)
def test_what_cannot_be_served_is_the_callers_mistake(inputs: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        read(reader(), Request(inputs))


def test_without_a_batch_axis_a_request_is_one_row_whatever_its_shape() -> None:
    job = read(reader(size=0), Request({"X": np.zeros((0, 7)), "S": np.zeros(())}))
    assert job.rows == 1


def test_unknown_classes_are_counted_refused_or_not() -> None:
    gold = {"X": rows(1), "CLASS": np.full((1, 1), b"gold", object)}
    strict = reader()
    with pytest.raises(InvalidRequest):
        read(strict, Request(gold))
    assert strict.unknown_classes == 1
    lenient = reader(extra='unknown_class = "default"\n')
    assert read(lenient, Request(gold)).class_name == "online"
    assert lenient.unknown_classes == 1


def test_sets_of_outputs_are_remembered_but_not_without_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "_MOST_WANTED", 3)
    made = reader()
    first = read(made, Request({"X": rows(1)}, outputs=("Y",))).wanted
    assert read(made, Request({"X": rows(1)}, outputs=("Y",))).wanted is first
    for index in range(10):
        read(made, Request({"X": rows(1)}, outputs=(f"O{index}",)))
    assert len(made._wanted) <= 3


def test_memory_of_the_server_is_not_kept() -> None:
    foreign = np.frombuffer(bytearray(8), dtype=np.float32).reshape(1, 2)
    job = read(reader(), Request({"X": foreign}))
    assert not np.shares_memory(job.inputs[0][1], foreign)
