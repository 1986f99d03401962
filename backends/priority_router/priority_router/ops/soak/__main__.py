# SPDX-License-Identifier: Apache-2.0
"""``scripts/soak`` and ``scripts/soak overload``: long runs against the embedded server, judged at their end."""

from __future__ import annotations

import argparse
import datetime
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from priority_router import __version__
from priority_router.ops import command_line, result_file
from priority_router.ops.soak import mixed, overload
from priority_router.ops.soak.checks import Check

PROGRAM: Final = "scripts/soak"
OVERLOAD: Final = "overload"
LEAST_MINUTES: Final = 0.1
"""What is measured are windows, and a window without a reading is none."""


@dataclass(frozen=True, slots=True)
class _Form:
    """One of the two.

    Attributes:
        run: in a mode, for so many minutes, from a seed.
        schema: of the result.
        minutes: unless told otherwise.
    """

    run: Callable[[str, float, int], tuple[dict[str, Any], list[Check]]]
    schema: str
    minutes: float


_FORMS: Final = {
    "": _Form(mixed.run, result_file.SOAK_SCHEMA, 60.0),
    OVERLOAD: _Form(overload.run, result_file.SOAK_OVERLOAD_SCHEMA, 10.0),
}


def main(words: Sequence[str] | None = None) -> int:
    """Runs one of them; returns the exit status, 1 where a limit was not kept to."""
    options = _read(words)
    with command_line.interrupted_by_sigterm():
        return command_line.exit_status(PROGRAM, lambda: _run(options))


def _read(words: Sequence[str] | None) -> argparse.Namespace:
    parser = command_line.parser(
        PROGRAM,
        "Everything at once for an hour, its first minute compared with its last; or far too much for ten minutes.",
    )
    parser.add_argument(
        "what", nargs="*", metavar="overload | MINUTES", help="far too much; of each mode (default 60, or 10)"
    )
    parser.add_argument("--mode", choices=list(mixed.MODES), action="append", help="of the router (default both)")
    parser.add_argument(
        "--seed", type=command_line.whole_number(0), default=1, metavar="N", help="(default %(default)s)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers to this file, too")
    options = parser.parse_args(words)
    options.form = OVERLOAD if options.what[:1] == [OVERLOAD] else ""
    rest = options.what[1:] if options.form else options.what
    if len(rest) > 1:
        parser.error(f"unrecognized arguments: {' '.join(rest[1:])}")
    try:
        options.minutes = float(rest[0]) if rest else _FORMS[options.form].minutes
    except ValueError:
        options.minutes = 0.0
    if not LEAST_MINUTES <= options.minutes <= command_line.LONGEST_SECONDS / 60:
        parser.error(f"{rest[0]!r} is neither {OVERLOAD!r} nor a number of minutes of at least {LEAST_MINUTES:g}")
    return options


def _run(options: argparse.Namespace) -> int:
    if options.json is not None:
        result_file.check_writable(options.json)
    form = _FORMS[options.form]
    modes: dict[str, Any] = {}
    kept = True
    for mode in options.mode or mixed.MODES:
        print(f"{mode}: {options.minutes:g} minutes", flush=True)
        measured, checks = form.run(mode, options.minutes, options.seed)
        modes[mode] = {**measured, "checks": [check.as_json() for check in checks]}
        for check in checks:
            print(f"  {check.words}", flush=True)
        for faults in ("differences", "unexpected"):
            for name, numbers in measured["books"][faults].items():
                print(f"  {faults}: {name}: {numbers}", flush=True)
        kept &= all(check.met for check in checks)
    if options.json is not None:
        document = {
            "schema": form.schema,
            "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "version": __version__,
            "cores": len(os.sched_getaffinity(0)),
            "minutes": options.minutes,
            "seed": options.seed,
            "modes": modes,
        }
        result_file.write(options.json, document)
    return 0 if kept else command_line.FAILED


if __name__ == "__main__":
    sys.exit(main())
