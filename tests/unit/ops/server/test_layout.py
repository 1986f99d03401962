# SPDX-License-Identifier: Apache-2.0
import stat
import tempfile
from pathlib import Path

import pytest
from priority_router.errors import SetupError
from priority_router.ops import assets
from priority_router.ops.server.installation import Installation
from priority_router.ops.server.layout import Layout


@pytest.fixture
def embedded(tmp_path, monkeypatch):
    backends = tmp_path / "wheel" / "backends"
    (backends / "python").mkdir(parents=True)
    for name in ("libtriton_python.so", "triton_python_backend_utils.py"):
        (backends / "python" / name).touch()
    stub = tmp_path / "wheel" / "triton_python_backend_stub"
    stub.touch(mode=0o755)
    for name in ("model_file", "hooks_library", "onnxruntime_backend"):
        part = tmp_path / "assets" / name
        part.parent.mkdir(exist_ok=True)
        part.touch()
        monkeypatch.setattr(assets, name, lambda part=part: part)
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    return Installation(tmp_path / "tritonserver", backends, Path("/venv/bin/python"), stub)


@pytest.fixture
def nvidia(tmp_path, embedded):
    backends = tmp_path / "opt" / "backends"
    for name in ("python", "onnxruntime", "priority_router"):
        (backends / name).mkdir(parents=True)
    return Installation(tmp_path / "opt" / "tritonserver", backends)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_embedded_backends(embedded):
    layout = Layout(embedded, hooks=True)
    assert stat.S_IMODE(layout.root.stat().st_mode) == 0o700
    assert names(layout.backends) == ["onnxruntime", "priority_router", "python"]
    assert names(layout.backends / "python") == [
        "libtriton_python.so",
        "triton_python_backend_stub",
        "triton_python_backend_utils.py",
    ]
    assert names(layout.backends / "priority_router") == ["hooks", "model.py", "priority_router"]
    assert layout.hooks is not None
    assert layout.hooks.resolve() == assets.hooks_library()


def test_the_stub_is_a_copy_so_that_its_mode_is_the_servers_own(embedded):
    layout = Layout(embedded, hooks=False)
    assert layout.stub is not None
    layout.stub.chmod(0o100)
    assert stat.S_IMODE(embedded.stub.stat().st_mode) == 0o755


def test_nvidias_backends_stay_and_ours_replaces_an_installed_one(nvidia):
    layout = Layout(nvidia, hooks=True)
    assert layout.stub is None
    assert (layout.backends / "onnxruntime").resolve() == nvidia.backends / "onnxruntime"
    assert (layout.backends / "priority_router" / "model.py").resolve() == assets.model_file()
    assert names(nvidia.backends / "priority_router") == []


def test_without_hooks_the_library_is_not_asked_for(embedded, monkeypatch):
    def missing():
        raise SetupError("not compiled")

    monkeypatch.setattr(assets, "hooks_library", missing)
    assert Layout(embedded, hooks=False).hooks is None
    with pytest.raises(SetupError, match="not compiled"):
        Layout(embedded, hooks=True)
    assert len(names(Path(tempfile.gettempdir()))) == 1, "the failed one left its folder behind"


@pytest.mark.parametrize("name", ["with space", "semi;colon", "dollar$HOME", "quote'd", "ünicode"])
def test_a_repository_whose_path_the_backends_shell_would_misread_gets_a_link(embedded, tmp_path, name):
    layout = Layout(embedded, hooks=False)
    odd = tmp_path / name
    odd.mkdir()
    shown = layout.repository(odd)
    assert shown.parent == layout.root
    assert shown.resolve() == odd
    assert layout.repository(odd) != shown


def test_an_ordinary_repository_keeps_its_path(embedded, tmp_path):
    assert Layout(embedded, hooks=False).repository(tmp_path / "wheel") == tmp_path / "wheel"


def test_a_temporary_folder_with_a_space_is_not_used(embedded, tmp_path, monkeypatch):
    odd = tmp_path / "a b"
    odd.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(odd))
    layout = Layout(embedded, hooks=False)
    try:
        assert odd not in layout.root.parents
    finally:
        layout.remove()
    assert not layout.root.exists()


def test_removing_leaves_what_was_linked(embedded, tmp_path):
    layout = Layout(embedded, hooks=True)
    (tmp_path / "a b").mkdir()
    (tmp_path / "a b" / "model").touch()
    layout.repository(tmp_path / "a b")
    layout.remove()
    assert (tmp_path / "a b" / "model").exists()
    assert assets.hooks_library().exists()


def test_a_broken_installation_is_named(embedded):
    (embedded.backends / "python" / "libtriton_python.so").unlink()
    with pytest.raises(SetupError, match=r"libtriton_python\.so is missing"):
        Layout(embedded, hooks=False)
