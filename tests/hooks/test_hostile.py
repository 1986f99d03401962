# SPDX-License-Identifier: Apache-2.0
"""What no ordinary server does to the library: closed descriptors, dead pipes, forks, odd lists and deadlines."""

import errno
import os
import random

import pytest
from priority_router.hooks import GUARDED_MODELS_ENV, LEVEL_KEY, LOADED_ENV, parse_guarded_models
from support.hook_driver import at_least_once, cuts_waits

INVALID_ARG, INTERNAL = 3, 1
ALL_ON = {GUARDED_MODELS_ENV: "executor=router"}
LOADER = "/lib64/ld-linux-x86-64.so.2"
FAR_SECONDS = (10**6, 9_223_372_036, 10**13, 2**63 - 1)


def acted(ask, build):
    """Which hooks act on calls that ``ask`` makes."""
    effects = {
        "priority": ask(f"set {build.python_backend} {LEVEL_KEY} 3")["priority"] == 3,
        "dispatch": cuts_waits(ask),
        "guard": ask("new main 1 executor")["error"] is not None,
    }
    return {hook for hook, effect in effects.items() if effect}


EVERY_HOOK = {"priority", "dispatch", "guard"}


def test_a_server_without_a_stderr_keeps_its_counters_clean(start, build):
    """The lowest free descriptor is then 2, and whatever anyone writes to stderr would land in the counters."""
    driver = start(environment=ALL_ON, through=("sh", "-c", 'exec "$0" 2>&-'))
    assert driver.marker().fd > 2
    assert acted(driver.ask, build) == EVERY_HOOK
    assert driver.counts().calls_refused == 1


def test_a_stderr_that_nobody_reads_any_more_does_not_end_the_server(start, build):
    reader, writer = os.pipe()
    os.close(reader)
    try:
        driver = start(environment={**ALL_ON, "PRIORITY_ROUTER_HOOK_PRIORITY": "on"}, stderr=writer)
    finally:
        os.close(writer)
    assert acted(driver.ask, build) == EVERY_HOOK
    # What a broken pipe does later is the server's own affair, as before.
    assert driver.ask("fork shell kill -PIPE $PPID")["died"] == 13


def test_a_limit_on_file_sizes_does_not_end_the_server(start, build):
    driver = start(environment=ALL_ON, through=("sh", "-c", 'ulimit -f 0; exec "$0"'))
    assert driver.marker().fd == -1
    assert acted(driver.ask, build) == EVERY_HOOK
    assert driver.ask("fork shell kill -XFSZ $PPID")["died"] == 25


def test_a_server_that_the_loader_is_told_to_run_is_a_server(start, build):
    assert acted(start(environment=ALL_ON, through=(LOADER,)).ask, build) == EVERY_HOOK


def test_a_forked_child_goes_on_as_its_parent_would(start, build):
    driver = start(environment=ALL_ON)
    assert acted(lambda command: driver.ask(f"fork {command}"), build) == EVERY_HOOK
    counts = driver.counts()
    assert (counts.priorities_set, counts.calls_refused) == (1, 1)
    assert counts.waits_cut > 1


def test_a_server_that_a_server_starts_has_a_mark_and_counters_of_its_own(start, build):
    with start(environment=ALL_ON) as driver:
        child = driver.ask(f"shell echo env {LOADED_ENV} | {build.folder}/driver | cut -d'\"' -f4")["output"]
        pid = int(child.partition(";")[0].removeprefix("pid="))
        assert not driver.marker().active_in(pid)
        assert child.endswith("hooks=priority,dispatch,guard")
        driver.ask(f"shell echo new main 1 executor | {build.folder}/driver > /dev/null")
        assert driver.counts().calls_refused == 0
    assert driver.stderr.count("priority_router_hooks: pid=") == 3


@at_least_once
def test_signals_end_no_wait(start, build):
    driver = start(environment=ALL_ON)
    driver.ask("ticks 700")
    assert acted(driver.ask, build) == EVERY_HOOK
    waits = driver.ask("idle 500000 1200 -1 0")["waits"]
    assert sum(ms for ms, _ in waits) >= 1_190
    assert len(waits) in range(13, 16)
    assert driver.ask("ticks 0")["ticks"] > 100


