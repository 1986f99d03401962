# SPDX-License-Identifier: Apache-2.0
"""Triton's gRPC inference protocol as bytes, beside ``wire``, and what a server says of itself over it.

Only what goes to a ``grpc://`` address imports this: it needs tritonclient.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import grpc
import numpy as np
from google.protobuf import json_format
from tritonclient.grpc import service_pb2

from priority_router.ops.bench import wire
from priority_router.ops.bench.wire import Route, Tensor

SERVICE: Final = "/inference.GRPCInferenceService/"
OPTIONS: Final = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
_TIMEOUT_SECONDS: Final = 10.0


def encode(
    route: Route, inputs: Mapping[str, Tensor], outputs: Sequence[str] = (), *, identified: bool = False
) -> bytes:
    """Encodes one inference request with all tensors in binary form; see `wire.encode`."""
    request = service_pb2.ModelInferRequest(model_name=route.model)
    if identified:
        request.id = wire.ID_PLACE.decode()
    for key, value in (route.parameters or {}).items():
        if key == "priority":
            request.parameters[key].uint64_param = int(value)
        elif isinstance(value, str):
            request.parameters[key].string_param = value
        else:
            request.parameters[key].int64_param = value
    for name, array in wire.tensors(route, inputs).items():
        dtype, data = wire.tensor_bytes(name, array)
        request.inputs.add(name=name, datatype=dtype, shape=array.shape)
        request.raw_input_contents.append(data)
    for name in outputs:
        request.outputs.add(name=name)
    encoded: bytes = request.SerializeToString()
    return encoded


def identified_int64(reply: bytes, name: str) -> tuple[str, int | None]:
    """The id that a successful reply carries, and the first value of its INT64 output, where it has that."""
    response = service_pb2.ModelInferResponse.FromString(reply)
    for output, data in zip(response.outputs, response.raw_output_contents, strict=False):
        if output.name == name and len(data) >= np.dtype(np.int64).itemsize:
            return response.id, int.from_bytes(data[:8], "little", signed=True)
    return response.id, None


def ask(address: str, method: str, model: str = "") -> Any:
    """A server's answer about itself or a model, as the HTTP front end words it in JSON.

    Args:
        address: ``host:port``.
        method: ``ServerMetadata``, ``ModelConfig`` or ``ModelStatistics``.
        model: of the last two.

    Raises:
        grpc.RpcError: no answer, or an error.
    """
    request_type, reply_type = (getattr(service_pb2, f"{method}{part}") for part in ("Request", "Response"))
    request = request_type(name=model) if model else request_type()
    with grpc.insecure_channel(address, options=OPTIONS) as channel:
        call = channel.unary_unary(
            SERVICE + method,
            request_serializer=request_type.SerializeToString,
            response_deserializer=reply_type.FromString,
        )
        reply = call(request, timeout=_TIMEOUT_SECONDS)
    return json_format.MessageToDict(reply, preserving_proto_field_name=True)
