# SPDX-License-Identifier: Apache-2.0
"""Answers to replies: the only place that makes what a caller gets.

Law: exactly one response and one FINAL flag per answer. A response that cannot be built becomes an error; one that
cannot be sent is logged and counted, since Triton takes no second one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from priority_router.errors import ExecutorFailed, InternalFault, Outcome, RequestError
from priority_router.interface import EXECUTOR_OUTPUT, QUEUE_OUTPUT
from priority_router.runtime import codec, shared_memory
from priority_router.runtime.log import Log
from priority_router.runtime.metrics import Tally
from priority_router.runtime.translate import ErrorCodes
from priority_router.runtime.work import Alive, Answer, Array, Job, timing


class Replies:
    """Builds and sends; ``send`` runs in several threads at once, each with a tally of its own."""

    def __init__(self, pb: Any, codes: ErrorCodes, batched: bool, log: Log) -> None:
        """Prepares.

        Args:
            pb: Triton's Python API.
            codes: of this server.
            batched: the model has a batch axis.
            log: for faults.
        """
        self._pb = pb
        self._codes = codes
        self._batched = batched
        self._log = log
        self._final = pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL
        self._fault = f"router {log.name!r} failed on this request; the server's log says why (look for {log.prefix!r})"

    def send(self, answer: Answer | Alive, tally: Tally) -> None:
        """Sends one answer and counts it, unless it only says that the router lives."""
        if isinstance(answer, Alive):
            answer.sender.send(self._pb.InferenceResponse([]), self._final)
            return
        tally.begun += 1
        try:
            self._answer(answer, tally)
        finally:
            tally.ended += 1

    def _answer(self, answer: Answer, tally: Tally) -> None:
        job, error = answer
        size = 0
        try:
            if error is None:
                outputs = self._outputs(job)
                size = codec.size(outputs)
                response = self._pb.InferenceResponse([self._pb.Tensor(name, array) for name, array in outputs])
            else:
                response = self._refusal(error)
        except RequestError as fault:
            error = fault
            response = self._refusal(error)
        except Exception as fault:  # noqa: BLE001 - the caller is told
            self._log.exception("reply", "building a reply failed", fault)
            error = InternalFault("the reply could not be built")
            response = self._refusal(error)
        try:
            self._hand_over(job.sender, response, size)
        except Exception as fault:  # noqa: BLE001 - nothing more can be said to this caller
            tally.failed_sends += 1
            reason = shared_memory.shortage("a reply", size) if shared_memory.is_shortage(str(fault)) else fault
            self._log.error("send", f"a reply could not be sent: {reason}")
            error = InternalFault("the reply could not be sent")
        queue_ns = None if job.first_exec is None else job.first_exec - job.arrived
        outcome = Outcome.SUCCESS if error is None else error.outcome
        tally.count(job.class_name, outcome, queue_ns, job.executor_ns or None)

    def _hand_over(self, sender: Any, response: Any, size: int) -> None:
        """Sends a response, and the flag without which its caller waits for ever."""
        if not shared_memory.is_tight(size):
            sender.send(response, self._final)
            return
        # One that finds no room takes its flag along, and there is no second one. With a flag of its own, which costs
        # as much as a reply, the caller at least gets an error of Triton's.
        try:
            sender.send(response)
        finally:
            sender.send(flags=self._final)

    def without_sender(self, error: RequestError, tally: Tally) -> Any:
        """The response to a request that ``execute`` itself must hand back, counted as answered."""
        tally.begun += 1
        tally.count(None, error.outcome, None, None)
        tally.ended += 1
        return self._refusal(error)

    def _refusal(self, error: RequestError) -> Any:
        text = self._fault if isinstance(error, InternalFault) else str(error)
        return self._pb.InferenceResponse([], self._pb.TritonError(text, self._codes.constant(error.code)))

    def _outputs(self, job: Job) -> list[tuple[str, Array]]:
        wanted = job.wanted
        outputs = [(name, array) for name, array in self._assembled(job) if name in wanted.outputs]
        if wanted.queue and job.first_exec is not None:
            outputs.append((QUEUE_OUTPUT, timing(job.first_exec - job.arrived, job.rows, self._batched)))
        if wanted.executor:
            outputs.append((EXECUTOR_OUTPUT, timing(job.executor_ns, job.rows, self._batched)))
        return outputs

    def _assembled(self, job: Job) -> list[tuple[str, Array]]:
        """The executor's outputs of all parts, in row order whatever order the parts came back in."""
        if len(job.pieces) == 1:
            return list(job.pieces[0][1])
        pieces = [dict(tensors) for _, tensors in sorted(job.pieces, key=lambda piece: piece[0])]
        return [(name, _concatenated(name, [piece[name] for piece in pieces])) for name in pieces[0]]


def _concatenated(name: str, arrays: Sequence[Array]) -> Array:
    try:
        return np.concatenate(arrays)
    except ValueError:
        shapes = " and ".join(sorted({str(list(array.shape)) for array in arrays}))
        raise ExecutorFailed(
            f"output {name!r}: the request was split to fit the executor, and its answers of shapes {shapes} cannot be "
            "put together"
        ) from None
