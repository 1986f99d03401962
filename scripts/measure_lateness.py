# SPDX-License-Identifier: Apache-2.0
"""Measures how long after a queue timeout its caller hears of it, while urgent work keeps the executor busy.

Writes docs/results/lateness.json, from which scripts/results.py takes the numbers in docs/design.md. Run by hand on a
quiet machine with the Python of .venv; about three minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from priority_router.core.values import SECOND
from priority_router.ops import command_line, result_file
from priority_router.ops.bench import load
from priority_router.ops.bench.arms import ARMS, ROUTER, Arm, write_repository
from priority_router.ops.bench.arrivals import Schedule, poisson
from priority_router.ops.bench.ledger import Ledger
from priority_router.ops.bench.load import LoadError, Target
from priority_router.ops.bench.wire import Outcome, Route
from priority_router.ops.loads import BACKGROUND, LEVELS, ONLINE, OVERLOAD, ClassLoad
from priority_router.ops.measured import spreads
from priority_router.ops.server import Server

RESULT = Path(__file__).resolve().parents[1] / "docs" / "results" / "lateness.json"
MODES = {"levels": "router", "plain": "router-plain"}
"""To arms of the benchmark."""

EXECUTOR = OVERLOAD.executor
REQUESTS_PER_S = 100.0
TIMEOUTS_MS = (100, 200, 300, 400, 500)
BURSTS = (100, 500)
"""Requests that are sent at once, with the longest timeout."""

LEAD_SECONDS = 1.0
"""In which all urgent requests arrive, before any other."""

SPARE_SECONDS = 1.0
"""Of urgent work, at least, beyond the last timeout."""


def main() -> int:
    """Measures; returns the exit status."""
    return command_line.measurement(
        "measure_lateness", "Measure how late queue timeouts are answered.", run, length=15.0, result=RESULT
    )


def run(options: argparse.Namespace) -> int:
    """Measures and writes."""
    result_file.check_writable(options.json)
    runs: list[dict[str, float]] = []
    for number in range(options.rounds):
        for mode in sorted(MODES, reverse=bool(number % 2)):
            runs.append(one_run(ARMS[MODES[mode]], options.seconds, number))
            print(f"{mode}: {json.dumps(runs[-1])}", file=sys.stderr)
    report = {
        "schema": result_file.LATENESS_SCHEMA,
        "cores": os.cpu_count(),
        "seconds": options.seconds,
        "rounds": options.rounds,
        "modes": list(MODES),
        "executor": asdict(EXECUTOR),
        "waiting": urgent_count(options.seconds),
        "requests_per_s": REQUESTS_PER_S,
        "timeouts_ms": TIMEOUTS_MS,
        "bursts": BURSTS,
        "requests": round(sum(one["requests"] for one in runs)),
        "late": spreads([{name: late for name, late in one.items() if name != "requests"} for one in runs]),
    }
    result_file.write(options.json, report)
    return 0


def one_run(arm: Arm, seconds: float, seed: int) -> dict[str, float]:
    """A server's lateness in ms under a stream of requests, and of the last request of each burst."""
    with tempfile.TemporaryDirectory() as folder:
        repository = Path(folder, "models")
        repository.mkdir()
        write_repository(repository, arm, EXECUTOR, LEVELS)
        with Server(repository, hooks=arm.hooks, log=Path(folder, "log")) as server:
            stream = poisson([ClassLoad(name, share()) for name in timeouts()], seconds, seed)
            late = lateness(server, stream)
            found = {
                "requests": float(len(late)),
                **{f"p{percent}_ms": float(np.quantile(late, percent / 100)) for percent in (50, 99)},
                "max_ms": float(late.max()),
            }
            for count in BURSTS:
                found[f"burst_of_{count}_ms"] = float(lateness(server, burst(count)).max())
    return found


def timeouts() -> dict[str, int]:
    """Timeouts in ms by the generator's name for the requests that have it."""
    return {f"{timeout} ms": timeout for timeout in TIMEOUTS_MS}


def share() -> float:
    """Requests per second of each timeout."""
    return REQUESTS_PER_S / len(TIMEOUTS_MS)


def burst(count: int) -> Schedule:
    """So many requests at once."""
    zero = np.zeros(count, np.int64)
    return Schedule((f"{max(TIMEOUTS_MS)} ms",), zero, zero, zero, SECOND)


def urgent_count(seconds: float) -> int:
    """Urgent requests, each a full batch, that keep the executor busy until the last timeout has passed."""
    lasting = LEAD_SECONDS + seconds + max(TIMEOUTS_MS) / 1e3 + SPARE_SECONDS
    return round(lasting * 1e6 / EXECUTOR.full_batch_us)


def with_urgent(schedule: Schedule) -> Schedule:
    """The schedule with the urgent requests in front of it, all at once."""
    urgent = np.zeros(urgent_count(schedule.duration / SECOND), np.int64)
    lead = int(LEAD_SECONDS * SECOND)

    def joined(first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.concatenate([first, second])

    return Schedule(
        (*schedule.classes, ONLINE),
        joined(urgent, schedule.at + lead),
        joined(urgent + len(schedule.classes), schedule.class_index),
        joined(urgent + 1, schedule.payload),
        schedule.duration + lead,
    )


def lateness(server: Server, schedule: Schedule) -> NDArray[np.float64]:
    """Milliseconds from each timeout, which counts from the scheduled time, to the caller's reply.

    Raises:
        LoadError: a request ended otherwise than by its timeout, or urgent work did not last.
    """
    limits = timeouts()
    target = Target(
        server.http,
        {
            ONLINE: Route(ROUTER, class_name=ONLINE),
            **{name: Route(ROUTER, {"timeout": ms * 1000}, BACKGROUND) for name, ms in limits.items()},
        },
        [{"X": np.zeros((rows, 4), np.float32)} for rows in (1, EXECUTOR.max_batch_size)],
    )
    with load.begin(target, with_urgent(schedule), grace_s=10.0) as running:
        ledger = running.result()
    expired = checked(ledger)
    limit = np.array([limits.get(name, 0) for name in ledger.classes])[ledger.class_index]
    found: NDArray[np.float64] = ((ledger.done - ledger.scheduled) / 1e6 - limit)[expired]
    return found


def checked(ledger: Ledger) -> NDArray[np.bool_]:
    """[n] which requests were to expire."""
    urgent = ledger.class_index == ledger.classes.index(ONLINE)
    for requests, wanted in ((urgent, Outcome.SUCCESS), (~urgent, Outcome.TIMEOUT)):
        others = int(np.count_nonzero(ledger.outcome[requests] != wanted))
        if others:
            raise LoadError(f"{others} requests did not end as {wanted.label}: {dict(ledger.failures)}")
    if ledger.done[urgent].max() < ledger.done[~urgent].max():
        raise LoadError("the executor was free before the last timeout")
    expired: NDArray[np.bool_] = ~urgent
    return expired


if __name__ == "__main__":
    sys.exit(main())
