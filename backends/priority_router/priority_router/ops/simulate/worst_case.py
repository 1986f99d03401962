# SPDX-License-Identifier: Apache-2.0
"""``priority-router simulate --worst-case``: the longest that each class of a policy can wait; nothing is played."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from priority_router.config import POLICY_FILE, load_policy
from priority_router.core.values import MICROSECOND, MILLISECOND, SchedulingPolicy
from priority_router.core.worst_case import Missing, WorstWait, worst_waits
from priority_router.ops import command_line, result_file
from priority_router.ops.rules.finding import CONFIG_FILE
from priority_router.ops.simulate import largest
from priority_router.ops.simulate.largest import Largest
from priority_router.policy_fields import MAX_ROWS

SCHEMA: Final = "priority-router-worst-case/1"
"""Changes with every change that a reader of the old form would stumble over."""

UNBOUNDED: Final = "unbounded"


def main(words: Sequence[str]) -> int:
    """Runs the command.

    Args:
        words: arguments after ``simulate``, ``--worst-case`` among them.

    Returns:
        0, also where a class has no bound.

    Raises:
        PolicyError, PbtxtError, SetupError: a file cannot be used; the text says where and what to do.
    """
    options = _parser().parse_args(words)
    if options.json is not None:
        result_file.check_writable(options.json)
    policy = load_policy(options.policy).scheduling
    most = _largest(options, policy)
    waits = worst_waits(policy, most.rows)
    for line in lines(policy, most, waits):
        print(line)
    if options.json is not None:
        result_file.write(options.json, document(policy, most, waits))
    return 0


def lines(policy: SchedulingPolicy, most: Largest, waits: Sequence[WorstWait]) -> list[str]:
    """A table of the classes, what it rests on, and what is missing."""
    width = max(len("class"), *(len(wait.class_name) for wait in waits))
    table = [f"{'class':{width}}  {'to its start':>15}  {'to its answer':>15}"]
    for wait in waits:
        table.append(f"{wait.class_name:{width}}  {_shown(wait.start):>15}  {_shown(wait.answer):>15}")
    rests = ["", "longest time from arrival to the start of the first row, and to the answer"]
    if policy.max_execution:
        rests.append(f"while no dispatch takes longer than {_shown(policy.max_execution)} or fails")
    if most.rows is not None:
        rests.append(f"for requests of at most {most.rows} row{'s' * (most.rows != 1)} ({most.source})")
    lacking = [f"{wait.class_name}: missing: {_said(each)}" for wait in waits for each in wait.missing]
    return [*table, *rests, *([""] if lacking else []), *lacking]


def document(policy: SchedulingPolicy, most: Largest, waits: Sequence[WorstWait]) -> dict[str, Any]:
    """The same as values."""
    return {
        "schema": SCHEMA,
        "max_execution_microseconds": policy.max_execution // MICROSECOND,
        "largest_request_rows": most.rows,
        "classes": [
            {
                "class": wait.class_name,
                "start_microseconds": _microseconds(wait.start),
                "answer_microseconds": _microseconds(wait.answer),
                "missing": [
                    {
                        "file": CONFIG_FILE if each.in_router else POLICY_FILE,
                        "key": each.key,
                        "class": each.class_name,
                        "remedy": each.remedy,
                    }
                    for each in wait.missing
                ],
            }
            for wait in waits
        ],
    }


def _shown(time: int | None) -> str:
    return UNBOUNDED if time is None else f"{-(-time // MICROSECOND) * MICROSECOND / MILLISECOND:,.3f} ms"


def _microseconds(time: int | None) -> int | None:
    return None if time is None else -(-time // MICROSECOND)


def _said(each: Missing) -> str:
    if each.in_router:
        place = f" of the router's {CONFIG_FILE} (--router-config or --largest-request)"
    else:
        place = "" if each.class_name is None else f" of class {each.class_name}"
    return f"{each.key}{place}: {each.remedy}"


def _largest(options: argparse.Namespace, policy: SchedulingPolicy) -> Largest:
    if policy.max_batch_size == 0:
        return largest.NO_BATCH_AXIS
    if options.largest_request is not None:
        return Largest(options.largest_request, "--largest-request")
    return largest.of_router(options.policy, options.router_config)


def _parser() -> argparse.ArgumentParser:
    parser = command_line.parser(
        "priority-router simulate",
        "Computes from a policy alone how long a request of each class can wait at most, whatever comes, or says that "
        "there is no bound and which keys are missing. Nothing is played.",
        usage="%(prog)s --worst-case --policy FILE [options]",
    )
    parser.add_argument("--worst-case", action="store_true", required=True, help="do this")
    parser.add_argument("--policy", type=Path, required=True, metavar="FILE", help=f"a router's {POLICY_FILE}")
    rows = parser.add_mutually_exclusive_group()
    largest.add_option(rows)
    rows.add_argument(
        "--largest-request",
        type=command_line.whole_number(1, 16 * MAX_ROWS),
        metavar="ROWS",
        help="most rows of a request, in place of that file",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers there as well")
    return parser
