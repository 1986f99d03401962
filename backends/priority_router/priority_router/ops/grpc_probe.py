# SPDX-License-Identifier: Apache-2.0
"""``probe`` over gRPC; needs the package tritonclient."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import tritonclient.grpc
from tritonclient.utils import InferenceServerException, triton_to_np_dtype

from priority_router.ops.probe.asking import ProbeFailed, Question, one_line

_CHANNEL: Final = [
    # As over HTTP: a health check asks the server itself, whatever http_proxy says.
    ("grpc.enable_http_proxy", 0),
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
]
_SILENT: Final = ("StatusCode.UNAVAILABLE", "StatusCode.DEADLINE_EXCEEDED")
"""What a client is told, by its own library as well, where nobody answers."""


def ask(address: str, model: str, timeout: float, question: Question) -> Sequence[Any]:
    """Sends one request of zeros.

    Args:
        address: ``HOST:PORT``.
        model: the model to ask.
        timeout: seconds for both calls together.
        question: what is asked; its headers become metadata, whose names are in lower case.

    Returns:
        The outputs of the answer.

    Raises:
        ProbeFailed: no answer, or an error.
    """
    metadata = {name.lower(): value for name, value in question.headers.items()}
    deadline = time.monotonic() + timeout
    with tritonclient.grpc.InferenceServerClient(address, channel_args=_CHANNEL) as client:
        try:
            told = {"headers": metadata, "as_json": True, "client_timeout": timeout}
            about = (
                client.get_model_metadata(model, **told)
                if question.live
                else client.get_model_config(model, **told)["config"]
            )
            inputs = []
            for zeros in question.inputs(about):
                tensor = tritonclient.grpc.InferInput(zeros.name, list(zeros.shape), zeros.datatype)
                kind = triton_to_np_dtype(zeros.datatype)
                tensor.set_data_from_numpy(np.full(zeros.shape, zeros.text if kind is np.object_ else 0, kind))
                inputs.append(tensor)
            left = max(0.001, deadline - time.monotonic())
            named = question.parameters or None
            answer = client.infer(model, inputs, headers=metadata, parameters=named, client_timeout=left)
        except InferenceServerException as error:
            reason = one_line(f"{error.status()}: {error.message()}")
            raise ProbeFailed(reason, answered=error.status() not in _SILENT) from error
    outputs: Sequence[Any] = answer.get_response().outputs
    return outputs
