# SPDX-License-Identifier: Apache-2.0
"""The samples of deploy/gpu on the embedded server: everything in them but the GPU and the backend's name."""

from __future__ import annotations

import json
import re
import shutil
import urllib.request
from pathlib import Path

import numpy as np
import pytest
import tritonclient.grpc
from google.protobuf import text_format
from tritonclient.grpc.model_config_pb2 import ModelConfig, ModelInstanceGroup

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "model_repository"
SAMPLES = sorted(path.parent for path in (ROOT / "deploy" / "gpu").rglob("config.pbtxt"))
NAMES = [folder.name for folder in SAMPLES]


def without_gpu(text: str, name: str) -> ModelConfig:
    """A sample for the CPU, with as many instances."""
    config = text_format.Parse(text, ModelConfig())
    config.name = name
    config.backend = "onnxruntime"
    for group in config.instance_group:
        group.count *= len(group.gpus)
        group.kind = ModelInstanceGroup.KIND_CPU
        del group.gpus[:]
    return config


def write_pair(repository: Path, sample: Path) -> None:
    """An executor by the sample, and the shipped router in front of it with the sample's numbers in its policy."""
    executor, router = f"executor_{sample.name}", f"router_{sample.name}"
    config = without_gpu((sample / "config.pbtxt").read_text(), executor)
    shutil.copytree(SHIPPED / "executor", repository / executor)
    (repository / executor / "config.pbtxt").write_text(text_format.MessageToString(config))
    shutil.copytree(SHIPPED / "router", repository / router)
    (repository / router / "config.pbtxt").write_text(
        (SHIPPED / "router" / "config.pbtxt").read_text().replace('name: "router"', f'name: "{router}"')
    )
    policy = (SHIPPED / "router" / "1" / "policy.toml").read_text()
    instances = sum(group.count for group in config.instance_group)
    for key, value in (
        ("executor", f'"{executor}"'),
        ("instances", instances),
        ("max_batch_size", config.max_batch_size),
    ):
        policy, found = re.subn(rf"^{key} = .*$", f"{key} = {value}", policy, count=1, flags=re.MULTILINE)
        assert found, key
    (repository / router / "1" / "policy.toml").write_text(policy)


@pytest.fixture(scope="module")
def server(start_server, tmp_path_factory):
    repository = tmp_path_factory.mktemp("samples") / "repository"
    repository.mkdir()
    for sample in SAMPLES:
        write_pair(repository, sample)
    return start_server(repository)


@pytest.mark.parametrize("name", NAMES)
def test_the_model_serves_behind_its_router(server, name):
    content = tritonclient.grpc.InferInput("bytes", [20, 2048], "INT32")
    content.set_data_from_numpy(np.zeros((20, 2048), np.int32))
    with tritonclient.grpc.InferenceServerClient(server.grpc) as client:
        result = client.infer(f"router_{name}", [content], parameters={"class": "online"})
        assert result.as_numpy("target_label").shape == (20, 214)
        config = client.get_model_config(f"executor_{name}").config
        assert {entry.name for entry in config.model_warmup} == {"smallest", "largest"}
        assert config.dynamic_batching.priority_levels == 2
    with urllib.request.urlopen(f"http://{server.http}/v2/models/executor_{name}/stats") as page:
        batches = {entry["batch_size"] for entry in json.load(page)["model_stats"][0]["batch_stats"]}
    # 20 rows are more than a batch: the router splits them.
    assert max(batches) == 16
