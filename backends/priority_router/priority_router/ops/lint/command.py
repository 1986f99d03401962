# SPDX-License-Identifier: Apache-2.0
"""The command ``lint``: checks model repositories before a server sees them."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from priority_router.errors import SetupError
from priority_router.ops import command_line
from priority_router.ops.lint import explain
from priority_router.ops.rules.finding import Severity

ERRORS_FOUND: Final = 1
NOT_CHECKED: Final = 2
"""Wrong use, and everything else that kept a report from being made: to a build that is no finding."""


def main(words: Sequence[str]) -> int:
    """Checks repositories, or explains a rule.

    Args:
        words: options and repositories.

    Returns:
        0 without errors, whatever else was found; ERRORS_FOUND; NOT_CHECKED.
    """
    parser = _parser()
    options = parser.parse_args(words)
    if sys.stdout is None:
        return _not_written(parser.prog, "stdout is closed")
    if options.explain is not None:
        try:
            return _write(explain.explain(options.explain), 0)
        except explain.UnknownCodeError as error:
            parser.error(str(error))
    if not options.repositories:
        parser.error("name a model repository, or a rule with --explain")
    try:
        # What these need is an extra, and the help is for those without it as well.
        from priority_router.ops.lint import check, profile, report, sarif

        recorded = None if options.profile is None else profile.read(options.profile)
        found = check.check(options.repositories, profile=recorded)
    except SetupError as error:
        parser.error(str(error))
    except ModuleNotFoundError as error:
        print(f"{parser.prog}: error: {command_line.remedy(error)}", file=sys.stderr)
        return NOT_CHECKED
    if options.json:
        text = report.as_json(found)
    elif options.sarif:
        text = sarif.as_sarif(found, Path.cwd())
    else:
        text = report.text(found, report.uses_colour(sys.stdout, os.environ))
    return _write(text, ERRORS_FOUND if found.of(Severity.ERROR) else 0)


def _write(text: str, status: int) -> int:
    """Prints a report; its status, unless it cannot be read because of that."""
    try:
        # Names of files may have letters that the terminal's encoding lacks.
        sys.stdout.buffer.write(f"{text}\n".encode(sys.stdout.encoding, "backslashreplace"))
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read it has seen enough; Python would try again at its end, and fail the process.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _not_written("priority-router lint", error.strerror)
    return status


def _not_written(program: str, reason: str | None) -> int:
    print(f"{program}: error: the report cannot be written ({reason})", file=sys.stderr)
    return NOT_CHECKED


def _parser() -> argparse.ArgumentParser:
    parser = command_line.parser(
        "priority-router lint",
        "Checks model repositories as one server would serve them: what Triton refuses, what the router refuses, and "
        "what both take and serve otherwise than meant. Exit status 0: no errors (there may be warnings and notes); "
        "1: errors; 2: wrong use, or nothing could be checked.",
    )
    parser.add_argument("repositories", metavar="REPOSITORY", nargs="*", type=Path, help="folder of models")
    parser.add_argument(
        "--profile",
        type=Path,
        metavar="FILE",
        help="times of the executor, as `simulate --record-profile` writes them: timeouts and bounds are compared with "
        "them, of the router that it was recorded of",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON, as docs/lint.md describes it")
    form.add_argument("--sarif", action="store_true", help="print SARIF 2.1.0, for code scanning")
    form.add_argument("--explain", metavar="CODE", help="say what a rule means, such as PR101")
    return parser
