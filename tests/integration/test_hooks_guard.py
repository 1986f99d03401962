# SPDX-License-Identifier: Apache-2.0
"""The executor guard on the real server: every route of a client, every spelling, and what must pass."""

import json
import queue
import urllib.error
import urllib.request
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http
from priority_router.hooks import GUARDED_MODELS_ENV, LEVEL_KEY, SWITCHES
from support.clients import Call, client
from support.hook_models import CALLER, ENSEMBLE, EXECUTOR, Case, counts_of, write_repository
from support.models import Executor
from support.serving import free_ports
from tritonclient.utils import InferenceServerException, shared_memory

TAG = 5
REFUSAL = f"model '{EXECUTOR}' takes no requests from clients: call model '{CALLER}' instead"


@pytest.fixture(scope="module", params=["on", "off"])
def case(request, start_server, tmp_path_factory):
    repository = tmp_path_factory.mktemp("guard") / "repository"
    record = write_repository(repository, Executor(max_batch_size=1))
    environment = {
        GUARDED_MODELS_ENV: f"other=its_router;{EXECUTOR}={CALLER}",
        SWITCHES["guard"]: "1" if request.param == "on" else "0",
        "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": EXECUTOR,
        "AIP_PREDICT_ROUTE": "/predict",
        "AIP_HEALTH_ROUTE": "/health",
    }
    FURTHER.update(zip(("sagemaker", "vertex-ai"), free_ports(), strict=False))
    further = [word for name, port in FURTHER.items() for word in (f"--allow-{name}=true", f"--{name}-port={port}")]
    server = start_server(
        repository, hooks=True, environment=environment, extra_args=[*further, f"--vertex-ai-default-model={EXECUTOR}"]
    )
    return Case(server, record, request.param == "on")


FURTHER: dict[str, int] = {}
"""Front ends of the server that runs, other than HTTP and gRPC, with their ports."""


