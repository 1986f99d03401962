# SPDX-License-Identifier: Apache-2.0
from hypothesis import given
from hypothesis import strategies as st
from priority_router.core.recent import WINDOW, RecentWorst

HALF = WINDOW // 2


def test_the_worst_stands_for_one_to_two_windows():
    worst = RecentWorst()
    assert worst.read(10 * WINDOW) == 0
    for value, now in ((3, 10 * WINDOW), (9, 10 * WINDOW + HALF), (1, 11 * WINDOW)):
        worst.add(value, now)
    assert worst.read(11 * WINDOW + HALF) == 9
    assert worst.read(12 * WINDOW) == 1
    assert worst.read(13 * WINDOW) == 0


def test_a_long_silence_leaves_nothing():
    worst = RecentWorst()
    worst.add(9, 10 * WINDOW)
    assert worst.read(100 * WINDOW) == 0


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 100)), min_size=3))
def test_never_less_than_one_window_and_never_more_than_two(quarters):
    worst, seen, now = RecentWorst(), [], 0
    for step, value in quarters:
        now += step * WINDOW // 4
        worst.add(value, now)
        seen.append((now, value))
        shown = worst.read(now)
        assert shown >= max(value for then, value in seen if now - then < WINDOW)
        assert shown <= max(value for then, value in seen if now - then < 2 * WINDOW)
