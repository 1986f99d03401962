# SPDX-License-Identifier: Apache-2.0
"""model.py: what it imports from where, and Triton's life cycle around a router."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import priority_router
import pytest
from priority_router.control import CONTROL_DIR_ENV, ControlDirectory
from priority_router.errors import PolicyError, SetupError
from support.fake_triton import Request, Triton, rows
from support.modules import load_module
from support.policy_texts import ONLINE, a_policy

FOLDER = Path(__file__).parents[2] / "backends/priority_router"
POLICY = a_policy(ONLINE, top='mode = "plain"')
CONFIG = {
    "name": "router",
    "max_batch_size": 64,
    "input": [{"name": "X", "data_type": "TYPE_FP32", "dims": ["2"]}],
    "output": [{"name": "Y", "data_type": "TYPE_FP32", "dims": ["2"]}],
    "instance_group": [{"kind": "KIND_CPU", "count": 1}],
}


@pytest.fixture
def triton(monkeypatch: pytest.MonkeyPatch) -> Triton:
    made = Triton()
    monkeypatch.setitem(sys.modules, "triton_python_backend_utils", made)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return made


@pytest.fixture
def load(triton: Triton) -> Callable[[Path], Any]:
    """Imports a model.py as the stub does: by its bare name, from its folder."""

    def imported(folder: Path) -> Any:
        return load_module("model", folder / "model.py")

    return imported


@pytest.fixture
def arguments(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "policy.toml").write_text(POLICY)
    return {
        "model_config": json.dumps(CONFIG),
        "model_name": "router",
        "model_repository": str(tmp_path),
        "model_version": "1",
    }


@pytest.fixture
def model(load: Callable[[Path], Any], arguments: dict[str, str]) -> Iterator[Any]:
    made = load(FOLDER).TritonPythonModel()
    made.initialize(arguments)
    yield made
    made.finalize()


def test_the_package_is_the_one_beside_it(load: Callable[[Path], Any]) -> None:
    load(FOLDER)
    assert sys.path[0] == str(FOLDER)
    assert Path(priority_router.__file__).parents[1] == FOLDER


def test_a_package_from_elsewhere_is_refused(load: Callable[[Path], Any], tmp_path: Path) -> None:
    """As where a pip-installed copy, imported first, would serve with another version's rules."""
    shutil.copy(FOLDER / "model.py", tmp_path)
    with pytest.raises(ImportError, match="another copy was imported first") as caught:
        load(tmp_path)
    assert priority_router.__file__ in str(caught.value)


def test_a_folder_of_links_will_do(load: Callable[[Path], Any], tmp_path: Path) -> None:
    """`serve` builds the backend directory from links; the package beside the link counts, wherever it points."""
    (tmp_path / "model.py").symlink_to(FOLDER / "model.py")
    (tmp_path / "priority_router").symlink_to(FOLDER / "priority_router")
    linked = str(tmp_path / "priority_router" / "__init__.py")
    original = priority_router.__file__
    try:
        priority_router.__file__ = linked
        load(tmp_path)
    finally:
        priority_router.__file__ = original


def test_an_old_python_is_told_so(load: Callable[[Path], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 12))
    with pytest.raises(ImportError, match=r"needs Python 3\.11 or newer"):
        load(FOLDER)


def test_requests_pass_and_execute_returns_nothing(model: Any) -> None:
    request = Request({"X": rows(2, 3)})
    assert model.execute([request]) is None
    assert request.sender.reply.arrays()["Y"].tolist() == [[6, 6], [6, 6]]


def test_an_open_back_door_is_told_once(model: Any, triton: Triton) -> None:
    warnings = [text for level, text in triton.Logger.lines if level == "warning"]
    assert len(warnings) == 1
    assert "clients can call 'model' directly" in warnings[0]
    assert triton.page.read('priority_router_guard_active{model="router"}') == 0


def test_what_the_configuration_costs_is_told_beside_the_other_warnings(
    load: Callable[[Path], Any], arguments: dict[str, str], triton: Triton
) -> None:
    arguments["model_config"] = json.dumps(CONFIG | {"dynamic_batching": {"max_queue_delay_microseconds": "5000"}})
    model = load(FOLDER).TritonPythonModel()
    model.initialize(arguments)
    model.finalize()
    delay, guard = [text for level, text in triton.Logger.lines if level == "warning"]
    assert delay.startswith("priority_router router: its config.pbtxt has max_queue_delay_microseconds: 5000")
    assert "clients can call 'model' directly" in guard


def test_a_wrong_policy_keeps_it_from_loading(load: Callable[[Path], Any], arguments: dict[str, str]) -> None:
    Path(arguments["model_repository"], "1", "policy.toml").write_text(POLICY.replace("level = 1", "level = 0"))
    with pytest.raises(PolicyError, match=r"policy\.toml:9: class\[0\]\.level = 0 cannot be used"):
        load(FOLDER).TritonPythonModel().initialize(arguments)


def test_levels_mode_without_hooks_keeps_it_from_loading(
    load: Callable[[Path], Any], arguments: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PRIORITY_ROUTER_HOOKS_LOADED", raising=False)
    Path(arguments["model_repository"], "1", "policy.toml").write_text(POLICY.replace('"plain"', '"levels"'))
    with pytest.raises(SetupError, match="is not loaded into this server"):
        load(FOLDER).TritonPythonModel().initialize(arguments)


def test_levels_mode_loads_where_the_server_has_the_hooks(
    load: Callable[[Path], Any], arguments: dict[str, str], monkeypatch: pytest.MonkeyPatch, triton: Triton
) -> None:
    """Also where their counters cannot be read: then nobody can tell whether they work, which is said."""
    marker = f"pid={os.getppid()};fd=-1;hooks=priority,dispatch,guard"
    monkeypatch.setenv("PRIORITY_ROUTER_HOOKS_LOADED", marker)
    monkeypatch.setenv("PRIORITY_ROUTER_GUARDED_MODELS", "model=router")
    Path(arguments["model_repository"], "1", "policy.toml").write_text(POLICY.replace('"plain"', '"levels"'))
    model = load(FOLDER).TritonPythonModel()
    model.initialize(arguments)
    assert triton.page.read('priority_router_guard_active{model="router"}') == 1
    model.finalize()
    (warning,) = [text for level, text in triton.Logger.lines if level == "warning"]
    assert "whether the hooks work cannot be told" in warning


def test_it_announces_itself_to_serve(
    load: Callable[[Path], Any], arguments: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    control = tmp_path / "control"
    control.mkdir()
    monkeypatch.setenv("PRIORITY_ROUTER_CONTROL_DIR", str(control))
    model = load(FOLDER).TritonPythonModel()
    model.initialize(arguments)
    assert [path.name for path in control.iterdir()] == [f"router.{os.getpid()}.router"]
    model.finalize()
    assert list(control.iterdir()) == []


def test_a_router_that_does_not_come_up_signs_off(
    load: Callable[[Path], Any],
    arguments: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    triton: Triton,
) -> None:
    class NoFamily:
        COUNTER = GAUGE = None

        def __init__(self, **_: Any) -> None:
            raise RuntimeError("no metrics here")

    control = ControlDirectory(tmp_path / "control")
    monkeypatch.setenv(CONTROL_DIR_ENV, str(control.path))
    monkeypatch.setattr(triton, "MetricFamily", NoFamily)
    with pytest.raises(RuntimeError, match="no metrics here"):
        load(FOLDER).TritonPythonModel().initialize(arguments)
    assert control.undrained() == []
