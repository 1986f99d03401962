# SPDX-License-Identifier: Apache-2.0
"""``priority-router bench``: runs one scenario and writes what it measured."""

from __future__ import annotations

import argparse
import dataclasses
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from priority_router.ops import command_line, result_file
from priority_router.ops.bench import details, document, experiment, plan_file, report
from priority_router.ops.bench.arms import ARMS
from priority_router.ops.bench.experiment import Plan
from priority_router.ops.bench.progress import Progress, clock_text
from priority_router.ops.bench.scenarios import COMPARED, SCENARIOS, Scenario
from priority_router.ops.bench.venue import Embedded

DEFAULT_SEED = 1
# A server's start and end, and the wait for the last replies, per arm and round.
_AROUND_SECONDS = 6.0


def main(words: Sequence[str]) -> int:
    """Runs the command.

    Args:
        words: arguments after ``bench``.

    Returns:
        0 when everything was measured, that of an order to stop which cut it short; what was measured is written in
        either case.
    """
    options = _parser().parse_args(words)
    plan = _plan(options)
    target: Path = options.json
    result_file.check_writable(target)
    steps = plan.scenario.rounds * len(plan.scenario.arms)
    whole = estimated_seconds(plan.scenario)
    with command_line.interrupted_by_sigterm(), Progress(sys.stderr, steps, whole / steps) as progress:
        progress.say(f"{plan.scenario.name}: about {clock_text(whole)} min")
        results = experiment.run(plan, progress)
    result_file.write(target, document.as_json(results, _command(options)))
    print(report.as_text(results))
    print(f"\n{target}: written; again: {shlex.join(['priority-router', 'bench', *words])}")
    return results.exit_status


def estimated_seconds(scenario: Scenario) -> float:
    """How long a scenario takes, servers included."""
    steps = max(1, len(scenario.in_flight))
    measured = steps * (scenario.warmup_seconds + scenario.seconds)
    # Where the wait for last replies may be long, it is so on one arm.
    return scenario.rounds * (len(scenario.arms) * (measured + _AROUND_SECONDS) + scenario.grace_seconds)


def _plan(options: argparse.Namespace) -> Plan:
    """What the words ask for.

    Raises:
        SetupError: a plan cannot be used.
    """
    trace = None
    if options.scenario in SCENARIOS:
        scenario = SCENARIOS[options.scenario]
    else:
        scenario, trace = plan_file.load(Path(options.scenario))
    scenario = _changed(scenario, options)
    if trace is not None:
        scenario = plan_file.with_trace(scenario, trace, scenario.trace)
    return Plan(scenario, options.seed, Embedded(scenario), options.samples, options.processes, trace)


def _changed(scenario: Scenario, options: argparse.Namespace) -> Scenario:
    changes: dict[str, Any] = {}
    if options.rounds is not None:
        changes["rounds"] = options.rounds
    if options.duration is not None:
        changes["seconds"] = options.duration
    if options.warmup is not None:
        changes["warmup_seconds"] = options.warmup
    if options.arms is not None:
        changes["arms"] = tuple(options.arms)
    return dataclasses.replace(scenario, **changes)


def _command(options: argparse.Namespace) -> list[str]:
    """The words that run it again; of the file's path only what says nothing about this machine."""
    given = {
        "--arms": options.arms and ",".join(options.arms),
        "--rounds": options.rounds,
        "--duration": options.duration,
        "--warmup": options.warmup,
        "--seed": None if options.seed == DEFAULT_SEED else options.seed,
        "--samples": None if options.samples == details.DEFAULT_SAMPLES else options.samples,
        "--processes": options.processes or None,
        "--json": result_file.shown(options.json),
    }
    values = {
        name: f"{value:g}" if isinstance(value, float) else str(value)
        for name, value in given.items()
        if value is not None
    }
    scenario = options.scenario if options.scenario in SCENARIOS else result_file.shown(Path(options.scenario))
    return ["priority-router", "bench", scenario, *(word for pair in values.items() for word in pair)]


def _parser() -> argparse.ArgumentParser:
    minutes = {name: estimated_seconds(one) / 60 for name, one in SCENARIOS.items()}
    parser = command_line.parser(
        "priority-router bench",
        "Measures ways to serve two classes with one executor, side by side and with the same arrivals.",
        epilog="scenarios:\n"
        + "".join(f"  {name:17}{one.meaning} ({minutes[name]:.0f} min)\n" for name, one in SCENARIOS.items())
        + "\narms:\n"
        + "".join(f"  {arm.name:18}{arm.meaning}\n" for arm in ARMS.values()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "scenario", type=_scenario, metavar="SCENARIO", help="see below, or a file of your own: plan.toml"
    )
    parser.add_argument("--json", type=Path, required=True, metavar="FILE", help="where to write the results")
    parser.add_argument("--arms", type=_arms, metavar="A,B", help=f"only these arms (default {','.join(COMPARED)})")
    number, seconds = command_line.whole_number, command_line.seconds
    parser.add_argument("--rounds", type=number(1), metavar="N", help="how often each arm runs")
    parser.add_argument("--duration", type=seconds, metavar="S", help="seconds that count, per arm and round")
    parser.add_argument("--warmup", type=seconds, metavar="S", help="seconds before them that do not")
    parser.add_argument(
        "--seed", type=number(0), default=DEFAULT_SEED, metavar="N", help="of the arrivals (default %(default)s)"
    )
    parser.add_argument(
        "--processes", type=number(1, 64), default=0, metavar="N", help="of the client (default: as the load needs)"
    )
    parser.add_argument(
        "--samples",
        type=number(0, 100_000),
        default=details.DEFAULT_SAMPLES,
        metavar="N",
        help="requests of each class, arm and round to write down one by one (default %(default)s)",
    )
    return parser


def _scenario(word: str) -> str:
    if word in SCENARIOS or word.endswith(".toml"):
        return word
    raise argparse.ArgumentTypeError(f"no scenario {word!r}; there are {', '.join(SCENARIOS)}, or name a .toml file")


def _arms(word: str) -> list[str]:
    names = list(dict.fromkeys(word.split(",")))
    unknown = [name for name in names if name not in ARMS]
    if unknown:
        raise argparse.ArgumentTypeError(f"no arm {', '.join(map(repr, unknown))}; there are {', '.join(ARMS)}")
    return names
