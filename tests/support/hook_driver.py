# SPDX-License-Identifier: Apache-2.0
"""Small C programs that call the hooked functions from where Triton calls them, each kept open over a pipe."""

from __future__ import annotations

import ctypes
import functools
import json
import os
import subprocess
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from priority_router.hooks import LOADED_ENV, HookCounters, HookCounts, HookMarker, read_marker
from priority_router.ops.build_hooks import build_hooks

SOURCES = Path(__file__).resolve().parents[1] / "hooks" / "fakes"
_ANSWER_SECONDS = 120.0
_TRIES = 10
_LIBC = ctypes.CDLL(None)
_NO_RANDOM_ADDRESSES = 0x0040000
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer")
RACES = ("-fsanitize=thread", "-fno-omit-frame-pointer")
"""A program compiled so ends with another status than 0 where two threads met in one place without an order."""


@dataclass(frozen=True)
class Build:
    """One set of compiled files: hooks, fake libraries and the programs that use them.

    Attributes:
        folder: holds ``driver``, ``old/driver`` (its core lacks what the hooks need), ``bare/driver`` (its core lacks
            what they wrap), ``late`` (opens the core by itself), the libraries, and ``no_memfd.so`` to preload.
        preload: value of LD_PRELOAD that loads the hooks.
    """

    folder: Path
    preload: str

    @property
    def python_backend(self) -> Path:
        return self.folder / "libtriton_python.so"

    @property
    def other_library(self) -> Path:
        return self.folder / "libtriton_onnx.so"


def compile_all(folder: Path, sanitized: bool = False, everywhere: tuple[str, ...] = ()) -> Build:
    """Compiles everything into ``folder``.

    Args:
        folder: is there.
        sanitized: the hooks get address and undefined-behaviour checks.
        everywhere: further flags, of hooks and fakes alike.
    """
    hooks = build_hooks(folder / "hooks.so", (*(SANITIZERS if sanitized else ()), *everywhere))
    fake = functools.partial(compile_fake, flags=everywhere)
    for core_folder, definition in ((folder, ()), (folder / "old", ("-DOLD",)), (folder / "bare", ("-DBARE",))):
        core_folder.mkdir(exist_ok=True)
        core = core_folder / "libtritonserver-1a2b3c4d.so"
        fake(core, "core.c", "-shared", f"-Wl,-soname,{core.name}", *definition)
        for name in ("libtriton_python.so", "libtriton_onnx.so"):
            fake(core_folder / name, "python_backend.c", "-shared", str(core), "-Wl,-rpath,$ORIGIN")
        # Linked with the whole core; what one of the other two lacks is missed when it is called.
        fake(core_folder / "driver", "driver.c", str(folder / core.name), "-Wl,-rpath,$ORIGIN,-z,lazy")
    fake(folder / "late", "driver.c", "-DLATE")
    fake(folder / "no_memfd.so", "no_memfd.c", "-shared")
    runtime = [_compiler_file("libasan.so"), _compiler_file("libubsan.so")] if sanitized else []
    return Build(folder, " ".join([*runtime, str(hooks)]))


def compile_fake(target: Path, source: str, *arguments: str, flags: tuple[str, ...] = ()) -> None:
    """Compiles one file of tests/hooks/fakes."""
    base = ["cc", "-std=gnu11", "-O2", "-g", "-fPIC", "-pthread", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([*base, *flags, "-o", str(target), str(SOURCES / source), *arguments], check=True)


def _compiler_file(name: str) -> str:
    found = subprocess.run(["cc", f"-print-file-name={name}"], check=True, capture_output=True, text=True)
    return found.stdout.strip()


def at_least_once(test: Callable[..., None]) -> Callable[..., None]:
    """A test of what happens at a certain moment: it passes when one of several tries does."""

    @functools.wraps(test)
    def tries(*arguments: Any, **named: Any) -> None:
        for _ in range(_TRIES - 1):
            try:
                return test(*arguments, **named)
            except AssertionError:
                continue
        return test(*arguments, **named)

    return tries


def cuts_waits(ask: Callable[[str], dict[str, Any]]) -> bool:
    """Whether a program's wait for an instance is cut; one whose time is over when it begins is not."""
    return any(ask("wait local 100000 -1 0")["wakeups"] > 1 for _ in range(_TRIES))


def _in_order() -> None:
    """Has a program's memory laid out in the usual order: older compilers' checks fail where it is spread far.

    Where that is forbidden it is left as it is.
    """
    _LIBC.personality(_NO_RANDOM_ADDRESSES)


class Driver:
    """A running program; ``ask`` sends one command and returns its answer.

    Attributes:
        stderr: what it wrote there, complete after the block.
    """

    def __init__(
        self,
        program: Path,
        preload: str,
        environment: Mapping[str, str] | None = None,
        through: Sequence[str] = (),
        stderr: int | None = None,
    ) -> None:
        """Starts it.

        Args:
            program: its file.
            preload: value of LD_PRELOAD.
            environment: further variables.
            through: a command that becomes the program, which is its last argument.
            stderr: a descriptor instead of the file that ``stderr`` is read from.
        """
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("PRIORITY_ROUTER_")}
        environ = {**inherited, "LD_PRELOAD": preload, **(environment or {})}
        # LeakSanitizer cannot run under a tracer, and what the fakes leak is not the question.
        environ["ASAN_OPTIONS"] = "detect_leaks=0:verify_asan_link_order=0"
        self.stderr = ""
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - _end closes it
        self._process = subprocess.Popen(
            [*through, str(program)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr if stderr is None else stderr,
            env=environ,
            text=True,
            preexec_fn=_in_order,
        )

    def __enter__(self) -> Driver:
        return self

    def ask(self, command: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        hung = threading.Timer(_ANSWER_SECONDS, self._process.kill)
        hung.start()
        line = self._process.stdout.readline()
        hung.cancel()
        if not line:
            self._end()
            raise AssertionError(f"{command!r} ended the program ({self._process.returncode}): {self.stderr}")
        answer = json.loads(line)
        assert isinstance(answer, dict)
        return answer

    def marker(self) -> HookMarker | None:
        """What the library left in this program's environment."""
        return read_marker({LOADED_ENV: self.ask(f"env {LOADED_ENV}")["value"]})

    def counts(self) -> HookCounts:
        """The counters of this program, mapped from outside."""
        marker = self.marker()
        assert marker is not None
        assert marker.active_in(self._process.pid)
        counters = HookCounters.open(marker)
        try:
            return counters.read()
        finally:
            counters.close()

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.returncode is not None:
            return
        try:
            self._end(timeout=_ANSWER_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._end()
            raise
        if kind is None and self._process.returncode != 0:
            raise AssertionError(f"the program ended with {self._process.returncode}: {self.stderr}")

    def _end(self, timeout: float | None = None) -> None:
        """Waits for its end, which the end of its input brings about, and keeps what it wrote."""
        self._process.communicate(timeout=timeout)
        self._stderr.seek(0)
        self.stderr = self._stderr.read().decode()
        self._stderr.close()
