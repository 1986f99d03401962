# SPDX-License-Identifier: Apache-2.0
"""Prints how the scheduler compares in the named scenarios; ``scripts/judge`` runs it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from priority_router.core.values import SECOND
from priority_router.ops.simulate.comparison import WARM_UP, Numbers, compare, document, lines
from priority_router.ops.simulate.scenarios import SCENARIOS


def main(words: Sequence[str] | None = None) -> int:
    """Runs the comparison; returns the exit status, 2 for wrong use."""
    parser = argparse.ArgumentParser(
        prog="scripts/judge", description="The scheduler on a virtual clock, beside simpler rules and an oracle."
    )
    parser.add_argument("scenario", nargs="*", help=f"default all: {', '.join(SCENARIOS)}")
    parser.add_argument("--seconds", type=int, default=60, help="virtual seconds of arrivals (default 60)")
    parser.add_argument("--seeds", type=int, default=3, help="runs whose mean is shown, seeds 1 to N (default 3)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers there as well")
    asked = parser.parse_args(words)
    unknown = [name for name in asked.scenario if name not in SCENARIOS]
    if unknown:
        parser.error(f"no scenario {unknown[0]!r}; there are {', '.join(SCENARIOS)}")
    duration = asked.seconds * SECOND
    if duration < 2 * WARM_UP or asked.seeds < 1:
        parser.error(f"at least {2 * WARM_UP // SECOND} seconds and one seed, please")

    seeds = range(1, asked.seeds + 1)
    results: dict[str, dict[str, Numbers]] = {}
    for name in asked.scenario or SCENARIOS:
        results[name] = compare(SCENARIOS[name], seeds, duration)
        print("\n".join(lines(name, results[name])), flush=True)
    if asked.json is not None:
        asked.json.write_text(json.dumps(document(results, seeds, duration), indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
