# SPDX-License-Identifier: Apache-2.0
"""``priority-router bench compare``: what changed from one result to another, for people and for CI."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from priority_router.errors import PriorityRouterError
from priority_router.ops import command_line, result_file
from priority_router.ops.bench import compare, compare_file, table
from priority_router.ops.bench.compare import Change, Compared, Ended
from priority_router.ops.bench.compare_file import Result

NO_WORSE: Final = 0
WORSE: Final = 1
NOT_USABLE: Final = 2

PROGRAM: Final = "priority-router bench compare"
_HEAD: Final = ("arm", "class", "what", "before", "after", "ratio (99 %)", "")
TOLD_SHARE: Final = 0.01
"""By which the share of an outcome must have moved to be told."""


def main(words: Sequence[str]) -> int:
    """Runs the command.

    Args:
        words: arguments after ``bench compare``.

    Returns:
        NO_WORSE, WORSE, or NOT_USABLE where the files cannot be read or compared.
    """
    options = _parser().parse_args(words)
    try:
        if options.json is not None:
            result_file.check_writable(options.json)
        before, after = compare_file.read(options.before), compare_file.read(options.after)
        found = compare.compare(before, after, options.arms or ())
    except PriorityRouterError as error:
        print(f"{PROGRAM}: error: {error}", file=sys.stderr)
        return NOT_USABLE
    status = WORSE if found.fails(options.fail_above) else NO_WORSE
    if options.json is not None:
        result_file.write(options.json, as_json(before, after, found, options.fail_above, status))
    print(as_text(before, after, found, options.fail_above))
    return status


def as_json(before: Result, after: Result, found: Compared, fail_above: float, status: int) -> dict[str, Any]:
    """The comparison as a file has it, in the form of docs/bench-compare.schema.json."""
    return {
        "schema": compare.SCHEMA,
        "scenario": before.scenario["name"],
        "before": _about(before),
        "after": _about(after),
        "fail_above": fail_above,
        "exit_status": status,
        "warnings": list(found.warnings),
        "changes": [one.as_json() for one in found.changes],
        "outcomes": [one.as_json() for one in found.outcomes],
    }


def _about(result: Result) -> dict[str, Any]:
    return {
        "file": result_file.shown(Path(result.name)),
        "created": result.created,
        "seed": result.seed,
        "cores": result.cores,
        "versions": dict(result.versions),
        "arms": result.arms,
    }


def as_text(before: Result, after: Result, found: Compared, fail_above: float) -> str:
    """The comparison for a terminal."""
    lines = [f"{before.scenario['name']}: {before.name} ({before.created}) and {after.name} ({after.created})", ""]
    lines += table.aligned([_HEAD, *_rows(found.changes)])
    lines += [
        "",
        "means of the rounds; a change is none where the interval of the difference has 0 in it, or below 5 %",
    ]
    lines += [_ended(one) for one in found.outcomes if _worth_telling(one)]
    lines += [f"warning: {text}" for text in found.warnings]
    worse = [one for one in found.changes if one.verdict == "worse"]
    lines += ["", *(_sentence(one, fail_above) for one in worse)]
    lines += [f"worse: {one.arm} {one.class_name}: failures {_counts(one)}" for one in found.outcomes if one.worse]
    better = sum(one.verdict == "better" for one in found.changes)
    lines.append(f"{len(worse)} numbers are worse, {better} better, of {len(found.changes)}")
    return "\n".join(lines)


def _rows(changes: Sequence[Change]) -> list[list[str]]:
    rows: list[list[str]] = []
    last = ("", "")
    for one in changes:
        arm = one.arm if one.arm != last[0] else ""
        class_name = one.class_name if (one.arm, one.class_name) != last else ""
        last = (one.arm, one.class_name)
        rows.append(
            [
                arm,
                class_name,
                _what(one.what),
                _value(one, one.numbers.before),
                _value(one, one.numbers.after),
                _ratio(one),
                one.verdict,
            ]
        )
    return rows


def _what(what: str) -> str:
    if what.endswith("_ms"):
        return what.replace("_ms", " ms")
    return {"rows_per_s": "rows/s", "in_time": "in time", "busy": "busy"}[what]


def _value(one: Change, value: float) -> str:
    if not np.isfinite(value):
        return "-"
    return f"{value:.1%}" if one.what in ("in_time", "busy") else table.short(value)


def _ratio(one: Change) -> str:
    if not np.isfinite(one.ratio.value):
        return "-"
    low, high = (f"{end:.2f}" if np.isfinite(end) else "?" for end in (one.ratio.low, one.ratio.high))
    return f"{one.ratio.value:.2f} ({low}-{high})"


def _sentence(one: Change, fail_above: float) -> str:
    where = " ".join(filter(None, (one.arm, one.class_name)))
    both = f"{_value(one, one.numbers.after)} instead of {_value(one, one.numbers.before)}"
    allowed = "" if one.factor > fail_above else f"; within --fail-above {fail_above:g}"
    return f"worse: {where}: {_what(one.what)} {both}, {_ratio(one)} times{allowed}"


def _worth_telling(one: Ended) -> bool:
    """A success is what the others leave; the others are told where their share moved."""
    if one.outcome == "success" or not one.of_before or not one.of_after:
        return False
    return one.worse or abs(one.after / one.of_after - one.before / one.of_before) >= TOLD_SHARE


def _ended(one: Ended) -> str:
    return f"{one.arm} {one.class_name}: {one.outcome.replace('_', ' ')} {_counts(one)}"


def _counts(one: Ended) -> str:
    return f"{one.after} of {one.of_after} instead of {one.before} of {one.of_before}"


def _parser() -> argparse.ArgumentParser:
    parser = command_line.parser(
        PROGRAM,
        "Says what changed from one result of `priority-router bench` to another, and what noise covers.",
        epilog="exit status: 0 nothing is worse beyond noise; 1 something is; 2 the files cannot be read or compared",
    )
    parser.add_argument("before", type=Path, metavar="A.json", help="the earlier result")
    parser.add_argument("after", type=Path, metavar="B.json", help="the later one")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write the comparison as well")
    parser.add_argument(
        "--arms", type=lambda word: word.split(","), metavar="A,B", help="only these arms (default: all that both have)"
    )
    parser.add_argument(
        "--fail-above",
        type=_factor,
        default=1.0,
        metavar="RATIO",
        help="exit with 1 only for what is worse by more than this factor (default %(default)g: whatever is worse)",
    )
    return parser


def _factor(word: str) -> float:
    try:
        value = float(word)
    except ValueError:
        value = 0.0
    if not 1 <= value < 1e6:
        raise argparse.ArgumentTypeError(f"{word!r} is no factor of at least 1, such as 1.1")
    return value
