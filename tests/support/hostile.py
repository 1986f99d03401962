# SPDX-License-Identifier: Apache-2.0
"""Requests that no honest client sends, over both wires, and a router in front of a model with inputs of every type."""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import shutil
import socket
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import grpc
from priority_router.ops.data_types import ITEM_BYTES
from tritonclient.grpc import service_pb2, service_pb2_grpc

TYPES = {name: length for name, length in ITEM_BYTES.items() if name != "BF16"}
"""Data type of the protocol to the bytes of one element, of BYTES those of an empty one."""

REPLY_SECONDS = 60.0
"""A reply that takes longer counts as none."""

MEBIBYTE = 1 << 20
RANKS = 2
"""Of the inputs of every type, without the batch axis."""

ANY_MODEL = Path(__file__).with_name("any_model.py")


def write_large_answers(repository: Path, mebibytes: int) -> None:
    """A model that answers a few bytes with so many MiB per row, 4 rows at a time, and its router."""
    common = [
        "instance_group { kind: KIND_CPU count: 1 }",
        "dynamic_batching { }",
        'input { name: "X" data_type: TYPE_FP32 dims: [ 4 ] }',
        f'output {{ name: "BIG" data_type: TYPE_FP32 dims: [ {mebibytes * MEBIBYTE // 4} ] }}',
    ]
    for name, backend, size in (("executor", "python", 4), ("router", "priority_router", 64)):
        (repository / name / "1").mkdir(parents=True)
        head = [f'name: "{name}"', f'backend: "{backend}"', f"max_batch_size: {size}"]
        (repository / name / "config.pbtxt").write_text("\n".join([*head, *common]) + "\n")
    shutil.copy(ANY_MODEL, repository / "executor" / "1" / "model.py")
    (repository / "router" / "1" / "policy.toml").write_text(
        'policy_version = 1\nmode = "plain"\nexecutor = "executor"\n'
        "executor_shape = { instances = 1, max_batch_size = 4 }\n"
        'class = [{ name = "bulk", level = 1, max_queue_size = 99 }]\n'
    )


def write_every_type(repository: Path) -> None:
    """Adds a model ``every`` with one optional input per type, every length free, and its router ``every_router``."""
    entries = [(f"IN_{name}", f"TYPE_{name.replace('BYTES', 'STRING')}") for name in TYPES]
    dims = f"dims: [ {', '.join(['-1'] * RANKS)} ]"
    inputs = [f'input {{ name: "{name}" data_type: {kind} {dims} optional: true }}' for name, kind in entries]
    output = 'output { name: "OUT" data_type: TYPE_INT64 dims: [ 1 ] }'
    common = ["instance_group { kind: KIND_CPU count: 1 }", "dynamic_batching { }", *inputs, output]
    for name, backend, size in (("every", "python", 4), ("every_router", "priority_router", 64)):
        (repository / name / "1").mkdir(parents=True)
        of_router = ['input { name: "CLASS" data_type: TYPE_STRING dims: [ 1 ] optional: true }'] if size > 4 else []
        config = [f'name: "{name}"', f'backend: "{backend}"', f"max_batch_size: {size}", *common, *of_router]
        (repository / name / "config.pbtxt").write_text("\n".join(config) + "\n")
    shutil.copy(ANY_MODEL, repository / "every" / "1" / "model.py")
    (repository / "every_router" / "1" / "policy.toml").write_text(
        'policy_version = 1\nmode = "plain"\nexecutor = "every"\n'
        "executor_shape = { instances = 1, max_batch_size = 4 }\n"
        'default_class = "bulk"\nclass = [{ name = "online", level = 1 }, { name = "bulk", level = 2 }]\n'
    )


def texts(*values: bytes) -> bytes:
    """Elements of a BYTES tensor as they travel."""
    return b"".join(len(value).to_bytes(4, "little") + value for value in values)


def post(address: str, model: str, head: Any, headers: Mapping[str, str] | None = None) -> tuple[int, bytes]:
    """One infer request over HTTP.

    Args:
        address: ``host:port``.
        model: to call.
        head: the JSON part, or its bytes.
        headers: instead of those that fit.

    Returns:
        Status and body; status 0 where the server closed the connection.
    """
    content = head if isinstance(head, bytes) else json.dumps(head).encode()
    told = {"Inference-Header-Content-Length": str(len(content)), **(headers or {})}
    with contextlib.closing(http.client.HTTPConnection(address, timeout=REPLY_SECONDS)) as connection:
        try:
            connection.request("POST", f"/v2/models/{model}/infer", content, told)
            response = connection.getresponse()
            return response.status, response.read()
        except (http.client.HTTPException, ConnectionError):
            return 0, b""


