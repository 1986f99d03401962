# SPDX-License-Identifier: Apache-2.0
"""The shipped repository on the real server, with the shipped policy: real files in, magika's own labels out."""

from __future__ import annotations

import json
import sysconfig
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest
import tritonclient.grpc
from magika import Magika
from priority_router.ops.demo import files, filetype, request

ROOT = Path(__file__).parents[2]
MODELS = ROOT / "model_repository"


@pytest.fixture(scope="module")
def server(start_server, tmp_path_factory):
    return start_server(MODELS, log=tmp_path_factory.mktemp("shipped") / "server.log")


@pytest.fixture(scope="module")
def samples():
    return files.collect([ROOT, Path(sysconfig.get_paths()["stdlib"])], 40, 1, filetype.load_rule(MODELS))


@pytest.fixture(scope="module")
def magikas_labels(samples):
    magika = Magika()
    return [str(magika.identify_path(sample.path).prediction.dl.label) for sample in samples]


def post(server, model, body):
    call = urllib.request.Request(f"http://{server.http}/v2/models/{model}/infer", json.dumps(body).encode())
    with urllib.request.urlopen(call, timeout=30) as answer:
        return json.load(answer)


@pytest.mark.parametrize("traffic_class", ["online", "background", None])
def test_json_requests_get_labels_from_the_server_itself(server, samples, magikas_labels, traffic_class):
    for sample, expected in list(zip(samples, magikas_labels, strict=True))[:8]:
        answer = post(server, "router", request.body(sample.features[0], traffic_class, 1))
        outputs = {output["name"]: output["data"] for output in answer["outputs"]}
        assert outputs["target_label"][0].rsplit(":", 1)[1] == expected, sample.path
        assert 0 <= outputs["ROUTER_QUEUE_US"][0] < 30_000_000
        assert 0 < outputs["ROUTER_EXECUTOR_US"][0] < 30_000_000


def test_one_request_larger_than_the_executors_batch_keeps_the_order_of_its_rows(server, samples, magikas_labels):
    labels = filetype.read_labels(MODELS / "router" / "labels.txt")
    rows = np.concatenate([sample.features for sample in samples])
    with tritonclient.grpc.InferenceServerClient(server.grpc) as client:
        tensor = tritonclient.grpc.InferInput(filetype.INPUT, list(rows.shape), "INT32")
        tensor.set_data_from_numpy(rows)
        result = client.infer("router", [tensor], parameters={"class": "online"}, client_timeout=60)
    scores = result.as_numpy(filetype.OUTPUT)
    assert [filetype.best_label(row, labels)[0] for row in scores] == magikas_labels
    assert result.as_numpy("ROUTER_QUEUE_US").shape == (len(samples), 1)


def test_the_executor_is_closed_to_clients_and_the_error_names_the_router(server, samples):
    body = {"inputs": request.body(samples[0].features[0], None, 1)["inputs"]}
    with pytest.raises(urllib.error.HTTPError) as refusal:
        post(server, "executor", body)
    assert "'router'" in json.load(refusal.value)["error"]


def test_an_unknown_class_is_refused_with_the_known_ones(server, samples):
    with pytest.raises(urllib.error.HTTPError) as refusal:
        post(server, "router", request.body(samples[0].features[0], "vip", 1))
    assert refusal.value.code == 400
    error = json.load(refusal.value)["error"]
    assert "vip" in error
    assert "online" in error
