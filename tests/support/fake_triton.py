# SPDX-License-Identifier: Apache-2.0
"""A small stand-in for Triton's Python API, for unit tests of the runtime: no server, no shared memory.

What it keeps of the real one is what the runtime relies on: a sender takes one response and refuses a second one, it is
fatal to ask a closed sender whether its request was cancelled, and BLS errors come back as responses.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

TRITONSERVER_RESPONSE_COMPLETE_FINAL = 1
TRITONSERVER_MEMORY_CPU = "cpu"


class TritonError:
    UNKNOWN, INTERNAL, NOT_FOUND, INVALID_ARG, UNAVAILABLE, UNSUPPORTED, ALREADY_EXISTS, CANCELLED = range(8)

    def __init__(self, message: str, code: int = INTERNAL) -> None:
        self._message, self._code = message, code

    def message(self) -> str:
        return self._message

    def code(self) -> int:
        return self._code


class TritonModelException(Exception):
    pass


class Tensor:
    def __init__(self, name: str, array: Any) -> None:
        self._name, self._array = name, array

    def name(self) -> str:
        return self._name

    def as_numpy(self) -> Any:
        return self._array

    def to_dlpack(self) -> Any:
        return self._array

    @staticmethod
    def from_dlpack(name: str, capsule: Any) -> Tensor:
        return Tensor(name, capsule)


class InferenceResponse:
    def __init__(self, output_tensors: Sequence[Tensor] = (), error: TritonError | None = None) -> None:
        self._tensors, self._error = list(output_tensors), error

    def has_error(self) -> bool:
        return self._error is not None

    def error(self) -> Any:
        return self._error

    def output_tensors(self) -> list[Tensor]:
        return self._tensors

    def arrays(self) -> dict[str, Any]:
        return {tensor.name(): tensor.as_numpy() for tensor in self._tensors}


class Sender:
    """A response sender; keeps what was sent, and sets ``done`` then."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.sent: list[InferenceResponse] = []
        self.cancelled = False
        self.asked = 0
        self.failure: Exception | None = None
        self.final = False
        self._taken = False

    def send(self, response: InferenceResponse | None = None, flags: int = 0) -> None:
        assert not self.final, "sent to after the last flag"
        self.final = flags == TRITONSERVER_RESPONSE_COMPLETE_FINAL
        if response is None:
            assert self.final
            assert self._taken, "a flag before any response"
            return
        # As the real one, it takes no second response where the first has failed.
        assert not self._taken, "a second response for one request"
        self._taken = True
        if self.failure is None:
            self.sent.append(response)
        self.done.set()
        if self.failure is not None:
            raise self.failure

    @property
    def reply(self) -> InferenceResponse:
        """The one response; fails the test where it does not come."""
        assert self.done.wait(10), "no response came"
        (response,) = self.sent
        return response

    def is_cancelled(self) -> bool:
        assert not self.sent, "asked after the last response: the real server reads freed memory here"
        self.asked += 1
        return self.cancelled


class Request:
    """A request as ``execute`` gets it."""

    def __init__(
        self,
        inputs: Mapping[str, Any],
        outputs: Sequence[str] = ("Y",),
        parameters: str = "{}",
        timeout: int = 0,
    ) -> None:
        self._inputs = [Tensor(name, array) for name, array in inputs.items()]
        self._outputs, self._parameters, self._timeout = set(outputs), parameters, timeout
        self.sender = Sender()

    def inputs(self) -> list[Tensor]:
        return self._inputs

    def requested_output_names(self) -> set[str]:
        return self._outputs

    def parameters(self) -> str:
        return self._parameters

    def timeout(self) -> int:
        return self._timeout

    def get_response_sender(self) -> Sender:
        return self.sender


class PreferredMemory:
    def __init__(self, kind: Any, device: int = 0) -> None:
        self.kind, self.device = kind, device


class Logger:
    """Keeps what was logged; one per ``Triton``."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []

    def log_info(self, text: str) -> None:
        self.lines.append(("info", text))

    def log_warn(self, text: str) -> None:
        self.lines.append(("warning", text))

    def log_error(self, text: str) -> None:
        self.lines.append(("error", text))


class Metric:
    def __init__(self) -> None:
        self.value, self.calls = 0.0, 0

    def increment(self, change: float) -> None:
        self.value += change
        self.calls += 1


class MetricFamily:
    COUNTER, GAUGE = "counter", "gauge"

    def __init__(self, page: Page, name: str, kind: str) -> None:
        self._page, self._name, self.kind = page, name, kind

    def Metric(self, labels: Mapping[str, str]) -> Metric:
        text = ",".join(f'{key}="{value}"' for key, value in sorted(labels.items()))
        return self._page.setdefault(f"{self._name}{{{text}}}", Metric())


class Page(dict[str, Metric]):
    """A metrics page: ``name{labels}`` to metric; families by name."""

    def __init__(self) -> None:
        super().__init__()
        self.kinds: dict[str, str] = {}

    def read(self, sample: str) -> float:
        return self[sample].value


class Triton:
    """The module ``triton_python_backend_utils``, as far as the runtime uses it.

    Attributes:
        answer: what a BLS call returns or raises; takes the call.
        calls: every BLS call made.
    """

    TRITONSERVER_RESPONSE_COMPLETE_FINAL = TRITONSERVER_RESPONSE_COMPLETE_FINAL
    TRITONSERVER_MEMORY_CPU = TRITONSERVER_MEMORY_CPU
    TritonError = TritonError
    TritonModelException = TritonModelException
    Tensor = Tensor
    InferenceResponse = InferenceResponse
    PreferredMemory = PreferredMemory

    def __init__(self) -> None:
        self.Logger = Logger()
        self.page = Page()
        self.calls: list[BlsCall] = []
        self.answer: Callable[[BlsCall], InferenceResponse] = doubled

        triton = self

        class Family(MetricFamily):
            def __init__(self, *, name: str, description: str, kind: str) -> None:
                assert description
                triton.page.kinds[name] = kind
                super().__init__(triton.page, name, kind)

        self.MetricFamily = Family

    def InferenceRequest(self, **options: Any) -> BlsCall:
        call = BlsCall(self, options)
        self.calls.append(call)
        return call


class BlsCall:
    """One BLS request; ``options`` are the keyword arguments it was made with."""

    def __init__(self, triton: Triton, options: dict[str, Any]) -> None:
        self._triton, self.options = triton, options

    @property
    def inputs(self) -> dict[str, Any]:
        return {tensor.name(): tensor.as_numpy() for tensor in self.options["inputs"]}

    def exec(self) -> InferenceResponse:
        return self._triton.answer(self)


def doubled(call: BlsCall) -> InferenceResponse:
    """Y = 2 X."""
    return InferenceResponse([Tensor("Y", call.inputs["X"] * 2)])


def refused(message: str, code: int = TritonError.INTERNAL) -> Callable[[BlsCall], InferenceResponse]:
    """An executor that answers every call with this error."""
    return lambda call: InferenceResponse([], TritonError(message, code))


def rows(count: int, value: float = 0.0) -> np.ndarray[Any, Any]:
    """X of ``count`` rows."""
    return np.full((count, 2), value, np.float32)
