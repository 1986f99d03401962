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


def test_capacity_knows_what_a_row_costs():
    assert experiment.Capacity(rows_per_s=100, busy=0.9, mean_batch=4).ms_per_row == pytest.approx(9.0)
