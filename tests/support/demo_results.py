# SPDX-License-Identifier: Apache-2.0
"""Results of the demonstration made by hand, with times drawn from a seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from priority_router.core.values import SECOND
from priority_router.ops.bench.ledger import Ledger
from priority_router.ops.bench.requests import Requests, by_class
from priority_router.ops.bench.stats import RoundSummary, summarise
from priority_router.ops.bench.wire import Outcome
from priority_router.ops.demo.measurements import Capacity, Classified, Results

WARMUP_SECONDS = 3
CAPACITY = Capacity(rows_per_s=100.0, busy=1.0, mean_batch=4.0)
CLASSIFIED = [
    Classified(Path("/x/setup.py"), "python", 0.998, 1500, 9000),
    Classified(Path(f"/x/{'a-very-long-name' * 5}.zip"), "zip", 0.92, 25_900, 11_200),
]


@dataclass(frozen=True)
class Made:
    """How one arm did.

    Attributes:
        online_ms: mean latency of class online, gamma distributed.
        slow: share of online requests, drawn anew, that take eight times as long.
        unanswered: share of online requests that have no answer.
        background: share of background requests that are answered while arrivals last.
        seed: of the latencies; the arrivals are always the same.
        ms_per_row: what the executor takes.
        late_p99_ms: how late the generator was.
    """

    online_ms: float = 60.0
    slow: float = 0.0
    unanswered: float = 0.0
    background: float = 0.8
    seed: int = 1
    ms_per_row: float = 10.0
    late_p99_ms: float = 2.0


PLAIN = Made(online_ms=4000.0, background=0.75, seed=4)
LEVELS = Made(online_ms=65.0, background=0.76, seed=5)
BEFORE = Made()


def results(router: Made, hooks: Made = BEFORE, plain: Made = PLAIN, seconds: float = 25.0) -> Results:
    """All four arms, of which three can be chosen."""
    arms = {"flat": plain, "levels": LEVELS, "levels+hooks": hooks, "router": router}
    made = {name: _arm(one, seconds) for name, one in arms.items()}
    summaries = {name: summary for name, (summary, _) in made.items()}
    requests: Mapping[str, Mapping[str, Requests]] = {name: by for name, (_, by) in made.items()}
    return Results(CAPACITY, summaries, {name: dict(by) for name, by in requests.items()}, CLASSIFIED)


def _arm(made: Made, seconds: float) -> tuple[RoundSummary, dict[str, Requests]]:
    books = ledger(made, seconds)
    summary = summarise(books, WARMUP_SECONDS, 0.0, 3.9)
    rows_per_s = sum(one.rows_per_s for one in summary.classes.values())
    summary = replace(summary, busy=made.ms_per_row * rows_per_s / 1e3, late_p99_ms=made.late_p99_ms)
    return summary, by_class(books, WARMUP_SECONDS)


def ledger(made: Made, seconds: float) -> Ledger:
    """The books of one arm: a warm-up and so many seconds after it."""
    duration = WARMUP_SECONDS + seconds
    online, background = round(20 * duration), round(110 * duration)
    count = online + background
    arrivals = np.random.default_rng(0)
    scheduled = (arrivals.random(count) * duration * SECOND).astype(np.int64)
    class_index = (np.arange(count) >= online).astype(np.int64)
    order = np.argsort(scheduled, kind="stable")
    random = np.random.default_rng(made.seed)
    latency_ms = random.gamma(4.0, made.online_ms / 4, count)
    latency_ms *= np.where(random.random(count) < made.slow, 8.0, 1.0)
    answered = random.random(count) >= made.unanswered
    waits = random.random(count) * 5000
    latency_ms = np.where(class_index == 0, latency_ms, waits)
    answered = np.where(class_index == 0, answered, random.random(count) < made.background)
    done = np.where(answered, scheduled + (latency_ms * 1e6).astype(np.int64), -1)

    def column(values: NDArray[np.int64]) -> NDArray[np.int64]:
        return values[order]

    return Ledger(
        classes=("online", "background"),
        class_index=column(class_index),
        rows=np.ones(count, np.int64),
        scheduled=column(scheduled),
        sent=column(scheduled),
        done=column(done),
        outcome=column(np.where(answered, Outcome.SUCCESS, Outcome.UNANSWERED).astype(np.int64)),
        queue_us=np.full(count, -1, np.int64),
        failures=Counter(),
        duration=round(duration * SECOND),
        cpu_seconds=1.0,
        connections=10,
    )
