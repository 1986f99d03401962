# SPDX-License-Identifier: Apache-2.0
"""A model that fits any configuration: each output row repeats the mark of its input row. Runs inside Triton.

The mark is the first number of the row in the first input that the request has, or the number that its text spells.
Free lengths of outputs become 1.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils

Array = np.ndarray[Any, Any]


class TritonPythonModel:
    """Triton's life cycle of one instance."""

    def initialize(self, args: dict[str, str]) -> None:
        config = json.loads(args["model_config"])
        self._batched = config["max_batch_size"] > 0
        self._inputs = [entry["name"] for entry in config["input"]]
        self._outputs = [(entry["name"], entry["data_type"], _own_shape(entry)) for entry in config["output"]]

    def execute(self, requests: Sequence[Any]) -> list[Any]:
        return [self._answer(request) for request in requests]

    def _answer(self, request: Any) -> Any:
        given = {tensor.name(): tensor for tensor in request.inputs()}
        first = next((given[name].as_numpy() for name in self._inputs if name in given), np.zeros((1, 1)))
        marks = self._marks(first)
        wanted = request.requested_output_names()
        return pb_utils.InferenceResponse(
            [
                pb_utils.Tensor(name, self._repeated(marks, data_type, shape))
                for name, data_type, shape in self._outputs
                if name in wanted
            ]
        )

    def _marks(self, array: Array) -> list[int]:
        rows = array.reshape(len(array), -1) if self._batched else array.reshape(1, -1)
        return [int(float(row[0])) if row.size else 0 for row in rows]

    def _repeated(self, marks: list[int], data_type: str, shape: list[int]) -> Array:
        dtype = pb_utils.triton_string_to_numpy(data_type)
        values: list[Any] = [str(mark).encode() for mark in marks] if dtype == np.object_ else list(marks)
        flat = np.repeat(np.array(values, dtype), math.prod(shape))
        return flat.reshape([len(marks), *shape] if self._batched else shape)


def _own_shape(entry: dict[str, Any]) -> list[int]:
    """Of one row as the model itself makes it."""
    dims = entry["reshape"]["shape"] if "reshape" in entry else entry["dims"]
    return [1 if int(dim) < 0 else int(dim) for dim in dims]
