# SPDX-License-Identifier: Apache-2.0
"""``probe`` over gRPC; needs the package tritonclient."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

import numpy as np
import tritonclient.grpc
from tritonclient.utils import InferenceServerException, triton_to_np_dtype

from priority_router.ops.probe.question import parameters, zero_inputs

_CHANNEL: Final = [
    # As over HTTP: a health check asks the server itself, whatever http_proxy says.
    ("grpc.enable_http_proxy", 0),
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
]


def ask(address: str, model: str, timeout: float, class_name: str | None, headers: Mapping[str, str]) -> str:
    """Sends one request of zeros.

    Args:
        address: ``HOST:PORT``.
        model: the model to ask.
        timeout: seconds for both calls together.
        class_name: class to ask as; None is the policy's default class.
        headers: sent as metadata, whose names are in lower case.

    Returns:
        What went wrong; empty after a real answer.
    """
    metadata = {name.lower(): value for name, value in headers.items()}
    deadline = time.monotonic() + timeout
    with tritonclient.grpc.InferenceServerClient(address, channel_args=_CHANNEL) as client:
        try:
            reply = client.get_model_config(model, headers=metadata, as_json=True, client_timeout=timeout)
            inputs = []
            for zeros in zero_inputs(reply["config"], class_name):
                tensor = tritonclient.grpc.InferInput(zeros.name, list(zeros.shape), zeros.datatype)
                kind = triton_to_np_dtype(zeros.datatype)
                tensor.set_data_from_numpy(np.full(zeros.shape, zeros.text if kind is np.object_ else 0, kind))
                inputs.append(tensor)
            left = max(0.001, deadline - time.monotonic())
            named = parameters(class_name) or None
            answer = client.infer(model, inputs, headers=metadata, parameters=named, client_timeout=left)
        except InferenceServerException as error:
            return f"{error.status()}: {error.message()}"
    return "" if answer.get_response().outputs else "the answer has no outputs"
