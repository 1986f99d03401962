# SPDX-License-Identifier: Apache-2.0
"""The build of the preloaded library, and that the wheel carries it."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from priority_router.errors import SetupError
from priority_router.ops import assets, build_hooks

ROOT = Path(__file__).resolve().parents[2]


def test_no_compiler(monkeypatch, tmp_path):
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SetupError, match=r"no C compiler found.*apt-get install gcc libc6-dev"):
        build_hooks.build_hooks(tmp_path / "hooks.so")
    assert list(tmp_path.iterdir()) == []


def test_a_named_compiler_that_is_not_there(monkeypatch, tmp_path):
    monkeypatch.setenv("CC", "no-such-compiler --fast")
    with pytest.raises(SetupError, match=r"'no-such-compiler' cannot be run.*install a C compiler"):
        build_hooks.build_hooks(tmp_path / "hooks.so")


def test_a_warning_is_an_error_and_leaves_the_old_library(monkeypatch, tmp_path):
    source = tmp_path / "source.c"
    source.write_text("int unused(int argument) { return 0; }\n")
    monkeypatch.setattr(build_hooks, "SOURCE", source)
    target = tmp_path / "hooks.so"
    target.write_text("old")
    with pytest.raises(SetupError, match="unused parameter"):
        build_hooks.build_hooks(target)
    assert target.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["hooks.so", "source.c"]


def test_a_new_build_leaves_the_mapped_file_alone(tmp_path):
    target = build_hooks.build_hooks(tmp_path / "hooks.so")
    with target.open("rb") as mapped:
        build_hooks.build_hooks(target)
        assert mapped.read(4) == b"\x7fELF"
        assert target.stat().st_ino != Path(f"/proc/self/fd/{mapped.fileno()}").stat().st_ino


def test_the_command_checks_without_writing(monkeypatch, capsys):
    before = assets.hooks_library().stat()
    assert build_hooks.main(["--check"]) == 0
    assert assets.hooks_library().stat().st_ino == before.st_ino
    monkeypatch.setenv("CC", "no-such-compiler")
    assert build_hooks.main([]) == 1
    assert capsys.readouterr().err.startswith("build_hooks: error: the C compiler 'no-such-compiler'")


def test_the_wheel_carries_what_a_server_needs(tmp_path):
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    assert "-py3-none-linux_" in wheel.name
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    code = (
        "from priority_router.ops import assets as a; print(a.hooks_library(), a.model_file(), a.onnxruntime_backend())"
    )
    found = subprocess.run(
        [sys.executable, "-c", code],
        cwd=site,
        check=True,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(site)},
    )
    backend = site / "priority_router" / "_backend"
    library, model, onnxruntime = map(Path, found.stdout.split())
    assert (library, model) == (backend / "libpriority_router_hooks.so", backend / "model.py")
    assert library.read_bytes()[:4] == b"\x7fELF"
    assert model.read_bytes() == (ROOT / "backends" / "priority_router" / "model.py").read_bytes()
    assert (onnxruntime / "model.py").is_file()
