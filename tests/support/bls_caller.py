# SPDX-License-Identifier: Apache-2.0
"""A model that passes every request on to ``executor`` by BLS: copied into a model repository as ``model.py``.

``LEVEL`` (INT64, one value) goes along as the reserved parameter; 0 sends none. Each call has a thread of its own, so
calls overtake each other only where the executor's queue lets them.
"""

import json
import threading
from typing import Any

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args: dict[str, str]) -> None:
        parameters = json.loads(args["model_config"])["parameters"]
        self.key = parameters["key"]["string_value"]

    def execute(self, requests: list[Any]) -> None:
        for request in requests:
            tensors = {
                name: pb_utils.get_input_tensor_by_name(request, name).as_numpy().copy()
                for name in ("X", "TAG", "LEVEL")
            }
            threading.Thread(target=self.call, args=(request.get_response_sender(), tensors)).start()

    def call(self, sender: Any, tensors: dict[str, Any]) -> None:
        level = int(tensors.pop("LEVEL").reshape(-1)[0])
        inputs = [pb_utils.Tensor(name, value) for name, value in tensors.items()]
        answer = pb_utils.InferenceRequest(
            model_name="executor",
            inputs=inputs,
            requested_output_names=["Y"],
            parameters={self.key: level} if level else {},
        ).exec()
        if answer.has_error():
            response = pb_utils.InferenceResponse(error=answer.error())
        else:
            response = pb_utils.InferenceResponse([pb_utils.get_output_tensor_by_name(answer, "Y")])
        sender.send(response, flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
