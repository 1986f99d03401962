# SPDX-License-Identifier: Apache-2.0
"""Measures where the time of a routed request goes: the router beside the least models that answer later, as it must.

Each way serves the executor of the scenario ``overhead``, which does nothing, in closed loop. What the least models
cost is Triton's; what the router costs more is the router's. Where Linux's perf is installed it also says in whose code
the model's process spends its time. Writes docs/results/overhead-parts.json, from which scripts/results.py takes tables
of docs/performance.md. Run by hand on a quiet machine with the Python of .venv; a round takes about a minute.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from priority_router.control import REPLY_THREADS
from priority_router.core.values import SECOND
from priority_router.ops import command_line, result_file
from priority_router.ops.bench import load
from priority_router.ops.bench.arms import ARMS, EXECUTOR, ROUTER, write_repository
from priority_router.ops.bench.ledger import Ledger
from priority_router.ops.bench.load import LoadError, Target
from priority_router.ops.bench.scenarios import SCENARIOS
from priority_router.ops.bench.venue import ones
from priority_router.ops.bench.wire import Outcome, Route
from priority_router.ops.loads import LEVELS, ONLINE
from priority_router.ops.measured import cpu_seconds, spreads, threads
from priority_router.ops.server import Server

RESULT = Path(__file__).resolve().parents[1] / "docs" / "results" / "overhead-parts.json"
LATE = "late"
CALL_THREADS = 2
WARMUP_SECONDS = 1.0
SCENARIO = SCENARIOS["overhead"]
FEW, MANY = min(SCENARIO.in_flight), max(SCENARIO.in_flight)
DIRECT = "executor, called directly"
OWNERS: Mapping[str, str] = {
    "[kernel": "kernel",
    "libpython": "Python interpreter",
    "triton_python_backend_stub": "Triton's stub",
    "lib": "C and C++ library",
    "_multiarray": "numpy",
}
"""Whose code it is, by how the name of the shared object begins; the first that fits counts."""
REST = "other"


@dataclass(frozen=True)
class Way:
    """What stands before the executor.

    Attributes:
        model: that is asked.
        calls: of the least model: threads that call the executor; 0: it answers by itself.
        extra: likewise: outputs besides the executor's.
    """

    model: str
    calls: int = 0
    extra: int = 0


WAYS: Mapping[str, Way] = {
    DIRECT: Way(EXECUTOR),
    "a model that answers later, without the executor": Way(LATE),
    "a model that calls the executor and answers later": Way(LATE, CALL_THREADS),
    "likewise, with two more outputs": Way(LATE, CALL_THREADS, 2),
    "router": Way(ROUTER),
}


@dataclass(frozen=True)
class Use:
    """What processes have used so far.

    Attributes:
        cpu: seconds, by process.
        switches: of threads, all processes together.
    """

    cpu: Mapping[str, float]
    switches: int


def main() -> int:
    """Measures; returns the exit status."""
    return command_line.measurement(
        "measure_overhead", "Measure where the time of a routed request goes.", run, length=4.0, result=RESULT
    )


def run(options: argparse.Namespace) -> int:
    """Measures and writes."""
    result_file.check_writable(options.json)
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in WAYS}
    for _ in range(options.rounds):
        for name, way in WAYS.items():
            figures = measured(way, options.seconds)
            direct = rounds[DIRECT][-1] if rounds[DIRECT] and name != DIRECT else figures
            figures["of_direct"] = figures["rate"] / direct["rate"]
            figures["added_p50_ms"] = figures["p50_ms"] - direct["p50_ms"]
            rounds[name].append(figures)
            print(f"{name}: {figures}", file=sys.stderr)
    profiles = {name: profile(way, options.seconds) for name, way in WAYS.items() if way.model != EXECUTOR}
    report = {
        "schema": result_file.OVERHEAD_SCHEMA,
        "cores": os.cpu_count(),
        "seconds": options.seconds,
        "rounds": options.rounds,
        "in_flight": [FEW, MANY],
        "ways": {name: spreads(runs) for name, runs in rounds.items()},
        "profiles": {name: shares for name, shares in profiles.items() if shares},
    }
    result_file.write(options.json, report)
    return 0


@contextlib.contextmanager
def serving(way: Way) -> Iterator[tuple[Server, Target]]:
    """A server of its own for a way, and how requests are sent to it."""
    with tempfile.TemporaryDirectory(prefix="priority-router-overhead-") as folder:
        repository = Path(folder, "models")
        repository.mkdir()
        arm = ARMS["router" if way.model == ROUTER else "levels+hooks"]
        write_repository(repository, arm, SCENARIO.executor, LEVELS)
        if way.model == LATE:
            write_late(repository / LATE, way)
        with Server(repository, hooks=True, log=Path(folder, "log")) as server:
            route = Route(way.model, class_name=ONLINE if way.model == ROUTER else None)
            yield server, Target(server.http, {ONLINE: route}, ones(1))


def measured(way: Way, seconds: float) -> dict[str, float]:
    """One way, with few and with many requests in flight."""
    with serving(way) as (server, target):
        quiet, _ = loop(server, target, FEW, seconds)
        busy, use = loop(server, target, MANY, seconds)
    rate = in_time(busy, seconds) / seconds
    stub = sum(cpu for name, cpu in use.cpu.items() if name.startswith(way.model))
    return {
        "p50_ms": float(np.median(quiet.done - quiet.sent)) / 1e6,
        "rate": rate,
        "server_us": 1e6 * use.cpu["server"] / rate,
        "model_us": 1e6 * stub / rate,
        "switches": use.switches / rate,
        "client_cpu": busy.cpu_seconds / (busy.duration / SECOND),
        "all_cpu": sum(use.cpu.values()) + busy.cpu_seconds / (busy.duration / SECOND),
    }


def profile(way: Way, seconds: float) -> dict[str, float]:
    """Percent of the CPU time of the model's process by whose code it ran; empty without perf, or where it may not."""
    with tempfile.TemporaryDirectory() as folder, serving(way) as (server, target):
        pid = next(pid for name, pid in server.stub_pids().items() if name.startswith(way.model))
        record = ["perf", "record", "-F", "999", "-p", str(pid), "-o", f"{folder}/perf", "--", "sleep", str(seconds)]
        report = ["perf", "report", "-i", f"{folder}/perf", "--sort", "dso", "--stdio", "-t", "|"]
        with load.begin_closed(target, ONLINE, MANY, 2 * WARMUP_SECONDS + seconds) as running:
            time.sleep(WARMUP_SECONDS)
            try:
                subprocess.run(record, check=True, capture_output=True)
                said = subprocess.run(report, check=True, capture_output=True, text=True).stdout
            except (OSError, subprocess.CalledProcessError) as error:
                print(f"no profile of {way.model}: {error}", file=sys.stderr)
                return {}
            running.result()
    shares: defaultdict[str, float] = defaultdict(float)
    for share, name in re.findall(r"^\s*([\d.]+)%\s*\|\s*(\S+)", said, re.MULTILINE):
        shares[next((owner for start, owner in OWNERS.items() if name.startswith(start)), REST)] += float(share)
    return {owner: round(shares[owner], 1) for owner in (*OWNERS.values(), REST)}


