# SPDX-License-Identifier: Apache-2.0
"""The bounds of ``core/worst_case.py`` hold in worlds drawn at random, and some requests wait that long."""

from __future__ import annotations

import pytest
from conformance.worst import play_drawn


@pytest.mark.parametrize("first", range(0, 100, 20))
def test_no_request_waits_longer_than_its_bound(first: int) -> None:
    reached = [share for seed in range(first, first + 20) for share in play_drawn(seed).values()]
    assert reached, "no class had a bound"


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 3000, 500))
def test_no_request_waits_longer_than_its_bound_in_many_worlds(first: int) -> None:
    for seed in range(first, first + 500):
        play_drawn(seed)