def post(server, path, body, front_end=None, **headers):
    """Status and text of an HTTP request written by hand."""
    address = f"127.0.0.1:{FURTHER[front_end]}" if front_end else server.http
    told = {"Content-Type": "application/json", **headers}
    request = urllib.request.Request(f"http://{address}{path}", json.dumps(body).encode(), told, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


INFER = {
    "inputs": [
        {"name": "X", "datatype": "FP32", "shape": [1, 4], "data": [0, 0, 0, 0]},
        {"name": "TAG", "datatype": "INT64", "shape": [1, 1], "data": [TAG]},
    ]
}
GENERATE = {"X": [0.0, 0.0, 0.0, 0.0], "TAG": [TAG]}


def http_infer(server):
    status, text = post(server, f"/v2/models/{EXECUTOR}/infer", INFER)
    return ("OK" if status == 200 else status), text


def http_generate(server):
    status, text = post(server, f"/v2/models/{EXECUTOR}/generate", GENERATE)
    return ("OK" if status == 200 else status), text


def http_generate_stream(server):
    status, text = post(server, f"/v2/models/{EXECUTOR}/generate_stream", GENERATE)
    return ("OK" if status == 200 else status), text


def grpc_unary(server, model=EXECUTOR, version=""):
    with tritonclient.grpc.InferenceServerClient(server.grpc) as sender:
        try:
            sender.infer(model, grpc_inputs(), model_version=version)
        except InferenceServerException as error:
            return error.status().removeprefix("StatusCode."), error.message()
    return "OK", ""


def grpc_stream(server):
    answers: queue.Queue[Any] = queue.Queue()
    with tritonclient.grpc.InferenceServerClient(server.grpc) as sender:
        sender.start_stream(lambda result, error: answers.put(error))
        sender.async_stream_infer(EXECUTOR, grpc_inputs())
        error = answers.get(timeout=30)
        sender.stop_stream()
    # The stream itself lives on, so its errors carry a text only.
    return ("OK", "") if error is None else ("INVALID_ARGUMENT", error.message())


def sagemaker(server):
    status, text = post(server, "/invocations", INFER, "sagemaker")
    return ("OK" if status == 200 else status), text


def vertex_ai(server):
    status, text = post(server, "/predict", INFER, "vertex-ai")
    return ("OK" if status == 200 else status), text


def vertex_ai_redirected(server):
    """A client of that front end may name any path of the HTTP API."""
    path = f"v2/models/{EXECUTOR}/infer"
    status, text = post(server, "/predict", INFER, "vertex-ai", **{"X-Vertex-Ai-Triton-Redirect": path})
    return ("OK" if status == 200 else status), text


def grpc_inputs():
    x = tritonclient.grpc.InferInput("X", [1, 4], "FP32")
    x.set_data_from_numpy(np.zeros((1, 4), np.float32))
    return [x, tag_input(tritonclient.grpc)]


def tag_input(module):
    tag = module.InferInput("TAG", [1, 1], "INT64")
    tag.set_data_from_numpy(np.array([[TAG]], np.int64))
    return tag


def over_shared_memory(module, address):
    """X by shared memory, the rest inline."""
    x = np.zeros((1, 4), np.float32)
    key = f"/priority_router_test_{module.__name__.rpartition('.')[2]}_{address.rpartition(':')[2]}"
    region = shared_memory.create_shared_memory_region("x", key, x.nbytes)
    sender = module.InferenceServerClient(address)
    try:
        shared_memory.set_shared_memory_region(region, [x])
        sender.register_system_shared_memory("x", key, x.nbytes)
        shared = module.InferInput("X", [1, 4], "FP32")
        shared.set_shared_memory("x", x.nbytes)
        try:
            sender.infer(EXECUTOR, [shared, tag_input(module)])
        except InferenceServerException as error:
            return (error.status() or "").removeprefix("StatusCode."), error.message()
        return "OK", ""
    finally:
        sender.unregister_system_shared_memory("x")
        sender.close()
        shared_memory.destroy_shared_memory_region(region)


def http_shared_memory(server):
    return over_shared_memory(tritonclient.http, server.http)


def grpc_shared_memory(server):
    return over_shared_memory(tritonclient.grpc, server.grpc)


ROUTES = [
    http_infer,
    http_generate,
    http_generate_stream,
    grpc_unary,
    grpc_stream,
    sagemaker,
    vertex_ai,
    vertex_ai_redirected,
    http_shared_memory,
    grpc_shared_memory,
]


@pytest.mark.parametrize("route", ROUTES)
def test_every_route_of_a_client(case, route):
    case.record.forget()
    before = counts_of(case.server).calls_refused
    code, text = route(case.server)
    refused = counts_of(case.server).calls_refused - before
    if case.on:
        assert code in (400, "400", "INVALID_ARGUMENT")
        assert REFUSAL in text
        assert (case.record.tags(), refused) == ([], 1)
    else:
        assert code == "OK", text
        assert (case.record.tags(), refused) == ([TAG], 0)


KEYED = {**INFER, "parameters": {LEVEL_KEY: 1}}
KEYED_POSTS = {
    "infer": (f"/v2/models/{EXECUTOR}/infer", KEYED, None),
    "generate": (f"/v2/models/{EXECUTOR}/generate", {**GENERATE, LEVEL_KEY: 1}, None),
    "generate_stream": (f"/v2/models/{EXECUTOR}/generate_stream", {**GENERATE, LEVEL_KEY: 1}, None),
    "sagemaker": ("/invocations", KEYED, "sagemaker"),
    "vertex-ai": ("/predict", KEYED, "vertex-ai"),
}


def keyed_stream(server):
    answers: queue.Queue[Any] = queue.Queue()
    with tritonclient.grpc.InferenceServerClient(server.grpc) as sender:
        sender.start_stream(lambda result, error: answers.put(error))
        sender.async_stream_infer(EXECUTOR, grpc_inputs(), parameters={LEVEL_KEY: 1})
        answers.get(timeout=30)
        sender.stop_stream()


def keyed_unary(server):
    with client(server.grpc) as sender:
        sender.infer(EXECUTOR, Call(tag=TAG, parameters={LEVEL_KEY: 1}))


@pytest.mark.parametrize("route", [*KEYED_POSTS, keyed_stream, keyed_unary])
def test_the_hooks_key_from_outside_sets_no_level_by_any_route(case, route):
    """With the guard off it arrives, and has no level all the same; one that comes by BLS has."""
    before = counts_of(case.server).priorities_set
    case.record.forget()
    if isinstance(route, str):
        path, body, front_end = KEYED_POSTS[route]
        post(case.server, path, body, front_end)
    else:
        route(case.server)
    assert case.record.tags() == ([] if case.on else [TAG])
    assert counts_of(case.server).priorities_set == before
    with client(case.server.grpc) as sender:
        assert sender.infer(CALLER, Call(tag=1, inputs={"LEVEL": np.array([1], np.int64)})).ok
    assert counts_of(case.server).priorities_set == before + 1


HTTP_SPELLINGS = {
    f"/v2/models/{EXECUTOR}/versions/1/infer": True,
    f"/v2/models/{EXECUTOR}/versions/01/infer": True,
    f"/v2/models/{EXECUTOR}/versions/0000000001/infer": True,
    f"/v2/models/{EXECUTOR}/versions/1/generate": True,
    f"/v2/models/%65{EXECUTOR[1:]}/infer": False,
    f"/v2/models/{EXECUTOR.upper()}/infer": False,
    f"/v2/models/{EXECUTOR}%00/infer": False,
    f"/v2/models/{EXECUTOR}%20/infer": False,
    f"/v2/models/{EXECUTOR}%2Fversions%2F1/infer": False,
    f"/v2//models/{EXECUTOR}/infer": False,
    f"/v2/models/./{EXECUTOR}/infer": False,
    f"/v2/models/{EXECUTOR}/versions/2/infer": False,
    f"/v2/models/{EXECUTOR}/versions/-1/infer": False,
    f"/v2/models/{EXECUTOR}/infer?model={CALLER}": True,
}
"""Path to whether it reaches the executor on a server without the guard."""


@pytest.mark.parametrize("path", HTTP_SPELLINGS)
def test_every_spelling_over_http(case, path):
    case.record.forget()
    status, text = post(case.server, path, GENERATE if path.endswith("generate") else INFER)
    if HTTP_SPELLINGS[path] and case.on:
        assert (status, REFUSAL in text) == (400, True)
    if HTTP_SPELLINGS[path] and not case.on:
        assert status == 200, text
    assert case.record.tags() == ([TAG] if HTTP_SPELLINGS[path] and not case.on else [])


GRPC_SPELLINGS = {
    (EXECUTOR, ""): True,
    (EXECUTOR, "1"): True,
    (EXECUTOR, "01"): True,
    (EXECUTOR, " 1"): True,
    (EXECUTOR, "+1"): True,
    (EXECUTOR, "1.0"): True,
    (EXECUTOR, "1abc"): True,
    (EXECUTOR, "2"): False,
    (EXECUTOR, "-1"): False,
    (EXECUTOR + "\0", ""): True,
    (EXECUTOR + "\0other", "1"): True,
    (EXECUTOR + " ", ""): False,
    (EXECUTOR.title(), ""): False,
    ("./" + EXECUTOR, ""): False,
}
"""Model name and version to whether they reach the executor on a server without the guard."""


@pytest.mark.parametrize(("model", "version"), GRPC_SPELLINGS)
def test_every_spelling_over_grpc(case, model, version):
    case.record.forget()
    reaches = GRPC_SPELLINGS[model, version]
    _, text = grpc_unary(case.server, model, version)
    if reaches:
        assert text == (REFUSAL if case.on else "")
    assert case.record.tags() == ([TAG] if reaches and not case.on else [])


def test_bls_and_ensembles_pass(case):
    case.record.forget()
    before = counts_of(case.server).calls_refused
    with client(case.server.grpc) as sender:
        by_bls = sender.infer(CALLER, Call(tag=1, inputs={"LEVEL": np.array([0], np.int64)}))
        by_ensemble = sender.infer(ENSEMBLE, Call(tag=2))
    assert (by_bls.message, by_ensemble.message) == ("", "")
    assert case.record.tags() == [1, 2]
    assert counts_of(case.server).calls_refused == before


def test_what_is_not_inference_is_not_refused(case):
    with tritonclient.grpc.InferenceServerClient(case.server.grpc) as sender:
        assert sender.is_model_ready(EXECUTOR)
        assert sender.get_model_metadata(EXECUTOR).name == EXECUTOR
        assert sender.get_model_config(EXECUTOR).config.name == EXECUTOR
