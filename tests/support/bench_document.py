# SPDX-License-Identifier: Apache-2.0
"""Documents of the benchmark made by hand, with times drawn from a seed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from priority_router.ops.bench import details, document
from priority_router.ops.bench.experiment import Results
from priority_router.ops.bench.requests import by_class
from priority_router.ops.bench.scenarios import SCENARIOS
from priority_router.ops.bench.stats import summarise

from support.demo_results import BEFORE, PLAIN, WARMUP_SECONDS, Made, ledger

ARMS: Final[Mapping[str, Made]] = {
    "flat": PLAIN,
    "levels+hooks": BEFORE,
    "router": replace(BEFORE, online_ms=30, slow=0.02, seed=2),
}
SECONDS: Final = 12.0
SCENARIO: Final = replace(
    SCENARIOS["overload"], arms=tuple(ARMS), rounds=2, seconds=SECONDS, warmup_seconds=float(WARMUP_SECONDS)
)
COMMAND: Final = ("priority-router", "bench", "my plan.toml", "--json", "result.json")


def results(rounds: Sequence[Sequence[str]] = (tuple(ARMS),) * 2, **changes: Any) -> Results:
    """A run: for each round the arms that finished it."""
    made = Results(**{"scenario": SCENARIO, "seed": 1, "triton": "2.51.0", **changes})
    for finished in rounds:
        books = {arm: ledger(ARMS[arm], SECONDS) for arm in finished}
        batches = {"2": 10, "4": 190}
        made.rounds.append({arm: summarise(one, WARMUP_SECONDS, 0.97, 3.9, batches) for arm, one in books.items()})
        made.details.append(
            {
                arm: details.of_round(one, WARMUP_SECONDS, made.scenario.targets, samples=0, takes=4)
                for arm, one in books.items()
            }
        )
        made.requests.append({arm: by_class(one, WARMUP_SECONDS) for arm, one in books.items()})
    return made


def told(made: Results) -> dict[str, Any]:
    """Its document, as it is read from a file."""
    document_: dict[str, Any] = json.loads(json.dumps(document.as_json(made, COMMAND)))
    return document_
