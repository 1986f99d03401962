# SPDX-License-Identifier: Apache-2.0
"""What the demonstration serves on each arm."""

from __future__ import annotations

from pathlib import Path

import pytest
from priority_router.config import load_policy
from priority_router.errors import SetupError
from priority_router.ops.bench.arms import ARMS
from priority_router.ops.demo import experiment

MODELS = Path(__file__).parents[4] / "model_repository"


@pytest.fixture
def shape():
    return experiment.executor_shape(MODELS)


def test_direct_arms_have_no_router(tmp_path, shape):
    experiment.write_repository(tmp_path / "models", MODELS, ARMS["levels"], shape)
    assert [path.name for path in (tmp_path / "models").iterdir()] == ["executor"]
    assert (tmp_path / "models" / "executor" / "1" / "model.onnx").samefile(MODELS / "executor" / "1" / "model.onnx")


def test_without_levels_only_the_batching_differs(tmp_path, shape):
    experiment.write_repository(tmp_path / "models", MODELS, ARMS["flat"], shape)
    [executor] = (tmp_path / "models").iterdir()
    shipped = {path.name: path for path in (MODELS / "executor").iterdir()}
    assert {path.name for path in executor.iterdir()} == set(shipped)
    assert all((executor / name).samefile(path) for name, path in shipped.items() if name != "config.pbtxt")
    before = shipped["config.pbtxt"].read_text()
    after = (executor / "config.pbtxt").read_text()
    head, tail = after.split("dynamic_batching { }\n")
    assert before.startswith(head)
    assert before.endswith(tail)
    assert "priority" not in after.replace("# SPDX", "").split("instance_group")[1].split("dynamic_batching")[1]
    assert "priority_levels" in before.removeprefix(head).removesuffix(tail)


def test_an_executor_whose_batching_is_not_as_shipped_is_refused(tmp_path, shape):
    executor = tmp_path / "changed" / "executor"
    executor.mkdir(parents=True)
    (executor / "config.pbtxt").write_text("max_batch_size: 4\n")
    with pytest.raises(SetupError, match="has no block `dynamic_batching"):
        experiment.write_repository(tmp_path / "models", tmp_path / "changed", ARMS["flat"], shape)


def test_the_last_online_request_is_waited_for_behind_all_that_piles_up():
    assert experiment.backlog_seconds(28) == pytest.approx(0.4 * 28)
    assert experiment.grace_seconds(28) > experiment.backlog_seconds(28)


def test_the_routers_policy_is_the_shipped_one_without_limits_and_timeouts(tmp_path, shape):
    experiment.write_repository(tmp_path / "models", MODELS, ARMS["router"], shape)
    shipped = load_policy(MODELS / "router" / "1" / "policy.toml")
    shown = load_policy(tmp_path / "models" / "router" / "1" / "policy.toml")
    assert (shown.executor, shown.mode, shown.scheduling.instances) == (shipped.executor, shipped.mode, 1)
    assert shown.scheduling.max_batch_size == shipped.scheduling.max_batch_size
    assert [(c.name, c.level) for c in shown.scheduling.classes] == [
        (c.name, c.level) for c in shipped.scheduling.classes
    ]
    assert {(c.max_queue_size, c.default_timeout) for c in shown.scheduling.classes} == {(0, 0)}
    assert (tmp_path / "models" / "router" / "labels.txt").is_file()


def test_a_missing_model_names_the_script_that_copies_it(tmp_path):
    with pytest.raises(SetupError, match="run scripts/setup"):
        experiment.executor_shape(tmp_path)
