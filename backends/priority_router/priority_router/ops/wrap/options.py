# SPDX-License-Identifier: Apache-2.0
"""The command line of ``wrap``.

Law: what the words mean and whether they fit together; touches no file.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from priority_router import policy_fields
from priority_router.ops import command_line

MOST_LEVELS: Final = 100
"""Each level is a queue policy written out in the executor's configuration."""

UNITS: Final = {"us": 1, "ms": 1_000, "s": 1_000_000, "m": 60_000_000}
"""Of a timeout, in microseconds."""

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(us|ms|s|m)", re.ASCII)
_FIELDS: Final = {field.key: field for field in (*policy_fields.CLASS, *policy_fields.EXECUTOR_SHAPE)}


@dataclass(frozen=True, slots=True)
class WantedClass:
    """One class of the policy to be written.

    Attributes:
        name: what clients send.
        level: 1 is the most urgent.
        max_queue: requests that may wait; 0 = unlimited.
        timeout_us: queue timeout in microseconds; 0 = none.
        override: a caller's own timeout counts where it is shorter.
    """

    name: str
    level: int
    max_queue: int = 0
    timeout_us: int = 0
    override: bool = False


TEACHING_CLASSES: Final = (
    WantedClass("online", 1, max_queue=32, timeout_us=50_000, override=True),
    WantedClass("background", 2, max_queue=128, timeout_us=200_000),
)
"""Where none are given: small enough that a first experiment sees refusals and timeouts."""


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked for.

    Attributes:
        model: folder of a model, or an ONNX file.
        repository: where model and router go.
        router_name: None: the model's with ``_router``.
        classes: in the order in which they are written.
        teaching: the classes are `TEACHING_CLASSES`, since none were given.
        default_class: of requests that name none.
        plain: no levels.
        executor_policies: limits and timeouts on the executor's levels as well.
        instances: of the executor over all devices; None: what its configuration says.
        dry_run: print what would change, and write nothing.
        force: overwrite a router that was edited, or written by somebody else.
    """

    model: Path
    repository: Path
    router_name: str | None
    classes: tuple[WantedClass, ...]
    teaching: bool
    default_class: str
    plain: bool
    executor_policies: bool
    instances: int | None
    dry_run: bool
    force: bool

    @property
    def levels(self) -> int:
        """The least urgent level that a class has."""
        return max(wanted.level for wanted in self.classes)


def parse(words: Sequence[str]) -> Options:
    """Reads the command line; wrong use ends the process with status 2, as argparse does it."""
    parser = _parser()
    given = parser.parse_args(words)
    classes: tuple[WantedClass, ...] = tuple(given.classes or TEACHING_CLASSES)
    names = [wanted.name for wanted in classes]
    for name in names:
        if names.count(name) > 1:
            parser.error(f"argument --class: {name} is given {names.count(name)} times; give each class once")
    if given.default_class is not None and given.default_class not in names:
        parser.error(f"argument --default-class: {given.default_class!r} is none of the classes: {', '.join(names)}")
    if given.plain and given.executor_policies:
        parser.error("argument --executor-policies: not allowed with --plain, which leaves the executor no levels")
    return Options(
        model=given.model,
        repository=given.repository,
        router_name=given.router_name,
        classes=classes,
        teaching=not given.classes,
        default_class=given.default_class or _least_urgent(classes),
        plain=given.plain,
        executor_policies=given.executor_policies,
        instances=given.instances,
        dry_run=given.dry_run,
        force=given.force,
    )


def traffic_class(word: str) -> WantedClass:
    """The value of ``--class``: ``NAME:LEVEL[,max_queue=N][,timeout=50ms][,override]``."""
    head, *settings = word.split(",")
    name, _, level = head.rpartition(":")  # a name may have colons of its own
    values: dict[str, Any] = {"name": name, "level": _level(word, level)}
    _check(word, "NAME", "name", name)
    for setting in settings:
        key, _, value = setting.partition("=")
        if setting == "override":
            made: dict[str, Any] = {"override": True}
        elif key == "max_queue":
            made = {"max_queue": _number(word, key, value)}
            _check(word, key, "max_queue_size", made["max_queue"])
        elif key == "timeout":
            made = {"timeout_us": _microseconds(word, value)}
            _check(word, key, "default_timeout_microseconds", made["timeout_us"])
        else:
            raise argparse.ArgumentTypeError(
                f"{word!r}: {setting!r} is no setting of a class; write NAME:LEVEL, and after commas max_queue=N, "
                "timeout=50ms or override"
            )
        if made.keys() & values.keys():
            raise argparse.ArgumentTypeError(f"{word!r}: {key} is given twice; write it once")
        values |= made
    return WantedClass(**values)


def _level(word: str, value: str) -> int:
    level = _number(word, "LEVEL", value)
    if not 1 <= level <= MOST_LEVELS:
        raise argparse.ArgumentTypeError(
            f"{word!r}: LEVEL is {level}; write 1 to {MOST_LEVELS}, which wrap takes, the urgent ones low"
        )
    return level


def _number(word: str, key: str, value: str) -> int:
    if not (value.isascii() and value.isdigit() and len(value) < 20):
        raise argparse.ArgumentTypeError(f"{word!r}: {key} is {value!r}; write a whole number")
    return int(value)


def _microseconds(word: str, value: str) -> int:
    found = _DURATION.fullmatch(value)
    time = Fraction(found[1]) * UNITS[found[2]] if found is not None and len(value) < 40 else Fraction(0)
    if not time or time.denominator != 1:
        raise argparse.ArgumentTypeError(
            f"{word!r}: timeout is {value!r}; write a time above 0 in whole microseconds with its unit, one of "
            f"{', '.join(UNITS)}, such as 50ms"
        )
    return int(time)


def _check(word: str, shown: str, key: str, value: object) -> None:
    """What the policy would not take is refused here, in the words of this command line."""
    check = _FIELDS[key].check
    remedy = check(value) if check is not None else None
    if remedy is not None:
        raise argparse.ArgumentTypeError(f"{word!r}: {shown} is {value!r}; write {remedy}")


def _least_urgent(classes: Sequence[WantedClass]) -> str:
    lowest = max(wanted.level for wanted in classes)
    return [wanted.name for wanted in classes if wanted.level == lowest][-1]


def _given(word: str) -> str:
    """A value that is not empty: an empty path means the folder that one happens to be in."""
    if not word:
        raise argparse.ArgumentTypeError("it is empty; write it (was a variable of the shell not set?)")
    return word


def _path(word: str) -> Path:
    return Path(_given(word))


def _instances(word: str) -> int:
    check = _FIELDS["instances"].check
    remedy = check(int(word)) if check is not None and word.isascii() and word.isdigit() else "a whole number"
    if remedy is not None:
        raise argparse.ArgumentTypeError(f"{word!r} is no number of instances; write {remedy}")
    return int(word)


def _parser() -> argparse.ArgumentParser:
    parser = command_line.parser(
        "priority-router wrap",
        "Puts a router in front of a model: copies MODEL into REPOSITORY (a model that lies there is edited in its "
        "place), gives its config.pbtxt the batching block that the router needs and leaves every other byte alone, "
        "and writes the router's own folder beside it. Nothing is written where something is refused.",
        usage="%(prog)s MODEL --into REPOSITORY [options]",
    )
    parser.add_argument(
        "model", metavar="MODEL", type=_path, help="folder of a model with a config.pbtxt, or an .onnx file"
    )
    parser.add_argument(
        "--into",
        metavar="REPOSITORY",
        dest="repository",
        type=_path,
        required=True,
        help="model repository; made when missing",
    )
    parser.add_argument("--router-name", metavar="NAME", type=_given, help="default: the model's name and _router")
    parser.add_argument(
        "--class",
        metavar="NAME:LEVEL[,max_queue=N][,timeout=50ms][,override]",
        dest="classes",
        type=traffic_class,
        action="append",
        help="a class of traffic; may be repeated. Level 1 is the most urgent; max_queue: requests that may wait; "
        f"timeout: in the queue, in {', '.join(UNITS)}; override: a request's own timeout may shorten it. Left out: "
        "unlimited, none, not allowed. Without any --class: online and background with teaching values",
    )
    parser.add_argument(
        "--default-class", metavar="NAME", help="class of requests that name none (default: the least urgent)"
    )
    parser.add_argument(
        "--plain", action="store_true", help="no levels on the executor, for a server that can preload nothing"
    )
    parser.add_argument(
        "--executor-policies",
        action="store_true",
        help="limits and timeouts on the executor's levels as well, for clients that still call it directly",
    )
    parser.add_argument(
        "--instances",
        metavar="N",
        type=_instances,
        help="of the executor over all devices, where its config.pbtxt leaves that to the server",
    )
    parser.add_argument("--dry-run", action="store_true", help="print the changes as a unified diff and write nothing")
    parser.add_argument(
        "--force", action="store_true", help="overwrite a router that was edited, or not written by this command"
    )
    return parser
