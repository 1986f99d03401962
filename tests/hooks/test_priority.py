# SPDX-License-Identifier: Apache-2.0
"""BLS priority: the reserved key from the Python backend becomes the level, everything else passes untouched."""

import pytest
from priority_router.hooks import LEVEL_KEY


def test_the_level_of_a_bls_call_becomes_its_priority(start, build):
    driver = start()
    answer = driver.ask(f"set {build.python_backend} {LEVEL_KEY} 3")
    assert answer == {"key": "", "value": 0, "priority": 3, "error": None}
    assert driver.counts().priorities_set == 1


def test_without_the_library_it_is_an_ordinary_parameter(start, build):
    answer = start(preload=False).ask(f"set {build.python_backend} {LEVEL_KEY} 3")
    assert answer == {"key": LEVEL_KEY, "value": 3, "priority": 0, "error": None}


@pytest.mark.parametrize("key", ["priority", LEVEL_KEY + "s", LEVEL_KEY[:-1], LEVEL_KEY.upper()])
def test_every_other_key_passes_untouched(start, build, key):
    driver = start()
    answer = driver.ask(f"set {build.python_backend} {key} 7")
    assert answer == {"key": key, "value": 7, "priority": 0, "error": None}
    assert driver.counts().priorities_set == 0


@pytest.mark.parametrize("caller", ["main", "other_library"])
def test_the_key_from_anywhere_else_passes_untouched(start, build, caller):
    driver = start()
    answer = driver.ask(f"set {getattr(build, caller, caller)} {LEVEL_KEY} 1")
    assert answer == {"key": LEVEL_KEY, "value": 1, "priority": 0, "error": None}
    assert driver.counts().priorities_set == 0


@pytest.mark.parametrize("value", [0, -1, -(2**63)])
def test_what_is_no_level_passes_untouched(start, build, value):
    answer = start().ask(f"set {build.python_backend} {LEVEL_KEY} {value}")
    assert (answer["priority"], answer["value"]) == (0, value)


def test_a_refused_level_is_reported_and_not_counted(start, build):
    driver = start()
    assert driver.ask(f"set {build.python_backend} {LEVEL_KEY} 666")["error"]["code"] == 1
    assert driver.counts().priorities_set == 0


def test_a_core_without_priorities_gets_the_parameter(start, build):
    driver = start("old/driver")
    answer = driver.ask(f"set {build.folder / 'old' / 'libtriton_python.so'} {LEVEL_KEY} 2")
    assert answer == {"key": LEVEL_KEY, "value": 2, "priority": 0, "error": None}
    assert "priority" not in driver.marker().hooks
