# SPDX-License-Identifier: Apache-2.0
"""The private folder of one server: backends as Triton wants to see them, and short safe paths to everything.

Triton's Python backend starts its stub through a shell and does not quote paths, and LD_PRELOAD is split at spaces and
colons. So the server sees only links inside this folder wherever the true path could be misread.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Final

from priority_router.errors import SetupError
from priority_router.interface import BACKEND
from priority_router.ops import assets
from priority_router.ops.server.installation import Installation

SAFE_PATH: Final = re.compile(r"[\w@%+./-]+", re.ASCII)
"""What a shell, LD_PRELOAD and LD_LIBRARY_PATH all leave alone."""

STUB_NAME: Final = "triton_python_backend_stub"


class Layout:
    """A private folder (mode 0700).

    Attributes:
        root: the folder.
        control: where the control directory belongs; not made here.
        backends: value of ``--backend-directory``.
        stub: the Python stub that will be started; None in NVIDIA's image.
        hooks: value of LD_PRELOAD; None when the server runs without hooks.
    """

    def __init__(self, installation: Installation, *, hooks: bool) -> None:
        """Makes the folder.

        Raises:
            SetupError: a part of this installation is missing, or no temporary folder can be used.
        """
        self.root = _private_folder()
        self.control = self.root / "control"
        self.backends = self.root / "backends"
        self.stub: Path | None = None
        self.hooks: Path | None = None
        try:
            self._fill(installation, hooks)
        except BaseException:
            self.remove()
            raise

    def repository(self, path: Path) -> Path:
        """A path of that repository that the Python backend's shell cannot misread: its own, or a link."""
        whole = path.resolve()
        if SAFE_PATH.fullmatch(str(whole)):
            return whole
        link = self.root / f"repository{len(list(self.root.glob('repository*')))}"
        link.symlink_to(whole, target_is_directory=True)
        return link

    def remove(self) -> None:
        """Removes the folder; what its links point to stays."""
        shutil.rmtree(self.root, ignore_errors=True)

    def _fill(self, installation: Installation, hooks: bool) -> None:
        self.backends.mkdir()
        if installation.stub is None:
            for backend in installation.backends.iterdir():
                _link(self.backends / backend.name, backend)
        else:
            self._fill_python(installation, installation.stub)
            _link(self.backends / "onnxruntime", assets.onnxruntime_backend())
        router = self.backends / BACKEND
        if router.is_symlink():
            router.unlink()
        router.mkdir()
        _link(router / "model.py", assets.model_file())
        _link(router / assets.package_folder().name, assets.package_folder())
        if hooks:
            self.hooks = router / assets.HOOKS_PLACE
            self.hooks.parent.mkdir()
            _link(self.hooks, assets.hooks_library())

    def _fill_python(self, installation: Installation, stub: Path) -> None:
        python = self.backends / "python"
        python.mkdir()
        source = installation.backends / "python"
        _link(python / "triton_python_backend_utils.py", source / "triton_python_backend_utils.py")
        # A copy: for Python-based backends Triton refuses a library that is a link out of its folder.
        _copy(source / "libtriton_python.so", python / "libtriton_python.so")
        # A copy: a server that cannot start its stub changes the file's mode, and it must not change the wheel's.
        self.stub = python / STUB_NAME
        _copy(stub, self.stub)


def _link(link: Path, target: Path) -> None:
    _check_present(target)
    link.symlink_to(target, target_is_directory=target.is_dir())


def _copy(source: Path, target: Path) -> None:
    _check_present(source)
    shutil.copy(source, target)


def _check_present(path: Path) -> None:
    if not path.exists():
        raise SetupError(f"{path} is missing; install the package that holds it again")


def _private_folder() -> Path:
    parents = [Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp")]
    for parent in dict.fromkeys(parents):
        if SAFE_PATH.fullmatch(str(parent)):
            try:
                return Path(tempfile.mkdtemp(prefix=f"priority-router-{os.getpid()}-", dir=parent))
            except OSError:
                continue
    raise SetupError("no usable folder for temporary files; set TMPDIR to one whose path has no spaces")
