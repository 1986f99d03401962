# SPDX-License-Identifier: Apache-2.0
"""Error texts and codes: what callers get for what Triton says."""

from __future__ import annotations

import pytest
from priority_router.errors import Outcome
from priority_router.runtime.translate import CODE_NAMES, ErrorCodes, executor_error, largest_batch
from support.fake_triton import TritonError

PREFIX = "Model executor - Error when running inference: "


@pytest.mark.parametrize("lost", ["INTERNAL", "UNKNOWN"])
@pytest.mark.parametrize(
    "text",
    [
        PREFIX + "[request id: <id_unknown>] Exceeds maximum queue size",
        "[request id: 7] Request timeout expired",
        "Request timeout expired",
    ],
)
def test_the_executors_own_limits_are_unavailable_whatever_code_was_lost(text: str, lost: str) -> None:
    error = executor_error(text, lost, "executor")
    assert (str(error), error.code, error.outcome) == (text, "UNAVAILABLE", Outcome.EXECUTOR_ERROR)


def test_a_shape_that_the_executor_refuses_is_the_callers_mistake_and_its_own_words_are_not() -> None:
    text = "[request id: x] unexpected shape for input 'X' for model 'executor'. Expected [-1,4], got [1,5]"
    assert executor_error(PREFIX + text, "INTERNAL", "executor").code == "INVALID_ARG"
    assert executor_error(text, "INTERNAL", "executor").code == "INTERNAL"
    assert executor_error(PREFIX + text, "UNSUPPORTED", "executor").code == "UNSUPPORTED"


@pytest.mark.parametrize("code", ["INTERNAL", "UNAVAILABLE", "NOT_FOUND"])
@pytest.mark.parametrize(
    "text",
    [
        PREFIX + "Failed for execute the inference request. Model 'executor' is not ready.",
        PREFIX + "Request for unknown model: 'executor' is not found",
        PREFIX + "Request for unknown model: 'executor' has no available versions",
        PREFIX + "'executor' version 1 is not at ready state",
        PREFIX + "Server not ready",
        PREFIX + "Server is stopping, scheduler for model has stopped accepting new inference requests",
    ],
)
def test_an_executor_that_does_not_serve_is_unavailable_and_named(text: str, code: str) -> None:
    error = executor_error(text, code, "executor")
    assert (error.code, error.outcome) == ("UNAVAILABLE", Outcome.UNAVAILABLE)
    assert str(error) == f"executor 'executor' is not serving: {text}"


@pytest.mark.parametrize(
    "text",
    [
        "Stub process 'executor_0_0' is not healthy.",
        "Stub process 'a b' is not healthy.",
        "Stub process is not healthy.",
    ],
)
def test_an_executor_whose_process_is_dead_is_unavailable_and_named(text: str) -> None:
    error = executor_error(text, "INTERNAL", "executor")
    assert (error.code, error.outcome) == ("UNAVAILABLE", Outcome.UNAVAILABLE)
    assert str(error) == f"executor 'executor' does not answer: {text}"


@pytest.mark.parametrize("text", ["my Stub process 'x' is not healthy.", "the patient is not healthy."])
def test_a_model_that_speaks_of_health_itself_is_not_taken_for_a_dead_one(text: str) -> None:
    assert executor_error(text, "INTERNAL", "executor").code == "INTERNAL"


def test_what_the_executor_takes_at_most_is_read_from_its_refusal() -> None:
    refusal = PREFIX + "[request id: <id_unknown>] inference request batch-size must be <= 4 for 'executor'"
    assert largest_batch(refusal) == 4
    assert largest_batch(PREFIX + "Server not ready") is None


@pytest.mark.parametrize("code", ["INVALID_ARG", "INTERNAL", "NOT_FOUND", "UNSUPPORTED", "CANCELLED"])
def test_the_models_own_errors_keep_text_and_code(code: str) -> None:
    error = executor_error("weights are broken", code, "executor")
    assert (str(error), error.code, error.outcome) == ("weights are broken", code, Outcome.EXECUTOR_ERROR)


def test_a_model_that_speaks_of_readiness_itself_is_not_taken_for_a_missing_one() -> None:
    error = executor_error("the camera is not ready", "INTERNAL", "executor")
    assert (error.code, error.outcome) == ("INTERNAL", Outcome.EXECUTOR_ERROR)


def test_a_code_that_was_carried_is_kept() -> None:
    assert executor_error("Exceeds maximum queue size", "INVALID_ARG", "executor").code == "INVALID_ARG"


def test_codes_go_both_ways() -> None:
    codes = ErrorCodes(TritonError)
    for name in CODE_NAMES:
        assert codes.constant(name) == getattr(TritonError, name)
        assert codes.name(codes.constant(name)) == name
    assert codes.constant("NEVER_HEARD_OF") == TritonError.INTERNAL
    assert codes.name(99) == "UNKNOWN"


def test_a_release_without_a_code_answers_internal() -> None:
    class Old:
        INTERNAL = 1

    assert ErrorCodes(Old).constant("CANCELLED") == 1
