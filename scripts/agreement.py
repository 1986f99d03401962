#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether the simulator says what the embedded server does: the same arrivals on both, class by class.

For each executor a profile is recorded from a running router; then each load is sent to a fresh server in every round
and the very same arrivals are simulated with that profile. Runs with the Python of .venv, on a machine that does
nothing else; the result goes to docs/results/agreement.json.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from priority_router import __version__
from priority_router.config import parse_policy
from priority_router.core.values import SECOND
from priority_router.ops import command_line, loads, result_file
from priority_router.ops.bench import experiment, table, venue
from priority_router.ops.bench.arms import ARMS, EXECUTOR, policy_text, routes, write_repository
from priority_router.ops.bench.arrivals import Schedule, poisson
from priority_router.ops.bench.load import Target
from priority_router.ops.bench.stats import RoundSummary
from priority_router.ops.loads import LEVELS, LINEAR, ONLINE, OVERLOAD, Load
from priority_router.ops.server import Server
from priority_router.ops.simulate import profile, record, run
from priority_router.ops.simulate.arrivals import Arrival

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "docs" / "results" / "agreement.json"
SHARE: Final = 0.7
"""Of the capacity, of the load that is no overload."""

_CALM = SHARE / OVERLOAD.demand
LOADS: Final = {
    "overload": OVERLOAD,
    "linear": LINEAR,
    f"overload at {SHARE:g} of capacity": replace(
        OVERLOAD, online=OVERLOAD.online * _CALM, background=OVERLOAD.background * _CALM
    ),
}
LIMIT: Final = 0.15
"""Difference allowed, as a share of what the server did."""

DRAWS: Final = 5
"""Simulated runs for each round, on the same arrivals: what the server does once in a round is one draw of many."""

COMPARED: Final = ("p50_ms", "p95_ms")
RECORDING_SEED: Final = 1000
GENTLE_SECONDS: Final = 4.0
GENTLE_REQUESTS: Final = 40
"""One by one, before a load begins, on server and simulator alike."""

GRACE_SECONDS: Final = 3.0
ARM = ARMS["router"]


