# SPDX-License-Identifier: Apache-2.0
"""deploy/gpu and docs/gpu.md: samples that parse, fit the shipped model and policy, and say how many instances."""

import re
from pathlib import Path

import pytest
from google.protobuf import text_format
from priority_router.config import load_policy
from tritonclient.grpc.model_config_pb2 import ModelConfig, ModelInstanceGroup, ModelQueuePolicy

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "gpu"
BACKENDS = {"onnxruntime-cuda": "onnxruntime", "onnxruntime-tensorrt": "onnxruntime", "tensorrt-plan": "tensorrt"}
SAMPLES = {name: (FOLDER / name / "config.pbtxt").read_text() for name in BACKENDS}
WORDS = {"one": 1, "one on each of two GPUs": 2, "two on one GPU": 2}


def parsed(text):
    return text_format.Parse(text, ModelConfig())


def instances(config):
    return sum(group.count * len(group.gpus) for group in config.instance_group)


def options(config, name):
    (accelerator,) = config.optimization.execution_accelerators.gpu_execution_accelerator
    assert accelerator.name == name
    return dict(accelerator.parameters)


def test_these_are_all():
    assert sorted(path.parent.name for path in FOLDER.rglob("config.pbtxt")) == sorted(BACKENDS)


@pytest.mark.parametrize("name", BACKENDS)
def test_a_sample_differs_from_the_shipped_executor_only_in_how_it_runs(name):
    config = parsed(SAMPLES[name])
    shipped = parsed((ROOT / "model_repository" / "executor" / "config.pbtxt").read_text())
    assert config.backend == BACKENDS[name]
    for field in ("name", "input", "output", "dynamic_batching"):
        assert getattr(config, field) == getattr(shipped, field), field


@pytest.mark.parametrize("name", BACKENDS)
def test_levels_are_those_of_the_policy_and_nothing_delays(name):
    batching = parsed(SAMPLES[name]).dynamic_batching
    policy = load_policy(ROOT / "model_repository" / "router" / "1" / "policy.toml")
    assert batching.priority_levels == max(one.level for one in policy.scheduling.classes)
    assert dict(batching.priority_queue_policy) == {n + 1: ModelQueuePolicy() for n in range(batching.priority_levels)}
    assert (batching.max_queue_delay_microseconds, batching.preserve_ordering) == (0, False)


@pytest.mark.parametrize("name", BACKENDS)
def test_the_number_of_instances_is_written_out_and_said(name):
    config = parsed(SAMPLES[name])
    assert {group.kind for group in config.instance_group} == {ModelInstanceGroup.KIND_GPU}
    assert all(group.gpus and group.count for group in config.instance_group)
    assert re.findall(r"^# In policy.toml: instances = (\d+)$", SAMPLES[name], re.MULTILINE) == [str(instances(config))]
    document = (ROOT / "docs" / "gpu.md").read_text()
    row = re.search(rf"^\| \[{name}\].*\| ([^|]+) \|$", document, re.MULTILINE)
    assert row, "the document does not have it"
    assert WORDS[row[1]] == instances(config)


@pytest.mark.parametrize("name", BACKENDS)
def test_the_smallest_and_the_largest_batch_are_warmed_up(name):
    config = parsed(SAMPLES[name])
    assert sorted(entry.batch_size for entry in config.model_warmup) == [1, config.max_batch_size]
    for entry in config.model_warmup:
        assert {key: list(value.dims) for key, value in entry.inputs.items()} == {
            one.name: list(one.dims) for one in config.input
        }


def test_one_tensorrt_engine_serves_every_row_count():
    config = parsed(SAMPLES["onnxruntime-tensorrt"])
    given = options(config, "tensorrt")
    (only,) = config.input
    rows = {}
    for bound in ("min", "opt", "max"):
        found = re.fullmatch(rf"{only.name}:(\d+)x{only.dims[0]}", given[f"trt_profile_{bound}_shapes"])
        assert found, given
        rows[bound] = found[1]
    assert rows["min"] == "1"
    assert 1 < int(rows["opt"]) <= int(rows["max"]) == config.max_batch_size
    assert given["trt_engine_cache_enable"] == "true"
    document = (ROOT / "docs" / "gpu.md").read_text()
    for bound, count in rows.items():
        assert f"--{bound}Shapes={only.name}:{count}x{only.dims[0]}" in document


def test_the_convolution_search_is_where_the_backend_reads_it():
    config = parsed(SAMPLES["onnxruntime-cuda"])
    assert config.parameters["cudnn_conv_algo_search"].string_value == "1"
    assert not config.optimization.execution_accelerators.gpu_execution_accelerator
