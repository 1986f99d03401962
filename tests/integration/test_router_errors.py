# SPDX-License-Identifier: Apache-2.0
"""Every caller gets one reply with the right code and text, by gRPC and HTTP, and nobody else is disturbed."""

from __future__ import annotations

import contextlib
import functools
import http.client
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import grpc
import numpy as np
import pytest
from support.clients import Array, Call, Reply, client
from support.fleet import MODES, Fleet, eventually, fleet
from support.models import BULK, INTERACTIVE, ErrorReply, Executor, Router
from tritonclient.grpc import service_pb2, service_pb2_grpc

HTTP = {"400": "INVALID_ARGUMENT", "404": "NOT_FOUND", "500": "INTERNAL", "503": "UNAVAILABLE"}
LOST_CODE = "INTERNAL"
"""What 24.10 makes of an executor's own code on its way through BLS; later releases keep it."""

FAILING = Executor(
    "failing",
    batch_seconds=0.02,
    error_tags={
        71: ErrorReply("bad weights"),
        72: ErrorReply("bad shape", "INVALID_ARG"),
        73: ErrorReply("not this week", "UNAVAILABLE"),
        74: ErrorReply("the camera is not ready"),
    },
    raise_tags=[75],
)
LIMITED = Executor(
    "limited",
    max_batch_size=1,
    batching=(
        "dynamic_batching { priority_levels: 2 default_priority_level: 2\n"
        "  priority_queue_policy { key: 1 value { max_queue_size: 1 } }\n"
        "  priority_queue_policy { key: 2 value { max_queue_size: 1 } } }"
    ),
)
TIMED = Executor(
    "timed",
    max_batch_size=1,
    batching=(
        "dynamic_batching { priority_levels: 2 default_priority_level: 2\n"
        "  priority_queue_policy { key: 1 value { default_timeout_microseconds: 50000 } }\n"
        "  priority_queue_policy { key: 2 value { default_timeout_microseconds: 50000 } } }"
    ),
)
MISSING = Executor("nowhere")
OPEN = {"guard_executor": False}


