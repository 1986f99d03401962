# SPDX-License-Identifier: Apache-2.0
"""Scenarios as people write them: a TOML file with the executor, the classes and how they ask.

Law: text in, a scenario out; nothing is run here. The keys are told in docs/bench.md, which a test holds against these.
"""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NoReturn

from priority_router.config import parse_policy
from priority_router.core.values import SECOND
from priority_router.errors import PolicyError, SetupError
from priority_router.ops import result_file
from priority_router.ops.bench.arms import ARMS, EXECUTOR, policy_text
from priority_router.ops.bench.scenarios import COMPARED, Scenario
from priority_router.ops.loads import ARRIVALS, ClassLoad, ExecutorShape
from priority_router.ops.simulate import rates
from priority_router.ops.simulate.arrivals import Arrival

_LONGEST_SECONDS: Final = 86_400.0
_TIMES: Final = ("seconds", "warmup_seconds", "grace_seconds", "rounds")


class PlanError(SetupError):
    """A plan cannot be used; the text says where and what to write."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """What a value must be.

    Attributes:
        words: in words, after "write".
        fits: whether a value is of the kind.
    """

    words: str
    fits: Callable[[object], bool]


def _number(least: float, most: float, words: str, *, whole: bool = False) -> _Kind:
    def fits(value: object) -> bool:
        types: tuple[type, ...] = (int,) if whole else (int, float)
        return isinstance(value, types) and not isinstance(value, bool) and least <= value <= most  # type: ignore[operator]

    return _Kind(words, fits)


def _words_of(known: Sequence[str] | Mapping[str, object], words: str) -> _Kind:
    def fits(value: object) -> bool:
        return isinstance(value, list) and bool(value) and all(isinstance(one, str) and one in known for one in value)

    return _Kind(words, fits)


_TEXT: Final = _Kind("a text that is not empty", lambda value: isinstance(value, str) and bool(value))
_FLAG: Final = _Kind("true or false", lambda value: isinstance(value, bool))
_TABLE: Final = _Kind("a table", lambda value: isinstance(value, dict))
_TABLES: Final = _Kind("[[class]] tables", lambda value: isinstance(value, list) and len(value) > 0)
_COUNT: Final = _number(1, 1_000_000, "a whole number from 1 to 1000000", whole=True)
_SECONDS: Final = _number(0.1, _LONGEST_SECONDS, "seconds from 0.1 to 86400")
_WAIT: Final = _number(0, _LONGEST_SECONDS, "seconds from 0 to 86400")
_MICROSECONDS: Final = _number(0, 60_000_000, "whole microseconds from 0 to 60000000", whole=True)
_STEPS: Final = _Kind(
    "a list of whole numbers from 1 to 4096",
    lambda value: (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(one, int) and not isinstance(one, bool) and 1 <= one <= 4096 for one in value)
    ),
)

TOP: Final[Mapping[str, _Kind]] = {
    "meaning": _TEXT,
    "seconds": _SECONDS,
    "warmup_seconds": _WAIT,
    "grace_seconds": _WAIT,
    "rounds": _COUNT,
    "arms": _words_of(ARMS, f"a list of {', '.join(ARMS)}"),
    "trace": _TEXT,
    "in_flight": _STEPS,
    "executor": _TABLE,
    "class": _TABLES,
}
"""Keys at the top of the file."""

EXECUTOR_KEYS: Final[Mapping[str, _Kind]] = {
    "batch_microseconds": _MICROSECONDS,
    "row_microseconds": _MICROSECONDS,
    "max_batch_size": _COUNT,
    "instances": _number(1, 64, "a whole number from 1 to 64", whole=True),
}
"""Keys of [executor]."""

CLASS_KEYS: Final[Mapping[str, _Kind]] = {
    "name": _TEXT,
    "level": _number(1, 1000, "a whole number from 1 to 1000", whole=True),
    "rate": _number(0, 1e6, "requests per second from 0 to 1000000"),
    "arrivals": _Kind(f"one of {', '.join(ARRIVALS)}", lambda value: value in ARRIVALS),
    "burst_size": _COUNT,
    "burst_start_seconds": _WAIT,
    "rows": _COUNT,
    "target_milliseconds": _number(0.001, 1e8, "milliseconds above 0"),
    "direct": _FLAG,
    "tenants": _number(0, 10_000, "a whole number from 0 to 10000", whole=True),
    "policy": _TABLE,
}
"""Keys of [[class]]."""


def load(path: Path) -> tuple[Scenario, list[Arrival] | None]:
    """Reads a plan and the trace that it names.

    Returns:
        The scenario, named after the file, and what is replayed in place of drawn arrivals.

    Raises:
        PlanError: a file is not there, or something in it cannot be used.
        LoadFileError: the trace cannot be used.
    """
    scenario = parse(_text(path), str(path), path.stem)
    if not scenario.trace:
        return scenario, None
    source = path.parent / scenario.trace
    trace = rates.parse(_text(source), str(source), tuple(scenario.levels))
    return with_trace(scenario, trace, result_file.shown(source)), trace


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no UTF-8 text"
        raise PlanError(f"{path}: cannot be read ({reason}); name a plan or a trace that exists") from None


def parse(text: str, source: str, name: str) -> Scenario:
    """Reads a plan.

    Args:
        text: of the file.
        source: its name, for errors.
        name: of the scenario.

    Raises:
        PlanError: something in it cannot be used.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PlanError(f"{source}: not TOML: {error}") from None
    return _Reader(source).scenario(document, name)


