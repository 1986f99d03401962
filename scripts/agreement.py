#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether the simulator says what the embedded server does: the same arrivals on both, class by class.

In every round a profile of each executor is recorded from a router; then each load is sent to a fresh server, and the
very same arrivals are simulated with that profile. Runs with the Python of .venv, on a machine that does
nothing else; the result goes to docs/results/agreement.json.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
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
from priority_router.ops.loads import BACKGROUND, LEVELS, LINEAR, ONLINE, OVERLOAD, Load
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
CALM_SECONDS: Final = 8.0
CALM_SINGLES: Final = 40
CALM_BURSTS: Final = 10
CALM_BURST: Final = 16
"""Before a load begins, on server and simulator alike: single requests, and bursts of so many."""

GRACE_SECONDS: Final = 3.0
ARM = ARMS["router"]


def main(words: Sequence[str] | None = None) -> int:
    """Runs the comparison; returns the exit status, 1 where a load disagrees."""
    number, seconds = command_line.whole_number, command_line.seconds
    parser = command_line.parser("agreement", "The simulator beside the embedded server, on the same arrivals.")
    parser.add_argument("loads", nargs="*", metavar="LOAD", help=f"default all: {', '.join(LOADS)}")
    parser.add_argument("--rounds", type=number(1), default=5, metavar="N", help="(default %(default)s)")
    parser.add_argument("--seconds", type=seconds, default=15.0, metavar="S", help="that count (default %(default)g)")
    parser.add_argument("--warmup", type=seconds, default=4.0, metavar="S", help="before them (default %(default)g)")
    parser.add_argument("--record", type=seconds, default=16.0, metavar="S", help="for a profile (default %(default)g)")
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
    chosen = {name: LOADS[name] for name in options.loads or LOADS}
    rounds: dict[str, list[dict[str, RoundSummary]]] = {name: [] for name in chosen}
    recorded: list[dict[str, Any]] = []
    for number in range(options.rounds):
        profiles: dict[loads.ExecutorShape, profile.Profile] = {}
        for name, load in chosen.items():
            _say(f"round {number + 1} of {options.rounds}: {name}")
            if load.executor not in profiles:
                text = _recorded(load, options.record, RECORDING_SEED + number)
                profiles[load.executor] = profile.parse(text, "the recorded profile")
                recorded.append({"round": number, "executor": asdict(load.executor), "profile": json.loads(text)})
            rounds[name].append(_round(load, profiles[load.executor], number, options))
            _say(_in_short(rounds[name][-1]))
    found = {name: _compared(name, load, rounds[name]) for name, load in chosen.items()}
    agree = all(one["agrees"] for one in found.values())
    document = {
        "schema": result_file.AGREEMENT_SCHEMA,
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "version": __version__,
        "cores": len(os.sched_getaffinity(0)),
        "rounds": options.rounds,
        "seconds": options.seconds,
        "warmup_seconds": options.warmup,
        "calm": {"seconds": CALM_SECONDS, "singles": CALM_SINGLES, "bursts": CALM_BURSTS, "burst": CALM_BURST},
        "seed": options.seed,
        "recording": {"seed": RECORDING_SEED, "seconds": options.record},
        "draws": DRAWS,
        "limit": LIMIT,
        "loads": found,
        "profiles": recorded,
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


def _recorded(load: Load, seconds: float, seed: int) -> str:
    with _serving(load) as (server, folder):
        target = folder / "profile.json"
        words = ["--record-profile", str(target), "--url", f"http://{server.http}", "--executor", EXECUTOR]
        words += ["--metrics-url", f"http://{server.metrics}/metrics"]
        record.main([*words, "--seconds", f"{seconds:g}", "--seed", str(seed)])
        return target.read_text(encoding="utf-8")


def _in_short(arms: dict[str, RoundSummary]) -> str:
    """The medians of a round."""
    found = []
    for arm, summary in arms.items():
        medians = "/".join(f"{one.latency.get('p50_ms', 0.0):.0f}" for one in summary.classes.values())
        found.append(f"{arm} {medians}")
    return f"p50 of {'/'.join(LEVELS)}, ms: {', '.join(found)}"


def _round(load: Load, measured: profile.Profile, number: int, options: argparse.Namespace) -> dict[str, RoundSummary]:
    """The same arrivals on a fresh server and, several times, in the simulator."""
    schedule = _begun_gently(poisson(load.classes, options.warmup + options.seconds, (options.seed, number)))
    warmup = CALM_SECONDS + options.warmup
    plan = _plan(load, measured, schedule, warmup)
    draws = {f"simulator {draw}": run.routed(plan, options.seed + DRAWS * number + draw) for draw in range(DRAWS)}
    return {"server": _served(load, schedule, warmup), **draws}


def _compared(name: str, load: Load, rounds: Sequence[dict[str, RoundSummary]]) -> dict[str, Any]:
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
        "rounds": [{arm: summary.as_json() for arm, summary in finished.items()} for finished in rounds],
        "arms": arms,
        "differences": differences,
        "agrees": all(abs(value) <= LIMIT for one in differences.values() for value in one.values()),
    }


def _begun_gently(schedule: Schedule) -> Schedule:
    """A schedule after some calm, in which a fresh server opens its connections and the router tries its row counts.

    What a server does while it is cold is no policy's doing, and the router remembers what it learns then.
    """
    online, background = (schedule.classes.index(name) for name in (ONLINE, BACKGROUND))
    singles = [(CALM_SECONDS * at / CALM_SINGLES, online) for at in range(CALM_SINGLES)]
    bursts = [
        (CALM_SECONDS * at / CALM_BURSTS + 0.05, background) for at in range(CALM_BURSTS) for _ in range(CALM_BURST)
    ]
    at, classes = zip(*sorted(singles + bursts), strict=True)
    calm = round(CALM_SECONDS * SECOND)
    return Schedule(
        schedule.classes,
        np.concatenate([(np.array(at) * SECOND).astype(np.int64), schedule.at + calm]),
        np.concatenate([np.array(classes, dtype=np.int64), schedule.class_index]),
        np.concatenate([np.zeros(len(at), dtype=np.int64), schedule.payload]),
        schedule.duration + calm,
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
