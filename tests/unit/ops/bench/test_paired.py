# SPDX-License-Identifier: Apache-2.0
"""Intervals: what they claim, and that they claim nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from priority_router.ops.bench import paired
from priority_router.ops.bench.paired import Comparison, Finding
from support.demo_results import BEFORE, Made, results

LOWER, HIGHER, SAME, UNKNOWN = Finding.LOWER, Finding.HIGHER, Finding.SAME, Finding.UNKNOWN


def test_a_certain_but_small_difference_is_none():
    requests = results(BEFORE).requests["router"]["online"]
    slightly = replace(requests, latency_ms=requests.latency_ms * 1.03)
    found = paired.compare_latency([requests], [slightly])
    assert all(one.low > 0 for one in found.values())
    assert {one.finding for one in found.values()} == {SAME}


@pytest.mark.parametrize(
    ("numbers", "finding"),
    [
        ((100, 50, -60, -40), LOWER),
        ((100, 150, 40, 60), HIGHER),
        ((100, 50, -60, 1), SAME),
        ((100, 96, -5, -3), SAME),
        ((np.inf, 50, -np.inf, -np.inf), LOWER),
        ((100, np.inf, np.inf, np.inf), HIGHER),
        ((np.inf, np.inf, -np.inf, np.inf), UNKNOWN),
        ((0, 0, 0, 0), SAME),
        ((0, 5, 4, 6), HIGHER),
    ],
)
def test_what_an_interval_bears(numbers, finding):
    assert Comparison(*map(float, numbers)).finding is finding


def test_quantiles_are_nearest_ranks_and_missing_answers_the_slowest():
    requests = results(Made(unanswered=0.03)).requests["router"]["online"]
    found = paired.compare_latency([requests], [requests])
    for name, share in paired.QUANTILES.items():
        expected = np.sort(requests.latency_ms)[int(np.ceil(share * len(requests.latency_ms))) - 1]
        assert found[name].after == expected
    assert found["p99"].finding is UNKNOWN


def test_draws_without_requests_bear_no_claim():
    requests = results(BEFORE).requests["router"]["online"]
    first = requests.at_s < 1
    few = replace(requests, at_s=requests.at_s[first], latency_ms=requests.latency_ms[first])
    found = paired.compare_latency([few], [replace(few, latency_ms=few.latency_ms * 9)])
    assert {(one.low, one.high, one.finding) for one in found.values()} == {(-np.inf, np.inf, SAME)}
    none = replace(few, at_s=few.at_s[:0], latency_ms=few.latency_ms[:0])
    assert {one.finding for one in paired.compare_latency([none], [none]).values()} == {UNKNOWN}
