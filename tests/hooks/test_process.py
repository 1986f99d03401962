# SPDX-License-Identifier: Apache-2.0
"""Where the library acts and where it keeps still: server, children, programs that open the core late, first calls."""

import shutil

import pytest
from priority_router.errors import SetupError
from priority_router.hooks import GUARDED_MODELS_ENV, LEVEL_KEY, LOADED_ENV, SLICE_ENV, SWITCHES, HookCounts
from support.hook_driver import cuts_waits

ALL_ON = {GUARDED_MODELS_ENV: "executor=router"}


def test_one_line_and_a_mark_in_the_server_process(start):
    with start(environment=ALL_ON) as driver:
        marker = driver.marker()
        assert marker.hooks == {"priority", "dispatch", "guard"}
        pid = marker.pid
    mark = f"pid={pid};fd={marker.fd};hooks=priority,dispatch,guard"
    assert driver.stderr == f"priority_router_hooks: {mark} slice_us=100 guarded=executor=router\n"


@pytest.mark.parametrize("hook", sorted(SWITCHES))
def test_each_switch_turns_off_its_own_hook_only(start, build, hook):
    driver = start(environment={**ALL_ON, SWITCHES[hook]: "0"})
    acted = set()
    if driver.ask(f"set {build.python_backend} {LEVEL_KEY} 3")["priority"] == 3:
        acted.add("priority")
    if cuts_waits(driver.ask):
        acted.add("dispatch")
    if driver.ask("new main 1 executor")["error"] is not None:
        acted.add("guard")
    assert acted == set(SWITCHES) - {hook}
    assert driver.marker().hooks == acted


def test_all_switched_off_still_leaves_a_mark_of_its_own(start):
    driver = start(environment={LOADED_ENV: "pid=1;fd=3;hooks=priority", **dict.fromkeys(SWITCHES.values(), "0")})
    marker = driver.marker()
    assert marker.hooks == set()
    assert marker.pid != 1


@pytest.mark.parametrize("value", ["off", "false", "", "2"])
def test_a_wrong_switch_is_named_and_changes_nothing(start, value):
    with start(environment={SWITCHES["dispatch"]: value}) as driver:
        assert "dispatch" in driver.marker().hooks
    assert f"{SWITCHES['dispatch']}='{value}' is neither 0 nor 1" in driver.stderr


@pytest.mark.parametrize("value", ["0", "-5", "abc", "", "1e3", "100us", "99999999999999999999999", "500001"])
def test_a_wrong_slice_is_named_and_the_default_taken(start, value):
    with start(environment={SLICE_ENV: value}) as driver:
        assert cuts_waits(driver.ask)
        assert driver.ask("wait local 200000 -1 0")["wakeups"] <= 2000
    assert f"{SLICE_ENV}='{value}' is not a number" in driver.stderr
    assert "slice_us=100 " in driver.stderr


def test_children_inherit_the_mark_and_are_silent(start):
    with start(environment=ALL_ON) as driver:
        inherited = driver.ask(f'shell printf %s "${LOADED_ENV}"')
        assert driver.marker().hooks == set(inherited["output"].split("hooks=")[1].split(","))
    assert driver.stderr.count("\n") == 1


def test_children_can_read_the_counters_by_descriptor(start, build):
    driver = start(environment=ALL_ON)
    driver.ask("new main 1 executor")
    fd = driver.marker().fd
    assert driver.ask(f"shell head -c 8 /proc/self/fd/{fd}")["output"] == "PRHOOKS2"
    assert driver.counts().calls_refused == 1


def test_a_child_cannot_cut_the_counters_short(start):
    driver = start(environment=ALL_ON)
    assert driver.ask(f"shell truncate -s 0 /proc/self/fd/{driver.marker().fd} 2>/dev/null")["status"] != 0
    driver.ask("new main 1 executor")
    assert driver.counts().calls_refused == 1


def test_a_program_that_opens_the_core_by_itself_is_left_alone(start, build):
    with start(
        "late", environment={**ALL_ON, "FAKE_CORE": str(build.folder / "libtritonserver-1a2b3c4d.so")}
    ) as driver:
        assert driver.ask(f"set {build.python_backend} {LEVEL_KEY} 3")["priority"] == 0
        assert driver.ask(f"set {build.python_backend} {LEVEL_KEY} 3")["value"] == 3
        assert driver.ask(f"new {build.python_backend} 1 executor")["model"] == "executor"
        assert driver.ask("wait local 100000 -1 0")["wakeups"] == 1
        assert driver.ask(f"env {LOADED_ENV}")["value"] == ""
    assert driver.stderr == ""


def test_two_copies_act_as_one(start, build, tmp_path):
    copy = shutil.copy(build.folder / "hooks.so", tmp_path / "copy.so")
    driver = start(environment={**ALL_ON, "LD_PRELOAD": f"{build.preload} {copy}"})
    assert driver.ask(f"set {build.python_backend} {LEVEL_KEY} 3")["priority"] == 3
    assert driver.ask("new main 1 executor")["error"] is not None
    wait = driver.ask("wait local 100000 -1 0")
    assert wait["timed_out"]
    assert driver.counts() == HookCounts(1, wait["wakeups"] - 1, 1)


@pytest.mark.parametrize("program", ["driver", "late"])
def test_concurrent_first_calls(start, build, program):
    for _ in range(20):
        core = str(build.folder / "libtritonserver-1a2b3c4d.so")
        with start(program, environment={**ALL_ON, "FAKE_CORE": core}) as driver:
            assert driver.ask(f"race {build.python_backend} 16") == {"right": 16}
            if program == "driver":
                counts = driver.counts()
                assert (counts.priorities_set, counts.calls_refused) == (16, 16)


def test_without_shared_memory_the_hooks_still_work(start, build):
    preload = f"{build.preload} {build.folder / 'no_memfd.so'}"
    with start(environment={**ALL_ON, "LD_PRELOAD": preload}) as driver:
        assert driver.marker().fd == -1
        assert driver.ask("new main 1 executor")["error"] is not None
        assert driver.ask(f"set {build.python_backend} {LEVEL_KEY} 3")["priority"] == 3
        assert cuts_waits(driver.ask)
        with pytest.raises(SetupError, match="restart the server"):
            driver.counts()
    assert "no shared memory for the counters: Operation not permitted" in driver.stderr
