# SPDX-License-Identifier: Apache-2.0
"""Measures what prompt dispatch costs the server process: idle, with a backlog behind a busy model, and in overload.

Writes docs/results/hooks.json, from which scripts/results.py takes the numbers in docs/hooks.md. Run by hand on a quiet
machine with the Python of .venv; a round takes about three minutes.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tritonclient.grpc
from priority_router.hooks import SLICE_ENV, HookCounters, marker_of_process
from priority_router.ops import command_line, result_file
from priority_router.ops.bench.arms import (
    ARMS,
    EXECUTOR,
    ROUTER,
    batching_block,
    write_executor,
    write_repository,
)
from priority_router.ops.loads import LEVELS, OVERLOAD, ExecutorShape
from priority_router.ops.measured import cpu_seconds, spreads
from priority_router.ops.server import Server
from tritonclient.utils import InferenceServerException

RESULT = Path(__file__).resolve().parents[1] / "docs" / "results" / "hooks.json"
ENDLESS = ExecutorShape(batch_us=120_000_000, row_us=0, max_batch_size=1)
OUTSTANDING = 32
MODELS = ("first", "second", "third")
QUEUED = 8
SETTLE_SECONDS = 1.0


@dataclass(frozen=True)
class Setting:
    """What is compared: an arm of the benchmark, or None for an executor without levels, and the slice of its hooks."""

    arm: str | None
    slice_us: int | None = None


SETTINGS: Mapping[str, Setting] = {
    "no levels, nothing preloaded": Setting(None),
    "levels, nothing preloaded": Setting("levels"),
    "levels, slices of 1000 us": Setting("levels+hooks", 1000),
    "levels, slices of 100 us": Setting("levels+hooks", 100),
    "router in front, slices of 100 us": Setting("router", 100),
}


def main() -> int:
    """Measures; returns the exit status."""
    return command_line.measurement(
        "measure_hooks", "Measure the CPU cost of prompt dispatch.", run, length=6.0, result=RESULT
    )


def run(options: argparse.Namespace) -> int:
    """Measures and writes."""
    result_file.check_writable(options.json)
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in SETTINGS}
    for _ in range(options.rounds):
        for name, setting in SETTINGS.items():
            figures = at_rest(setting, options.seconds) if setting.arm != "router" else {}
            rounds[name].append({**figures, **in_overload(setting, options.seconds)})
            print(f"{name}: {rounds[name][-1]}", file=sys.stderr)
    report = {
        "schema": result_file.HOOKS_SCHEMA,
        "cores": os.cpu_count(),
        "seconds": options.seconds,
        "rounds": options.rounds,
        "settings": {name: spreads(runs) for name, runs in rounds.items()},
    }
    result_file.write(options.json, report)
    return 0


def at_rest(setting: Setting, seconds: float) -> dict[str, float]:
    """CPU of a server with three models: idle, and while requests wait behind a batch of one or of all of them."""
    figures = {}
    for count in (1, len(MODELS)):
        with tempfile.TemporaryDirectory() as folder:
            repository = Path(folder, "models")
            for model in MODELS:
                write_executor(repository / model, ENDLESS, batching_block(len(LEVELS) if setting.arm else 0))
            with serving(repository, setting) as server:
                figures["idle_cpu_percent"] = observe(server, seconds)["cpu_percent"]
                for model in MODELS[:count]:
                    for call in calls_of(server, model, 1 + QUEUED):
                        threading.Thread(target=until_the_server_ends, args=(call,)).start()
                time.sleep(SETTLE_SECONDS)
                figures[f"backlog_of_{count}_cpu_percent"] = observe(server, seconds)["cpu_percent"]
    return figures


def in_overload(setting: Setting, seconds: float) -> dict[str, float]:
    """Rows served, CPU and slices of a server whose executor's queue is kept full by a closed loop."""
    with tempfile.TemporaryDirectory() as folder:
        repository = Path(folder, "models")
        repository.mkdir()
        if setting.arm is None:
            write_executor(repository / EXECUTOR, OVERLOAD.executor, batching_block(0))
        else:
            write_repository(repository, ARMS[setting.arm], OVERLOAD.executor, LEVELS)
        model = ROUTER if setting.arm == "router" else EXECUTOR
        with serving(repository, setting) as server, load(server, model) as answered:
            time.sleep(SETTLE_SECONDS)
            before = len(answered)
            figures = observe(server, seconds)
            rows = (len(answered) - before) / seconds
    return {"overload_rows_per_second": rows, **{f"overload_{name}": value for name, value in figures.items()}}


@contextlib.contextmanager
def serving(repository: Path, setting: Setting) -> Iterator[Server]:
    """A server that has come to rest after its start."""
    environment = {} if setting.slice_us is None else {SLICE_ENV: str(setting.slice_us)}
    with Server(
        repository, hooks=setting.slice_us is not None, environment=environment, log=repository.with_name("log")
    ) as server:
        time.sleep(2 * SETTLE_SECONDS)
        yield server


def calls_of(server: Server, model: str, count: int) -> Iterator[Callable[[], Any]]:
    """Blocking calls of a model with one row, each on a connection of its own."""
    for _ in range(count):
        client = tritonclient.grpc.InferenceServerClient(server.grpc)
        tensor = tritonclient.grpc.InferInput("X", [1, 4], "FP32")
        tensor.set_data_from_numpy(np.zeros((1, 4), np.float32))
        yield functools.partial(client.infer, model, [tensor])


def until_the_server_ends(call: Callable[[], Any]) -> None:
    """Makes a call that nobody will answer."""
    with contextlib.suppress(InferenceServerException):
        call()


@contextlib.contextmanager
def load(server: Server, model: str) -> Iterator[list[float]]:
    """A closed loop; the list gets an entry for every answered row."""
    stop = threading.Event()
    answered: list[float] = []

    def loop(call: Callable[[], Any]) -> None:
        while not stop.is_set():
            call()
            answered.append(time.monotonic())

    threads = [threading.Thread(target=loop, args=(call,)) for call in calls_of(server, model, OUTSTANDING)]
    for thread in threads:
        thread.start()
    try:
        yield answered
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def observe(server: Server, seconds: float) -> dict[str, float]:
    """What the server process, without its models, does in some seconds: CPU in percent of one core, waits cut."""
    before, start = (cpu_seconds(server.pid), waits_cut(server)), time.monotonic()
    time.sleep(seconds)
    after, passed = (cpu_seconds(server.pid), waits_cut(server)), time.monotonic() - start
    return {
        "cpu_percent": 100 * (after[0] - before[0]) / passed,
        "waits_cut_per_second": (after[1] - before[1]) / passed,
    }


def waits_cut(server: Server) -> int:
    """The dispatch hook's counter; 0 without the hooks."""
    marker = marker_of_process(next(iter(server.stub_pids().values())))
    if marker is None:
        return 0
    counters = HookCounters.open(marker)
    try:
        return counters.read().waits_cut
    finally:
        counters.close()


if __name__ == "__main__":
    sys.exit(main())
