# SPDX-License-Identifier: Apache-2.0
"""What `serve` keeps closed on both ports, by which spelling ever, what opens it, and what stays open."""

from __future__ import annotations

import contextlib
import http.client

import numpy as np
import pytest
import tritonclient.grpc
from priority_router.ops import cli
from priority_router.ops.server import closed
from priority_router.ops.server.closed import CLOSED
from support.clients import Call, client
from support.models import write_pair
from support.serving import free_ports, serving
from tritonclient.utils import InferenceServerException, shared_memory

KEY = "only-for-this-test"
HEADER = "priority-router-admin"

HTTP = {
    "model-repository": [
        ("POST", "repository/index"),
        ("POST", "repository/models/router/load"),
        ("POST", "repository/models/router/unload"),
        ("POST", "repository//models/router/unload"),
        ("POST", "repository/models/%72outer/unload"),
        ("POST", "repository/any/index"),
        ("POST", "repository/any/models/router/unload"),
    ],
    "shared-memory": [
        ("GET", "systemsharedmemory/status"),
        ("POST", "systemsharedmemory/region/x/register"),
        ("POST", "systemsharedmemory/unregister"),
        ("POST", "systemsharedmemory/region/x/unregister"),
        ("GET", "cudasharedmemory/status"),
        ("POST", "cudasharedmemory/region/x/register"),
        ("POST", "cudasharedmemory/unregister"),
    ],
    "trace": [
        ("GET", "trace/setting"),
        ("POST", "trace/setting"),
        ("GET", "models/router/trace/setting"),
        ("POST", "models/router/trace/setting"),
    ],
    "logging": [("GET", "logging"), ("POST", "logging")],
}
GRPC = {
    "model-repository": [
        lambda caller, **how: caller.get_model_repository_index(**how),
        lambda caller, **how: caller.load_model("router", **how),
        lambda caller, **how: caller.unload_model("router", **how),
    ],
    "shared-memory": [
        lambda caller, **how: caller.get_system_shared_memory_status(**how),
        lambda caller, **how: caller.register_system_shared_memory("x", "/x", 1, **how),
        lambda caller, **how: caller.unregister_system_shared_memory(**how),
        lambda caller, **how: caller.get_cuda_shared_memory_status(**how),
        lambda caller, **how: caller.unregister_cuda_shared_memory(**how),
    ],
    "trace": [
        lambda caller, **how: caller.get_trace_settings(**how),
        lambda caller, **how: caller.update_trace_settings("router", {"trace_level": ["TIMESTAMPS"]}, **how),
    ],
    "logging": [
        lambda caller, **how: caller.get_log_settings(**how),
        lambda caller, **how: caller.update_log_settings({"log_verbose_level": 1}, **how),
    ],
}
CASES = [(api, method, path) for api, paths in HTTP.items() for method, path in paths]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("closed") / "models"
    folder.mkdir()
    write_pair(folder)
    return folder


@pytest.fixture(scope="module")
def shut(models, tmp_path_factory):
    with serving(tmp_path_factory.mktemp("shut"), "--model-repository", models) as command:
        yield command.ready()


@pytest.fixture(scope="module")
def keyed(models, tmp_path_factory):
    """With a key, and with shared memory left open; in explicit mode, so that a load would do something."""
    folder = tmp_path_factory.mktemp("keyed")
    (folder / "key").write_text(f"{KEY}\n")
    words = ["--admin-key-file", folder / "key", "--open-api", "shared-memory", "--model-repository", models]
    with serving(folder, *words, "--", "--model-control-mode=explicit", "--load-model=*") as command:
        yield command.ready()


def status(address, method, path, headers=None):
    with contextlib.closing(http.client.HTTPConnection(address, timeout=60)) as connection:
        connection.request(method, f"/v2/{path}", b"{}" if method == "POST" else None, headers or {})
        return connection.getresponse().status


@pytest.mark.parametrize(("api", "method", "path"), CASES)
def test_nobody_gets_in_over_http(shut, api, method, path):
    found = status(shut[0], method, path)
    # A path that Triton does not know is no way in either.
    assert found == 403 or (found in (400, 404) and ("//" in path or "%" in path)), found
    assert status(shut[0], method, path, {HEADER: KEY, "admin": ""}) == found


@pytest.mark.parametrize("api", CLOSED)
def test_nobody_gets_in_over_grpc(shut, api):
    with tritonclient.grpc.InferenceServerClient(shut[1]) as caller:
        for ask in GRPC[api]:
            with pytest.raises(InferenceServerException, match="restricted"):
                ask(caller)
            with pytest.raises(InferenceServerException, match="restricted"):
                ask(caller, headers={f"triton-grpc-protocol-{HEADER}": KEY})


