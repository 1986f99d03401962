# SPDX-License-Identifier: Apache-2.0
"""What a client of the ensemble file_type hears when the router refuses, and what Triton passes on to the router."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest
import tritonclient.grpc
import tritonclient.http
from priority_router.ops.server import Server
from support.clients import held_by_router, metrics, router_metric
from support.fleet import MODES, PATIENCE_SECONDS, eventually
from support.models import LEARNED, Record
from support.shipped import ask, file_tensor, put_door, write_copy
from tritonclient.utils import InferenceServerException

UNKNOWN = "class 'vip' is unknown; this router knows online, background"
SCRIPT = b"#!/bin/sh\nset -eu\necho hello\n"


@dataclass(frozen=True)
class Limited:
    """A server where one background request may wait and a client may set its timeout; its executor has a door."""

    server: Server
    executor: Record

    def metric(self, name, **labels):
        return router_metric(self.server.metrics, name, **labels)

    def background_waits(self):
        eventually(lambda: self.metric("queue_size", **{"class": "background"}) == 1)


@pytest.fixture(scope="module", params=MODES)
def limited(request, start_server, tmp_path_factory):
    limits = {
        "online": "max_queue_size = 0",
        "background": "max_queue_size = 1\ndefault_timeout_microseconds = 60_000_000",
    }
    repository = write_copy(tmp_path_factory.mktemp("limited") / "models", request.param, limits)
    executor = put_door(repository)
    return Limited(start_server(repository, hooks=request.param == "levels"), executor)


@pytest.fixture
def busy(limited):
    """Until the door is opened the executor is busy, and the router has sent ahead what it may; a pool for calls."""
    online = {"parameters": {"class": "online"}}
    with tritonclient.grpc.InferenceServerClient(limited.server.grpc) as client, ThreadPoolExecutor(16) as pool:
        for _ in range(LEARNED):
            ask(client, [SCRIPT], **online)
        eventually(lambda: held_by_router(limited.server.metrics) == 0)
        with limited.executor.shut():
            blockers = [pool.submit(ask, client, [SCRIPT], **online)]
            eventually(lambda: limited.executor.held() == 1)
            blockers.append(pool.submit(ask, client, [SCRIPT], **online))
            eventually(lambda: limited.metric("in_flight_rows") == 2)
            yield pool
        for blocker in blockers:
            blocker.result(PATIENCE_SECONDS)


def outcomes(server):
    found = {}
    for sample, value in metrics(server.metrics).items():
        if sample.startswith("priority_router_requests_total") and value:
            labels = dict(pair.split("=") for pair in sample.partition("{")[2].rstrip("}").split(","))
            found[labels["class"].strip('"'), labels["outcome"].strip('"')] = value
    return found


class Caller:
    """Asks for one file's type with a client of its own."""

    def __init__(self, server, protocol):
        self.module = {"http": tritonclient.http, "grpc": tritonclient.grpc}[protocol]
        self.address = getattr(server, protocol)
        self.codes = {"UNAVAILABLE": "503", "INVALID_ARGUMENT": "400"} if protocol == "http" else {}

    def ask(self, traffic_class, **arguments):
        with self.module.InferenceServerClient(self.address) as client:
            return ask(client, [SCRIPT], parameters={"class": traffic_class}, **arguments)

    def refused(self, code, text, traffic_class, **arguments):
        """Asks, and expects exactly this error."""
        with pytest.raises(InferenceServerException) as refusal:
            self.ask(traffic_class, **arguments)
        status = self.codes.get(code, f"StatusCode.{code}")
        assert (refusal.value.status(), refusal.value.message()) == (status, f"in ensemble 'file_type', {text}")


