# SPDX-License-Identifier: Apache-2.0
"""One dispatch to one BLS call and back.

Law: whatever happens, ``driver.completed`` is called exactly once for each call taken.

The call carries no timeout, trace, id or parameter of the callers: a dispatch is several callers' work, and a trace
belongs to a request that may be gone, which ends the whole server. In levels mode one reserved parameter asks the
preloaded hook for the priority level.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from priority_router.config import RouterPolicy
from priority_router.errors import ExecutorFailed, InternalFault, RequestError
from priority_router.hooks import LEVEL_KEY
from priority_router.runtime import codec, shared_memory
from priority_router.runtime.driver import Driver
from priority_router.runtime.log import Log
from priority_router.runtime.translate import ErrorCodes, executor_error, largest_batch
from priority_router.runtime.work import Call, Tensors


class Executor:
    """Calls the executor; ``serve`` runs in several threads at once.

    Attributes:
        levels_sent: calls that asked for a level.
    """

    def __init__(
        self, pb: Any, policy: RouterPolicy, driver: Driver, codes: ErrorCodes, clock: Callable[[], int], log: Log
    ) -> None:
        """Prepares what every call shares.

        Args:
            pb: Triton's Python API.
            policy: names the executor.
            driver: is told of starts and completions.
            codes: of this server.
            clock: monotonic ns.
            log: for faults.
        """
        self._pb = pb
        self._name = policy.executor
        self._version = policy.executor_version
        self._levels = policy.scheduling.levels
        self._max_batch_size = policy.scheduling.max_batch_size
        self._batched = self._max_batch_size > 0
        self._told_size = False
        self._driver = driver
        self._codes = codes
        self._clock = clock
        self._log = log
        # On a GPU host the outputs would otherwise stay on the device, where numpy cannot read them.
        self._memory = pb.PreferredMemory(pb.TRITONSERVER_MEMORY_CPU, 0)
        self.levels_sent = 0

    def serve(self, call: Call) -> Call | None:
        """Carries out one call; returns the one that is to follow it at once in the same thread."""
        started = None
        outputs = None
        error: RequestError | None = None
        try:
            request = self._request(call)
            started = self._clock()
            self._driver.called(call, started)
            response = request.exec()
            ended = self._clock()
            outputs, error = self._read(call, response)
        except Exception as fault:  # noqa: BLE001 - its callers are answered
            ended = self._clock()
            error = self._shortage(call, str(fault))
            if error is None:
                error = InternalFault(f"executor {self._name!r} could not be called")
                self._log.exception("executor call", f"calling {self._name} failed", fault)
        return self._driver.completed(call, ended - started if started is not None else 0, outputs, error)

    def _request(self, call: Call) -> Any:
        parts = call.dispatch.parts
        if self._batched:
            rows = [
                codec.rows_of(job.inputs, part.first_row, part.rows) for job, part in zip(call.jobs, parts, strict=True)
            ]
            tensors = codec.join(rows)
        else:
            tensors = call.jobs[0].inputs
        wanted = call.jobs[0].wanted.outputs
        for job in call.jobs:
            if job.wanted.outputs is not wanted:
                wanted = wanted | job.wanted.outputs
        options = {}
        if self._levels:
            options["parameters"] = {LEVEL_KEY: call.dispatch.level}
            self.levels_sent += 1
        return self._pb.InferenceRequest(
            model_name=self._name,
            model_version=self._version,
            requested_output_names=list(wanted),
            inputs=[self._pb.Tensor(name, array) for name, array in tensors],
            preferred_memory=self._memory,
            **options,
        )

    def _read(self, call: Call, response: Any) -> tuple[list[Tensors] | None, RequestError | None]:
        if response.has_error():
            error = response.error()
            text = error.message()
            self._look_at_size(text)
            short = self._shortage(call, text)
            return None, short or executor_error(text, self._codes.name(error.code()), self._name)
        outputs = []
        for tensor in response.output_tensors():
            try:
                outputs.append((tensor.name(), tensor.as_numpy()))
            except self._pb.TritonModelException as unreadable:  # BF16, or memory of a GPU all the same
                return None, ExecutorFailed(f"executor {self._name!r}, output {tensor.name()!r}: {unreadable}")
        if not self._batched:
            return [outputs], None
        try:
            return codec.split(outputs, [part.rows for part in call.dispatch.parts]), None
        except ValueError as error:
            return None, ExecutorFailed(f"executor {self._name!r}: {error}")

    def _shortage(self, call: Call, text: str) -> RequestError | None:
        """What a shortage of shared memory means to the callers; the operator reads it in the log."""
        if not shared_memory.is_shortage(text):
            return None
        parts = zip(call.jobs, call.dispatch.parts, strict=True)
        needed = sum(codec.size(job.inputs) * part.rows // job.rows for job, part in parts)
        short = shared_memory.shortage(f"a call of {self._name!r} with inputs", needed)
        self._log.error("shared memory", str(short))
        return short

    def _look_at_size(self, text: str) -> None:
        """Says once that policy and executor disagree: callers see it under load only, and not whose mistake it is."""
        largest = largest_batch(text) if not self._told_size else None
        if largest is None or largest >= self._max_batch_size:
            return
        self._told_size = True
        self._log.error(
            "batch size",
            f"policy.toml has executor_shape.max_batch_size = {self._max_batch_size}, but executor {self._name!r} "
            f"takes {largest} rows and refuses larger dispatches; write max_batch_size = {largest}",
        )
