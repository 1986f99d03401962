# SPDX-License-Identifier: Apache-2.0
"""Compiles the preloaded library: the one place that knows compiler and flags.

The wheel's build (``scripts/hatch_build.py``), an editable install and ``python -m priority_router.ops.build_hooks``
all come here.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from priority_router.errors import SetupError
from priority_router.hooks import LIBRARY_NAME
from priority_router.ops import command_line

FOLDER = Path(__file__).resolve().parents[2] / "hooks"
SOURCE = FOLDER / "priority_router_hooks.c"

WARNINGS = ("-Wall", "-Wextra", "-Werror")
# No -Bsymbolic, no LTO: the library lives from standing first in the search order with ordinary symbols.
FLAGS = ("-std=gnu11", "-O2", "-g", "-fPIC", "-shared", "-fvisibility=hidden", "-Wl,-z,defs,-z,relro,-z,now")

_REMEDY = (
    "install a C compiler with the C library's headers (Debian, Ubuntu: apt-get install gcc libc6-dev; "
    "Fedora, RHEL: dnf install gcc glibc-devel) or name one in the environment variable CC"
)


def build_hooks(target: Path = FOLDER / LIBRARY_NAME, extra_flags: tuple[str, ...] = ()) -> Path:
    """Compiles the library.

    The file is put in place in one step: a running server keeps the one it has mapped.

    Args:
        target: file to write; its folder must exist.
        extra_flags: appended to the compiler's own, for instance ``-fsanitize=address``.

    Returns:
        ``target``.

    Raises:
        SetupError: no compiler, or it failed; the text says what to install.
    """
    compiler = _compiler()
    handle, name = tempfile.mkstemp(prefix=".building-", suffix=".so", dir=target.parent)
    os.close(handle)
    scratch = Path(name)
    try:
        command = [*compiler, *FLAGS, *WARNINGS, *extra_flags, "-o", str(scratch), str(SOURCE)]
        try:
            result = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            raise SetupError(f"the C compiler {compiler[0]!r} cannot be run ({error}): {_REMEDY}") from error
        if result.returncode != 0:
            raise SetupError(f"{shlex.join(command)} failed: {_REMEDY}; it said:\n{result.stderr.strip()}")
        scratch.chmod(0o755)
        scratch.replace(target)
    finally:
        scratch.unlink(missing_ok=True)
    return target


def _compiler() -> list[str]:
    named = shlex.split(os.environ.get("CC", ""))
    if named:
        return named
    for candidate in ("cc", "gcc", "clang"):
        if path := shutil.which(candidate):
            return [path]
    raise SetupError(f"no C compiler found (looked for cc, gcc and clang): {_REMEDY}")


def main(arguments: list[str] | None = None) -> int:
    """Compiles for a clone; returns the exit status."""
    parser = command_line.parser("build_hooks", "Compile the preloaded library in place.")
    parser.add_argument("--check", action="store_true", help="only see that it compiles without a warning")
    check = parser.parse_args(arguments).check

    def run() -> int:
        if check:
            with tempfile.TemporaryDirectory() as folder:
                build_hooks(Path(folder) / LIBRARY_NAME)
        else:
            print(build_hooks())
        return 0

    return command_line.exit_status(parser.prog, run)


if __name__ == "__main__":
    sys.exit(main())
