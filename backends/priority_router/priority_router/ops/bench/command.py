# SPDX-License-Identifier: Apache-2.0
"""``priority-router bench``: runs one scenario and writes what it measured."""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from priority_router.ops import command_line, result_file
from priority_router.ops.bench import details, document, experiment, outputs, plan_file, report
from priority_router.ops.bench.arms import ARMS, EXECUTOR, ROUTER
from priority_router.ops.bench.experiment import Plan
from priority_router.ops.bench.progress import Progress, clock_text
from priority_router.ops.bench.scenarios import COMPARED, SCENARIOS, Scenario
from priority_router.ops.bench.venue import Embedded, Models, Venue

DEFAULT_SEED = 1
# A server's start and end, and the wait for the last replies, per arm and round.
_AROUND_SECONDS = 6.0

COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    "report": (
        "priority_router.ops.bench.again",
        "RESULT.json [--html FILE] [--csv FILE]: page and table of a stored result",
    ),
    "compare": (
        "priority_router.ops.bench.compare_command",
        "A.json B.json [--json FILE]: what changed from one result to another",
    ),
}
"""First word to the module whose ``main(words)`` runs instead, with the words after it, and how to use it in a line."""


def main(words: Sequence[str]) -> int:
    """Runs the command.

    Args:
        words: arguments after ``bench``.

    Returns:
        0 when everything was measured, that of an order to stop which cut it short; what was measured is written in
        either case. A command of COMMANDS has its own.
    """
    if words and words[0] in COMMANDS:
        status: int = importlib.import_module(COMMANDS[words[0]][0]).main(words[1:])
        return status
    options = _parser().parse_args(words)
    plan = _plan(options)
    target: Path = options.json
    result_file.check_writable(target)
    outputs.check(options)
    run = [name for name in plan.scenario.arms if name not in plan.venue.refused(plan.scenario.arms)]
    steps = plan.scenario.rounds * max(1, len(run))
    whole = estimated_seconds(dataclasses.replace(plan.scenario, arms=tuple(run)))
    with command_line.interrupted_by_sigterm(), Progress(sys.stderr, steps, whole / steps) as progress:
        progress.say(f"{plan.scenario.name}: about {clock_text(whole)} min")
        results = experiment.run(plan, progress)
    measured = document.as_json(results, _command(options))
    result_file.write(target, measured)
    print(report.as_text(results) + "\n")
    outputs.write(measured, options)
    print(f"{target}: written; again: {shlex.join(['priority-router', 'bench', *words])}")
    return results.exit_status


def estimated_seconds(scenario: Scenario) -> float:
    """How long a scenario takes, servers included."""
    steps = max(1, len(scenario.in_flight))
    measured = steps * (scenario.warmup_seconds + scenario.seconds)
    # Where the wait for last replies may be long, it is so on one arm.
    return scenario.rounds * (len(scenario.arms) * (measured + _AROUND_SECONDS) + scenario.grace_seconds)


def _plan(options: argparse.Namespace) -> Plan:
    """What the words ask for; a server that is there is asked what it has.

    Raises:
        SetupError: a plan or a model cannot be used.
    """
    trace = None
    if options.scenario in SCENARIOS:
        scenario = SCENARIOS[options.scenario]
    else:
        scenario, trace = plan_file.load(Path(options.scenario))
    scenario = _changed(scenario, options)
    if trace is not None:
        scenario = plan_file.with_trace(scenario, trace, scenario.trace)
    venue: Venue = Embedded(scenario)
    if options.url or options.model:
        # Here and not above: they need tritonclient, and the scenarios do not.
        from priority_router.ops.bench import fitting

        scenario, venue = fitting.fitted(scenario, options.scenario in SCENARIOS, _models(options))
    return Plan(scenario, options.seed, venue, options.samples, options.processes, trace)


def _models(options: argparse.Namespace) -> Models:
    return Models(
        url=options.url or "",
        router=options.model or "",
        executor=options.executor,
        input_data=options.input_data,
        classes=options.classes or (),
        capacity=options.capacity,
        limits=options.keep_limits,
        seed=options.seed,
        say=lambda text: print(f"bench: {text}", file=sys.stderr, flush=True),
    )


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
        "--url": options.url,
        "--model": options.model and (options.model if options.url else result_file.shown(Path(options.model))),
        "--executor": None if options.executor == EXECUTOR else options.executor,
        "--input-data": options.input_data and result_file.shown(options.input_data),
        "--classes": options.classes and ",".join(options.classes),
        "--capacity": options.capacity,
        "--json": result_file.shown(options.json),
        **{option: result_file.shown(path) for option, path in outputs.wanted(options).items()},
    }
    values = {
        name: f"{value:g}" if isinstance(value, float) else str(value)
        for name, value in given.items()
        if value is not None
    }
    scenario = options.scenario if options.scenario in SCENARIOS else result_file.shown(Path(options.scenario))
    flags = ["--keep-limits"] if options.keep_limits else []
    return ["priority-router", "bench", scenario, *(word for pair in values.items() for word in pair), *flags]


def _parser() -> argparse.ArgumentParser:
    minutes = {name: estimated_seconds(one) / 60 for name, one in SCENARIOS.items()}
    parser = command_line.parser(
        "priority-router bench",
        "Measures ways to serve two classes with one executor, side by side and with the same arrivals.",
        epilog="scenarios:\n"
        + "".join(f"  {name:17}{one.meaning} ({minutes[name]:.0f} min)\n" for name, one in SCENARIOS.items())
        + "\narms:\n"
        + "".join(f"  {arm.name:18}{arm.meaning}\n" for arm in ARMS.values())
        + "\nwithout measuring:\n"
        + "".join(f"  {name} {use}\n" for name, (_, use) in COMMANDS.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "scenario", type=_scenario, metavar="SCENARIO", help="see below, or a file of your own: plan.toml"
    )
    parser.add_argument("--json", type=Path, required=True, metavar="FILE", help="where to write the results")
    outputs.add_options(parser)
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
    own = parser.add_argument_group("a model of your own, in place of one that sleeps")
    own.add_argument("--url", metavar="URL", help="a server that is there, http://HOST:PORT or grpc://HOST:PORT")
    own.add_argument(
        "--model", metavar="ROUTER", help=f"folder of a router in a model repository; with --url its name ({ROUTER})"
    )
    own.add_argument("--executor", default=EXECUTOR, metavar="NAME", help="with --url its name (default %(default)s)")
    own.add_argument(
        "--input-data", type=Path, metavar="FILE", help="requests, in perf_analyzer's form (default: random ones)"
    )
    own.add_argument("--classes", type=_names, metavar="A,B", help="the router's classes, most urgent first")
    own.add_argument("--capacity", type=_rate, metavar="R", help="its rows/s (default: measured first)")
    own.add_argument("--keep-limits", action="store_true", help="keep queue limits and timeouts of its policy")
    return parser


def _names(word: str) -> tuple[str, ...]:
    names = tuple(word.split(","))
    if not all(names) or len(set(names)) < len(names):
        raise argparse.ArgumentTypeError(f"{word!r} is no list of different names, such as online,background")
    return names


def _rate(word: str) -> float:
    try:
        value = float(word)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e9:
        raise argparse.ArgumentTypeError(f"{word!r} is no number of rows per second above 0")
    return value


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
