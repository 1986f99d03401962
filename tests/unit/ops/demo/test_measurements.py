# SPDX-License-Identifier: Apache-2.0
"""What rows cost."""

from __future__ import annotations

import pytest
from priority_router.ops.demo.measurements import Capacity, ms_per_row
from support import demo_results


def test_capacity_and_summary_know_what_a_row_costs():
    assert Capacity(rows_per_s=100, busy=0.9, mean_batch=4).ms_per_row == pytest.approx(9.0)
    results = demo_results.results(demo_results.Made(ms_per_row=9.5))
    assert ms_per_row(results.arms["router"]) == pytest.approx(9.5)
