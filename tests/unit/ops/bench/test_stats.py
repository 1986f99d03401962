# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from priority_router.ops.bench.ledger import Ledger
from priority_router.ops.bench.stats import Spread, summarise
from priority_router.ops.bench.wire import Outcome

from .ledgers import MS, ledger


def test_requests_count_where_they_were_scheduled():
    made = ledger(
        [
            ("online", 100, 250, Outcome.SUCCESS),  # warm-up, though answered after it
            ("online", 300, 340, Outcome.SUCCESS),
            ("online", 900, 1300, Outcome.SUCCESS),  # answered after the last arrival
            ("online", 400, 401, Outcome.QUEUE_FULL),
            ("online", 500, None, Outcome.UNANSWERED),
            ("background", 300, 310, Outcome.OTHER),
        ]
    )
    online = summarise(made, warmup_s=0.2).classes["online"]
    assert {name: count for name, count in online.outcomes.items() if count} == {
        "success": 2,
        "queue_full": 1,
        "unanswered": 1,
    }
    assert online.latency["max_ms"] == 400
    assert online.latency["p50_ms"] == 40


def test_rows_count_where_they_were_answered_while_arrivals_lasted():
    made = ledger(
        [
            ("background", 100, 199, Outcome.SUCCESS, 8),  # answered in the warm-up
            ("background", 100, 200, Outcome.SUCCESS, 3),
            ("background", 900, 999, Outcome.SUCCESS, 2),
            ("background", 900, 1000, Outcome.SUCCESS, 8),  # too late
            ("background", 400, 500, Outcome.TIMEOUT, 8),
        ]
    )
    assert summarise(made, warmup_s=0.2).classes["background"].rows_per_s == pytest.approx(5 / 0.8)


def test_quantiles_are_latencies_that_were_seen():
    made = ledger([("online", 0, latency, Outcome.SUCCESS) for latency in range(1, 101)])
    latency = summarise(made).classes["online"].latency
    assert latency == {"p50_ms": 50, "p95_ms": 95, "p99_ms": 99, "max_ms": 100}


def test_nothing_is_made_up_for_a_class_without_answers():
    summary = summarise(ledger([("online", 1, None, Outcome.UNANSWERED)]))
    assert summary.classes["online"].latency == {}
    assert summary.classes["background"].outcomes == {outcome.label: 0 for outcome in Outcome}


def test_queue_times_of_the_router():
    made = ledger([("online", 0, 10, Outcome.SUCCESS), ("online", 1, 10, Outcome.SUCCESS)])
    made.queue_us[0] = 1500
    assert summarise(made).classes["online"].queue_ms["p50_ms"] == 1.5
    assert summarise(made).classes["background"].queue_ms == {}


def test_the_generator_is_measured_too():
    made = ledger([("online", n, n + 5, Outcome.SUCCESS) for n in range(100)], failures={(500, "x"): 2, (0, "y"): 5})
    made.sent[50] += 40 * MS
    made.sent[51] = -1
    summary = summarise(made)
    assert made.lateness(1.0) == pytest.approx(0.04, rel=0.01)
    assert made.lateness(0.5) < 0.001
    assert summary.late_p99_ms == pytest.approx(made.lateness() * 1e3)
    assert summary.client_cpu == 0.25
    assert [failure["text"] for failure in summary.failures] == ["y", "x"]


def test_ledgers_of_several_processes_become_one():
    whole = [("online", at, at + 5, Outcome.SUCCESS) for at in (1, 4, 7)]
    other = [("background", at, None, Outcome.UNANSWERED) for at in (2, 3, 9)]
    merged = Ledger.merge([ledger(whole, failures={(0, "x"): 1}), ledger(other, failures={(0, "x"): 2})])
    assert_array_equal(merged.scheduled, np.array([1, 2, 3, 4, 7, 9]) * MS)
    assert_array_equal(merged.class_index, [0, 1, 1, 0, 0, 1])
    assert merged.failures == {(0, "x"): 3}
    assert merged.cpu_seconds == 0.5
    assert merged.connections == 6


def test_spread():
    assert Spread.over([3.0, 1.0, 8.0]) == Spread(3.0, 1.0, 8.0)
    assert Spread.over([4.0]) == Spread(4.0, 4.0, 4.0)
