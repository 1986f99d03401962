# SPDX-License-Identifier: Apache-2.0
"""Prints how the scheduler compares in the named scenarios; ``scripts/judge`` runs it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from priority_router.core.values import SECOND
from priority_router.ops import command_line, result_file
from priority_router.ops.simulate.comparison import WARM_UP, Numbers, compare, document, lines
from priority_router.ops.simulate.scenarios import SCENARIOS


def main(words: Sequence[str] | None = None) -> int:
    """Runs the comparison; returns the exit status."""
    parser = command_line.parser(
        "scripts/judge", "The scheduler on a virtual clock, beside simpler rules and an oracle."
    )
    number = command_line.whole_number
    parser.add_argument("scenario", nargs="*", help=f"default all: {', '.join(SCENARIOS)}")
    parser.add_argument(
        "--seconds",
        type=number(2 * WARM_UP // SECOND),
        default=60,
        metavar="N",
        help="virtual seconds of arrivals (default %(default)s)",
    )
    parser.add_argument(
        "--seeds",
        type=number(1),
        default=3,
        metavar="N",
        help="runs whose mean is shown, seeds 1 to N (default %(default)s)",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers there as well")
    asked = parser.parse_args(words)
    unknown = [name for name in asked.scenario if name not in SCENARIOS]
    if unknown:
        parser.error(f"no scenario {unknown[0]!r}; there are {', '.join(SCENARIOS)}")
    return command_line.exit_status(parser.prog, lambda: _run(asked))


def _run(asked: argparse.Namespace) -> int:
    if asked.json is not None:
        result_file.check_writable(asked.json)
    duration = asked.seconds * SECOND
    seeds = range(1, asked.seeds + 1)
    results: dict[str, dict[str, Numbers]] = {}
    for name in asked.scenario or SCENARIOS:
        results[name] = compare(SCENARIOS[name], seeds, duration)
        print("\n".join(lines(name, results[name])), flush=True)
    if asked.json is not None:
        result_file.write(asked.json, document(results, seeds, duration))
    return 0


if __name__ == "__main__":
    sys.exit(main())
