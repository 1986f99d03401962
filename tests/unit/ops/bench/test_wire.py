# SPDX-License-Identifier: Apache-2.0
import json

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from priority_router.errors import QueueFull, QueueTimeout
from priority_router.ops.bench import wire
from priority_router.ops.bench.wire import Outcome, Route

X = np.arange(8, dtype=np.float32).reshape(2, 4)


def taken_apart(request):
    """Request line, headers, the JSON document, and the binary data of each input."""
    head, _, body = request.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    assert int(headers["Content-Length"]) == len(body)
    at = int(headers["Inference-Header-Content-Length"])
    document = json.loads(body[:at])
    data = {}
    for entry in document["inputs"]:
        size = entry["parameters"]["binary_data_size"]
        data[entry["name"]] = body[at : at + size]
        at += size
    assert at == len(body)
    return first, headers, document, data


def test_a_direct_request():
    first, headers, document, data = taken_apart(wire.encode("h:1", Route("executor", {"priority": 1}), {"X": X}))
    assert first == "POST /v2/models/executor/infer HTTP/1.1"
    assert headers["Host"] == "h:1"
    assert document["parameters"] == {"priority": 1, "binary_data_output": True}
    assert document["inputs"][0]["shape"] == [2, 4]
    assert document["inputs"][0]["datatype"] == "FP32"
    assert data["X"] == X.tobytes()


def test_a_routed_request_names_its_class_in_every_row():
    _, _, document, data = taken_apart(wire.encode("h:1", Route("router", class_name="online"), {"X": X}))
    assert document["inputs"][1]["shape"] == [2, 1]
    assert document["inputs"][1]["datatype"] == "BYTES"
    assert data["CLASS"] == 2 * (b"\x06\0\0\0" + b"online")
    assert "priority" not in document["parameters"]


def test_a_class_without_batch_axis():
    request = wire.encode("h:1", Route("router", class_name="ä", batched=False), {"X": X})
    _, _, document, data = taken_apart(request)
    assert document["inputs"][1]["shape"] == [1]
    assert data["CLASS"] == b"\x02\0\0\0" + "ä".encode()


def test_outputs_that_are_asked_for():
    _, _, document, _ = taken_apart(wire.encode("h:1", Route("executor"), {"X": X}, outputs=["Y"]))
    assert document["outputs"] == [{"name": "Y", "parameters": {"binary_data": True}}]
    assert "binary_data_output" not in document["parameters"]


@pytest.mark.parametrize("dtype", ["bool", "int8", "int16", "int32", "int64", "uint8", "float16", "float64"])
def test_numbers_travel_as_they_are(dtype):
    array = np.array([[0, 1, 2]], dtype=dtype)
    _, _, document, data = taken_apart(wire.encode("h:1", Route("m"), {"A": array[:, ::2]}))
    assert document["inputs"][0]["shape"] == [1, 2]
    assert_array_equal(np.frombuffer(data["A"], dtype=dtype), [0, 1 if dtype == "bool" else 2])


def test_an_unknown_dtype_is_named():
    with pytest.raises(TypeError, match=r"'A'.*complex"):
        wire.encode("h:1", Route("m"), {"A": np.zeros((1, 1), dtype=complex)})


def reply(status, body, **headers):
    lines = [f"HTTP/1.1 {status} X", *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + f"\r\nContent-Length: {len(body)}\r\n\r\n").encode() + body


def test_the_length_of_a_reply_is_known_as_soon_as_its_header_is_there():
    whole = reply(200, b"x" * 50, Content_Type="application/json")
    head = whole.index(b"\r\n\r\n") + 4
    for cut in range(len(whole) + 1):
        assert wire.reply_length(whole[:cut]) == (len(whole) if cut >= head else None)


@pytest.mark.parametrize("data", [b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n", b"HTTP/1.0 200 OK\r\n\r\n", b"\x16\x03\r\n\r\n"])
def test_other_replies_are_refused(data):
    with pytest.raises(wire.ReplyError):
        wire.reply_length(data)


def test_an_int64_output_is_found_behind_others():
    outputs = [
        {"name": "Y", "parameters": {"binary_data_size": 16}},
        {"name": "ROUTER_QUEUE_US", "parameters": {"binary_data_size": 8}},
    ]
    header = json.dumps({"outputs": outputs}).encode()
    values = np.zeros(4, np.float32).tobytes() + np.array([12345], np.int64).tobytes()
    whole = reply(200, header + values, Inference_Header_Content_Length=len(header))
    assert wire.int64_output(whole, "ROUTER_QUEUE_US") == 12345
    assert wire.int64_output(whole, "ROUTER_EXECUTOR_US") is None
    assert wire.int64_output(reply(200, b'{"outputs":[]}'), "ROUTER_QUEUE_US") is None


# The texts of Triton 2.51 as HTTP clients see them, and those of the router's core.
@pytest.mark.parametrize(
    ("status", "text", "outcome"),
    [
        (200, "", Outcome.SUCCESS),
        (503, "[request id: <id_unknown>] Exceeds maximum queue size", Outcome.QUEUE_FULL),
        (503, "Request timeout expired", Outcome.TIMEOUT),
        (503, "class 'online': queue is full, max_queue_size is 3", Outcome.QUEUE_FULL),
        (503, "class 'online': queue is full, its max_queue_bytes is 3", Outcome.QUEUE_FULL),
        (
            503,
            "class 'online': predicted to wait 20 ms, longer than its queue timeout of 10000 us; such a request can be "
            "served in 10 ms",
            Outcome.PREDICTED_LATE,
        ),
        (503, "class 'predicted': queue is full, max_queue_size is 3", Outcome.QUEUE_FULL),
        (503, "class 'online': waited longer than its queue timeout of 20 us", Outcome.TIMEOUT),
        (400, "Request for unknown model: 'x' is not found", Outcome.OTHER),
        (500, "request was cancelled by its caller", Outcome.CANCELLED),
        (0, "the server closed the connection", Outcome.OTHER),
    ],
)
def test_outcomes(status, text, outcome):
    assert wire.classify(status, text) is outcome


def test_error_texts():
    assert wire.error_text(reply(503, b'{"error":"no room"}')) == "no room"
    assert wire.error_text(reply(500, b"<html>")) == "<html>"
    assert wire.error_text(reply(500, b"[1]")) == "[1]"


def test_every_outcome_has_a_label_of_its_own():
    assert len({outcome.label for outcome in Outcome}) == len(Outcome)
    # Names shared with the router's metric mean the same there.
    assert {QueueFull.outcome.value, QueueTimeout.outcome.value} <= {outcome.label for outcome in Outcome}
