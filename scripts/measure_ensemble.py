# SPDX-License-Identifier: Apache-2.0
"""Measures the steps around the router: the ensemble file_type beside the router alone, under the demo's load.

Writes docs/results/ensemble.json and from there the table in docs/ensemble.md. Run by hand on a quiet machine with the
Python of .venv; about four minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from priority_router.core.values import SECOND
from priority_router.ops import command_line, result_file
from priority_router.ops.bench import executor_stats, load, step_stats
from priority_router.ops.bench.arms import EXECUTOR, ROUTER
from priority_router.ops.bench.arrivals import Schedule, poisson
from priority_router.ops.bench.load import Target
from priority_router.ops.bench.stats import RoundSummary, summarise
from priority_router.ops.bench.step_stats import StepUse
from priority_router.ops.bench.wire import Route, Tensor
from priority_router.ops.demo import filetype
from priority_router.ops.demo.files import Sample, collect
from priority_router.ops.demo.measurements import BACKGROUND_SHARE, ONLINE_SHARE
from priority_router.ops.loads import BACKGROUND, ONLINE, ClassLoad
from priority_router.ops.measured import spreads
from priority_router.ops.server import Server

ROOT = Path(__file__).resolve().parents[1]
MODELS = ROOT / "model_repository"
RESULT = ROOT / "docs" / "results" / "ensemble.json"
CLASSES = (ONLINE, BACKGROUND)
STEPS = ("file_type_features", ROUTER, "file_type_label")
OUTER_STEPS = ("file_type_features", "file_type_label")
ARMS: Mapping[str, str] = {"router": "router", "ensemble": "file_type"}
FILES = 200
WARMUP_SECONDS = 3.0
IN_FLIGHT = 16
SIZES = {"8 KiB": 2**13, "1 MiB": 2**20, "16 MiB": 2**24}

Inputs = Mapping[str, Tensor]


def main() -> int:
    """Measures; returns the exit status."""
    return command_line.measurement(
        "measure_ensemble", "Measure the steps around the router.", run, length=25.0, result=RESULT
    )


def run(options: argparse.Namespace) -> int:
    """Measures and writes."""
    result_file.check_writable(options.json)
    samples = collect([ROOT, Path(sysconfig.get_paths()["stdlib"])], FILES, 1, filetype.load_rule(MODELS))
    inputs: dict[str, list[Inputs]] = {
        "router": [{filetype.INPUT: sample.features} for sample in samples],
        "ensemble": ensemble_inputs(samples),
    }

    rounds: list[dict[str, Any]] = []
    for number in range(options.rounds):
        rounds.append(one_round(number, inputs, options.seconds))
        print(json.dumps(rounds[-1]), file=sys.stderr)
    report = {
        "schema": result_file.ENSEMBLE_SCHEMA,
        "cores": os.cpu_count(),
        "seconds": options.seconds,
        "rounds": options.rounds,
        "load": {ONLINE: ONLINE_SHARE, BACKGROUND: BACKGROUND_SHARE},
        "measured": spreads(rounds),
    }
    result_file.write(options.json, report)
    return 0


def ensemble_inputs(samples: Sequence[Sample]) -> list[Inputs]:
    """What docs/clients.md asks clients to send of each file: its two ends."""
    block = filetype.load_rule(MODELS).BLOCK_SIZE
    whole = [sample.path.read_bytes() for sample in samples]
    ends = [content if len(content) <= 2 * block else content[:block] + content[-block:] for content in whole]
    return [{"content": np.array([[content]], object)} for content in ends]


def one_round(number: int, inputs: Mapping[str, Sequence[Inputs]], seconds: float) -> dict[str, Any]:
    """Everything once; the second arm's order changes with the round."""
    with serving() as server:
        alone = {step: rows_per_s(server, step, one_row(step)) for step in OUTER_STEPS}
        sizes = {name: milliseconds(server, bytes(size)) for name, size in SIZES.items()}
        capacity = rows_per_s(server, "router", inputs["router"])
    loads = [ClassLoad(ONLINE, ONLINE_SHARE * capacity), ClassLoad(BACKGROUND, BACKGROUND_SHARE * capacity)]
    schedule = poisson(loads, WARMUP_SECONDS + seconds, (1, number), payloads=len(inputs["router"]))
    found: dict[str, Any] = {"alone_rows_per_s": alone, "whole_file_ms": sizes, "capacity_rows_per_s": capacity}
    for arm in sorted(ARMS, reverse=bool(number % 2)):
        with serving() as server:
            summary, steps = under_load(server, ARMS[arm], inputs[arm], schedule)
        found[arm] = {
            "busy": summary.busy,
            "classes": {name: {**one.latency, "rows_per_s": one.rows_per_s} for name, one in summary.classes.items()},
        }
        if arm == "ensemble":
            found["steps"] = {step: steps[step] for step in OUTER_STEPS}
    return found