def write_late(folder: Path, way: Way) -> None:
    """Writes the least model that answers later."""
    (folder / "1").mkdir(parents=True)
    shutil.copyfile(Path(__file__).with_name("late_model.py"), folder / "1" / "model.py")
    numbers = {
        "calls": way.calls,
        "extra": way.extra,
        "rows": SCENARIO.executor.max_batch_size,
        "answer_threads": REPLY_THREADS,
    }
    parameters = "".join(
        f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n' for key, value in numbers.items()
    )
    outputs = "".join(f', {{ name: "T{number}" data_type: TYPE_INT64 dims: [ 1 ] }}' for number in range(way.extra))
    (folder / "config.pbtxt").write_text(
        f'name: "{folder.name}"\n'
        'backend: "python"\n'
        f"max_batch_size: {SCENARIO.executor.max_batch_size}\n"
        'input [ { name: "X" data_type: TYPE_FP32 dims: [ 4 ] } ]\n'
        f'output [ {{ name: "Y" data_type: TYPE_FP32 dims: [ 4 ] }}{outputs} ]\n'
        "instance_group [ { kind: KIND_CPU count: 1 } ]\n"
        f"dynamic_batching {{ }}\n{parameters}"
    )


def loop(server: Server, target: Target, in_flight: int, seconds: float) -> tuple[Ledger, Use]:
    """So many requests at a time; returns what became of them, and what the processes used per second."""
    with load.begin_closed(target, ONLINE, in_flight, WARMUP_SECONDS + seconds) as running:
        time.sleep(max(0.0, (running.start - time.monotonic_ns()) / SECOND) + WARMUP_SECONDS)
        before, start = used(server), time.monotonic()
        time.sleep(0.9 * seconds)
        after, passed = used(server), time.monotonic() - start
        ledger = running.result()
    if (ledger.outcome != Outcome.SUCCESS).any():
        raise LoadError(f"not every request was answered: {dict(ledger.failures)}")
    cpu = {name: (after.cpu[name] - before.cpu[name]) / passed for name in before.cpu}
    return ledger, Use(cpu, round((after.switches - before.switches) / passed))


def used(server: Server) -> Use:
    """What the server and its models have used so far."""
    pids = {"server": server.pid, **server.stub_pids()}
    switches = 0
    for thread in itertools.chain.from_iterable(map(threads, pids.values())):
        with contextlib.suppress(OSError):
            switches += sum(map(int, re.findall(r"ctxt_switches:\s+(\d+)", (thread / "status").read_text())))
    return Use({name: cpu_seconds(pid) for name, pid in pids.items()}, switches)


def in_time(ledger: Ledger, seconds: float) -> int:
    """Requests answered within the counted seconds."""
    after = ledger.done - int(WARMUP_SECONDS * SECOND)
    return int(((after >= 0) & (after < seconds * SECOND)).sum())


if __name__ == "__main__":
    sys.exit(main())