def test_whoever_calls_models_notices_nothing(shut):
    for address, protocol in zip(shut, ("http", "grpc"), strict=False):
        with client(address, protocol) as sender:
            assert sender.infer("router", Call(traffic_class="interactive")).ok
        assert cli.main(["probe", "--timeout", "60", "--url", f"{protocol}://{address}"]) == 0
        assert cli.main(["probe", "--live", "--timeout", "60", "--url", f"{protocol}://{address}"]) == 0
    for path in ("models/router", "models/router/config", "models/stats", "health/ready", "models/router/ready"):
        assert status(shut[0], "GET", path) == 200


def test_the_key_opens_what_is_closed(keyed):
    http_address, grpc, _ = keyed
    with tritonclient.grpc.InferenceServerClient(grpc) as caller:
        for api in CLOSED:
            method, path = HTTP[api][0]
            opened = api == "shared-memory"
            assert status(http_address, method, path) == (200 if opened else 403)
            assert status(http_address, method, path, {HEADER: "wrong"}) == (200 if opened else 403)
            assert status(http_address, method, path, {HEADER: KEY}) == 200
            GRPC[api][0](caller, headers={f"triton-grpc-protocol-{HEADER}": KEY})
    assert status(http_address, "POST", "repository/models/router/unload") == 403
    assert status(http_address, "POST", "repository/models/router/load", {HEADER: KEY}) == 200


def test_shared_memory_that_is_left_open_can_be_used(keyed):
    x = np.full((1, 4), 3, np.float32)
    key = f"/priority_router_test_closed_{keyed[1].rpartition(':')[2]}"
    region = shared_memory.create_shared_memory_region("x", key, x.nbytes)
    try:
        shared_memory.set_shared_memory_region(region, [x])
        with tritonclient.grpc.InferenceServerClient(keyed[1]) as caller:
            caller.register_system_shared_memory("x", key, x.nbytes)
            tensor = tritonclient.grpc.InferInput("X", [1, 4], "FP32")
            tensor.set_shared_memory("x", x.nbytes)
            assert caller.infer("router", [tensor]).as_numpy("Y").tolist() == [[6, 6, 6, 6]]
            caller.unregister_system_shared_memory("x")
    finally:
        shared_memory.destroy_shared_memory_region(region)


@pytest.mark.parametrize("text", ["", "short", "two words of enough length", "größer-als-sechzehn-zeichen"])
def test_a_key_that_is_none_is_refused(tmp_path, capsys, text):
    (tmp_path / "key").write_text(text)
    words = ["serve", "--model-repository", str(tmp_path), "--admin-key-file", str(tmp_path / "key")]
    assert cli.main(words) == 1
    assert "the key must be one word of at least 16" in capsys.readouterr().err


def test_a_front_end_that_takes_no_key_is_refused(tmp_path, models, capsys):
    words = ["serve", "--model-repository", str(models), "--http-port=0", "--grpc-port=0", "--metrics-port=0"]
    assert cli.main([*words, "--", "--allow-vertex-ai=true"]) == 1
    assert "Triton's front end for Vertex AI is on" in capsys.readouterr().err


def test_what_vertex_ai_would_leave_open(models, start_server, monkeypatch):
    """Why it is refused: the same question is refused on the HTTP port."""
    monkeypatch.setattr(closed, "check_front_ends", lambda *_: None)
    (port, *_) = free_ports()
    environment = {"AIP_PREDICT_ROUTE": "/predict", "AIP_HEALTH_ROUTE": "/health"}
    further = ["--allow-vertex-ai=true", f"--vertex-ai-port={port}", "--vertex-ai-default-model=router"]
    address = start_server(models, environment=environment, extra_args=further, closed_apis=CLOSED).http
    assert status(address, "POST", "repository/index") == 403
    with contextlib.closing(http.client.HTTPConnection(f"127.0.0.1:{port}", timeout=60)) as connection:
        headers = {"X-Vertex-Ai-Triton-Redirect": "v2/repository/index", "Content-Type": "application/json"}
        connection.request("POST", "/predict", b"{}", headers)
        assert b'"name":"executor"' in connection.getresponse().read()


def test_a_key_file_that_is_missing_is_said(tmp_path, capsys):
    words = ["serve", "--model-repository", str(tmp_path), "--admin-key-file", str(tmp_path / "none")]
    assert cli.main(words) == 1
    assert "none cannot be read" in capsys.readouterr().err


def test_every_closed_api_is_tried_in_both_protocols():
    assert set(HTTP) == set(GRPC) == set(CLOSED)