def send_raw(address: str, data: bytes) -> bytes:
    """Writes bytes to the HTTP port and ends the own side; what comes back until the server ends its own."""
    host, port = address.split(":")
    with socket.create_connection((host, int(port)), timeout=5) as connection:
        answer = b""
        with contextlib.suppress(OSError):
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            while part := connection.recv(65536):
                answer += part
        return answer


def x_input() -> dict[str, Any]:
    """The one required input of a recording executor, in JSON."""
    return {"name": "X", "datatype": "FP32", "shape": [1, 4], "data": [0, 0, 0, 0]}


def message(model: str, **fields: Any) -> Any:
    """A request over gRPC for a recording executor's router; fields replace those that fit."""
    honest: dict[str, Any] = {
        "inputs": [{"name": "X", "shape": [1, 4], "datatype": "FP32"}],
        "raw_input_contents": [bytes(16)],
    }
    return service_pb2.ModelInferRequest(model_name=model, **{**honest, **fields})


def classed(content: bytes, shape: Sequence[int] = (1, 1), datatype: str = "BYTES") -> Any:
    """A request over gRPC whose CLASS is anything at all."""
    inputs = [
        {"name": "X", "shape": [1, 4], "datatype": "FP32"},
        {"name": "CLASS", "shape": shape, "datatype": datatype},
    ]
    return message("router", inputs=inputs, raw_input_contents=[bytes(16), content])


@contextlib.contextmanager
def caller(address: str, seconds: float = REPLY_SECONDS) -> Iterator[Any]:
    """Sends such messages: the status's name and the error's text; without an answer for so long, DEADLINE_EXCEEDED."""
    unlimited = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
    with grpc.insecure_channel(address, unlimited) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)

        def send(request: Any) -> tuple[str, str]:
            try:
                stub.ModelInfer(request, timeout=seconds)
            except grpc.RpcError as error:
                return error.code().name, str(error.details())
            return "OK", ""

        yield send


def random_message(chance: random.Random) -> Any:
    """A request for the model with every type: some fit, most do not. All tensors have bytes."""
    inputs, contents, used = [], [], chance.sample(sorted(TYPES), chance.randint(1, 4))
    rows = chance.choice([1, 1, 1, 2, 5, 64, 65])
    for name in used:
        shape = [rows, chance.choice([1, 2, 7]), chance.choice([1, 3])]
        count = shape[0] * shape[1] * shape[2]
        declared = name
        wrong = chance.random()
        if wrong < 0.1:
            shape = shape[: chance.randint(1, 2)]
        elif wrong < 0.2:
            shape = [*shape, 1]
        elif wrong < 0.25:
            shape[chance.randrange(len(shape))] = chance.choice([-1, -(2**63), 2**31, 2**62, 2**63 - 1])
        elif wrong < 0.3:
            declared = chance.choice([*TYPES, "BF16", "", "fp32", "TYPE_FP32", "\0"])
        size = TYPES[name] * count + (chance.choice([-1, 1, 100]) if chance.random() < 0.1 else 0)
        content = chance.randbytes(max(1, size))
        if name == "BYTES" and chance.random() < 0.7:
            content = texts(*(b"1" * chance.randint(1, 9) for _ in range(count)))
        inputs.append({"name": f"IN_{name}", "shape": shape, "datatype": declared})
        contents.append(content)
    if chance.random() < 0.3:
        text = chance.choice([b"online", b"bulk", chance.randbytes(chance.randint(0, 200))])
        inputs.append({"name": "CLASS", "shape": [rows, 1], "datatype": "BYTES"})
        contents.append(texts(*[text] * rows))
    parameters = {}
    for _ in range(chance.choice([0, 0, 0, 1, 2])):
        key = chance.choice(
            ["class", "priority", "timeout", "priority_router_level", "priority_router_probe", "", "x" * 999]
        )
        parameters[key] = random_parameter(chance)
    return service_pb2.ModelInferRequest(
        model_name="every_router",
        id=chance.choice(["", "a", "é" * 50, "i" * 4096, "\0"]),
        inputs=inputs,
        raw_input_contents=contents,
        outputs=[
            {"name": name} for name in chance.choice([[], [], ["OUT"], ["NOPE"], ["OUT", "OUT"], ["ROUTER_QUEUE_US"]])
        ],
        parameters=parameters,
    )


def random_parameter(chance: random.Random) -> Any:
    """A parameter of any kind."""
    kinds: list[dict[str, Any]] = [
        {"bool_param": True},
        {"int64_param": chance.choice([0, 1, -1, 2**63 - 1, -(2**63)])},
        {"uint64_param": 2**64 - 1},
        {"double_param": chance.choice([0.5, float("nan"), float("inf"), -1e308])},
        {"string_param": chance.choice(["", "online", "\0", '"}{', "x" * 70000, "\ud7ff\U0010ffff"])},
        {},
    ]
    return service_pb2.InferParameter(**chance.choice(kinds))
