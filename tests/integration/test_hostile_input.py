# SPDX-License-Identifier: Apache-2.0
"""What hostile clients send: each request gets an answer, and neither the router nor its metrics notice it for long."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from priority_router.ops.probe.asking import Question, ask
from support import hostile
from support.clients import Call, metrics
from support.fleet import Fleet, eventually, fleet
from support.hostile import MEBIBYTE, TYPES, classed, message, post, texts, x_input
from support.models import BULK, INTERACTIVE, Executor, Router
from tritonclient.grpc import service_pb2

ROUTERS = ("router", "lenient", "every_router")
CLASSES = {INTERACTIVE, BULK, "_none", "online"}
SEED = 7
REQUESTS = 600


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    lenient = Router("lenient", policy={"unknown_class": "default"})
    pairs = [(Router(), Executor()), (lenient, Executor())]
    with fleet(tmp_path_factory.mktemp("hostile"), "levels", pairs, more=hostile.write_every_type) as made:
        yield made


@pytest.fixture(scope="module")
def send(system: Fleet) -> Iterator[Any]:
    with hostile.caller(system.server.grpc) as sender:
        yield sender


def series(system: Fleet) -> set[str]:
    """The routers' time series: names with labels."""
    return {name for name in metrics(system.server.metrics) if name.startswith("priority_router_")}


@pytest.fixture(scope="module", autouse=True)
def at_first(system: Fleet) -> set[str]:
    """The series before any of this."""
    return series(system)


@pytest.fixture(autouse=True)
def unharmed(system: Fleet) -> Iterator[None]:
    """After each test: the same processes, every router alive and empty, no fault, no new series."""
    processes, before = system.server.stub_pids(), series(system)
    yield
    for router in ROUTERS:
        ask(f"http://{system.server.http}", router, 60, Question(live=True))
        system.rests(router)
        for fault in ("failed_replies_total", "scheduler_faults_total", "lost_dispatches"):
            assert system.metric(fault, router) == 0
    assert system.server.stub_pids() == processes
    assert series(system) == before
    assert {name.partition('class="')[2].partition('"')[0] for name in before if 'class="' in name} <= CLASSES
    assert system.client.infer("router", Call(tag=1, traffic_class=INTERACTIVE)).ok


