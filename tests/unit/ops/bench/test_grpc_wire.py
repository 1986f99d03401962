# SPDX-License-Identifier: Apache-2.0
"""gRPC requests and replies as bytes."""

from __future__ import annotations

import numpy as np
from priority_router.ops.bench import grpc_wire, wire
from priority_router.ops.bench.wire import Route
from tritonclient.grpc import service_pb2

INPUTS = {"X": np.array([[1.5], [2.5]], np.float32), "T": np.array([["a"], ["bc"]], object)}


def test_a_request_says_model_marks_tensors_and_leaves_a_place_for_its_id():
    encoded = grpc_wire.encode(Route("m", {"priority": 1, "tenant": "x"}, "online"), INPUTS, ["Y"], identified=True)
    head, place, tail = encoded.partition(wire.ID_PLACE)
    assert place
    request = service_pb2.ModelInferRequest.FromString(head + b"%016d" % 77 + tail)
    assert (request.model_name, request.id) == ("m", "0000000000000077")
    assert request.parameters["priority"].uint64_param == 1
    assert request.parameters["tenant"].string_param == "x"
    assert [(one.name, one.datatype, list(one.shape)) for one in request.inputs] == [
        ("X", "FP32", [2, 1]),
        ("T", "BYTES", [2, 1]),
        ("CLASS", "BYTES", [2, 1]),
    ]
    values, texts, classes = request.raw_input_contents
    assert np.frombuffer(values, np.float32).tolist() == [1.5, 2.5]
    assert texts == b"\x01\0\0\0a\x02\0\0\0bc"
    assert classes == b"\x06\0\0\0online" * 2
    assert [one.name for one in request.outputs] == ["Y"]


def test_the_queue_time_and_the_id_of_a_reply():
    reply = service_pb2.ModelInferResponse(id="7")
    reply.outputs.add(name="Y")
    reply.outputs.add(name="ROUTER_QUEUE_US")
    reply.raw_output_contents.extend([b"1234", (42).to_bytes(8, "little") * 2])
    data = reply.SerializeToString()
    assert grpc_wire.identified_int64(data, "ROUTER_QUEUE_US") == ("7", 42)
    assert grpc_wire.identified_int64(data, "other") == ("7", None)
