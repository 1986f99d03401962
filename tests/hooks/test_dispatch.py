# SPDX-License-Identifier: Apache-2.0
"""Prompt dispatch, by effect: a change that nobody signals is seen by who waits in the core as the batcher does.

That is with a mutex of its own stack for any time, or with a member mutex for exactly half a second. What happens at a
certain moment of a wait is tried several times: a machine that stalls spoils one try, a fault all of them.
"""

from typing import Any

import pytest
from priority_router.hooks import SWITCHES
from support.hook_driver import at_least_once

LONG_US = 20_000_000
CHANGE_US = 30_000
IDLE_US = 500_000
IDLE_SLICES = 12
SLICE = "PRIORITY_ROUTER_DISPATCH_SLICE_MICROSECONDS"


def test_the_batchers_wait_sees_an_unsignalled_change(start):
    driver = start()
    wait = {"wakeups": 0}
    while not wait["wakeups"]:  # the change came before the wait
        wait = driver.ask(f"wait local {LONG_US} {CHANGE_US} 0")
    assert not wait["timed_out"]
    assert wait["ms"] >= 30
    assert driver.counts().waits_cut == wait["wakeups"]


def test_without_the_library_it_sleeps_to_its_deadline(start):
    wait = start(preload=False).ask(f"wait local 500000 {CHANGE_US} 0")
    assert (wait["wakeups"], wait["timed_out"]) == (1, True)
    assert wait["ms"] >= 499


@pytest.mark.parametrize("where", ["member", "outside"])
def test_other_waits_are_left_alone(start, where):
    driver = start()
    wait = driver.ask(f"wait {where} 300000 {CHANGE_US} 0")
    assert (wait["wakeups"], wait["timed_out"]) == (1, True)
    assert wait["ms"] >= 299
    assert driver.counts().waits_cut == 0


@at_least_once
def test_a_signal_still_wakes_at_once(start):
    driver = start(environment={SLICE: "500000"})
    wait = driver.ask(f"wait local {LONG_US} {CHANGE_US} 1")
    assert wait["wakeups"] == 1
    assert 30 <= wait["ms"] < 400
    assert driver.counts().waits_cut == 0


def test_the_callers_own_deadline_holds(start):
    driver = start()
    wait = driver.ask("wait local 20000 -1 0")
    assert wait["timed_out"]
    assert wait["ms"] >= 20
    assert driver.counts().waits_cut == wait["wakeups"] - 1


def test_a_deadline_within_the_slice_is_not_cut(start):
    driver = start(environment={SLICE: "400000"})
    wait = driver.ask("wait local 20000 -1 0")
    assert (wait["wakeups"], wait["timed_out"]) == (1, True)
    assert driver.counts().waits_cut == 0


@at_least_once
def test_the_slice_is_what_the_environment_says(start):
    wakeups = {
        slice_us: start(environment={SLICE: str(slice_us)}).ask("wait local 200000 -1 0")["wakeups"]
        for slice_us in (1_000, 50_000)
    }
    assert wakeups[50_000] <= 4 < wakeups[1_000] <= 200


def idle(driver, total_ms, change_us=-1, signal=0, wait_us=IDLE_US):
    """Length in ms of each wait, of which there is at least one, and whether the caller's own deadline ended it."""
    waits: list[list[Any]] = []
    while not waits:  # the time was over, or the change came, before the first one
        waits = driver.ask(f"idle {wait_us} {total_ms} {change_us} {signal}")["waits"]
    return [tuple(wait) for wait in waits]


def fall_idle(driver):
    """Waits until the slices are used up."""
    while driver.counts().idle_waits_cut < IDLE_SLICES:
        idle(driver, 450)


@at_least_once
def test_an_idle_wait_sees_an_unsignalled_change(start):
    driver = start()
    waits = idle(driver, 3_000, CHANGE_US)
    assert not any(timed_out for _, timed_out in waits)
    # The slice in which the change falls is about as long as all before it.
    assert 30 <= sum(ms for ms, _ in waits) < 300
    assert driver.counts().waits_cut == 0


@at_least_once
def test_an_idle_wait_is_cut_a_dozen_times_and_then_no_more(start):
    driver = start()
    waits = idle(driver, 1_200)
    slices, whole = waits[:IDLE_SLICES], waits[IDLE_SLICES:]
    assert not any(timed_out for _, timed_out in slices)
    assert all(ms >= 0.1 * 2**doublings for doublings, (ms, _) in enumerate(slices))
    assert sum(ms for ms, _ in slices) < 500 + 300
    assert len(whole) in {1, 2}
    assert driver.counts().idle_waits_cut == IDLE_SLICES
    assert all(timed_out and ms >= 499 for ms, timed_out in whole)


def test_idle_stays_idle_from_one_wait_to_the_next(start):
    driver = start()
    fall_idle(driver)
    waits = idle(driver, 600)
    assert all(timed_out for _, timed_out in waits)
    assert driver.counts().idle_waits_cut == IDLE_SLICES


@pytest.mark.parametrize("reset", ["signal", "wait for an instance"])
@at_least_once
def test_slices_are_short_again_after(start, reset):
    driver = start()
    fall_idle(driver)
    if reset == "signal":
        waits = idle(driver, 300, CHANGE_US, signal=1)
        assert 30 <= waits[0][0] < 400
        short = waits[1:]
    else:
        driver.ask("wait local 20000 -1 0")
        short = idle(driver, 300)
    assert len(short) >= 6
    assert not any(timed_out for _, timed_out in short)
    assert all(ms < IDLE_US / 1_000 / 2 for ms, _ in short[:6])


@pytest.mark.parametrize("wait_us", [200_000, 490_000, 510_000, 2_000_000])
def test_a_member_wait_of_another_length_is_left_alone(start, wait_us):
    waits = idle(start(), 1, CHANGE_US, wait_us=wait_us)
    assert [timed_out for _, timed_out in waits] == [True]
    assert waits[0][0] >= wait_us / 1_000 - 1


@pytest.mark.parametrize("off", [{"preload": False}, {"environment": {SWITCHES["dispatch"]: "0"}}])
def test_with_the_hook_off_an_idle_wait_is_whole(start, off):
    waits = idle(start(**off), 1, CHANGE_US)
    assert [timed_out for _, timed_out in waits] == [True]
    assert waits[0][0] >= 499
