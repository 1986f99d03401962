# SPDX-License-Identifier: Apache-2.0
"""The executor that benchmarks measure with, copied into a model repository as ``model.py``: Y = 2 X after a sleep.

A batch takes ``batch_us`` plus ``row_us`` for each of its rows, both config parameters, so a run knows what the best
possible answer is; sleeping, like a GPU, leaves the cores to the server. A request whose first value is no number gets
an error.
"""

import json
import time
from typing import Any

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """Triton's interface to the model."""

    def initialize(self, args: dict[str, str]) -> None:
        """Reads the times."""
        parameters = json.loads(args["model_config"])["parameters"]
        self.batch_seconds = int(parameters["batch_us"]["string_value"]) / 1e6
        self.row_seconds = int(parameters["row_us"]["string_value"]) / 1e6

    def execute(self, requests: list[Any]) -> list[Any]:
        """Answers a batch."""
        inputs = [pb_utils.get_input_tensor_by_name(request, "X").as_numpy() for request in requests]
        seconds = self.batch_seconds + self.row_seconds * sum(len(value) for value in inputs)
        if seconds:
            time.sleep(seconds)
        return [answer(value) for value in inputs]


def answer(value: Any) -> Any:
    """The response to one request."""
    if value.flat[0] != value.flat[0]:
        return pb_utils.InferenceResponse(error=pb_utils.TritonError("X begins with a value that is no number"))
    return pb_utils.InferenceResponse([pb_utils.Tensor("Y", value * 2)])