@contextmanager
def serving() -> Iterator[Server]:
    """The shipped repository, as `serve` has it."""
    with tempfile.TemporaryDirectory() as folder:
        server = Server(MODELS, log=Path(folder) / "server.log")
        try:
            server.start()
            yield server
        finally:
            server.kill()


def under_load(
    server: Server, model: str, inputs: Sequence[Inputs], schedule: Schedule
) -> tuple[RoundSummary, dict[str, dict[str, float]]]:
    """Replays a schedule and reads what Triton counted about the executor and about each step."""
    target = Target(server.http, {name: Route(model, class_name=name) for name in CLASSES}, inputs)
    with load.begin(target, schedule, settle=[ONLINE], grace_s=3.0) as running:
        executor_stats.sleep_until(running.start + int(WARMUP_SECONDS * SECOND))
        executor_before = executor_stats.read(server.http, EXECUTOR)
        before = {step: step_stats.read(server.http, step) for step in STEPS}
        executor_stats.sleep_until(running.start + schedule.duration)
        executor_after = executor_stats.read(server.http, EXECUTOR)
        uses = {step: step_stats.read(server.http, step).since(before[step]) for step in STEPS}
        ledger = running.result()
    summary = summarise(ledger, WARMUP_SECONDS, executor_after.busy_since(executor_before, 1))
    return summary, {step: figures(use) for step, use in uses.items() if use is not None}


def figures(use: StepUse) -> dict[str, float]:
    """What is recorded of a step."""
    return {
        "queue_ms": use.queue_ms,
        "compute_ms": use.compute_ms,
        "rows_per_execution": use.rows_per_execution,
        "busy_percent": 100 * use.busy,
    }


def one_row(step: str) -> list[Inputs]:
    """One row for an outer step."""
    if step == "file_type_features":
        return [{"content": np.array([[bytes(range(256)) * 32]], object)}]
    return [{"scores": np.full((1, 214), 1 / 214, np.float32), "known": np.array([[b""]], object)}]


def rows_per_s(server: Server, model: str, inputs: Sequence[Inputs], seconds: float = 4.0) -> float:
    """What a model answers in a closed loop, the first second left out."""
    target = Target(server.http, {ONLINE: Route(model, class_name=ONLINE if model == ROUTER else None)}, inputs)
    with load.begin_closed(target, ONLINE, IN_FLIGHT, 1.0 + seconds) as running:
        return summarise(running.result(), 1.0).classes[ONLINE].rows_per_s


def milliseconds(server: Server, content: bytes) -> float:
    """The median time of one request at a time with a whole file."""
    inputs = [{"content": np.array([[content]], object)}]
    target = Target(server.http, {ONLINE: Route("file_type", class_name=ONLINE)}, inputs)
    with load.begin_closed(target, ONLINE, 1, 0.5 + 2.0) as running:
        return summarise(running.result(), 0.5).classes[ONLINE].latency["p50_ms"]


if __name__ == "__main__":
    sys.exit(main())
