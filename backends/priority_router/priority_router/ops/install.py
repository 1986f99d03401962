# SPDX-License-Identifier: Apache-2.0
"""The command ``install``: the backend folder with the compiled hooks, for a server that ``serve`` does not start."""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from priority_router import __version__
from priority_router.control import CALLS_PER_INSTANCE, OTHER_THREADS, TRITON_DEFAULT_POOL
from priority_router.errors import SetupError
from priority_router.hooks import GUARDED_MODELS_ENV
from priority_router.interface import BACKEND
from priority_router.ops import assets, command_line
from priority_router.ops.assets import HOOKS_PLACE

MARK: Final = ".installed-by-priority-router"
"""File in the folder that says whose it is; holds the version."""

_AT_FDCWD: Final = -100
_RENAME_EXCHANGE: Final = 2


def main(words: Sequence[str]) -> int:
    """Installs and prints what the server must be started with.

    Args:
        words: options.

    Returns:
        0.

    Raises:
        SetupError: nothing was changed; the text says why.
    """
    options = _parser().parse_args(words)
    if not options.directory or any(character < " " for character in options.directory):
        raise SetupError(f"{options.directory!r} is no usable folder name: it is empty or has control characters")
    folder = install(Path(options.directory), force=options.force)
    print(instructions(folder))
    return 0


def install(directory: Path, *, force: bool = False) -> Path:
    """Writes ``directory/priority_router``: ``model.py``, the package and the hooks.

    It is put together beside its place and changed over in one step, so a server that starts meanwhile sees the old one
    or the new one. A server that runs keeps what it has loaded until it is restarted.

    Args:
        directory: the server's backend folder; made when missing.
        force: replace a folder of that name that this command did not write.

    Returns:
        The folder written.

    Raises:
        SetupError: a part is missing, the place is taken, or it cannot be written.
    """
    # Its parent may be another folder than its name suggests where one of them is a link.
    directory = directory.resolve() if ".." in directory.parts else directory.absolute()
    target = directory / BACKEND
    if os.path.lexists(target) and not (target / MARK).is_file() and not force:
        raise SetupError(f"{target} exists and was not written by this command; move it away, or add --force")
    parts = {
        "model.py": assets.model_file(),
        assets.package_folder().name: assets.package_folder(),
        HOOKS_PLACE: assets.hooks_library(),
    }
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{BACKEND}.", dir=directory, ignore_cleanup_errors=True) as scratch:
            fresh = Path(scratch) / "new"
            _build(fresh, parts)
            _change_over(fresh, target, Path(scratch) / "old")
    except OSError as error:
        raise SetupError(f"{target} cannot be written: {error.strerror or error} ({error.filename})") from error
    return target


def instructions(folder: Path) -> str:
    """What a server needs to be started with to use the installed backend."""
    library = folder / HOOKS_PLACE
    lines = [
        f"wrote {folder} (priority-router {__version__})",
        "",
        "Start tritonserver with",
        f"  LD_PRELOAD={library}",
        f"  {GUARDED_MODELS_ENV}=EXECUTOR=ROUTER     (several: separated by ';'; closes the executor to clients)",
        f"  --backend-directory={folder.parent}     (not needed where this is the server's own backend folder)",
        "  --backend-config=python,thread-pool-size=N     with N = "
        f"{CALLS_PER_INSTANCE} x executor instances + {OTHER_THREADS}, where that is above {TRITON_DEFAULT_POOL}",
    ]
    if set(str(library)) & set(" :"):
        lines += ["", "warning: LD_PRELOAD is split at spaces and colons, and this path has one; install elsewhere"]
    return "\n".join(lines)


def _build(fresh: Path, parts: dict[str, Path]) -> None:
    for name, source in parts.items():
        place = fresh / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, place, ignore=shutil.ignore_patterns("__pycache__", "_backend"))
        else:
            shutil.copy(source, place)
    (fresh / MARK).write_text(f"{__version__}\n")
    # The server may run as another user, whatever this one's umask is.
    for path in [fresh, *fresh.rglob("*")]:
        path.chmod(0o755 if path.is_dir() or path.suffix == ".so" else 0o644)


def _change_over(fresh: Path, target: Path, old: Path) -> None:
    if not os.path.lexists(target):
        fresh.rename(target)
        return
    # Exchanged, the old one lies in the scratch folder and goes with it.
    if not _exchange(fresh, target):
        target.rename(old)
        try:
            fresh.rename(target)
        except OSError:
            with contextlib.suppress(OSError):
                old.rename(target)
            raise


def _exchange(one: Path, other: Path) -> bool:
    """Swaps two names in one step; False where C library or file system cannot."""
    try:
        rename = ctypes.CDLL(None).renameat2
    except AttributeError:
        return False
    return bool(rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0)


def _parser() -> argparse.ArgumentParser:
    parser = command_line.parser(
        "priority-router install",
        "Writes DIR/priority_router, the backend with its compiled hooks, for a server that is not started by "
        "`priority-router serve`, and prints what to start it with.",
    )
    parser.add_argument(
        "directory", metavar="DIR", help="the server's backend folder, such as /opt/tritonserver/backends"
    )
    parser.add_argument("--force", action="store_true", help="replace a folder that this command did not write")
    return parser
