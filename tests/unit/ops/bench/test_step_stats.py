# SPDX-License-Identifier: Apache-2.0
"""Triton's statistics of a step between two readings."""

from __future__ import annotations

import time
from dataclasses import astuple

import pytest
from priority_router.ops.bench import step_stats
from priority_router.ops.bench.step_stats import StepUse

PARTS = ("compute_input", "compute_infer", "compute_output")
MS = 1_000_000


def document(requests, rows, executions, queue_ms, compute_ms, executing_ms):
    def ns(value):
        return {"count": requests, "ns": value * MS}

    inference = {"success": ns(0), "queue": ns(queue_ms), **{part: ns(compute_ms) for part in PARTS}}
    batches = [{"batch_size": 1, **{part: ns(executing_ms) for part in PARTS}}] if executions else []
    return {
        "inference_count": rows,
        "execution_count": executions,
        "inference_stats": inference,
        **({"batch_stats": batches} if batches else {}),
    }


@pytest.fixture
def readings(monkeypatch):
    def made(*documents, ms_apart=1000):
        pending = list(documents)
        times = iter(range(0, 10 * ms_apart * MS, ms_apart * MS))
        monkeypatch.setattr(step_stats, "get_json", lambda address, path: {"model_stats": [pending.pop(0)]})
        monkeypatch.setattr(time, "monotonic_ns", lambda: next(times))
        return [step_stats.read("host:1", "step") for _ in documents]

    return made


def test_means_are_per_request_and_the_share_is_of_time(readings):
    before, after = readings(document(10, 20, 5, 100, 10, 40), document(30, 100, 15, 160, 30, 90))
    expected = StepUse(requests=20, queue_ms=3.0, compute_ms=3.0, rows_per_execution=8.0, busy=0.15)
    assert astuple(after.since(before)) == pytest.approx(astuple(expected))


def test_nothing_answered_is_no_use(readings):
    before, after = readings(document(0, 0, 0, 0, 0, 0), document(0, 0, 0, 0, 0, 0))
    assert after.since(before) is None
