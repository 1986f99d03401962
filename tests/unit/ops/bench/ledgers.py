# SPDX-License-Identifier: Apache-2.0
"""Ledgers and summaries made by hand."""

from collections import Counter

import numpy as np
from priority_router.ops.bench import details
from priority_router.ops.bench.experiment import Results
from priority_router.ops.bench.ledger import Ledger
from priority_router.ops.bench.requests import by_class
from priority_router.ops.bench.stats import ClassSummary, RoundSummary
from priority_router.ops.bench.wire import Outcome

MS = 1_000_000


def ledger(entries, duration_ms=1000, classes=("online", "background"), failures=()):
    """Entries: class, scheduled ms, done ms or None, outcome, and, if not 1, rows."""
    table = [(*entry, 1)[:5] for entry in entries]
    column = lambda values: np.array(list(values), dtype=np.int64)  # noqa: E731
    return Ledger(
        classes=classes,
        class_index=column(classes.index(name) for name, *_ in table),
        rows=column(rows for *_, rows in table),
        scheduled=column(at * MS for _, at, *_ in table),
        sent=column(at * MS + 1000 for _, at, *_ in table),
        done=column(-1 if done is None else done * MS for _, _, done, *_ in table),
        outcome=column(outcome for _, _, _, outcome, _ in table),
        queue_us=column(-1 for _ in table),
        failures=Counter(failures),
        duration=duration_ms * MS,
        cpu_seconds=0.25,
        connections=3,
    )


def summary(busy=0.9, late_p99_ms=0.1, failures=(), **classes):
    """A round; classes by name: a dict with latency names, ``rows_per_s`` and ``success``."""
    return RoundSummary(
        window_s=10.0,
        classes={
            name.replace("_", " "): ClassSummary(
                outcomes={outcome.label: 0 for outcome in Outcome} | {"success": numbers.get("success", 500)},
                latency={key: value for key, value in numbers.items() if key.endswith("_ms")},
                rows_per_s=numbers.get("rows_per_s", 0.0),
                queue_ms={},
            )
            for name, numbers in classes.items()
        },
        busy=busy,
        mean_batch=4.0,
        late_p99_ms=late_p99_ms,
        client_cpu=0.1,
        connections=5,
        failures=list(failures),
        batches={"4": 10},
        execution_ms={"4": 50.0},
    )


def told(summary, seed=1):
    """Details and requests to go with a summary: a queue of 20 s that each class adds 10 requests/s to."""
    random = np.random.default_rng(seed)
    entries = [
        (name, int(at), int(at) + int(wait), Outcome.SUCCESS)
        for name in summary.classes
        for at, wait in zip(np.sort(random.random(200) * 20_000), 900 + random.random(200) * 300, strict=True)
    ]
    made = ledger(sorted(entries, key=lambda entry: entry[1]), 20_000, tuple(summary.classes))
    return details.of_round(made, 0.0, {}, 50, takes=4), by_class(made, 0.0)


def results(scenario, rounds, **changes):
    """A run with these summaries, by round and arm."""
    both = [{arm: told(summary) for arm, summary in finished.items()} for finished in rounds]
    return Results(
        scenario,
        **{"seed": 4, "triton": "2.51.0", **changes},
        rounds=rounds,
        details=[{arm: one for arm, (one, _) in finished.items()} for finished in both],
        requests=[{arm: one for arm, (_, one) in finished.items()} for finished in both],
    )
