# SPDX-License-Identifier: Apache-2.0
"""Prompt dispatch, by effect: who waits in the core with a mutex of its own stack sees a change that nobody signals."""

import pytest

LONG_US = 1_500_000
CHANGE_US = 30_000


def test_the_batchers_wait_sees_an_unsignalled_change(start):
    driver = start()
    wait = driver.ask(f"wait local {LONG_US} {CHANGE_US} 0")
    assert 30 <= wait["ms"] < 600
    assert not wait["timed_out"]
    assert wait["wakeups"] > 10
    assert driver.counts().waits_cut == wait["wakeups"]


def test_without_the_library_it_sleeps_to_its_deadline(start):
    wait = start(preload=False).ask(f"wait local {LONG_US // 3} {CHANGE_US} 0")
    assert wait == {"ms": pytest.approx(500, abs=200), "wakeups": 1, "timed_out": True}


@pytest.mark.parametrize("where", ["member", "outside"])
def test_other_waits_are_left_alone(start, where):
    driver = start()
    wait = driver.ask(f"wait {where} {LONG_US // 3} {CHANGE_US} 0")
    assert (wait["wakeups"], wait["timed_out"]) == (1, True)
    assert wait["ms"] >= 499
    assert driver.counts().waits_cut == 0


def test_a_signal_still_wakes_at_once(start):
    driver = start(environment={"PRIORITY_ROUTER_DISPATCH_SLICE_MICROSECONDS": "500000"})
    wait = driver.ask(f"wait local {LONG_US} {CHANGE_US} 1")
    assert wait["wakeups"] == 1
    assert 30 <= wait["ms"] < 400
    assert driver.counts().waits_cut == 0


def test_the_callers_own_deadline_holds(start):
    driver = start()
    wait = driver.ask("wait local 20000 -1 0")
    assert wait["timed_out"]
    assert 20 <= wait["ms"] < 500
    assert driver.counts().waits_cut == wait["wakeups"] - 1


def test_a_deadline_within_the_slice_is_not_cut(start):
    driver = start(environment={"PRIORITY_ROUTER_DISPATCH_SLICE_MICROSECONDS": "400000"})
    wait = driver.ask("wait local 20000 -1 0")
    assert (wait["wakeups"], wait["timed_out"]) == (1, True)
    assert driver.counts().waits_cut == 0


def test_the_slice_is_what_the_environment_says(start):
    wakeups = {
        slice_us: start(environment={"PRIORITY_ROUTER_DISPATCH_SLICE_MICROSECONDS": str(slice_us)}).ask(
            "wait local 200000 -1 0"
        )["wakeups"]
        for slice_us in (1_000, 50_000)
    }
    assert wakeups[50_000] <= 4
    assert 20 < wakeups[1_000] <= 200
