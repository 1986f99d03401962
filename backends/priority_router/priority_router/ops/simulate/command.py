# SPDX-License-Identifier: Apache-2.0
"""``priority-router simulate``: a policy under a load on a modelled executor, in virtual time.

What else the command does has an option of its own that says so; each such mode is a module with ``main(words)``.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import platform
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from priority_router import __version__
from priority_router.config import load_policy
from priority_router.core.values import MILLISECOND, SECOND, SchedulingPolicy
from priority_router.errors import SetupError
from priority_router.ops import command_line, result_file
from priority_router.ops.bench import table
from priority_router.ops.bench.stats import RoundSummary
from priority_router.ops.simulate import largest, profile, rates, run
from priority_router.ops.simulate.arrivals import Arrival, traffic
from priority_router.ops.simulate.largest import Largest

SCHEMA: Final = "priority-router-simulation/1"
"""Changes with every change that a reader of the old form would stumble over."""

MODES: Final[Mapping[str, tuple[str, str]]] = {
    "--record-profile": (
        "priority_router.ops.simulate.record",
        "FILE --url URL: write the profile of an executor behind a router that runs",
    ),
    "--worst-case": (
        "priority_router.ops.simulate.worst_case",
        "the longest that each class can wait, from the policy alone",
    ),
}
"""Option to the module whose ``main(words)`` runs instead, with all words, and how to use it in a line."""

Load = Mapping[str, int]
"""Each class that is asked for, and the most rows of its requests."""

PLOT_SUFFIXES: Final = (".svg", ".png")
DEFAULT_SECONDS: Final = 60.0
DEFAULT_WARMUP_SECONDS: Final = 5.0
DEFAULT_GRACE_SECONDS: Final = 3.0


def main(words: Sequence[str]) -> int:
    """Runs the command.

    Args:
        words: arguments after ``simulate``.

    Returns:
        0.

    Raises:
        SetupError: a file cannot be used; the text says where and what to do.
    """
    for word in words:
        mode = MODES.get(word.partition("=")[0])
        if mode is not None:
            status: int = importlib.import_module(mode[0]).main(words)
            return status
    options = _parser().parse_args(words)
    for option, target in (("--json", options.json), ("--plot", options.plot)):
        if target is not None:
            result_file.check_writable(target, option)
    plot = None
    if options.plot is not None:
        if options.plot.suffix not in PLOT_SUFFIXES:
            raise SetupError(f"--plot {options.plot}: write a name that ends in {' or '.join(PLOT_SUFFIXES)}")
        plot = importlib.import_module("priority_router.ops.simulate.plot")
    whole_policy = load_policy(options.policy)
    policy = whole_policy.scheduling
    measured = profile.parse(_text(options.profile), str(options.profile))
    plan, load = _plan(options, policy, measured)
    rounds: list[dict[str, RoundSummary]] = []
    for seed in range(options.seed, options.seed + options.rounds):
        rounds.append({run.ROUTER: run.routed(plan, seed), run.ORACLE: run.ideal(plan, seed)})
    arms = {name: table.over_rounds([finished[name] for finished in rounds]) for name in run.ARMS}
    warned = [
        *unasked(plan, load, [finished[run.ROUTER] for finished in rounds]),
        *too_large(load, _largest(options, policy, measured)),
        *warnings(plan, ruled=bool(whole_policy.tenants)),
    ]
    for line in _text_lines(plan, arms, options.rounds, warned):
        print(line)
    if plot is not None:
        title = f"{options.policy}: {_counted(plan, options.rounds)}"
        plot.draw(options.plot, arms, run.ARMS, title)
        print(f"\n{options.plot}: written")
    if options.json is not None:
        result_file.write(options.json, _document(options, words, plan, rounds, arms, warned))
        print(f"\n{options.json}: written; again: {shlex.join(['priority-router', 'simulate', *words])}")
    return 0


def warnings(plan: run.Plan, *, ruled: bool = False) -> list[str]:
    """What a reader must know before believing the numbers; ``ruled`` where the policy has rules for tenants."""
    found = []
    if ruled:
        found.append("the policy's [[tenant]] rules are not simulated: requests keep the class that they are given")
    policy, shape = plan.policy, plan.profile.shape
    for what in ("instances", "max_batch_size", "levels"):
        asked, seen = getattr(policy, what), getattr(shape, what)
        if asked != seen:
            found.append(f"the policy has {what} = {asked}, the executor of the profile {seen}")
    largest = max(plan.profile.times.samples)
    if policy.max_batch_size > largest:
        found.append(
            f"the profile knows nothing above {largest} rows; up to {policy.max_batch_size} are guessed in proportion"
        )
    return found


def unasked(plan: run.Plan, load: Load, routed: Sequence[RoundSummary]) -> list[str]:
    """Classes of a load of which no request came in any round.

    Raises:
        SetupError: that is so of all.
    """
    empty = [name for name in load if not any(sum(one.classes[name].outcomes.values()) for one in routed)]
    if len(empty) == len(load):
        raise SetupError(
            f"no request comes in the {(plan.duration - plan.warmup) / SECOND:g} virtual s that count, after "
            f"{plan.warmup / SECOND:g} s of warm-up; write more --seconds or a higher rate (burst=N comes every N / "
            "rate seconds)"
        )
    return [f"no request of class {name!r} came in the time that counts: write more --seconds" for name in empty]


def too_large(load: Load, most: Largest) -> list[str]:
    """Classes with requests that the router would refuse for their rows."""
    return [
        f"class {name!r} has requests of {rows} rows, and the router refuses more than {most.rows} ({most.source})"
        for name, rows in load.items()
        if most.rows is not None and rows > most.rows
    ]


def _largest(options: argparse.Namespace, policy: SchedulingPolicy, measured: profile.Profile) -> Largest:
    if policy.max_batch_size == 0:
        return largest.NO_BATCH_AXIS
    try:
        found = largest.of_router(options.policy, options.router_config)
    except ModuleNotFoundError:
        if options.router_config is not None:
            raise
        found = Largest(None)
    return found if found.rows is not None else Largest(measured.largest_request, f"recorded in {options.profile}")


def _plan(options: argparse.Namespace, policy: SchedulingPolicy, measured: profile.Profile) -> tuple[run.Plan, Load]:
    names = [each.name for each in policy.classes]
    source: Callable[[int], Iterable[Arrival]]
    load: dict[str, int] = {}
    if options.arrivals is not None:
        given = rates.parse(_text(options.arrivals), str(options.arrivals), names)
        warmup = 0 if options.warmup is None else round(options.warmup * SECOND)
        if options.seconds is None and given[-1].time < MILLISECOND:
            raise SetupError(
                f"{options.arrivals}: all its requests come at once, so it does not say how long the run is; write "
                "--seconds S"
            )
        duration = given[-1].time + 1 if options.seconds is None else warmup + round(options.seconds * SECOND)
        for arrival in given:
            load[arrival.class_name] = max(arrival.rows, load.get(arrival.class_name, 0))
        given = [arrival for arrival in given if arrival.time < duration]

        def source(_seed: int) -> Iterable[Arrival]:
            return given
    else:
        for each in options.rate:
            if each.class_name not in names:
                raise SetupError(
                    f"--rate {each.class_name}=…: no such class in {options.policy}; there are {', '.join(names)}"
                )
            load[each.class_name] = max(each.rows, each.most_rows, load.get(each.class_name, 0))
        warmup = round((DEFAULT_WARMUP_SECONDS if options.warmup is None else options.warmup) * SECOND)
        duration = warmup + round((options.seconds or DEFAULT_SECONDS) * SECOND)
        streams = [each.stream for each in options.rate]

        def source(seed: int) -> Iterable[Arrival]:
            return traffic(streams, seed, duration)

    if warmup >= duration:
        raise SetupError(f"--warmup {warmup / SECOND:g}: nothing is left to count; shorten it")
    grace = round(options.grace * SECOND)
    return run.Plan(policy, measured, source, duration, warmup, options.routers, None, grace), load


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise SetupError(f"{path}: cannot be read ({error.strerror}); name a file that exists and is yours") from error
    except UnicodeDecodeError as error:
        raise SetupError(f"{path}: not UTF-8 text ({error.reason} at byte {error.start})") from error


def _text_lines(plan: run.Plan, arms: Mapping[str, Any], rounds: int, warned: Sequence[str]) -> list[str]:
    return [
        *table.lines(arms),
        "",
        f"{_counted(plan, rounds)}; latency from the caller's sending",
        *(f"  {name}: {meaning}" for name, meaning in run.ARMS.items()),
        *(f"warning: {text}" for text in warned),
    ]


def _counted(plan: run.Plan, rounds: int) -> str:
    """What the numbers are of."""
    counted = (plan.duration - plan.warmup) / SECOND
    each = f"{rounds} rounds" if rounds > 1 else "1 round"
    routers = f", {plan.routers} routers" if plan.routers > 1 else ""
    return f"median (lowest-highest) of {each} of {counted:g} virtual s{routers}"


def _document(
    options: argparse.Namespace,
    words: Sequence[str],
    plan: run.Plan,
    rounds: Sequence[Mapping[str, RoundSummary]],
    arms: Mapping[str, Any],
    warned: Sequence[str],
) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": ["priority-router", "simulate", *words],
        "versions": {"priority_router": __version__, "python": platform.python_version()},
        "seed": options.seed,
        "seconds": (plan.duration - plan.warmup) / SECOND,
        "warmup_seconds": plan.warmup / SECOND,
        "routers": plan.routers,
        "profile": dict(plan.profile.recorded),
        "rounds": [{name: summary.as_json() for name, summary in finished.items()} for finished in rounds],
        "arms": dict(arms),
        "warnings": list(warned),
    }


def _rate(word: str) -> rates.Rate:
    try:
        return rates.rate(word)
    except rates.LoadFileError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _seconds_or_none(word: str) -> float:
    return 0.0 if word == "0" else command_line.seconds(word)


def _parser() -> argparse.ArgumentParser:
    parser = command_line.parser(
        "priority-router simulate",
        "Serves a load by a policy on a modelled executor, in virtual time, with the very scheduler of the router, and "
        "prints per class what the benchmark prints, with an oracle beside it. The same seed gives the same numbers.",
        usage="%(prog)s --policy FILE --profile FILE (--arrivals FILE | --rate CLASS=RATE …) [options]",
        epilog="other uses; --help behind them says more:\n"
        + "".join(f"  {option} {text}\n" for option, (_, text) in MODES.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--policy", type=Path, required=True, metavar="FILE", help="a router's policy.toml")
    parser.add_argument("--profile", type=Path, required=True, metavar="FILE", help="of the executor")
    load = parser.add_mutually_exclusive_group(required=True)
    load.add_argument(
        "--arrivals", type=Path, metavar="FILE", help="every request: JSON lines or CSV, see the document"
    )
    load.add_argument(
        "--rate",
        type=_rate,
        action="append",
        metavar="CLASS=RATE[,rows=N][,timeout=US][,burst=N][,tenant=NAME]",
        help="Poisson arrivals of a class per second; may be repeated. rows: of each request, or 1-N; timeout: the "
        "callers' own, in microseconds; burst: requests that come together",
    )
    number, seconds = command_line.whole_number, command_line.seconds
    parser.add_argument("--seed", type=number(0), default=1, metavar="N", help="of all draws (default %(default)s)")
    parser.add_argument(
        "--rounds", type=number(1), default=1, metavar="N", help="runs, each with the next seed (default %(default)s)"
    )
    parser.add_argument(
        "--seconds",
        type=seconds,
        metavar="S",
        help=f"virtual seconds that count (default {DEFAULT_SECONDS:g}, with --arrivals all that the file has)",
    )
    parser.add_argument(
        "--warmup",
        type=_seconds_or_none,
        metavar="S",
        help=f"virtual seconds before them (default {DEFAULT_WARMUP_SECONDS:g}, with --arrivals 0)",
    )
    parser.add_argument(
        "--grace",
        type=_seconds_or_none,
        default=DEFAULT_GRACE_SECONDS,
        metavar="S",
        help="after the last arrival, wait at most so long for answers of the most urgent level; what has none then is "
        "unanswered (default %(default)g)",
    )
    parser.add_argument(
        "--routers",
        type=number(1, 64),
        default=1,
        metavar="N",
        help="routers on the one executor (default %(default)s)",
    )
    largest.add_option(parser)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers there as well")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw a chart, .svg or .png (needs matplotlib)")
    return parser


if __name__ == "__main__":
    sys.exit(command_line.exit_status("priority-router simulate", lambda: main(sys.argv[1:])))
