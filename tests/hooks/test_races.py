# SPDX-License-Identifier: Apache-2.0
"""Calls from many threads at once, the first ones among them, where a compiler's checks see every unordered access.

What address and undefined-behaviour checks see of the same is in test_process.py, which runs with them as well.
"""

import pytest
from priority_router.hooks import GUARDED_MODELS_ENV
from priority_router.ops.build_hooks import build_hooks
from support.hook_driver import RACES, Driver, compile_all

PROCESSES = 10
THREADS = 16
REOPENINGS = 100


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    """Everything compiled with the checks for races."""
    return compile_all(tmp_path_factory.mktemp("races"), everywhere=RACES)


def race(build, program="driver", hooks=None):
    """One process with all hooks; ends with an error, which says where, if there was a race."""
    environment = {
        GUARDED_MODELS_ENV: "executor=router",
        "FAKE_CORE": str(build.folder / "libtritonserver-1a2b3c4d.so"),
    }
    with Driver(build.folder / program, hooks or build.preload, environment) as driver:
        assert driver.ask(f"race {build.python_backend} {THREADS}") == {"right": THREADS}
        backends = f"{build.python_backend} {build.other_library}"
        assert sorted(driver.ask(f"reopen {backends} {REOPENINGS}")) == ["levels"]


@pytest.mark.parametrize("program", ["driver", "late"])
def test_no_call_races_with_another(checked, program):
    for _ in range(PROCESSES):
        race(checked, program)


def test_a_race_would_be_seen(checked, tmp_path):
    """The count of slices in vain, shared by all threads."""
    shared = build_hooks(tmp_path / "hooks.so", (*RACES, "-D_Thread_local="))
    with pytest.raises(AssertionError, match="ThreadSanitizer: data race"):
        race(checked, hooks=str(shared))
