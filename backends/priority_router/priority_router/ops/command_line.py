# SPDX-License-Identifier: Apache-2.0
"""What all commands share: their parsers, how option values are read, and how a command ends.

Exit statuses: 0 success, 1 failure with the reason on stderr, 2 wrong use (argparse says it), 130 Ctrl-C, 143
SIGTERM. Standard library only.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, Final, NoReturn

from priority_router.errors import PriorityRouterError

FAILED: Final = 1
INTERRUPTED: Final = 130
"""As shells say it: 128 and the number of SIGINT."""

TERMINATED: Final = 143
"""Likewise of SIGTERM."""

LONGEST_SECONDS: Final = 86_400.0
"""Of any option; waits of Python's threads and sockets take it."""

_EXTRAS: Final = {
    "google": "tools",
    "grpc": "tools",
    "matplotlib": "tools",
    "onnx": "tools",
    "onnxruntime": "embedded",
    "pytriton": "embedded",
    "tritonclient": "tools",
}
"""Package, as it is imported, to the extra that brings it."""

_INSTALLED_AS: Final = {"google": "protobuf", "grpc": "grpcio"}
"""Of these packages, where that is another name."""


def parser(program: str, description: str, **options: Any) -> argparse.ArgumentParser:
    """A parser that takes options by their whole names only, so that a new one never changes what an old word means.

    Args:
        program: as a user types it.
        description: what it does.
        options: further arguments of `argparse.ArgumentParser`.
    """
    return argparse.ArgumentParser(prog=program, description=description, allow_abbrev=False, **options)


def seconds(word: str) -> float:
    """An option's value: a time above 0, a day at most."""
    try:
        value = float(word)
    except ValueError:
        value = 0.0
    if 0 < value <= LONGEST_SECONDS:
        return value
    raise argparse.ArgumentTypeError(f"{word!r} is not a number of seconds above 0 and up to {LONGEST_SECONDS:.0f}")


def whole_number(least: int, most: int | None = None) -> Callable[[str], int]:
    """Reads an option's value from ``least``, which is not negative, to ``most``."""

    def read(word: str) -> int:
        if word.isascii() and word.isdigit() and least <= int(word) and (most is None or int(word) <= most):
            return int(word)
        limits = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise argparse.ArgumentTypeError(f"{word!r} is not a whole number {limits}")

    return read


def row_counts(word: str) -> list[int]:
    """Reads an option's row counts, ``A,B,…``: each once, ascending."""
    count = whole_number(1)
    return sorted({count(part) for part in word.split(",")})


def remark(text: str) -> None:
    """Prints a line on stdout that nobody depends on: where it cannot be written, the command still succeeded."""
    try:
        print(text, flush=True)
    except OSError:
        # Python would try again at its end, and fail the process.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class Terminated(KeyboardInterrupt):
    """SIGTERM, inside `interrupted_by_sigterm`."""


@contextlib.contextmanager
def interrupted_by_sigterm() -> Iterator[None]:
    """Inside, SIGTERM does what Ctrl-C does, so that what was started is ended and what was made is kept or removed."""

    def terminate(_number: int, _frame: FrameType | None) -> NoReturn:
        raise Terminated

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def stopped_status(order: KeyboardInterrupt) -> int:
    """Exit status of a command that was told to stop."""
    return TERMINATED if isinstance(order, Terminated) else INTERRUPTED


def exit_status(program: str, run: Callable[[], int]) -> int:
    """Runs a command and turns what it raises into a line on stderr.

    Args:
        program: named at the beginning of the line.
        run: returns its own exit status.

    Returns:
        That status; FAILED for an error of this product and for a package that an extra would bring; INTERRUPTED
        or TERMINATED.
    """
    try:
        return run()
    except PriorityRouterError as error:
        print(f"{program}: error: {error}", file=sys.stderr)
    except ModuleNotFoundError as error:
        print(f"{program}: error: {remedy(error)}", file=sys.stderr)
    except KeyboardInterrupt as order:
        print(f"{program}: stopped", file=sys.stderr)
        return stopped_status(order)
    except BrokenPipeError:
        # Whoever read the output has seen enough; Python would try again at its end, and print what failed.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return FAILED


def measurement(
    program: str, purpose: str, run: Callable[[argparse.Namespace], int], *, length: float, result: Path
) -> int:
    """The command line of a script that measures: how often, how long, and where to.

    Args:
        program: its name.
        purpose: for ``--help``.
        run: measures and writes; takes ``rounds``, ``seconds`` and ``json``.
        length: of one measurement in seconds, unless told otherwise.
        result: the file, likewise.

    Returns:
        The exit status.
    """
    made = parser(program, purpose)
    made.add_argument(
        "--rounds",
        type=whole_number(1),
        default=3,
        metavar="N",
        help="times that everything is measured, in turn (default %(default)s)",
    )
    made.add_argument(
        "--seconds",
        type=seconds,
        default=length,
        metavar="S",
        help="that count, of each measurement (default %(default)g)",
    )
    made.add_argument("--json", type=Path, default=result, metavar="FILE", help="file to write (default %(default)s)")
    options = made.parse_args()
    with interrupted_by_sigterm():
        return exit_status(program, lambda: run(options))


def remedy(error: ModuleNotFoundError) -> str:
    """What to install for a package that an extra would bring; raises the error again where none would."""
    package = (error.name or "").partition(".")[0]
    extra = _EXTRAS.get(package)
    if extra is None:
        raise error
    install = f"{sys.executable} -m pip install 'triton-priority-router[{extra}]'"
    return f"it needs the package {_INSTALLED_AS.get(package, package)}; run: {install}"
