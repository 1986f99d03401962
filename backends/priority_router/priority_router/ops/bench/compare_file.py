# SPDX-License-Identifier: Apache-2.0
"""A result file of the benchmark, read again for a comparison.

Law: values of JSON in, checked values out; a number that is null is one that no answer stood behind, which is infinite.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from priority_router.errors import SetupError
from priority_router.ops import result_file
from priority_router.ops.bench import document
from priority_router.ops.bench.paired import QUANTILES, Interval
from priority_router.ops.bench.wire import Outcome
from priority_router.ops.loads import ExecutorShape

LATENCIES: Final = tuple(f"{name}_ms" for name in QUANTILES)

DEFINING: Final = ("name", "executor", "loads", "in_flight", "direct", "levels", "class_keys", "trace")
"""Keys of a scenario that must be the same in two results."""

DURATIONS: Final = ("seconds", "warmup_seconds", "grace_seconds")


class ResultError(SetupError):
    """A file has not the documented form, or cannot be compared; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class ClassRound:
    """One class in one round on one arm.

    Attributes:
        numbers: ``LATENCIES``, ``rows_per_s`` and ``in_time``, each with its interval.
        outcomes: requests by how they ended.
    """

    numbers: Mapping[str, Interval]
    outcomes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ArmRound:
    """One round on one arm.

    Attributes:
        classes: by name.
        busy: share of the time in which the executor computed; None if unknown.
        late_p99_ms: how late the client sent.
    """

    classes: Mapping[str, ClassRound]
    busy: float | None
    late_p99_ms: float


@dataclass(frozen=True, slots=True)
class Result:
    """What a file says.

    Attributes:
        name: of the file.
        scenario: DEFINING and DURATIONS, as values of JSON.
        executor: the scenario's.
        seed: of the arrivals.
        cores: that the client could use.
        versions: of what took part.
        server: ``kind`` and ``url``.
        command: the words that made it.
        created: when.
        interrupted: somebody stopped the run.
        rounds: by arm.
    """

    name: str
    scenario: Mapping[str, Any]
    executor: ExecutorShape
    seed: int
    cores: int
    versions: Mapping[str, str]
    server: Mapping[str, Any]
    command: Sequence[str]
    created: str
    interrupted: bool
    rounds: Sequence[Mapping[str, ArmRound]]

    @property
    def arms(self) -> list[str]:
        """Those that finished at least one round, in the order of the first."""
        return list(dict.fromkeys(name for finished in self.rounds for name in finished))

    def option(self, name: str) -> str | None:
        """The value that an option of its command had."""
        words = list(self.command)
        return words[words.index(name) + 1] if name in words[:-1] else None


def read(path: Path) -> Result:
    """Reads a file that ``priority-router bench --json`` wrote.

    Raises:
        SetupError: it cannot be read, is no result, or one of another version.
    """
    found = result_file.read(path, document.SCHEMA)
    try:
        return _result(str(path), found)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        said = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise ResultError(
            f"{path}: has not the form of docs/bench.schema.json ({said}); name a file that nobody changed, or measure "
            "again"
        ) from None


def _result(name: str, found: Mapping[str, Any]) -> Result:
    scenario = found["scenario"]
    shape = scenario["executor"]
    return Result(
        name=name,
        scenario={key: scenario[key] for key in (*DEFINING, *DURATIONS)},
        executor=ExecutorShape(
            **{key: int(shape[key]) for key in ("batch_us", "row_us", "max_batch_size", "instances")}
        ),
        seed=int(found["seed"]),
        cores=int(found["cores"]),
        versions=dict(found["versions"]),
        server={key: found["server"][key] for key in ("kind", "url")},
        command=[str(word) for word in found["command"]],
        created=str(found["created"]),
        interrupted=bool(found["interrupted"]),
        rounds=[{arm: _arm(one) for arm, one in finished.items()} for finished in found["rounds"]],
    )


def _arm(one: Mapping[str, Any]) -> ArmRound:
    busy = one["busy"]
    return ArmRound(
        {name: _class(numbers) for name, numbers in one["classes"].items()},
        None if busy is None else _number(busy),
        _number(one["late_p99_ms"]),
    )


def _class(one: Mapping[str, Any]) -> ClassRound:
    goodput = one["goodput"]
    numbers = {what: _interval(one["latency"].get(what), one["latency_interval"][what]) for what in LATENCIES}
    numbers["rows_per_s"] = _interval(one["rows_per_s"], one["rows_per_s_interval"])
    numbers["in_time"] = _interval(goodput["share"], goodput["share_interval"])
    return ClassRound(numbers, {outcome.label: int(one["outcomes"][outcome.label]) for outcome in Outcome})


def _interval(value: Any, ends: Mapping[str, Any]) -> Interval:
    low, high = ends["low"], ends["high"]
    return Interval(
        math.inf if value is None else _number(value),
        -math.inf if low is None else _number(low),
        math.inf if high is None else _number(high),
    )


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError(f"{value!r} stands where a number should")
    return float(value)
