# SPDX-License-Identifier: Apache-2.0
"""Interpreter, libpython and numpy of the real stub: the right ones are found, wrong ones are told before they harm."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
from priority_router.errors import SetupError
from priority_router.ops.server import Server, installation
from support.clients import Call, client
from support.models import INTERACTIVE, write_pair
from support.server import running

LIBPYTHON = "libpython{}.{}.so.1.0".format(*sys.version_info[:2])


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    write_pair(tmp_path / "repository")
    return tmp_path / "repository"


@pytest.fixture
def broken_library(tmp_path: Path) -> Path:
    """A folder with a libpython that no program can load."""
    folder = tmp_path / "lib"
    folder.mkdir()
    (folder / LIBPYTHON).touch()
    return folder


class TestInterpreter:
    """Case 27."""

    def test_the_environment_of_the_shell_does_not_decide(
        self, tmp_path: Path, repository: Path, broken_library: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Another `python3`, another libpython and another numpy stand first, where a plain tritonserver would look."""
        shell, packages = tmp_path / "bin", tmp_path / "packages"
        shell.mkdir()
        (shell / "python3").write_text("#!/bin/sh\nexit 9\n")
        (shell / "python3").chmod(0o755)
        (packages / "numpy").mkdir(parents=True)
        (packages / "numpy" / "__init__.py").write_text("raise ImportError('the wrong numpy')\n")
        monkeypatch.setenv("PATH", f"{shell}{os.pathsep}{os.environ['PATH']}")
        monkeypatch.setenv("LD_LIBRARY_PATH", str(broken_library))
        monkeypatch.setenv("PYTHONPATH", str(packages))
        monkeypatch.setenv("PYTHONHOME", str(tmp_path / "nowhere"))
        with running(repository) as server, client(server.grpc) as caller:
            assert caller.infer("router", Call(tag=1, traffic_class=INTERACTIVE)).ok
            used = Path(f"/proc/{server.stub_pids()['router_0_0']}/maps").read_text()
        assert set(re.findall(rf"\S+/{re.escape(LIBPYTHON)}", used)) == {
            str(Path(installation.libpython_folder(), LIBPYTHON).resolve())
        }

    def test_a_libpython_that_cannot_be_loaded_is_told_before_anything_starts(
        self, repository: Path, broken_library: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """By the stub itself, also where the interpreter does not need the library."""
        folders = [broken_library, *installation.find().libraries]
        server = Server(repository, environment={"LD_LIBRARY_PATH": os.pathsep.join(map(str, folders))})
        said = f"error while loading shared libraries: {re.escape(str(broken_library / LIBPYTHON))}: file too short"
        with pytest.raises(SetupError, match=rf"which the server's Python stub runs, has no usable numpy: .*{said}"):
            server.start()
        monkeypatch.setattr(installation, "check_numpy", lambda *_: None)
        with pytest.raises(SetupError, match=rf"the Python stub \S+ does not start: .*{said}"):
            server.start()
        assert server.log_text() == ""


@pytest.fixture(scope="module")
def numpy_2(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a server whose stub gets numpy 2: a venv that holds nothing else comes first on PATH."""
    folder = tmp_path_factory.mktemp("numpy_2")
    words = [
        "-m",
        "pip",
        "--disable-pip-version-check",
        "download",
        "--quiet",
        "--no-deps",
        "--dest",
        str(folder),
        "numpy==2.*",
    ]
    subprocess.run([sys.executable, *words], check=True, timeout=300)
    venv.EnvBuilder(symlinks=True, with_pip=False).create(folder / "venv")
    (wheel,) = folder.glob("numpy-*.whl")
    (packages,) = (folder / "venv").glob("lib/python3*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    return {"PATH": f"{folder / 'venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"}


@pytest.mark.slow
class TestNumpy:
    """Case 2: numpy 2 turns tensors into constants in this stub."""

    def test_serve_refuses_it_before_anything_starts(self, repository: Path, numpy_2: dict[str, str]) -> None:
        server = Server(repository, environment=numpy_2)
        with pytest.raises(SetupError, match=r"numpy 2\.\S+ \(\S+/numpy/__init__\.py, for \S+/venv/bin/python3\) corr"):
            server.start()
        assert server.log_text() == ""

    def test_the_router_refuses_to_load_on_what_it_does_to_a_tensor(
        self, repository: Path, numpy_2: dict[str, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As on a server that was not started by serve."""
        monkeypatch.setattr(installation, "check_numpy", lambda *_: None)
        with pytest.raises(SetupError) as caught, running(repository, environment=numpy_2):
            pass
        venv_folder = Path(numpy_2["PATH"].partition(os.pathsep)[0]).parent
        assert re.search(
            rf"router: Internal: SetupError: numpy 2\.\S+ \({venv_folder}/\S+/numpy/__init__\.py\) does not work with "
            r"this server's Python stub: \[\[110, 1\]\] came back as \[\[110, 110\]\]\. "
            rf"The stub runs {venv_folder}/bin/python3 in {venv_folder}; install numpy < 2 there",
            str(caught.value),
        )
