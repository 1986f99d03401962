# SPDX-License-Identifier: Apache-2.0
"""model_repository: what set-up copied in, and that configurations and policy say the same."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
from pathlib import Path
from typing import Any

import onnxruntime
import pytest
from google.protobuf import text_format
from priority_router.config import Mode, load_policy
from priority_router.ops.demo import filetype
from tritonclient.grpc.model_config_pb2 import DataType, ModelConfig, ModelInstanceGroup, ModelQueuePolicy

ROOT = Path(__file__).parents[2]
REPOSITORY = ROOT / "model_repository"
RULE: Any = filetype.load_rule(REPOSITORY)


def config(model):
    return text_format.Parse((REPOSITORY / model / "config.pbtxt").read_text(), ModelConfig())


def tensors(entries):
    return {entry.name: (DataType.Name(entry.data_type), list(entry.dims)) for entry in entries}


@pytest.fixture(scope="module")
def executor():
    return config("executor")


@pytest.fixture(scope="module")
def router():
    return config("router")


def test_the_model_is_magikas_own_and_its_notice_says_which(executor):
    package = importlib.metadata.distribution("magika")
    model = REPOSITORY / "executor" / "1" / "model.onnx"
    notice = dict(
        line.split(":", 1)
        for line in (REPOSITORY / "executor" / "NOTICE.txt").read_text().splitlines()
        if ":  " in line
    )
    assert model.read_bytes() == Path(str(package.locate_file(f"{notice['model'].strip()}/model.onnx"))).read_bytes()
    assert notice["sha256"].strip() == hashlib.sha256(model.read_bytes()).hexdigest()
    assert notice["package"].split()[:2] == ["magika", package.version]
    assert notice["licence"].split(",")[0].strip() == "Apache-2.0" == package.metadata["License"]
    assert (model.parent / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


def test_labels_are_the_models_in_its_order():
    package = importlib.metadata.distribution("magika")
    shipped = json.loads(Path(str(package.locate_file("magika/models/standard_v3_3/config.min.json"))).read_text())
    for model in ("executor", "router"):
        assert list(filetype.read_labels(REPOSITORY / model / "labels.txt")) == shipped["target_labels_space"]
    sizes = (shipped["beg_size"], shipped["end_size"], shipped["block_size"], shipped["padding_token"])
    assert sizes == (RULE.BEGIN_SIZE, RULE.END_SIZE, RULE.BLOCK_SIZE, RULE.PADDING)
    assert shipped["min_file_size_for_dl"] == RULE.MINIMUM_BYTES


def test_the_executors_configuration_is_that_of_the_model(executor):
    session = onnxruntime.InferenceSession(str(REPOSITORY / "executor" / "1" / "model.onnx"))
    assert {port.name: (port.type, port.shape[1:]) for port in session.get_inputs()} == {
        filetype.INPUT: ("tensor(int32)", [RULE.FEATURES])
    }
    assert {port.name: (port.type, port.shape[1:]) for port in session.get_outputs()} == {
        filetype.OUTPUT: ("tensor(float)", [214])
    }
    assert tensors(executor.input) == {filetype.INPUT: ("TYPE_INT32", [RULE.FEATURES])}
    assert tensors(executor.output) == {filetype.OUTPUT: ("TYPE_FP32", [214])}


def test_the_executor_has_levels_with_an_empty_policy_each_and_one_instance(executor):
    batching = executor.dynamic_batching
    assert (batching.priority_levels, batching.default_priority_level) == (2, 2)
    assert dict(batching.priority_queue_policy) == {1: ModelQueuePolicy(), 2: ModelQueuePolicy()}
    assert batching.max_queue_delay_microseconds == 0
    assert [(g.kind, g.count) for g in executor.instance_group] == [(ModelInstanceGroup.KIND_CPU, 1)]


def test_the_router_takes_and_gives_what_the_executor_does_and_its_own(executor, router):
    assert tensors(router.input) == {**tensors(executor.input), "CLASS": ("TYPE_STRING", [1])}
    assert [entry.name for entry in router.input if entry.optional] == ["CLASS"]
    times = {"ROUTER_QUEUE_US": ("TYPE_INT64", [1]), "ROUTER_EXECUTOR_US": ("TYPE_INT64", [1])}
    assert tensors(router.output) == {**tensors(executor.output), **times}
    assert router.max_batch_size == 16 * executor.max_batch_size
    assert router.HasField("dynamic_batching")
    assert router.dynamic_batching.max_queue_delay_microseconds == 0
    assert [(g.kind, g.count) for g in router.instance_group] == [(ModelInstanceGroup.KIND_CPU, 1)]


def test_the_policy_describes_this_executor(executor):
    policy = load_policy(REPOSITORY / "router" / "1" / "policy.toml")
    assert (policy.executor, policy.mode, policy.guard_executor) == (executor.name, Mode.LEVELS, True)
    assert policy.scheduling.instances == executor.instance_group[0].count
    assert policy.scheduling.max_batch_size == executor.max_batch_size
    levels = {c.name: c.level for c in policy.scheduling.classes}
    assert levels == {"online": 1, "background": 2}
    assert max(levels.values()) == executor.dynamic_batching.priority_levels
    assert policy.default_class == "background"


def test_only_the_executor_holds_a_model():
    assert [path.relative_to(REPOSITORY).parts[0] for path in REPOSITORY.rglob("*.onnx")] == ["executor"]


def test_the_ensemble_takes_files_and_what_the_router_takes_besides(router):
    ensemble = config("file_type")
    assert ensemble.max_batch_size == router.max_batch_size
    assert tensors(ensemble.input) == {"content": ("TYPE_STRING", [1]), "CLASS": ("TYPE_STRING", [1])}
    assert [entry.name for entry in ensemble.input if entry.optional] == ["CLASS"]
    times = {name: kind for name, kind in tensors(router.output).items() if name.startswith("ROUTER_")}
    assert tensors(ensemble.output) == {"label": ("TYPE_STRING", [1]), "score": ("TYPE_FP32", [1]), **times}
    assert [step.model_name for step in ensemble.ensemble_scheduling.step] == [
        "file_type_features",
        "router",
        "file_type_label",
    ]


@pytest.mark.parametrize("name", ["file_type_features", "file_type_label"])
def test_an_outer_step_is_one_process_with_a_bounded_queue_and_no_delay(router, name):
    step = config(name)
    assert step.max_batch_size == router.max_batch_size
    assert [(g.kind, g.count) for g in step.instance_group] == [(ModelInstanceGroup.KIND_CPU, 1)]
    assert step.dynamic_batching.default_queue_policy.max_queue_size > 0
    assert step.dynamic_batching.max_queue_delay_microseconds == 0
    assert step.dynamic_batching.priority_levels == 0


def test_the_outer_steps_tensors_are_those_of_the_executor(executor):
    features, label = config("file_type_features"), config("file_type_label")
    assert tensors(features.output).items() >= tensors(executor.input).items()
    assert tensors(label.input)["scores"] == tensors(executor.output)[filetype.OUTPUT]
