# SPDX-License-Identifier: Apache-2.0
"""What keeps a router from loading."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from priority_router.errors import SetupError
from priority_router.hooks import GUARDED_MODELS_ENV, HookMarker
from priority_router.runtime import startup
from support.fake_triton import Tensor, Triton

from .harness import policy

CONFIG: dict[str, Any] = {
    "name": "router",
    "max_batch_size": 64,
    "input": [
        {"name": "X", "data_type": "TYPE_FP32", "dims": ["2"]},
        {"name": "CLASS", "data_type": "TYPE_STRING", "dims": ["1"], "optional": True},
    ],
    "output": [
        {"name": "Y", "data_type": "TYPE_FP32", "dims": ["2"]},
        {"name": "ROUTER_QUEUE_US", "data_type": "TYPE_INT64", "dims": ["1"]},
    ],
    "instance_group": [{"name": "router", "kind": "KIND_CPU", "count": 1}],
}
EVERY = HookMarker(100, 3, frozenset({"priority", "dispatch", "guard"}))


def config(**changes: Any) -> dict[str, Any]:
    return {**copy.deepcopy(CONFIG), **changes}


def test_a_right_configuration_passes() -> None:
    startup.check_config(config(), policy())
    startup.check_config(config(max_batch_size=0), policy(size=0))
    without = config(input=CONFIG["input"][:1], output=CONFIG["output"][:1])
    startup.check_config(without, policy())


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"instance_group": [{"kind": "KIND_CPU", "count": 2}]}, "has instances 2 x KIND_CPU; it must be one CPU"),
        ({"instance_group": [{"kind": "KIND_GPU", "count": 1}]}, "has instances 1 x KIND_GPU; it must be one CPU"),
        ({"instance_group": [{"kind": "KIND_CPU", "count": 1}] * 2}, "1 x KIND_CPU, 1 x KIND_CPU"),
        ({"instance_group": []}, "has instances none"),
        ({"name": "model"}, "names the router itself as executor"),
        ({"model_transaction_policy": {"decoupled": True}}, "is decoupled"),
        ({"max_batch_size": 0}, "has max_batch_size 0, its policy's"),
        ({"input": [{"name": "CLASS", "data_type": "TYPE_INT32", "dims": ["1"]}]}, "CLASS is TYPE_INT32"),
        ({"input": [{"name": "CLASS", "data_type": "TYPE_STRING", "dims": ["2"]}]}, r"CLASS is TYPE_STRING \[2\]"),
        ({"output": [{"name": "ROUTER_EXECUTOR_US", "data_type": "TYPE_FP32", "dims": ["1"]}]}, "ROUTER_EXECUTOR_US"),
        ({"input": [{"name": "B", "data_type": "TYPE_BF16", "dims": ["1"]}]}, "B is BF16"),
    ],
)
def test_a_wrong_configuration_is_named(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(SetupError, match=said):
        startup.check_config(config(**changes), policy())


def test_a_garbling_numpy_is_refused_by_its_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    triton = Triton()
    startup.check_numpy(triton)

    class Garbling(Tensor):
        @staticmethod
        def from_dlpack(name: str, capsule: Any) -> Tensor:
            return Tensor(name, np.full_like(capsule, capsule.flat[0]))

    monkeypatch.setattr(Triton, "Tensor", Garbling)
    with pytest.raises(SetupError, match=r"\[\[110, 1\]\] came back as \[\[110, 110\]\]") as caught:
        startup.check_numpy(triton)
    for part in (np.__version__, np.__file__, "numpy < 2"):
        assert part in str(caught.value)


class TestHooks:
    """Levels mode needs the hooks of this very server."""

    def test_they_are_found_in_the_parent(self) -> None:
        assert startup.check_hooks(policy(), EVERY, 100) is EVERY

    @pytest.mark.parametrize(
        ("marker", "said"),
        [
            (None, "is not loaded into this server"),
            (HookMarker(99, 3, EVERY.hooks), r"is loaded into process 99, not into this server \(100\)"),
            (HookMarker(100, 3, frozenset({"priority", "guard"})), "the hooks dispatch are switched off"),
            (HookMarker(100, 3, frozenset({"dispatch"})), "the hooks priority are switched off"),
        ],
    )
    def test_without_them_levels_mode_is_refused_with_the_way_out(self, marker: HookMarker | None, said: str) -> None:
        with pytest.raises(SetupError, match=said) as caught:
            startup.check_hooks(policy(), marker, 100)
        assert "priority-router serve" in str(caught.value)
        assert 'mode = "plain"' in str(caught.value)

    def test_plain_mode_needs_none(self) -> None:
        plain = policy(top='mode = "plain"')
        assert startup.check_hooks(plain, None, 100) is None
        assert startup.check_hooks(plain, HookMarker(99, 3, EVERY.hooks), 100) is None
        assert startup.check_hooks(plain, EVERY, 100) is EVERY


@pytest.mark.parametrize(
    ("marker", "guarded", "active"),
    [
        (EVERY, "model=router", True),
        (EVERY, "other=router;model=router", True),
        (EVERY, "other=router", False),
        (EVERY, "", False),
        (None, "model=router", False),
        (HookMarker(100, 3, frozenset({"priority", "dispatch"})), "model=router", False),
    ],
)
def test_the_guard_needs_hook_and_name(marker: HookMarker | None, guarded: str, active: bool) -> None:
    assert startup.guard_active(policy(), marker, {GUARDED_MODELS_ENV: guarded}) is active


def test_the_warning_names_model_and_remedies() -> None:
    text = startup.guard_warning(policy())
    assert "'model'" in text
    assert "guard_executor = false" in text
