# SPDX-License-Identifier: Apache-2.0
"""Executor guard: the main executable cannot make a request for a named model, libraries can."""

import pytest
from priority_router.hooks import GUARDED_MODELS_ENV, format_guarded_models, parse_guarded_models

INVALID_ARG = 3
MANY = {f"executor_{number}": f"router_{number}" for number in range(2000)}


@pytest.mark.parametrize("version", [-1, 0, 1, 2**40])
def test_the_front_end_is_refused_and_told_whom_to_call(start, version):
    driver = start(environment={GUARDED_MODELS_ENV: "executor=router"})
    answer = driver.ask(f"new main {version} executor")
    assert answer["model"] == ""
    assert answer["error"]["code"] == INVALID_ARG
    assert answer["error"]["text"] == "model 'executor' takes no requests from clients: call model 'router' instead"
    assert driver.counts().calls_refused == 1


@pytest.mark.parametrize("caller", ["python_backend", "other_library"])
def test_libraries_pass(start, build, caller):
    driver = start(environment={GUARDED_MODELS_ENV: "executor=router"})
    answer = driver.ask(f"new {getattr(build, caller)} 4 executor")
    assert answer == {"model": "executor", "version": 4, "error": None}
    assert driver.counts().calls_refused == 0


@pytest.mark.parametrize("model", ["router", "executo", "executors", "Executor", "executor=router", "xecutor", "", ";"])
def test_every_other_name_passes(start, model):
    answer = start(environment={GUARDED_MODELS_ENV: "executor=router"}).ask(f"new main 1 {model}")
    assert answer == {"model": model, "version": 1, "error": None}


@pytest.mark.parametrize("value", ["a=r1;b=r2", ";;a=r1;;b=r2;", " a=r1; b=r2", "a=r1;a=r9;b=r2", "a=r1;c;b=r2"])
def test_every_form_of_the_list(start, value):
    driver = start(environment={GUARDED_MODELS_ENV: value})
    refused = {name: driver.ask(f"new main 1 {name}")["error"]["text"].split("'")[3] for name in "ab"}
    assert refused == {"a": "r1", "b": "r2"}
    assert refused.items() <= parse_guarded_models(value).items()


def test_an_entry_without_a_router_is_closed_all_the_same(start):
    answer = start(environment={GUARDED_MODELS_ENV: "executor"}).ask("new main 1 executor")
    assert answer["error"]["code"] == INVALID_ARG


def test_many_models(start):
    driver = start(environment={GUARDED_MODELS_ENV: format_guarded_models(MANY)})
    for name in ("executor_0", "executor_999", "executor_1999"):
        assert f"'{MANY[name]}'" in driver.ask(f"new main 1 {name}")["error"]["text"]
    assert driver.ask("new main 1 executor_2000")["error"] is None


def test_long_names(start):
    executor, router = "e" * 255, "r" * 255
    driver = start(environment={GUARDED_MODELS_ENV: format_guarded_models({executor: router})})
    assert router in driver.ask(f"new main 1 {executor}")["error"]["text"]
    assert driver.ask(f"new main 1 {'e' * 256}")["error"] is None


@pytest.mark.parametrize("value", ["", ";", " ; "])
def test_an_empty_list_is_no_guard(start, value):
    driver = start(environment={GUARDED_MODELS_ENV: value})
    assert driver.ask("new main 1 executor")["error"] is None
    assert "guard" not in driver.marker().hooks


def test_a_core_that_cannot_make_errors_is_not_guarded(start):
    driver = start("old/driver", environment={GUARDED_MODELS_ENV: "executor=router"})
    assert driver.ask("new main 1 executor")["model"] == "executor"
    assert "guard" not in driver.marker().hooks
