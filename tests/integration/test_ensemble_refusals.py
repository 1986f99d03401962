# SPDX-License-Identifier: Apache-2.0
"""What a client of the ensemble file_type hears when the router refuses, and what Triton passes on to the router."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import tritonclient.grpc
import tritonclient.http
from support.clients import metrics
from support.fleet import MODES, eventually
from support.shipped import ask, file_tensor, write_copy
from tritonclient.utils import InferenceServerException

ROWS = 64
UNKNOWN = "class 'vip' is unknown; this router knows online, background"
SCRIPT = b"#!/bin/sh\nset -eu\necho hello\n"


@pytest.fixture(scope="module", params=MODES)
def limited(request, start_server, tmp_path_factory):
    """One background request may wait, and a client may set its timeout."""
    limits = {
        "online": "max_queue_size = 0",
        "background": "max_queue_size = 1\ndefault_timeout_microseconds = 60_000_000",
    }
    repository = write_copy(tmp_path_factory.mktemp("limited") / "models", request.param, limits)
    return start_server(repository, hooks=request.param == "levels")


@pytest.fixture
def busy(limited):
    """While the test runs the executor has online work for a while; a pool for the test's own calls."""
    with (
        tritonclient.grpc.InferenceServerClient(limited.grpc) as client,
        ThreadPoolExecutor(16) as pool,
    ):
        blockers = [pool.submit(ask, client, [SCRIPT] * ROWS, parameters={"class": "online"}) for _ in range(4)]
        time.sleep(0.2)
        yield pool
        for blocker in blockers:
            blocker.result(60)


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
        """Asks, expects exactly this error, and tells after how many seconds it came."""
        began = time.monotonic()
        with pytest.raises(InferenceServerException) as refusal:
            self.ask(traffic_class, **arguments)
        status = self.codes.get(code, f"StatusCode.{code}")
        assert (refusal.value.status(), refusal.value.message()) == (status, f"in ensemble 'file_type', {text}")
        return time.monotonic() - began


class TestRefusals:
    """The router's error replies reach the client through the ensemble, with code and text."""

    @pytest.fixture(params=["http", "grpc"])
    def caller(self, request, limited):
        return Caller(limited, request.param)

    def test_unknown_class(self, caller):
        caller.refused("INVALID_ARGUMENT", UNKNOWN, "vip")

    def test_queue_timeout(self, caller, busy):
        text = "class 'background': waited longer than its queue timeout of 100000 us"
        assert caller.refused("UNAVAILABLE", text, "background", timeout=100_000) < 1

    def test_queue_full(self, caller, busy):
        first = busy.submit(caller.ask, "background")
        time.sleep(0.2)
        assert not first.done()
        text = "class 'background': queue is full, max_queue_size is 1"
        assert caller.refused("UNAVAILABLE", text, "background") < 1
        assert not first.done()
        assert first.result(60).as_numpy("label").tolist() == [[b"shell"]]


def test_a_cancel_does_not_reach_the_router(limited, busy):
    """Triton tells a cancel to the ensemble and not to its steps: the caller hears, and the row runs all the same."""
    before = outcomes(limited)
    ended = []
    with tritonclient.grpc.InferenceServerClient(limited.grpc) as client:
        content = file_tensor(client, [SCRIPT])
        call = client.async_infer("file_type", [content], lambda result, error: ended.append(error))
        time.sleep(0.2)
        call.cancel()
        eventually(lambda: ended)
    assert ended[0].status() == "StatusCode.CANCELLED"
    key = ("background", "success")
    eventually(lambda: outcomes(limited).get(key, 0) == before.get(key, 0) + 1)
    assert not any(outcome == "cancelled" for _, outcome in outcomes(limited))


def test_a_priority_has_no_effect(limited, busy):
    with tritonclient.grpc.InferenceServerClient(limited.grpc) as client:
        call = busy.submit(ask, client, [SCRIPT], parameters={"class": "background"}, priority=1)
        time.sleep(0.3)
        assert not call.done()
        assert call.result(60)


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
    model = repository / "file_type_features" / "1" / "model.py"
    slow = "        __import__('time').sleep(0.5)\n        return [self._answer(request) for request in requests]"
    model.write_text(model.read_text().replace("        return [self._answer(request) for request in requests]", slow))
    server = start_server(repository)
    with tritonclient.grpc.InferenceServerClient(server.grpc) as client, ThreadPoolExecutor(8) as pool:
        calls = [pool.submit(ask, client, [SCRIPT]) for _ in range(8)]
        errors = [call.exception(60) for call in calls]
    refused = [error for error in errors if isinstance(error, InferenceServerException)]
    assert len(refused) == sum(error is not None for error in errors)
    assert 4 <= len(refused) < 8
    for error in refused:
        assert error.status() == "StatusCode.UNAVAILABLE"
        assert error.message().endswith("Exceeds maximum queue size")
