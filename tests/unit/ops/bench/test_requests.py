# SPDX-License-Identifier: Apache-2.0
"""From ledgers to each request."""

from __future__ import annotations

import numpy as np
import pytest
from priority_router.ops.bench.requests import by_class
from priority_router.ops.bench.stats import summarise
from priority_router.ops.bench.wire import Outcome
from support import demo_results

from .ledgers import ledger


def test_requests_count_where_they_were_due_and_rows_where_they_ended():
    made = ledger(
        [
            ("online", 50, 150, Outcome.SUCCESS),
            ("online", 150, 180, Outcome.SUCCESS, 2),
            ("online", 300, 310, Outcome.TIMEOUT),
            ("online", 400, 1500, Outcome.SUCCESS),
            ("background", 500, None, Outcome.UNANSWERED),
        ]
    )
    online, background = by_class(made, 0.1).values()
    assert online.at_s.tolist() == pytest.approx([0.05, 0.2, 0.3])
    assert online.latency_ms.tolist() == [30.0, np.inf, 1100.0]
    assert online.answered.tolist() == [30.0, 1100.0]
    # The first was due in the warm-up, the last ended after the arrivals.
    assert online.answered_s.tolist() == pytest.approx([0.05, 0.08, 0.08])
    assert online.window_s == pytest.approx(0.9)
    assert background.latency_ms.tolist() == [np.inf]
    assert background.answered_s.tolist() == []


def test_they_add_up_to_the_summary():
    made = demo_results.ledger(demo_results.Made(unanswered=0.1), 10.0)
    summary = summarise(made, demo_results.WARMUP_SECONDS)
    for name, requests in by_class(made, demo_results.WARMUP_SECONDS).items():
        one = summary.classes[name]
        assert len(requests.answered) == one.outcomes["success"]
        assert len(requests.answered_s) / requests.window_s == pytest.approx(one.rows_per_s)
        assert np.quantile(requests.answered, 0.95, method="inverted_cdf") == one.latency["p95_ms"]
