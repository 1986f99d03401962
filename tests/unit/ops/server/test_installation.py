# SPDX-License-Identifier: Apache-2.0
import os
import platform
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest
from priority_router.errors import SetupError
from priority_router.ops.server import installation


def test_nvidias_server_wins_where_present(tmp_path):
    server = tmp_path / "bin" / "tritonserver"
    server.parent.mkdir()
    server.touch()
    found = installation.find(server)
    assert (found.binary, found.backends, found.embedded) == (server, tmp_path / "backends", False)
    assert (found.python, found.libraries) == (None, ())


def test_the_embedded_server_has_the_stub_of_the_running_minor_version(tmp_path):
    found = installation.find(tmp_path / "none")
    assert found.embedded
    assert found.stub is not None
    assert found.python is not None
    assert found.stub.parent.name == "{}.{}".format(*sys.version_info[:2])
    assert (found.python.parent / "python3").exists()
    assert [folder.name for folder in found.libraries][1:] == ["nvidia_pytriton.libs"]


def test_no_server_at_all_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(installation, "_wheel_folder", lambda: None)
    with pytest.raises(SetupError, match=r"pip install 'triton-priority-router\[embedded\]'"):
        installation.find(tmp_path / "none")


def test_where_the_embedded_server_cannot_run_it_is_not_offered(tmp_path, monkeypatch):
    monkeypatch.setattr(installation, "_wheel_folder", lambda: None)
    monkeypatch.setattr(sys, "version_info", (3, 13, 0, "final", 0))
    with pytest.raises(SetupError, match=r"no Triton server: .*none does not exist, and .* needs CPython 3") as caught:
        installation.find(tmp_path / "none")
    assert "[embedded]" not in str(caught.value)


@pytest.mark.parametrize(
    ("module", "name", "value", "said"),
    [
        (sys, "version_info", (3, 13, 0, "final", 0), "CPython"),
        (sys, "version_info", (3, 10, 4, "final", 0), "CPython"),
        (sys, "platform", "darwin", "Linux"),
        (platform, "machine", lambda: "aarch64", "aarch64"),
        (platform, "libc_ver", lambda: ("glibc", "2.31"), "glibc 2.31"),
        (platform, "libc_ver", lambda: ("", ""), "another C library"),
        (platform, "libc_ver", lambda: ("musl", "1.2.4"), "musl 1.2.4"),
    ],
)
def test_another_platform_is_told_so_in_one_sentence(monkeypatch, module, name, value, said):
    monkeypatch.setattr(module, name, value)
    with pytest.raises(SetupError, match=said) as caught:
        installation.check_platform()
    assert "3.11 or 3.12 on Linux x86-64 with glibc 2.35 or newer" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("version", ["2.35", "2.100", "3.0"])
def test_newer_glibc_fits(monkeypatch, version):
    monkeypatch.setattr(platform, "libc_ver", lambda: ("glibc", version))
    installation.check_platform()


def test_a_static_build_is_explained_in_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(sysconfig, "get_config_var", lambda name: str(tmp_path) if name == "LIBDIR" else None)
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path / "prefix"))
    with pytest.raises(SetupError, match="static build") as caught:
        installation.libpython_folder()
    for part in (sys.executable, str(tmp_path), "libpython3.", "--enable-shared"):
        assert part in str(caught.value)
    assert "\n" not in str(caught.value)


def test_libpython_is_found_where_the_build_says_or_beside_the_prefix(tmp_path, monkeypatch):
    name = "libpython{}.{}.so.1.0".format(*sys.version_info[:2])
    settings = {"LIBDIR": str(tmp_path / "lib"), "MULTIARCH": "x86_64-linux-gnu"}
    monkeypatch.setattr(sysconfig, "get_config_var", settings.get)
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path / "prefix"))
    for folder in (tmp_path / "prefix" / "lib", tmp_path / "lib" / "x86_64-linux-gnu", tmp_path / "lib"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
        assert installation.libpython_folder() == folder


def test_a_folder_that_this_user_may_not_look_into_is_passed_over(tmp_path, monkeypatch):
    name = "libpython{}.{}.so.1.0".format(*sys.version_info[:2])
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / name).touch()
    stat = os.stat

    def forbidden(path, **options):
        if "closed" in str(path):
            raise PermissionError(13, "Permission denied", str(path))
        return stat(path, **options)

    monkeypatch.setattr(os, "stat", forbidden)
    monkeypatch.setattr(sysconfig, "get_config_var", {"LIBDIR": "/closed/lib"}.get)
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path))
    assert installation.libpython_folder() == tmp_path / "lib"


class Answer:
    """What a started program would have said."""

    def __init__(self, monkeypatch, stdout="", stderr="", status=0):
        self.commands: list[tuple[Any, Any]] = []

        def run(command, environment, given_up):
            self.commands.append((command, environment))
            return subprocess.CompletedProcess(command, status, stdout, stderr)

        monkeypatch.setattr(installation, "_run", run)


@pytest.fixture
def environment(tmp_path):
    python = tmp_path / "bin" / "python3"
    python.parent.mkdir()
    python.touch(mode=0o755)
    return {"PATH": f"{python.parent}:/usr/bin"}


def numpy_answer(version, minor=None):
    minor = list(sys.version_info[:2]) if minor is None else minor
    return f'[{minor}, "{version}", "/site/numpy/__init__.py"]'


def test_numpy_2_is_refused_with_interpreter_and_file(monkeypatch, environment):
    Answer(monkeypatch, numpy_answer("2.1.0"))
    with pytest.raises(SetupError, match="corrupts tensors") as caught:
        installation.check_numpy(environment)
    for part in (environment["PATH"].split(":")[0], "2.1.0", "/site/numpy/__init__.py", "numpy<2"):
        assert part in str(caught.value)


def test_numpy_1_passes_and_the_first_python3_on_the_childs_path_is_asked(monkeypatch, environment):
    answer = Answer(monkeypatch, numpy_answer("1.26.4"))
    installation.check_numpy(environment)
    (command, given), *_ = answer.commands
    assert command[0] == f"{environment['PATH'].split(':')[0]}/python3"
    assert given is environment


def test_the_wrong_interpreter_is_named(monkeypatch, environment):
    Answer(monkeypatch, numpy_answer("1.26.4", [3, 9]))
    with pytest.raises(SetupError, match=r"would run .*/bin/python3 \(Python 3\.9\)"):
        installation.check_numpy(environment)


def test_a_missing_numpy_is_said(monkeypatch, environment):
    Answer(monkeypatch, stderr="Traceback\nModuleNotFoundError: No module named 'numpy'\n", status=1)
    with pytest.raises(SetupError, match="no usable numpy: ModuleNotFoundError"):
        installation.check_numpy(environment)


def test_no_python3_at_all_is_said():
    with pytest.raises(SetupError, match="no python3"):
        installation.check_numpy({"PATH": "/nowhere"})


def test_the_loaders_own_words_reach_the_user(monkeypatch):
    words = "stub: error while loading shared libraries: libpython3.11.so.1.0: cannot open shared object file"
    Answer(monkeypatch, stderr=words, status=127)
    with pytest.raises(SetupError, match=r"libpython3\.11\.so\.1\.0: cannot open"):
        installation.check_stub(Path("/stub"), {})
    Answer(monkeypatch, status=1)
    installation.check_stub(Path("/stub"), {})
