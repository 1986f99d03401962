# SPDX-License-Identifier: Apache-2.0
"""Which tritonserver runs, and whether this machine and interpreter can run it.

Two servers are known: NVIDIA's, in its image, which is taken as it is; and the CPU server inside the nvidia-pytriton
wheel ("embedded"), whose Python stub needs an interpreter, a libpython and a numpy that fit, all checked here before
anything starts. Without the checks a missing libpython looks like a frozen server, and numpy 2 gives wrong tensors.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from priority_router.errors import SetupError

NVIDIA_SERVER: Final = Path("/opt/tritonserver/bin/tritonserver")
EMBEDDED_PYTHONS: Final = ((3, 11), (3, 12))
EMBEDDED_GLIBC: Final = (2, 35)
_PROBE_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.1
_NUMPY_QUESTION: Final = (
    "import json, sys, numpy; print(json.dumps([sys.version_info[:2], numpy.__version__, numpy.__file__]))"
)


def _never() -> bool:
    return False


@dataclass(frozen=True)
class Installation:
    """A tritonserver that can be started.

    Attributes:
        binary: the executable.
        backends: folder of its own backends.
        python: the interpreter whose packages the models see; None in NVIDIA's image, which has its own.
        stub: Python stub of that interpreter's minor version; None in NVIDIA's image.
        libraries: folders for LD_LIBRARY_PATH, in order.
    """

    binary: Path
    backends: Path
    python: Path | None = None
    stub: Path | None = None
    libraries: tuple[Path, ...] = ()

    @property
    def embedded(self) -> bool:
        """True for the server of the nvidia-pytriton wheel."""
        return self.stub is not None


def find(nvidia_server: Path = NVIDIA_SERVER) -> Installation:
    """NVIDIA's server where present, else the embedded one.

    Raises:
        SetupError: neither can run here; the text says why and what to do.
    """
    if nvidia_server.exists():
        return Installation(nvidia_server, nvidia_server.parent.parent / "backends")
    missing = f"no Triton server: {nvidia_server} does not exist, and"
    try:
        check_platform()
    except SetupError as error:
        raise SetupError(f"{missing} {error}") from None
    wheel = _wheel_folder()
    if wheel is None:
        raise SetupError(
            f"{missing} nvidia-pytriton is not installed; run in NVIDIA's image, or run: "
            f"{sys.executable} -m pip install 'triton-priority-router[embedded]'"
        )
    root = wheel / "tritonserver"
    minor = f"{sys.version_info.major}.{sys.version_info.minor}"
    stub = root / "python_backend_stubs" / minor / "triton_python_backend_stub"
    if not stub.exists():
        raise SetupError(f"nvidia-pytriton has no Python stub for Python {minor}: {stub} is missing; reinstall it")
    python = Path(sys.executable)
    if not (python.parent / "python3").exists():
        raise SetupError(
            f"the embedded server runs `python3` from the folder of {python}, and there is none; "
            "use an interpreter of a virtual environment (python3 -m venv)"
        )
    bundled = wheel.parent / "nvidia_pytriton.libs"
    return Installation(root / "bin" / "tritonserver", root / "backends", python, stub, (libpython_folder(), bundled))


def check_platform() -> None:
    """Refuses, in one sentence, a machine or interpreter for which no embedded server exists."""
    libc, version = platform.libc_ver()
    glibc = tuple(int(part) for part in version.split(".")[:2]) if libc == "glibc" else ()
    fits = (
        sys.platform == "linux"
        and platform.machine() == "x86_64"
        and sys.implementation.name == "cpython"
        and sys.version_info[:2] in EMBEDDED_PYTHONS
        and glibc >= EMBEDDED_GLIBC
    )
    if not fits:
        raise SetupError(
            "the embedded server needs CPython 3.11 or 3.12 on Linux x86-64 with glibc 2.35 or newer; this is "
            f"{platform.python_implementation()} {platform.python_version()} on {platform.system()} "
            f"{platform.machine()} with {f'{libc} {version}' if libc else 'another C library'}"
        )


def libpython_folder() -> Path:
    """Folder of the running interpreter's shared library.

    Raises:
        SetupError: there is none: the interpreter is a static build.
    """
    name = f"libpython{sys.version_info.major}.{sys.version_info.minor}.so.1.0"
    library_dir = sysconfig.get_config_var("LIBDIR") or ""
    multiarch = sysconfig.get_config_var("MULTIARCH") or ""
    candidates = [Path(library_dir), Path(library_dir, multiarch), Path(sys.base_prefix, "lib")]
    for folder in candidates:
        # Not Path.exists: a build's own folder may be one that this user cannot even look into.
        if os.path.exists(folder / name):
            return folder
    raise SetupError(
        f"the embedded server's Python stub needs {name}, and the interpreter {sys.executable} comes without it "
        f"(a static build; looked in {', '.join(map(str, dict.fromkeys(candidates)))}); use one built with "
        "--enable-shared (pyenv: PYTHON_CONFIGURE_OPTS=--enable-shared, Debian: package "
        f"libpython{sys.version_info.major}.{sys.version_info.minor}, uv and conda builds have it)"
    )


def check_stub(stub: Path, environment: dict[str, str], given_up: Callable[[], bool] = _never) -> None:
    """Starts the stub once without arguments: it must load its libraries and reach its own usage message.

    Args:
        stub: the copy that the server will start.
        environment: exactly what the server will be given.
        given_up: asked now and then whether to stop waiting.

    Raises:
        SetupError: the loader's own words, or it was given up.
    """
    # The server takes any other status than 1 as a missing execute permission and then narrows the file's mode.
    try:
        run = _run([str(stub)], environment, given_up)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SetupError(
            f"the Python stub {stub} cannot be started ({error}); if its folder forbids programs (noexec), set TMPDIR "
            "to one that allows them"
        ) from error
    if run.returncode != 1:
        said = (run.stderr or run.stdout).strip() or f"exit status {run.returncode}"
        raise SetupError(f"the Python stub {stub} does not start: {said}")


def check_numpy(environment: dict[str, str], given_up: Callable[[], bool] = _never) -> None:
    """Refuses numpy 2 for the embedded 24.10 stub, in which it silently turns tensors into constants.

    The interpreter asked is the one that the stub will use: the first `python3` on the child's PATH. The router repeats
    the check by effect, inside the stub.

    Args:
        environment: exactly what the server will be given.
        given_up: asked now and then whether to stop waiting.

    Raises:
        SetupError: the interpreter, the version and the file found, or it was given up.
    """
    interpreter = shutil.which("python3", path=environment.get("PATH"))
    if interpreter is None:
        raise SetupError("no python3 on the server's PATH; its Python stub runs the first one")
    try:
        run = _run([interpreter, "-I", "-c", _NUMPY_QUESTION], environment, given_up)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SetupError(f"{interpreter}, which the server's Python stub runs, does not start: {error}") from error
    if run.returncode != 0:
        said = (run.stderr.strip().splitlines() or [f"exit status {run.returncode}"])[-1]
        raise SetupError(f"{interpreter}, which the server's Python stub runs, has no usable numpy: {said}")
    minor, version, file = json.loads(run.stdout)
    if minor != list(sys.version_info[:2]):
        raise SetupError(
            f"the server's Python stub would run {interpreter} (Python {minor[0]}.{minor[1]}), but it is made for that "
            f"of {sys.executable}; use an interpreter of a virtual environment (python3 -m venv)"
        )
    if int(version.split(".")[0]) >= 2:
        raise SetupError(
            f"numpy {version} ({file}, for {interpreter}) corrupts tensors in the embedded Triton 24.10; "
            f"run: {interpreter} -m pip install 'numpy<2'"
        )


def _run(
    command: list[str], environment: dict[str, str], given_up: Callable[[], bool]
) -> subprocess.CompletedProcess[str]:
    deadline = time.monotonic() + _PROBE_SECONDS
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            while True:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    out, errors = process.communicate(timeout=_POLL_SECONDS)
                    return subprocess.CompletedProcess(command, process.returncode, out, errors)
                if given_up():
                    raise SetupError(f"stopped while {command[0]} was tried")
                if time.monotonic() >= deadline:
                    raise subprocess.TimeoutExpired(command, _PROBE_SECONDS)
        except BaseException:
            process.kill()
            raise


def _wheel_folder() -> Path | None:
    spec = importlib.util.find_spec("pytriton")
    return Path(spec.origin).parent if spec is not None and spec.origin else None