NAMES = {
    "empty": b"",
    "one NUL": b"\0",
    "with NUL": b"interactive\0",
    "not UTF-8": b"\xff\xfe\x80",
    "half a character": "größe".encode()[:3],
    "blank": b" interactive",
    "other case": b"Interactive",
    "a label's end": b'bulk",outcome="success"} 9\n',
    "64 bytes": b"x" * 64,
    "65 bytes": b"x" * 65,
    "a mebibyte": b"y" * MEBIBYTE,
    "a mebibyte of NUL": bytes(MEBIBYTE),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_class_of_any_bytes(system: Fleet, send: Any, name: str) -> None:
    code, said = send(classed(texts(NAMES[name])))
    assert (code, "is unknown; this router knows interactive, bulk" in said) == ("INVALID_ARGUMENT", True), said
    assert len(said) < 400, "the whole of it comes back"
    eventually(lambda: system.metric("requests_total", **{"class": "_none", "outcome": "invalid"}) > 0)


@pytest.mark.parametrize("name", NAMES)
def test_a_class_of_any_bytes_where_unknown_ones_are_served(send: Any, name: str) -> None:
    request = classed(texts(NAMES[name]))
    request.model_name = "lenient"
    assert send(request) == ("OK", "")


@pytest.mark.parametrize("shape", [(1,), (1, 2), (2, 1), (1, 1, 1), (1, -1), (1, 2**31), (1, 2**62), (-1, 1)])
def test_a_class_of_any_shape(send: Any, shape: tuple[int, ...]) -> None:
    count = 2 if 2 in shape else 1
    assert send(classed(texts(*[b"bulk"] * count), shape))[0] in ("INVALID_ARGUMENT", "INTERNAL")


@pytest.mark.parametrize("datatype", [*sorted(set(TYPES) - {"BYTES"}), "BF16", "", "bytes", "STRING"])
def test_a_class_of_any_type(send: Any, datatype: str) -> None:
    assert send(classed(bytes(TYPES.get(datatype, 2)), (1, 1), datatype))[0] == "INVALID_ARGUMENT"


@pytest.mark.parametrize(
    "content", [b"\xff\xff\xff\xff", b"\x05\0\0\0bul", b"\x01\0\0\0bulk", b"\0\0", texts(b"bulk") * 2]
)
def test_a_class_whose_lengths_lie(send: Any, content: bytes) -> None:
    assert send(classed(content))[0] == "INVALID_ARGUMENT"


PARAMETERS: dict[str, tuple[Any, int]] = {
    "a number": (5, 400),
    "a fraction": (1.5, 400),
    "true": (True, 400),
    "empty": ("", 400),
    "NUL, where Triton ends the text": ("bulk\0", 200),
    "a lone surrogate, which is no JSON to Triton": ("\ud800", 500),
    "a mebibyte": ("z" * MEBIBYTE, 400),
    "null": (None, 400),
    "a list": (["bulk"], 400),
    "an object": ({"class": "bulk"}, 400),
    "more than 64 bits": (2**70, 400),
    "not a number": (float("nan"), 400),
    "a class": ("bulk", 200),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_class_parameter_of_any_kind_over_http(system: Fleet, name: str) -> None:
    value, expected = PARAMETERS[name]
    status, body = post(system.server.http, "router", {"inputs": [x_input()], "parameters": {"class": value}})
    assert status == expected, body[:300]


OTHERS: dict[str, Any] = {
    "priority": {"priority": -1},
    "a large priority": {"priority": 2**40},
    "a text for a priority": {"priority": "1"},
    "a negative timeout": {"timeout": -1},
    "a timeout of 64 bits": {"timeout": 2**63 - 1},
    "a text for a timeout": {"timeout": "soon"},
    "the hooks' key": {"priority_router_level": 1},
    "a large level": {"priority_router_level": 2**62},
    "the probe's key as a text": {"priority_router_probe": "true"},
    "a sequence": {"sequence_id": 7, "sequence_start": True, "sequence_end": True},
    "a sequence's name": {"sequence_id": "seven"},
    "classification": {"classification": 3},
    "a thousand": {f"key{number}": number for number in range(1000)},
    "a long name": {"k" * MEBIBYTE: 1},
    "no name": {"": 1},
    "a name with NUL": {"a\0b": "c\0d"},
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_parameters_over_http(system: Fleet, name: str) -> None:
    status, _ = post(system.server.http, "router", {"inputs": [x_input()], "parameters": OTHERS[name]})
    assert status in (200, 400, 500)


@pytest.mark.parametrize("kind", ["bool_param", "int64_param", "uint64_param", "double_param", "string_param", None])
@pytest.mark.parametrize("key", ["class", "timeout", "priority", "priority_router_level", "other"])
def test_parameters_of_any_kind_over_grpc(send: Any, key: str, kind: str | None) -> None:
    values = {"bool_param": True, "int64_param": -1, "uint64_param": 2**64 - 1, "double_param": 1e308}
    value = {} if kind is None else {kind: values.get(kind, "a\0b")}
    assert send(message("router", parameters={key: service_pb2.InferParameter(**value)}))[0] in (
        "OK",
        "INVALID_ARGUMENT",
        "INTERNAL",
    )


@pytest.mark.parametrize(
    "name", ["i" * MEBIBYTE, "\0", "\n\r", "é" * 1000], ids=["a mebibyte", "NUL", "lines", "accents"]
)
def test_an_id_of_any_length(system: Fleet, send: Any, name: str) -> None:
    assert send(message("router", id=name))[0] == "OK"
    assert post(system.server.http, "router", {"id": name, "inputs": [x_input()]})[0] in (200, 400)


@pytest.mark.parametrize("datatype", TYPES)
@pytest.mark.parametrize("shape", [(), (3,), (3, 1), (3, 2, 1), (3, 1, 2, 1), (0, 1, 1), (1, 1, 1), (65, 1, 1)])
def test_inputs_of_every_type_and_rank(send: Any, datatype: str, shape: tuple[int, ...]) -> None:
    count = 1
    for length in shape:
        count *= length
    inputs = [{"name": f"IN_{datatype}", "shape": shape, "datatype": datatype}]
    content = (texts(b"1") if datatype == "BYTES" else bytes(TYPES[datatype])) * max(1, count)
    request = message("every_router", inputs=inputs, raw_input_contents=[content])
    fits = len(shape) == 3 and 0 < shape[0] <= 64
    assert send(request)[0] == ("OK" if fits else "INVALID_ARGUMENT")


@pytest.mark.parametrize(
    "names",
    [["X", "X"], ["X", "NOPE"], ["NOPE"], [], ["CLASS"], [""], ["x" * MEBIBYTE], ["X\0", "X"], ["ROUTER_QUEUE_US"]],
)
def test_inputs_of_any_name(send: Any, names: list[str]) -> None:
    inputs = [{"name": name, "shape": [1, 4], "datatype": "FP32"} for name in names]
    assert send(message("router", inputs=inputs, raw_input_contents=[bytes(16)] * len(names)))[0] != "OK"


@pytest.mark.parametrize("names", [["NOPE"], ["Y", "Y"], ["Y\0"], [""], ["y" * MEBIBYTE], ["Y"] * 5000, ["CLASS"]])
def test_outputs_of_any_name(send: Any, names: list[str]) -> None:
    assert send(message("router", outputs=[{"name": name} for name in names]))[0] in (
        "OK",
        "INVALID_ARGUMENT",
        "RESOURCE_EXHAUSTED",  # the error would repeat the name
    )


LIES = {
    "negative": {"Inference-Header-Content-Length": "-1"},
    "beyond the end": {"Inference-Header-Content-Length": "99999999"},
    "no number": {"Inference-Header-Content-Length": "x"},
    "64 bits": {"Inference-Header-Content-Length": "18446744073709551616"},
    "too short": {"Inference-Header-Content-Length": "3"},
}


@pytest.mark.parametrize("name", LIES)
def test_a_length_that_lies(system: Fleet, name: str) -> None:
    assert post(system.server.http, "router", {"inputs": [x_input()]}, LIES[name])[0] in (0, 400, 500)


BODIES = {
    "nothing": b"",
    "no JSON": b"\xff\0{",
    "a list": b"[]",
    "a number": b"1",
    "nested": b'{"inputs":' + b"[" * 2000 + b"]" * 2000 + b"}",
    "no inputs": b'{"inputs":[]}',
    "inputs of another kind": b'{"inputs":5}',
    "an input of another kind": b'{"inputs":[5]}',
    "data of another type": json.dumps({"inputs": [{**x_input(), "data": ["a", None, {}, []]}]}).encode(),
    "too little data": json.dumps({"inputs": [{**x_input(), "data": [0]}]}).encode(),
    "a shape of texts": json.dumps({"inputs": [{**x_input(), "shape": ["a"]}]}).encode(),
    "a size that lies": json.dumps({"inputs": [{**x_input(), "parameters": {"binary_data_size": 2**40}}]}).encode(),
    "a region that is none": json.dumps(
        {"inputs": [{**x_input(), "parameters": {"shared_memory_region": "x", "shared_memory_byte_size": 16}}]}
    ).encode(),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_body_that_is_no_request(system: Fleet, name: str) -> None:
    assert post(system.server.http, "router", BODIES[name])[0] in (0, 400, 500)


def test_broken_bytes_on_the_http_port(system: Fleet) -> None:
    chance = random.Random(SEED)
    whole = b"POST /v2/models/router/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 200\r\n\r\n"
    for number in range(40):
        data = bytearray(whole + chance.randbytes(chance.randint(0, 300)))
        for _ in range(number % 5):
            data[chance.randrange(len(data))] = chance.randrange(256)
        hostile.send_raw(system.server.http, bytes(data))


def test_random_requests_are_all_answered(system: Fleet, send: Any) -> None:
    """Some fit, so that they travel together with what does not."""
    chance = random.Random(SEED)
    requests = [hostile.random_message(chance) for _ in range(REQUESTS)]
    with ThreadPoolExecutor(16) as pool:
        codes = [code for code, _ in pool.map(send, requests)]
    # UNAVAILABLE are those whose own timeout was a microsecond.
    assert set(codes) <= {"OK", "INVALID_ARGUMENT", "INTERNAL", "UNAVAILABLE"}, set(codes)
    assert min(codes.count("OK"), codes.count("INVALID_ARGUMENT")) > REQUESTS / 20


def test_requests_without_rows_are_kept_from_everybody_else(system: Fleet, send: Any) -> None:
    """Triton 24.10 answers them for no model, and hands them to none."""
    nothing = [{"name": "IN_FP32", "shape": (0, 0, 0), "datatype": "FP32"}]
    received = system.settled_outcomes("every_router")
    with hostile.caller(system.server.grpc, 2) as impatient, ThreadPoolExecutor(40) as pool:
        requests = [message("every_router", inputs=nothing, raw_input_contents=[b""])] * 40
        codes = pool.map(impatient, requests)
        row = [{"name": "IN_FP32", "shape": (1, 1, 1), "datatype": "FP32"}]
        for _ in range(20):
            assert send(message("every_router", inputs=row, raw_input_contents=[bytes(4)])) == ("OK", "")
        assert {code for code, _ in codes} == {"DEADLINE_EXCEEDED"}
    eventually(lambda: sum(system.outcomes("every_router").values()) == sum(received.values()) + 20)


def test_the_metrics_have_the_same_series_as_before_all_this(system: Fleet, at_first: set[str]) -> None:
    requests = system.metric("requests_total", **{"class": BULK, "outcome": "success"})
    assert system.client.infer("router", Call(tag=1, traffic_class=BULK)).ok
    # Then what was counted before has been sent to the page as well.
    eventually(lambda: system.metric("requests_total", **{"class": BULK, "outcome": "success"}) == requests + 1)
    assert series(system) == at_first


def test_no_line_of_the_log_is_a_clients_to_make(system: Fleet) -> None:
    """Nor do clients fill it: of each kind of fault there is one line a second, and bad requests are no faults."""
    own = [
        line
        for line in Path(f"{system.repository}.log").read_text(errors="replace").splitlines()
        if "_router router:" in line
    ]
    assert [line for line in own if "failed" in line] == []
