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
    assert not startup.check_config(config(), policy())
    assert not startup.check_config(config(max_batch_size=0), policy(size=0))
    without = config(input=CONFIG["input"][:1], output=CONFIG["output"][:1])
    assert not startup.check_config(without, policy())
    batching = {"preferred_batch_size": [], "max_queue_delay_microseconds": "0", "priority_levels": "0"}
    assert not startup.check_config(config(dynamic_batching=batching | {"preserve_ordering": False}), policy())


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
        ({"sequence_batching": {}}, "has sequence_batching, which a router cannot serve"),
        ({"dynamic_batching": {"priority_levels": "2", "default_priority_level": "2"}}, "has priority_levels: "),
        ({"dynamic_batching": {"preserve_ordering": True}}, "has preserve_ordering: "),
    ],
)
def test_a_wrong_configuration_is_named(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(SetupError, match=said):
        startup.check_config(config(**changes), policy())


def test_a_queue_delay_of_the_routers_own_is_warned_of_with_what_it_costs() -> None:
    (warning,) = startup.check_config(config(dynamic_batching={"max_queue_delay_microseconds": "2000000"}), policy())
    for part in ("max_queue_delay_microseconds: 2000000", "ROUTER_QUEUE_US", "write dynamic_batching { }"):
        assert part in warning


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
        ],
    )
    def test_without_them_levels_mode_is_refused_with_the_way_out(self, marker: HookMarker | None, said: str) -> None:
        with pytest.raises(SetupError, match=said) as caught:
            startup.check_hooks(policy(), marker, 100)
        assert "priority-router serve" in str(caught.value)
        assert 'mode = "plain"' in str(caught.value)

    @pytest.mark.parametrize(
        ("active", "said", "variables"),
        [
            ({"priority", "guard"}, "not active in it: dispatch", "PRIORITY_ROUTER_HOOK_DISPATCH=0"),
            ({"dispatch"}, "not active in it: priority", "PRIORITY_ROUTER_HOOK_PRIORITY=0"),
            (
                {"guard"},
                "not active in it: dispatch and priority",
                "PRIORITY_ROUTER_HOOK_DISPATCH=0 and PRIORITY_ROUTER_HOOK_PRIORITY=0",
            ),
        ],
    )
    def test_a_hook_that_is_off_is_named_with_its_variable(self, active: set[str], said: str, variables: str) -> None:
        with pytest.raises(SetupError, match=said) as caught:
            startup.check_hooks(policy(), HookMarker(100, 3, frozenset(active)), 100)
        assert f"Take {variables} out of the server's environment" in str(caught.value)
        assert 'or set mode = "plain"' in str(caught.value)
        assert "priority-router serve" not in str(caught.value), "it may have been started by that"

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