def with_trace(scenario: Scenario, trace: Sequence[Arrival], source: str) -> Scenario:
    """A scenario whose rates are those of a trace.

    Raises:
        PlanError: the trace ends before the counted time does.
    """
    needed = scenario.warmup_seconds + scenario.seconds
    lasts = trace[-1].time / SECOND
    if lasts < 0.9 * needed:
        raise PlanError(
            f"{source}: its last request is at {lasts:g} s, and warmup_seconds + seconds are {needed:g}; make them "
            "smaller, since rates count only while requests arrive"
        )
    counts = Counter(one.class_name for one in trace if one.time < needed * SECOND)
    loads = tuple(replace(one, rate=counts[one.name] / needed) for one in scenario.loads)
    return replace(scenario, loads=loads, trace=source)


class _Reader:
    def __init__(self, source: str) -> None:
        self._source = source

    def scenario(self, document: Mapping[str, Any], name: str) -> Scenario:
        self._check("", document, TOP)
        if "class" not in document:
            self._refuse("class", "write at least one [[class]] with name, level and rate")
        shape = self._executor(document.get("executor", {}))
        classes = document["class"]
        for place, one in enumerate(classes, start=1):
            self._class(f"class {place}", one, "trace" in document or "in_flight" in document)
        levels = {one["name"]: one["level"] for one in classes}
        if len(levels) < len(classes):
            self._refuse("class", "give every class a name of its own")
        loads = tuple(map(self._load, classes))
        given = {
            key: document[key] for key in ("seconds", "warmup_seconds", "grace_seconds", "rounds") if key in document
        }
        closed = tuple(document.get("in_flight", ()))
        if closed and "trace" in document:
            self._refuse("in_flight", "leave out either in_flight or trace: a closed loop has no times")
        made = Scenario(
            name,
            document.get("meaning", f"as {Path(self._source).name} says"),
            shape,
            () if closed else loads,
            closed,
            direct=tuple(one["name"] for one in classes if one.get("direct")),
            arms=tuple(dict.fromkeys(document.get("arms", COMPARED))),
            levels=levels,
            class_keys={one["name"]: one["policy"] for one in classes if one.get("policy")},
            trace=document.get("trace", ""),
            **given,
        )
        self._policies(made)
        return made

    def _executor(self, table: Mapping[str, Any]) -> ExecutorShape:
        self._check("executor", table, EXECUTOR_KEYS)
        return ExecutorShape(
            table.get("batch_microseconds", 0),
            table.get("row_microseconds", 0),
            table.get("max_batch_size", 1),
            table.get("instances", 1),
        )

    def _class(self, place: str, table: Mapping[str, Any], timed: bool) -> None:
        self._check(place, table, CLASS_KEYS)
        needed = ("name", "level") if timed else ("name", "level", "rate")
        for key in needed:
            if key not in table:
                self._refuse(f"{place}.{key}", f"it must be there; write {CLASS_KEYS[key].words}")
        if table.get("arrivals") == "burst" and "burst_size" not in table:
            self._refuse(f"{place}.burst_size", "a burst must have one; write how many requests come at once")
        if table.get("arrivals", "poisson") != "burst":
            for key in ("burst_size", "burst_start_seconds"):
                if key in table:
                    self._refuse(f"{place}.{key}", 'it is of bursts alone; write arrivals = "burst" or leave it out')

    def _load(self, table: Mapping[str, Any]) -> ClassLoad:
        name = table["name"]
        return ClassLoad(
            name,
            float(table.get("rate", 0.0)),
            table.get("target_milliseconds"),
            table.get("arrivals", "poisson"),
            table.get("burst_size", 1),
            float(table.get("burst_start_seconds", 0.0)),
            table.get("rows", 1),
            tuple(f"{name}-{number}" for number in range(1, table.get("tenants", 0) + 1)),
        )

    def _policies(self, made: Scenario) -> None:
        """The routers' policies must be ones; what is wrong with them is told with the plan's name."""
        for mode in ("levels", "plain"):
            text = policy_text(mode, EXECUTOR, made.executor, made.levels, bool(made.direct), made.class_keys)
            try:
                parse_policy(text)
            except PolicyError as error:
                raise PlanError(f"{self._source}: its policy for a router in {mode} mode: {error}") from None

    def _check(self, place: str, table: object, keys: Mapping[str, _Kind]) -> None:
        if not isinstance(table, dict):
            self._refuse(place, "write a table")
        for key, value in table.items():
            where = f"{place}.{key}" if place else key
            if key not in keys:
                self._refuse(where, f"there is no such key; there are {', '.join(keys)}")
            if not keys[key].fits(value):
                self._refuse(f"{where} = {json.dumps(value, default=str)[:60]}", f"write {keys[key].words}")

    def _refuse(self, what: str, remedy: str) -> NoReturn:
        raise PlanError(f"{self._source}: {what}: {remedy}")
