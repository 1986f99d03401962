# SPDX-License-Identifier: Apache-2.0
"""The least that a model can do that answers later, as a router must: copied by measure_overhead.py as ``model.py``.

``execute`` only keeps the requests; other threads send the answers. With the config parameter ``calls`` it gets them
from the executor, in BLS calls of as many rows as have come; with ``extra`` each answer has so many outputs more. It
orders nothing, checks nothing and counts nothing, so what it costs is Triton's share of a routed request.
"""

import json
import queue
import sys
import threading
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """Triton's interface to the model."""

    def initialize(self, args: dict[str, str]) -> None:
        """Reads the parameters and starts the threads."""
        sys.setswitchinterval(0.0005)
        given = json.loads(args["model_config"])["parameters"]
        parameters = {key: int(given[key]["string_value"]) for key in ("calls", "extra", "rows", "answer_threads")}
        self.calls, self.rows = parameters["calls"], parameters["rows"]
        self.extra = [f"T{number}" for number in range(parameters["extra"])]
        self.kept: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        loops = [self.answer] * parameters["answer_threads"] + [self.call] * self.calls
        for loop in loops:
            threading.Thread(target=loop, daemon=True).start()

    def execute(self, requests: list[Any]) -> None:
        """Keeps the requests."""
        to = self.kept if self.calls else self.answers
        for request in requests:
            to.put((request.get_response_sender(), pb_utils.get_input_tensor_by_name(request, "X").as_numpy()))

    def call(self) -> None:
        """Asks the executor."""
        while True:
            batch = [self.kept.get()]
            while len(batch) < self.rows and not self.kept.empty():
                batch.append(self.kept.get())
            tensor = pb_utils.Tensor("X", np.concatenate([value for _, value in batch]))
            asked = pb_utils.InferenceRequest(
                model_name="executor", inputs=[tensor], requested_output_names=["Y"]
            ).exec()
            values = pb_utils.get_output_tensor_by_name(asked, "Y").as_numpy()
            for row, (sender, _) in enumerate(batch):
                self.answers.put((sender, values[row : row + 1]))

    def answer(self) -> None:
        """Sends answers."""
        final = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL
        while True:
            sender, value = self.answers.get()
            outputs = [pb_utils.Tensor("Y", value)]
            outputs += [pb_utils.Tensor(name, np.zeros((1, 1), np.int64)) for name in self.extra]
            sender.send(pb_utils.InferenceResponse(outputs), final)
