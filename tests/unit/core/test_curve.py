# SPDX-License-Identifier: Apache-2.0
"""The curve against a plain one that draws and searches every row count."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from priority_router.core.curve import Curve

ROUNDING = 1e-4
"""Half a nanosecond, as a share of the shortest time that is drawn here."""

EFFICIENCIES = (0.5, 0.95, 1.0)


class Plain:
    """Every row count's time, drawn anew for every question."""

    def __init__(self, max_rows: int) -> None:
        self.max_rows = max_rows
        self.points: dict[int, int] = {}

    def times(self) -> dict[int, int]:
        times = dict(self.points)
        known = sorted(self.points)
        for below, above in pairwise(known):
            for rows in range(below + 1, above):
                share = (rows - below) / (above - below)
                times[rows] = round(self.points[below] + share * (self.points[above] - self.points[below]))
        return {rows: min(time for more, time in times.items() if more >= rows) for rows in sorted(times)}

    def most_rows(self, rows: int, slowdown: float) -> int:
        times = self.times()
        if rows not in times:
            return self.max_rows
        too_slow = [more for more, time in times.items() if more > rows and time > times[rows] * (1 + slowdown)]
        return min(too_slow) - 1 if too_slow else self.max_rows


@st.composite
def curves(draw: st.DrawFn) -> tuple[Curve, Plain]:
    """A curve after points came, moved and went."""
    max_rows = draw(st.sampled_from((1, 2, 5, 32, 100)))
    curve, plain = Curve(max_rows), Plain(max_rows)
    rising = draw(st.booleans())
    for rows, time in draw(st.lists(st.tuples(st.integers(1, max_rows), st.none() | st.integers(10_000, 10**6)))):
        if time is None:
            curve.drop(rows)
            plain.points.pop(rows, None)
        else:
            curve.put(rows, time + rising * rows * 50_000)
            plain.points[rows] = time + rising * rows * 50_000
        assert len(curve) == len(plain.points)
        for efficiency in EFFICIENCIES:
            curve.best_rows(efficiency)  # must not outlast the next change
    return curve, plain


@given(curves())
def test_every_time_is_that_of_a_plain_curve(pair: tuple[Curve, Plain]) -> None:
    curve, plain = pair
    times = plain.times()
    assert [curve.time(rows) for rows in range(plain.max_rows + 2)] == [
        times.get(rows) for rows in range(plain.max_rows + 2)
    ]


@given(curves(), st.sampled_from((0.0, 0.1, 2.0)))
def test_most_rows_are_those_of_a_plain_curve(pair: tuple[Curve, Plain], slowdown: float) -> None:
    curve, plain = pair
    for rows in range(1, plain.max_rows + 1):
        assert curve.most_rows(rows, slowdown) == plain.most_rows(rows, slowdown)


@given(curves(), st.integers(5_000, 2 * 10**6))
def test_rows_within_a_time_are_those_of_a_plain_curve(pair: tuple[Curve, Plain], time: int) -> None:
    curve, plain = pair
    times = plain.times()
    within = [rows for rows in times if times[rows] <= time]
    rows = curve.rows_within(time)
    if len(within) == len(times):
        assert rows == plain.max_rows, "nothing says otherwise"
    elif within:
        assert rows == max(within)
    else:
        least = min(times)
        assert rows == (0 if least == 1 else max(least * time // times[least], 1)) < least


@given(curves(), st.integers(5_000, 2 * 10**6))
def test_rows_beyond_a_time_are_on_the_line_of_those_within(pair: tuple[Curve, Plain], time: int) -> None:
    curve, plain = pair
    times = plain.times()
    known = [rows for rows in sorted(plain.points) if times[rows] <= time]
    slower = [rows for rows in sorted(plain.points) if times[rows] > time]
    beyond = curve.rows_beyond(time)
    if not known or not slower:
        assert beyond == 0
        return
    fewer, last = known[-2] if len(known) > 1 else 0, known[-1]
    slope = (times[last] - times.get(fewer, 0)) / (last - fewer)
    on_line = range(curve.rows_within(time) + 1, slower[0] + 1)
    assert beyond == max((rows for rows in on_line if times[last] + slope * (rows - last) <= time), default=0)


@given(st.integers(1, 40), st.integers(0, 40), st.sets(st.integers(1, 32), min_size=2), st.integers(1, 2000))
def test_nothing_lies_beyond_where_time_grows_evenly(per_row: int, base: int, rows: set[int], time: int) -> None:
    curve = Curve(32)
    for count in rows:
        curve.put(count, base + per_row * count)
    assert curve.rows_beyond(time) == 0


@settings(max_examples=300)
@given(curves(), st.sampled_from(EFFICIENCIES))
def test_best_rows_are_those_of_a_plain_curve(pair: tuple[Curve, Plain], efficiency: float) -> None:
    curve, plain = pair
    per_row = {rows: time / rows for rows, time in plain.times().items()}
    best = curve.best_rows(efficiency)
    assert curve.best_rows(efficiency) == best, "asked again"
    if plain.max_rows not in per_row:
        assert best == plain.max_rows
        return
    assert curve.time_per_row() == pytest.approx(min(per_row.values()), rel=ROUNDING)
    enough = min(per_row.values()) / efficiency
    assert per_row[best] <= enough * (1 + ROUNDING)
    assert all(per_row[rows] > enough * (1 - ROUNDING) for rows in per_row if rows < best)


def test_without_points_nothing_is_known() -> None:
    curve = Curve(8)
    assert (curve.time(1), curve.time_per_row(), curve.best_rows(0.95), curve.most_rows(1, 0.1)) == (None, None, 8, 8)