def test_callers_that_come_and_go_are_told_apart(start, build):
    """Libraries that are closed and opened again come to lie where the other one was."""
    driver = start(environment=ALL_ON)
    assert driver.ask(f"reopen {build.python_backend} {build.other_library} 1000") == {"levels": [1000, 0]}
    assert driver.counts().priorities_set == 1000


@pytest.mark.parametrize("seconds", FAR_SECONDS)
def test_a_deadline_at_the_end_of_time_is_one_like_any_other(start, seconds):
    driver = start()
    assert driver.ask(f"until {seconds} 999999999") == {"result": 0}
    assert driver.counts().waits_cut == 1


@pytest.mark.parametrize(
    ("seconds", "nanoseconds", "result"),
    [
        (0, 0, errno.ETIMEDOUT),
        (-(2**63), 0, errno.ETIMEDOUT),
        (10**6, 10**9, errno.EINVAL),
        (10**6, 2**63 - 1, errno.EINVAL),
        (10**6, -1, errno.EINVAL),
    ],
)
def test_past_and_broken_deadlines_are_the_real_functions(start, seconds, nanoseconds, result):
    driver = start()
    assert driver.ask(f"until {seconds} {nanoseconds}") == {"result": result}
    assert driver.counts().waits_cut == 0


def test_a_core_without_the_wrapped_functions_gets_an_error_not_a_crash(start, build):
    driver = start("bare/driver", environment=ALL_ON)
    for command, name in (
        ("new main 1 free", "TRITONSERVER_InferenceRequestNew"),
        (f"set main {LEVEL_KEY} 1", "TRITONSERVER_InferenceRequestSetIntParameter"),
    ):
        assert driver.ask(command)["error"] == {"code": INTERNAL, "text": f"{name} was not found"}
    assert driver.ask("new main 1 executor")["error"]["code"] == INVALID_ARG
    assert driver.ask(f"set {build.folder}/bare/libtriton_python.so {LEVEL_KEY} 1")["priority"] == 1


@pytest.mark.parametrize("value", ["%s%n=%n%s", "größe=weiche-é", "e=" + "r" * 1100, "e" * 1100 + "=r"])
def test_odd_names(start, value):
    model, _, router = value.partition("=")
    driver = start(environment={GUARDED_MODELS_ENV: value})
    error = driver.ask(f"new main 1 {model}")["error"]
    assert error["code"] == INVALID_ARG
    whole = f"model '{model}' takes no requests from clients: call model '{router}' instead"
    assert error["text"] == whole[:1023]
    assert driver.ask(f"new main 1 {model}x")["error"] is None


def test_the_longest_list_that_an_environment_holds(start):
    names = [f"executor_{number}" for number in range(3_500)]
    value = ";".join(f"{name}=router_of_{name}" for name in names)
    assert 130_000 < len(f"{GUARDED_MODELS_ENV}={value}") < 32 * 4096
    with start(environment={GUARDED_MODELS_ENV: value}) as driver:
        for name in (names[0], names[-1]):
            assert f"'router_of_{name}'" in driver.ask(f"new main 1 {name}")["error"]["text"]
        assert driver.ask("new main 1 executor_3500")["error"] is None
    assert driver.stderr.endswith(f"guarded={value}\n")


def test_python_and_the_library_read_any_list_alike(start):
    chance = random.Random(1)
    names = ["a", "b", "ab", "a ", "b ", "a b", "ba"]
    for _ in range(60):
        value = "".join(chance.choices("ab; =", k=chance.randrange(1, 14)))
        driver = start(environment={GUARDED_MODELS_ENV: value})
        read = {}
        for name in names:
            error = driver.ask(f"new main 1 {name}")["error"]
            if error is not None:
                read[name] = error["text"].split("'")[3]
        assert read == {name: router for name, router in parse_guarded_models(value).items() if name in names}, value
