# SPDX-License-Identifier: Apache-2.0
"""One dispatch to one BLS call: what is sent, what comes back, whatever goes wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from priority_router.config import RouterPolicy
from priority_router.errors import ExecutorFailed, InternalFault, RequestError, Unavailable
from priority_router.hooks import LEVEL_KEY
from priority_router.runtime import shared_memory
from priority_router.runtime.executor import Executor
from priority_router.runtime.translate import ErrorCodes
from priority_router.runtime.work import Call
from support.fake_triton import BlsCall, InferenceResponse, Tensor, TritonError, TritonModelException, refused

from .harness import Bench, policy


def served(bench: Bench) -> Executor:
    """Carries out every call that the driver hands out, until there are none."""
    executor = Executor(bench.triton, bench.policy, bench.driver, ErrorCodes(TritonError), bench.clock, bench.log)
    done = 0
    while done < len(bench.calls):
        call: Call | None = bench.calls[done]
        while call is not None:
            call = executor.serve(call)
        done += 1
    return executor


def errors(bench: Bench) -> list[RequestError | None]:
    return [error for _, error in bench.answers]


def test_rows_of_all_callers_go_out_in_one_call() -> None:
    bench = Bench(policy())
    bench.submit(bench.job("online", 1, value=1), bench.job("bulk", 2, value=2))
    served(bench)
    (call,) = bench.triton.calls
    assert call.inputs["X"].tolist() == [[1, 1], [2, 2], [2, 2]]
    assert [answer.job.pieces[0][1][0][1].tolist() for answer in bench.answers] == [[[2, 2]], [[4, 4], [4, 4]]]


def test_a_call_carries_nothing_of_its_callers() -> None:
    bench = Bench(policy(top="executor_version = 3"))
    bench.submit(bench.job("bulk", timeout=77))
    served(bench)
    options = dict(bench.triton.calls[0].options)
    memory = options.pop("preferred_memory")
    options.pop("inputs")
    assert options == {
        "model_name": "model",
        "model_version": 3,
        "requested_output_names": ["Y"],
        "parameters": {LEVEL_KEY: 2},
    }
    assert (memory.kind, memory.device) == (bench.triton.TRITONSERVER_MEMORY_CPU, 0)


def test_plain_mode_sends_no_parameter() -> None:
    bench = Bench(policy(top='mode = "plain"'))
    bench.submit(bench.job())
    executor = served(bench)
    assert "parameters" not in bench.triton.calls[0].options
    assert executor.levels_sent == 0


def test_levels_sent_are_counted() -> None:
    bench = Bench(policy(size=1))
    bench.submit(bench.job(), bench.job())
    assert served(bench).levels_sent == 2


def test_one_whole_request_is_not_copied() -> None:
    bench = Bench(policy())
    job = bench.job(count=3)
    bench.submit(job)
    served(bench)
    assert bench.triton.calls[0].inputs["X"] is job.inputs[0][1]


def test_the_outputs_asked_for_are_the_union() -> None:
    bench = Bench(policy())
    bench.submit(bench.job(outputs=("Y", "ROUTER_QUEUE_US")), bench.job(outputs=("Z",)))
    bench.triton.answer = lambda call: InferenceResponse([Tensor("Y", call.inputs["X"]), Tensor("Z", call.inputs["X"])])
    served(bench)
    assert sorted(bench.triton.calls[0].options["requested_output_names"]) == ["Y", "Z"]


def test_without_a_batch_axis_arrays_pass_as_they_are() -> None:
    bench = Bench(policy(size=0))
    job = bench.job(count=3)
    bench.submit(job)
    served(bench)
    assert bench.triton.calls[0].inputs["X"] is job.inputs[0][1]
    assert errors(bench) == [None]


def raising(call: BlsCall) -> InferenceResponse:
    raise RuntimeError("the connection broke")


def unreadable(call: BlsCall) -> InferenceResponse:
    class OfBfloats(Tensor):
        def as_numpy(self) -> Any:
            raise TritonModelException("Tensor dtype is BF16 and cannot be converted to NumPy.")

    return InferenceResponse([OfBfloats("Y", None)])


def answering(array: Any) -> Any:
    return lambda call: InferenceResponse([Tensor("Y", array)])


@pytest.mark.parametrize(
    ("answer", "kind", "code", "said"),
    [
        (refused("bad weights"), ExecutorFailed, "INTERNAL", "bad weights"),
        (refused("bad shape", TritonError.INVALID_ARG), ExecutorFailed, "INVALID_ARG", "bad shape"),
        (refused("Exceeds maximum queue size"), ExecutorFailed, "UNAVAILABLE", "Exceeds maximum queue size"),
        (
            refused("Model model - Error when running inference: Server not ready"),
            Unavailable,
            "UNAVAILABLE",
            "executor 'model' is not serving",
        ),
        (raising, InternalFault, "INTERNAL", "executor 'model' could not be called"),
        (answering(np.zeros((2, 1))), ExecutorFailed, "INTERNAL", "output 'Y' has 2 rows, the batch had 3"),
        (unreadable, ExecutorFailed, "INTERNAL", "executor 'model', output 'Y': Tensor dtype is BF16"),
    ],
)
def test_every_failure_answers_everyone_in_the_call(
    answer: Any, kind: type[RequestError], code: str, said: str
) -> None:
    bench = Bench(policy())
    bench.submit(bench.job(), bench.job("bulk", 2))
    bench.triton.answer = answer
    served(bench)
    assert len(bench.answers) == 2
    for error in errors(bench):
        assert isinstance(error, kind)
        assert error.code == code
        assert said in str(error)
    assert bench.driver.idle


def full(call: BlsCall) -> InferenceResponse:
    raise TritonModelException("Failed to increase the shared memory pool size for key 'x' to 9 bytes.")


def full_elsewhere(call: BlsCall) -> InferenceResponse:
    text = "Failed to process the request(s), message: Failed to increase the shared memory pool size for key 'x'"
    return InferenceResponse(error=TritonError(text))


@pytest.mark.parametrize("answer", [full, full_elsewhere])
def test_a_shortage_of_shared_memory_says_what_was_needed_and_what_is_free(
    answer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_memory, "room", lambda: shared_memory.Room(64 << 20, 3 << 20))
    bench = Bench(policy())
    bench.triton.answer = answer
    bench.submit(bench.job(count=2), bench.job(count=1))
    served(bench)
    (error, _) = errors(bench)
    assert isinstance(error, Unavailable)
    assert "a call of 'model' with inputs of 0.0 MiB found no room, of 64.0 MiB in /dev/shm 3.0 MiB are free" in str(
        error
    )
    assert [text for _, text in bench.triton.Logger.lines if "shared memory is too small" in text]


def test_a_policy_that_allows_too_large_batches_is_told_once() -> None:
    bench = Bench(policy(size=8))
    bench.triton.answer = refused("Model model - inference request batch-size must be <= 4 for 'model'")
    executor = Executor(bench.triton, bench.policy, bench.driver, ErrorCodes(TritonError), bench.clock, bench.log)
    for _ in range(3):
        bench.submit(bench.job(count=5))
        executor.serve(bench.calls[-1])
        bench.clock.pass_ms(5000)
    ((level, text),) = bench.triton.Logger.lines
    assert level == "error"
    assert "executor_shape.max_batch_size = 8, but executor 'model' takes 4 rows" in text
    assert "write max_batch_size = 4" in text


def test_a_call_that_cannot_be_built_answers_its_callers(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(policy())
    bench.submit(bench.job())

    def broken(**options: Any) -> None:
        raise ValueError("no such option")

    monkeypatch.setattr(bench.triton, "InferenceRequest", broken)
    served(bench)
    (error,) = errors(bench)
    assert isinstance(error, InternalFault)
    assert bench.triton.Logger.lines[0][0] == "error"


@pytest.mark.parametrize("size", [1, 3, 4])
def test_an_oversized_request_comes_back_whole(size: int) -> None:
    configured: RouterPolicy = policy(size=size)
    bench = Bench(configured)
    job = bench.job(count=10)
    job.inputs = [("X", np.arange(20, dtype=np.float32).reshape(10, 2))]
    bench.submit(job)
    served(bench)
    assert errors(bench) == [None]
    pieces = sorted(job.pieces, key=lambda piece: piece[0])
    whole = np.concatenate([tensors[0][1] for _, tensors in pieces])
    assert np.array_equal(whole, job.inputs[0][1] * 2)
    assert all(len(call.inputs["X"]) <= size for call in bench.triton.calls)