@pytest.fixture(scope="module", params=MODES)
def system(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    routers = [
        (Router("router", policy=OPEN), FAILING),
        (Router("lenient", policy={**OPEN, "unknown_class": "default"}), FAILING),
        (Router("by_header", policy={**OPEN, "class_sources": ["header:X-Traffic-Class"]}), FAILING),
        (Router("router_limited", policy=OPEN), LIMITED),
        (Router("router_timed", policy=OPEN), TIMED),
        (Router("router_nowhere", policy=OPEN), MISSING),
    ]
    forward = "(?i)^x-traffic-class$"
    arguments = [f"--http-header-forward-pattern={forward}", f"--grpc-header-forward-pattern={forward}"]
    folder = tmp_path_factory.mktemp("errors")
    with fleet(folder, request.param, routers, absent=["nowhere"], extra_args=arguments) as made:
        yield made


@pytest.fixture(params=["grpc", "http"])
def infer(system: Fleet, request: pytest.FixtureRequest) -> Iterator[Any]:
    """Sends one call; a code is given as gRPC's in either protocol."""
    with client(getattr(system.server, request.param), request.param) as sender:

        def send(model: str, call: Call) -> Reply:
            reply = sender.infer(model, call)
            return replace(reply, code=HTTP.get(reply.code, reply.code))

        yield send


class TestClass:
    """How a request names its class."""

    @pytest.mark.parametrize(
        ("call", "label"),
        [
            (Call(tag=1, traffic_class=INTERACTIVE), INTERACTIVE),
            (Call(tag=1, rows=3, traffic_class=INTERACTIVE), INTERACTIVE),
            (Call(tag=1, class_parameter=INTERACTIVE), INTERACTIVE),
            (Call(tag=1, traffic_class=BULK, class_parameter=INTERACTIVE), BULK),
            (Call(tag=1), BULK),
        ],
    )
    def test_each_source_counts(self, system: Fleet, infer: Any, call: Call, label: str) -> None:
        before = system.settled_outcomes()[label, "success"]
        assert infer("router", call).ok
        eventually(lambda: system.outcomes()[label, "success"] == before + 1)

    @pytest.mark.parametrize(
        ("call", "said"),
        [
            (Call(tag=1, traffic_class="gold"), "class 'gold' is unknown; this router knows interactive, bulk"),
            (Call(tag=1, class_parameter="gold"), "class 'gold' is unknown; this router knows interactive, bulk"),
            (Call(tag=1, traffic_class=""), "class '' is unknown"),
            (Call(tag=1, parameters={"class": 7}), "parameter 'class' must be a text, found int"),
            (
                Call(tag=1, rows=2, inputs={"CLASS": np.array([[b"interactive"], [b"bulk"]], object)}),
                "all rows of a request share one class",
            ),
        ],
    )
    def test_a_wrong_class_is_the_callers_mistake(self, system: Fleet, infer: Any, call: Call, said: str) -> None:
        before = system.settled_outcomes()["_none", "invalid"]
        reply = infer("router", call)
        assert (reply.code, said in reply.message) == ("INVALID_ARGUMENT", True), reply.message
        eventually(lambda: system.outcomes()["_none", "invalid"] == before + 1)

    @pytest.mark.parametrize(
        "tensor", [np.full((1, 2), b"bulk", object), np.full((2, 1), b"bulk", object), np.ones((1, 1), np.int64)]
    )
    def test_a_class_tensor_of_another_shape_or_type_is_refused(self, infer: Any, tensor: Array) -> None:
        assert infer("router", Call(tag=1, inputs={"CLASS": tensor})).code == "INVALID_ARGUMENT"

    def test_an_unknown_class_may_be_served_and_is_counted(self, system: Fleet, infer: Any) -> None:
        before = system.metric("unknown_class_total", "lenient"), system.outcomes("lenient")[BULK, "success"]
        assert infer("lenient", Call(tag=1, traffic_class="gold")).ok
        eventually(lambda: system.metric("unknown_class_total", "lenient") == before[0] + 1)
        eventually(lambda: system.outcomes("lenient")[BULK, "success"] == before[1] + 1)

    @pytest.mark.parametrize("model", ["failing", "router"])
    def test_no_rows_are_refused_by_triton_itself(self, system: Fleet, infer: Any, model: str) -> None:
        """So the router never sees them; what it would answer is in the unit tests."""
        before = system.metric("requests_total", **{"class": "_none", "outcome": "invalid"})
        reply = infer(model, Call(rows=0, inputs={"X": np.zeros((0, 4), np.float32)}))
        said = f"input byte size mismatch for input 'X' for model '{model}'. Expected 16, got 0"
        assert (reply.code, said in reply.message) == ("INVALID_ARGUMENT", True), reply
        assert system.metric("requests_total", **{"class": "_none", "outcome": "invalid"}) == before


class TestHeader:
    """Only the gateway's header counts, wherever Triton forwards it: everywhere but on the generate endpoints."""

    NAME = "x-traffic-class"

    @pytest.fixture(params=["http", "grpc", "grpc stream"])
    def ask(self, system: Fleet, request: pytest.FixtureRequest) -> Callable[..., str]:
        """Sends a request with headers and body parameters; gives the error's text, empty where there is none."""
        ways = {"http": self.http, "grpc": self.grpc, "grpc stream": self.grpc_stream}
        return functools.partial(ways[request.param], system)

    def http(
        self, system: Fleet, headers: Sequence[tuple[str, str]], parameters: Mapping[str, str], path: str = "infer"
    ) -> str:
        x = {"name": "X", "shape": [1, 4], "datatype": "FP32", "data": [0, 0, 0, 0]}
        body: dict[str, Any] = {"inputs": [x], "parameters": parameters}
        if path == "generate":
            body = {"X": [0, 0, 0, 0], **parameters}
        connection = http.client.HTTPConnection(system.server.http, timeout=30)
        with contextlib.closing(connection):
            content = json.dumps(body).encode()
            connection.putrequest("POST", f"/v2/models/by_header/{path}")
            for name, value in [*headers, ("Content-Length", str(len(content)))]:
                connection.putheader(name, value)
            connection.endheaders(content)
            response = connection.getresponse()
            text = response.read().decode()
            assert response.status in (200, 400), text
            return "" if response.status == 200 else text

    def grpc(self, system: Fleet, headers: Sequence[tuple[str, str]], parameters: Mapping[str, str]) -> str:
        with grpc.insecure_channel(system.server.grpc) as channel:
            stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
            try:
                stub.ModelInfer(self.message(parameters), metadata=lower(headers), timeout=30)
            except grpc.RpcError as error:
                return str(error.details()) if error.code() is grpc.StatusCode.INVALID_ARGUMENT else repr(error)
        return ""

    def grpc_stream(self, system: Fleet, headers: Sequence[tuple[str, str]], parameters: Mapping[str, str]) -> str:
        with grpc.insecure_channel(system.server.grpc) as channel:
            stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
            messages = iter([self.message(parameters)])
            (response,) = stub.ModelStreamInfer(messages, metadata=lower(headers), timeout=30)
            return str(response.error_message)

    def message(self, parameters: Mapping[str, str]) -> Any:
        return service_pb2.ModelInferRequest(
            model_name="by_header",
            inputs=[{"name": "X", "shape": [1, 4], "datatype": "FP32"}],
            raw_input_contents=[bytes(16)],
            parameters={name: service_pb2.InferParameter(string_param=value) for name, value in parameters.items()},
        )

    @contextlib.contextmanager
    def counted(self, system: Fleet, class_name: str) -> Iterator[None]:
        """The block has one request served in this class, and none in another."""
        before = self.served(system)
        yield
        eventually(lambda: self.served(system) == {**before, class_name: before.get(class_name, 0) + 1})

    def served(self, system: Fleet) -> dict[str, float]:
        outcomes = system.outcomes("by_header")
        return {label: count for (label, outcome), count in outcomes.items() if outcome == "success"}

    @pytest.mark.parametrize("name", [NAME, "X-Traffic-Class"])
    def test_it_names_the_class(self, system: Fleet, ask: Any, name: str) -> None:
        with self.counted(system, INTERACTIVE):
            assert ask([(name, INTERACTIVE)], {}) == ""

    @pytest.mark.parametrize("name", [NAME, "X-Traffic-Class", "X-TRAFFIC-CLASS"])
    def test_a_body_parameter_of_its_name_beside_it_is_refused(self, ask: Any, name: str) -> None:
        assert f"header '{self.NAME}' is given 2 times" in ask([(self.NAME, BULK)], {name: INTERACTIVE})

    def test_a_clients_own_header_beside_it_is_refused(self, ask: Any) -> None:
        headers = [("X-Traffic-Class", INTERACTIVE), (self.NAME, BULK)]
        assert f"header '{self.NAME}' is given 2 times" in ask(headers, {})

    def test_the_class_parameter_does_not_count(self, system: Fleet, ask: Any) -> None:
        with self.counted(system, BULK):
            assert ask([(self.NAME, BULK)], {"class": INTERACTIVE}) == ""

    def test_the_class_tensor_does_not_count(self, system: Fleet, infer: Any) -> None:
        with self.counted(system, BULK):
            assert infer("by_header", Call(tag=1, traffic_class=INTERACTIVE)).ok

    def test_where_it_is_missing_a_body_parameter_counts(self, system: Fleet, ask: Any) -> None:
        """What docs/policy.md warns of: Triton does not say where a parameter came from."""
        with self.counted(system, INTERACTIVE):
            assert ask([], {"X-Traffic-Class": INTERACTIVE}) == ""

    def test_generate_does_not_forward_it(self, system: Fleet) -> None:
        """What docs/policy.md warns of: a body parameter of that name then counts, whatever the header says."""
        with self.counted(system, BULK):
            assert self.http(system, [(self.NAME, INTERACTIVE)], {}, "generate") == ""
        with self.counted(system, INTERACTIVE):
            assert self.http(system, [(self.NAME, BULK)], {self.NAME: INTERACTIVE}, "generate") == ""


def lower(headers: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The only spelling that gRPC takes."""
    return [(name.lower(), value) for name, value in headers]


class TestExecutor:
    """What the executor's failures become."""

    @pytest.mark.parametrize(
        ("tag", "text", "code"),
        [
            (71, "bad weights", "INTERNAL"),
            (72, "bad shape", "INVALID_ARGUMENT"),
            (73, "not this week", "UNAVAILABLE"),
            (74, "the camera is not ready", "INTERNAL"),
        ],
    )
    def test_its_own_errors_keep_their_text(self, system: Fleet, infer: Any, tag: int, text: str, code: str) -> None:
        before = system.settled_outcomes()[INTERACTIVE, "executor_error"]
        direct, routed = infer("failing", Call(tag=tag)), infer("router", Call(tag=tag, traffic_class=INTERACTIVE))
        assert (direct.code, direct.message) == (code, text)
        assert text in routed.message
        assert routed.code in (code, LOST_CODE)
        eventually(lambda: system.outcomes()[INTERACTIVE, "executor_error"] == before + 1)

    def test_an_exception_in_it_is_internal_with_its_text_and_concerns_nobody_later(
        self, system: Fleet, infer: Any
    ) -> None:
        before = system.settled_outcomes()[INTERACTIVE, "executor_error"]
        for model in ("failing", "router"):
            reply = infer(model, Call(tag=75, traffic_class=INTERACTIVE if model == "router" else None))
            assert (reply.code, "the device is lost" in reply.message) == ("INTERNAL", True), reply
            assert infer(model, Call(tag=1)).ok
        eventually(lambda: system.outcomes()[INTERACTIVE, "executor_error"] == before + 1)

    def test_its_own_queue_limit_is_unavailable_directly_and_routed(self, system: Fleet) -> None:
        """Case 3. Two get in: one runs, one waits in Triton's queue."""
        with system.records["limited"].shut():
            fill = [system.client.send("limited", Call(tag=0))]
            eventually(lambda: system.records["limited"].held() == 1)
            fill += [system.client.send("limited", Call(tag=tag)) for tag in range(1, 6)]
            eventually(lambda: sum(future.done() for future in fill) == 4)
            routed = system.client.infer("router_limited", Call(tag=100, traffic_class=BULK))
            refused = [future.result() for future in fill if future.done()]
        assert sum(future.result().ok for future in fill) == 2
        for reply in [*refused, routed]:
            assert (reply.code, "Exceeds maximum queue size" in reply.message) == ("UNAVAILABLE", True), reply

    def test_its_own_queue_timeout_is_unavailable_directly_and_routed(self, system: Fleet) -> None:
        with system.records["timed"].shut():
            blocker = system.client.send("timed", Call(tag=50))
            eventually(lambda: system.records["timed"].held() == 1)
            late = [system.client.send("timed", Call(tag=2)), system.client.send("router_timed", Call(tag=3))]
            # While every instance is busy, Triton looks for expired requests every 500 ms.
            eventually(lambda: all(future.done() for future in late))
        assert blocker.result().ok
        for reply in (future.result() for future in late):
            assert (reply.code, "Request timeout expired" in reply.message) == ("UNAVAILABLE", True), reply

    def test_a_missing_one_is_unavailable_and_named(self, system: Fleet, infer: Any) -> None:
        before = system.settled_outcomes("router_nowhere")[BULK, "unavailable"]
        reply = infer("router_nowhere", Call(tag=1))
        assert reply.code == "UNAVAILABLE"
        assert "executor 'nowhere' is not serving" in reply.message
        eventually(lambda: system.outcomes("router_nowhere")[BULK, "unavailable"] == before + 1)


def test_bad_requests_and_failing_calls_leave_their_neighbours_alone(system: Fleet) -> None:
    """All at once, so that Triton hands them over together; tags 71 to 74 fail inside the executor."""
    calls = []
    for index in range(120):
        kind = index % 6
        if kind == 0:
            calls.append(Call(tag=71 + index % 4, traffic_class=BULK, inputs={"X": np.zeros((1, 4), np.float32)}))
        elif kind == 1:
            calls.append(Call(tag=index, traffic_class="gold"))
        elif kind == 2:
            calls.append(Call(tag=index, rows=2, inputs={"CLASS": np.array([[b"interactive"], [b"bulk"]], object)}))
        else:
            calls.append(Call(tag=200 + index, rows=kind - 2, traffic_class=INTERACTIVE))
    replies = [future.result() for future in [system.client.send("router", call) for call in calls]]
    for call, reply in zip(calls, replies, strict=True):
        if call.traffic_class == INTERACTIVE:
            if reply.ok:
                assert reply.outputs["TAG_OUT"].tolist() == [[call.tag]] * call.rows
            else:  # a row of a failing caller was in the same batch
                assert reply.message in ("bad weights", "bad shape", "not this week", "the camera is not ready")
        elif call.traffic_class == BULK:
            assert not reply.ok
        else:
            assert reply.code == "INVALID_ARGUMENT"
    assert system.client.infer("router", Call(tag=1)).ok


def test_nothing_is_sent_twice_and_nothing_is_lost(system: Fleet) -> None:
    """A second reply would be in the server's log, a lost one would hang its caller."""
    log = system.server.log_text()

    def rests(model: str) -> bool:
        return system.metric("in_flight_rows", model) == 0

    for line in log.splitlines():
        assert "Response sender has been closed" not in line
        assert "cannot send more than one response" not in line
    for model in ("router", "lenient", "by_header", "router_limited", "router_timed", "router_nowhere"):
        assert system.metric("failed_replies_total", model) == 0
        eventually(functools.partial(rests, model))
