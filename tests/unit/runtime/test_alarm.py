# SPDX-License-Identifier: Apache-2.0
"""The timer's sleep."""

from __future__ import annotations

import threading
import time

import pytest
from priority_router.core.values import MILLISECOND, SECOND
from priority_router.runtime.alarm import Alarm


class Sleeper:
    """A thread in ``wait``; ``woke`` is set with what it returned."""

    def __init__(self, alarm: Alarm) -> None:
        self.woke = threading.Event()
        self.late: int | None = None
        self._alarm = alarm
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self.late = self._alarm.wait()
        self.woke.set()


def test_a_moment_that_has_passed_is_late_by_the_difference() -> None:
    now = 100 * SECOND
    alarm = Alarm(lambda: now)
    alarm.set(now - 7)
    assert alarm.wait() == 7


def test_an_earlier_moment_wakes_the_sleeper() -> None:
    alarm = Alarm(time.monotonic_ns)
    alarm.set(time.monotonic_ns() + 3600 * SECOND)
    sleeper = Sleeper(alarm)
    assert not sleeper.woke.wait(0.02)
    alarm.set(time.monotonic_ns() + 5 * MILLISECOND)
    assert sleeper.woke.wait(10)
    assert sleeper.late is not None
    assert sleeper.late >= 0


def test_without_a_moment_it_sleeps_until_there_is_one() -> None:
    alarm = Alarm(time.monotonic_ns)
    sleeper = Sleeper(alarm)
    assert not sleeper.woke.wait(0.02)
    alarm.set(time.monotonic_ns())
    assert sleeper.woke.wait(10)


def test_a_moment_moved_away_is_waited_for() -> None:
    now = 100 * SECOND
    alarm = Alarm(lambda: now)
    first = now + 50 * MILLISECOND
    alarm.set(first)
    sleeper = Sleeper(alarm)
    while alarm._asleep_until != first:
        assert not sleeper.woke.wait(0.001)
    alarm.set(now + 3600 * SECOND)
    now += SECOND
    assert not sleeper.woke.wait(0.2)
    alarm.stop()
    assert sleeper.woke.wait(10)


def test_a_later_moment_leaves_the_sleeper_alone() -> None:
    alarm = Alarm(time.monotonic_ns)
    first = time.monotonic_ns() + 3600 * SECOND
    alarm.set(first)
    sleeper = Sleeper(alarm)
    while alarm._asleep_until != first:
        assert not sleeper.woke.wait(0.001)
    alarm.set(None)
    alarm.set(first + 1)
    assert alarm._bell.locked(), "each ring costs two switches between threads"
    alarm.stop()
    assert sleeper.woke.wait(10)


def test_a_moment_set_while_the_sleeper_is_about_to_fall_asleep_is_not_missed() -> None:
    now = 100 * SECOND
    first_look = True

    def clock() -> int:
        nonlocal first_look
        if first_look:  # the sleeper has read the moment and looks at the clock: now it is moved
            first_look = False
            alarm.set(now)
        return now

    alarm = Alarm(clock)
    alarm.set(now + 3600 * SECOND)
    sleeper = Sleeper(alarm)
    assert sleeper.woke.wait(5)
    assert sleeper.late == 0


@pytest.mark.parametrize("moment", [None, 10**30])
def test_stop_ends_any_sleep(moment: int | None) -> None:
    alarm = Alarm(time.monotonic_ns)
    alarm.set(moment)
    sleeper = Sleeper(alarm)
    assert not sleeper.woke.wait(0.02)
    alarm.stop()
    alarm.stop()
    assert sleeper.woke.wait(10)
    assert sleeper.late is None
