# SPDX-License-Identifier: Apache-2.0
"""Loaded is not working: when a hook is called silent."""

from __future__ import annotations

import pytest
from priority_router.core.values import SECOND
from priority_router.hooks import DISPATCH, PRIORITY, HookCounts
from priority_router.runtime.watch import HookWatch, Sight, silent_hooks


def sight(
    seconds: float,
    completions: int,
    levels: int = 0,
    backlog: bool = True,
    priorities: int = 0,
    cuts: int = 0,
    idle: int = 0,
) -> Sight:
    return Sight(int(seconds * SECOND), completions, levels, backlog, HookCounts(priorities, cuts, 0, idle))


START = sight(0, 0)


@pytest.mark.parametrize(
    ("last", "backlog", "expected"),
    [
        (sight(10, 10, levels=10), True, {PRIORITY, DISPATCH}),
        (sight(10, 10, levels=10, priorities=1), True, {DISPATCH}),
        (sight(10, 10, levels=10, cuts=1), True, {PRIORITY}),
        (sight(10, 10, levels=10, priorities=1, cuts=1), True, set()),
        (sight(10, 10, levels=10, priorities=1, idle=1), True, set()),
        (sight(10, 10, levels=10, priorities=1), False, set()),
        (sight(10, 10, levels=0), False, set()),
        (sight(9.9, 10, levels=10), True, None),
        (sight(10, 9, levels=10), True, None),
        (sight(1000, 9, levels=9), True, None),
    ],
)
def test_a_verdict(last: Sight, backlog: bool, expected: set[str] | None) -> None:
    assert silent_hooks(START, last, backlog) == (None if expected is None else frozenset(expected))


def test_a_complaint_comes_once_and_is_taken_back() -> None:
    watch = HookWatch()
    complaints = [watch.see(sight(second, second * 10, levels=second * 10)) for second in range(31)]
    assert [second for second, new in enumerate(complaints) if new] == [10]
    assert len(complaints[10]) == 2
    assert watch.working == {PRIORITY: False, DISPATCH: False}
    for second in range(31, 51):
        assert not watch.see(sight(second, second * 10, levels=second * 10, priorities=second, cuts=second))
    assert watch.working == {PRIORITY: True, DISPATCH: True}
    again = [watch.see(sight(s, s * 10, levels=s * 10, priorities=50, cuts=50)) for s in range(51, 81)]
    assert sum(map(len, again)) == 2


def test_one_moment_without_backlog_clears_the_dispatch_hook() -> None:
    watch = HookWatch()
    for second in range(12):
        complaints = watch.see(sight(second, second * 10, levels=second * 10, priorities=second, backlog=second != 5))
        assert complaints == []
    assert watch.working[DISPATCH]


def test_a_quiet_time_does_not_acquit_the_dispatch_hook() -> None:
    watch = HookWatch()
    for second in range(12):
        watch.see(sight(second, second * 10, levels=second * 10, priorities=second))
    assert not watch.working[DISPATCH]
    for second in range(12, 40):
        watch.see(sight(second, second * 10, levels=second * 10, priorities=second, backlog=False))
    assert not watch.working[DISPATCH]


def test_slow_executors_are_judged_once_there_was_enough() -> None:
    watch = HookWatch()
    verdicts = [watch.see(sight(second, second // 5, levels=second // 5)) for second in range(61)]
    assert [second for second, new in enumerate(verdicts) if new] == [50]