class TestRefusals:
    """The router's error replies reach the client through the ensemble, with code and text."""

    @pytest.fixture(params=["http", "grpc"])
    def caller(self, request, limited):
        return Caller(limited.server, request.param)

    def test_unknown_class(self, caller):
        caller.refused("INVALID_ARGUMENT", UNKNOWN, "vip")

    def test_queue_timeout(self, caller, busy):
        text = "class 'background': waited longer than its queue timeout of 100000 us"
        caller.refused("UNAVAILABLE", text, "background", timeout=100_000)

    def test_queue_full(self, limited, caller, busy):
        first = busy.submit(caller.ask, "background")
        limited.background_waits()
        caller.refused("UNAVAILABLE", "class 'background': queue is full, max_queue_size is 1", "background")
        assert not first.done()
        limited.executor.open()
        assert first.result(PATIENCE_SECONDS).as_numpy("label").tolist() == [[b"shell"]]


def test_a_cancel_does_not_reach_the_router(limited, busy):
    """Triton tells a cancel to the ensemble and not to its steps: the caller hears, and the row runs all the same."""
    before = outcomes(limited.server)
    ended = []
    with tritonclient.grpc.InferenceServerClient(limited.server.grpc) as client:
        content = file_tensor(client, [SCRIPT])
        call = client.async_infer("file_type", [content], lambda result, error: ended.append(error))
        limited.background_waits()
        call.cancel()
        eventually(lambda: ended)
    limited.executor.open()
    assert ended[0].status() == "StatusCode.CANCELLED"
    key = ("background", "success")
    eventually(lambda: outcomes(limited.server).get(key, 0) == before.get(key, 0) + 1)
    assert not any(outcome == "cancelled" for _, outcome in outcomes(limited.server))


def test_a_priority_has_no_effect(limited, busy):
    with tritonclient.grpc.InferenceServerClient(limited.server.grpc) as client:
        call = busy.submit(ask, client, [SCRIPT], parameters={"class": "background"}, priority=1)
        limited.background_waits()
        limited.executor.open()
        assert call.result(PATIENCE_SECONDS)


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_forwarded_header_reaches_the_router(by_header, protocol):
    caller = Caller(by_header, protocol)
    assert caller.ask("ignored", headers={"x-class": "online"}).as_numpy("label").tolist() == [[b"shell"]]
    caller.refused("INVALID_ARGUMENT", UNKNOWN, "online", headers={"x-class": "vip"})


@pytest.fixture(scope="module")
def by_header(start_server, tmp_path_factory):
    repository = write_copy(tmp_path_factory.mktemp("header") / "models")
    policy = repository / "router" / "1" / "policy.toml"
    policy.write_text(f'class_sources = ["header:x-class"]\n{policy.read_text()}')
    forward = [f"--{protocol}-header-forward-pattern=x-class" for protocol in ("http", "grpc")]
    return start_server(repository, extra_args=forward)


def test_the_first_steps_queue_is_bounded(start_server, tmp_path):
    repository = write_copy(tmp_path / "models")
    config = repository / "file_type_features" / "config.pbtxt"
    config.write_text(config.read_text().replace("max_queue_size: 1024", "max_queue_size: 1"))
    model, door = repository / "file_type_features" / "1" / "model.py", tmp_path / "door"
    answers = "        return [self._answer(request) for request in requests]"
    shut = f"        while __import__('os').path.exists({str(door)!r}):\n            __import__('time').sleep(0.01)\n"
    assert model.read_text().count(answers) == 1
    model.write_text(model.read_text().replace(answers, shut + answers))
    server = start_server(repository)
    door.touch()
    with tritonclient.grpc.InferenceServerClient(server.grpc) as client, ThreadPoolExecutor(8) as pool:
        calls = [pool.submit(ask, client, [SCRIPT]) for _ in range(8)]
        try:
            eventually(lambda: sum(call.done() for call in calls) >= 4)
        finally:
            door.unlink()
        errors = [call.exception(PATIENCE_SECONDS) for call in calls]
    refused = [error for error in errors if isinstance(error, InferenceServerException)]
    assert len(refused) == sum(error is not None for error in errors)
    assert 4 <= len(refused) < 8
    for error in refused:
        assert error.status() == "StatusCode.UNAVAILABLE"
        assert error.message().endswith("Exceeds maximum queue size")
