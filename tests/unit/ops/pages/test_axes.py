# SPDX-License-Identifier: Apache-2.0
"""Axes: round numbers, and room for every value."""

from __future__ import annotations

import pytest
from priority_router.ops.pages import axes
from priority_router.ops.pages.axes import LogScale


@pytest.mark.parametrize(
    ("most", "ticks"),
    [
        (100, [0, 20, 40, 60, 80, 100]),
        (99, [0, 20, 40, 60, 80, 100]),
        (12, [0, 5, 10, 15]),
        (0.7, [0, 0.2, 0.4, 0.6, 0.8]),
        (0, [0, 0.2, 0.4, 0.6, 0.8, 1]),
    ],
)
def test_ticks_are_round_and_reach_the_largest(most, ticks):
    assert axes.ticks(most) == ticks


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([75, 101], [50, 70, 100]),
        ([70, 9000], [100, 200, 500, 1000, 2000, 5000]),
        ([0.5, 900_000], [1, 10, 100, 1000, 10_000, 100_000]),
        ([], [1, 2, 3, 5, 7, 10]),
    ],
)
def test_a_logarithmic_axis_has_round_ticks(values, ticks):
    assert LogScale.around(values).ticks() == ticks


def test_every_value_has_room_and_small_differences_look_small():
    scale = LogScale.around([75, 101, 0, float("inf")])
    assert 0 < scale.at(75) < scale.at(101) < 1
    assert scale.at(101) - scale.at(75) < 0.25
    assert (scale.at(1), scale.at(10_000)) == (0, 1)


def test_ticks_never_crowd():
    for decades in range(1, 12):
        assert 2 <= len(LogScale(1.0, 10.0**decades).ticks()) <= 6