def main(words: Sequence[str] | None = None) -> int:
    """Runs the comparison; returns the exit status, 1 where a load disagrees."""
    number, seconds = command_line.whole_number, command_line.seconds
    parser = command_line.parser("agreement", "The simulator beside the embedded server, on the same arrivals.")
    parser.add_argument("loads", nargs="*", metavar="LOAD", help=f"default all: {', '.join(LOADS)}")
    parser.add_argument("--rounds", type=number(1), default=5, metavar="N", help="(default %(default)s)")
    parser.add_argument("--seconds", type=seconds, default=25.0, metavar="S", help="that count (default %(default)g)")
    parser.add_argument("--warmup", type=seconds, default=5.0, metavar="S", help="before them (default %(default)g)")
    parser.add_argument("--record", type=seconds, default=30.0, metavar="S", help="for a profile (default %(default)g)")
    parser.add_argument("--seed", type=number(0), default=1, metavar="N", help="of arrivals (default %(default)s)")
    parser.add_argument(
        "--json", type=Path, default=RESULT, metavar="FILE", help="(default docs/results/agreement.json)"
    )
    options = parser.parse_args(words)
    unknown = [name for name in options.loads if name not in LOADS]
    if unknown:
        parser.error(f"no load {unknown[0]!r}; there are {', '.join(LOADS)}")
    with command_line.interrupted_by_sigterm():
        return command_line.exit_status(parser.prog, lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    result_file.check_writable(options.json)
    profiles: dict[loads.ExecutorShape, profile.Profile] = {}
    found: dict[str, Any] = {}
    for name in options.loads or LOADS:
        load = LOADS[name]
        if load.executor not in profiles:
            _say(f"profile of {name}'s executor")
            profiles[load.executor] = _recorded(load, options.record)
        found[name] = _compared(name, load, profiles[load.executor], options)
    agree = all(one["agrees"] for one in found.values())
    document = {
        "schema": result_file.AGREEMENT_SCHEMA,
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "version": __version__,
        "cores": len(os.sched_getaffinity(0)),
        "rounds": options.rounds,
        "seconds": options.seconds,
        "warmup_seconds": options.warmup,
        "gentle": {"seconds": GENTLE_SECONDS, "requests": GENTLE_REQUESTS},
        "seed": options.seed,
        "recording": {"seed": RECORDING_SEED, "seconds": options.record},
        "draws": DRAWS,
        "limit": LIMIT,
        "loads": found,
        "agrees": agree,
    }
    result_file.write(options.json, document)
    print(f"{'all agree' if agree else 'NOT all agree'} within {LIMIT:.0%}; {options.json}: written")
    return 0 if agree else command_line.FAILED


@contextlib.contextmanager
def _serving(load: Load) -> Iterator[tuple[Server, Path]]:
    with tempfile.TemporaryDirectory(prefix="priority-router-agreement-") as folder:
        repository = Path(folder) / "models"
        repository.mkdir()
        write_repository(repository, ARM, load.executor, LEVELS)
        with Server(repository, hooks=ARM.hooks, log=Path(folder) / "server.log") as server:
            yield server, Path(folder)


def _recorded(load: Load, seconds: float) -> profile.Profile:
    with _serving(load) as (server, folder):
        target = folder / "profile.json"
        words = ["--record-profile", str(target), "--url", f"http://{server.http}", "--executor", EXECUTOR]
        words += ["--metrics-url", f"http://{server.metrics}/metrics"]
        record.main([*words, "--seconds", f"{seconds:g}", "--seed", str(RECORDING_SEED)])
        return profile.parse(target.read_text(), "the recorded profile")


def _compared(name: str, load: Load, measured: profile.Profile, options: argparse.Namespace) -> dict[str, Any]:
    rounds: list[dict[str, RoundSummary]] = []
    for number in range(options.rounds):
        _say(f"{name}, round {number + 1} of {options.rounds}")
        schedule = _begun_gently(poisson(load.classes, options.warmup + options.seconds, (options.seed, number)))
        plan = _plan(load, measured, schedule, GENTLE_SECONDS + options.warmup)
        rounds.append(
            {
                "server": _served(load, schedule, GENTLE_SECONDS + options.warmup),
                **{
                    f"simulator {draw}": run.routed(plan, options.seed + DRAWS * number + draw) for draw in range(DRAWS)
                },
            }
        )
    arms = {
        arm: table.over_rounds([one for done in rounds for name, one in done.items() if name.startswith(arm)])
        for arm in ("server", "simulator")
    }
    print("\n".join([name, *table.lines(arms)]), flush=True)
    differences = {
        class_name: {
            what: arms["simulator"]["classes"][class_name]["latency"][what]["median"]
            / arms["server"]["classes"][class_name]["latency"][what]["median"]
            - 1
            for what in COMPARED
        }
        for class_name in LEVELS
    }
    for class_name, by_quantile in differences.items():
        print(
            f"  {class_name}: " + ", ".join(f"{what} {value:+.1%}" for what, value in by_quantile.items()), flush=True
        )
    return {
        "load": asdict(load),
        "profile": dict(measured.recorded),
        "rounds": [{arm: summary.as_json() for arm, summary in finished.items()} for finished in rounds],
        "arms": arms,
        "differences": differences,
        "agrees": all(abs(value) <= LIMIT for one in differences.values() for value in one.values()),
    }


def _begun_gently(schedule: Schedule) -> Schedule:
    """A schedule after single requests, since a fresh server's first answers are slow, whatever the policy."""
    spacing = round(GENTLE_SECONDS * SECOND / GENTLE_REQUESTS)
    return Schedule(
        schedule.classes,
        np.concatenate([np.arange(GENTLE_REQUESTS) * spacing, schedule.at + round(GENTLE_SECONDS * SECOND)]),
        np.concatenate([np.full(GENTLE_REQUESTS, schedule.classes.index(ONLINE)), schedule.class_index]),
        np.concatenate([np.zeros(GENTLE_REQUESTS, dtype=np.int64), schedule.payload]),
        schedule.duration + round(GENTLE_SECONDS * SECOND),
    )


def _served(load: Load, schedule: Schedule, warmup: float) -> RoundSummary:
    with _serving(load) as (server, _):
        summary, _ = experiment.measure(
            Target(server.http, routes(ARM, LEVELS), venue.ones(1)),
            schedule,
            executor=EXECUTOR,
            instances=load.executor.instances,
            warmup_s=warmup,
            settle=[ONLINE],
            grace_s=GRACE_SECONDS,
        )
        return summary


def _plan(load: Load, measured: profile.Profile, schedule: Schedule, warmup: float) -> run.Plan:
    policy = parse_policy(policy_text("levels", EXECUTOR, load.executor, LEVELS, shared=False), "the policy").scheduling
    arrivals = [
        Arrival(int(at), schedule.classes[index])
        for at, index in zip(schedule.at.tolist(), schedule.class_index.tolist(), strict=True)
    ]
    return run.Plan(
        policy,
        measured,
        lambda _seed: arrivals,
        schedule.duration,
        round(warmup * SECOND),
        settle=[ONLINE],
        grace=round(GRACE_SECONDS * SECOND),
    )


def _say(text: str) -> None:
    print(f"agreement: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
