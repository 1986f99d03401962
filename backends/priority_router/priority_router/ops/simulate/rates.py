# SPDX-License-Identifier: Apache-2.0
"""Loads as people write them: a class and its rate in a word, or a file with every request.

Law: text in, arrivals out; nothing is read or drawn here. The forms are told in docs/simulate.md.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from priority_router.core.values import MICROSECOND, SECOND
from priority_router.errors import SetupError
from priority_router.ops.simulate.arrivals import Arrival, RowMix, Stream, one_row, rows_up_to

MOST_SECONDS: Final = 10_000_000.0
"""After the first, of a request in a file: times in milliseconds or since 1970 are taken for a mistake."""

COLUMNS: Final = ("time", "class", "rows", "timeout", "tenant", "signature")
"""Of a file; the first two must be there."""


_NUMBERS: Final = ("time", "rows", "timeout")

_MOST_PER_SECOND: Final = 1e7
"""More is a mistake, and would draw requests for hours."""


class LoadFileError(SetupError):
    """A load cannot be used; the text says where and what to write."""


@dataclass(frozen=True, slots=True)
class Rate:
    """The traffic of one class.

    Attributes:
        class_name: its class.
        rate: requests per second, above 0.
        rows: of each request.
        most_rows: where they differ, up to how many: each number from 1 is as likely.
        timeout_us: callers' queue timeout in microseconds; 0 = none.
        burst: requests that come together.
        tenant: whom they are for.
    """

    class_name: str
    rate: float
    rows: int = 1
    most_rows: int = 0
    timeout_us: int = 0
    burst: int = 1
    tenant: str = ""

    @property
    def stream(self) -> Stream:
        """The same for the simulator."""
        mix: RowMix = one_row
        if self.most_rows:
            mix = rows_up_to(self.most_rows)
        elif self.rows != 1:
            mix = _rows(self.rows)
        return Stream(
            self.class_name,
            self.rate,
            rows=mix,
            burst=self.burst,
            timeout=self.timeout_us * MICROSECOND,
            tenant=self.tenant,
        )


def _rows(count: int) -> RowMix:
    def draw(_rng: Any) -> int:
        return count

    return draw


def rate(word: str) -> Rate:
    """Reads ``CLASS=RATE[,rows=N|rows=1-N][,timeout=MICROSECONDS][,burst=N][,tenant=NAME]``.

    Raises:
        LoadFileError: it is not of that form.
    """
    head, *settings = word.split(",")
    name, equals, value = head.rpartition("=")
    if not equals or not name:
        raise LoadFileError(f"{word!r}: write CLASS=RATE, such as online=20")
    made: dict[str, Any] = {"class_name": name, "rate": _per_second(word, value)}
    for setting in settings:
        key, _, value = setting.partition("=")
        new: dict[str, Any]
        if key == "rows":
            first, dash, most = value.partition("-")
            new = {"rows": _number(word, key, first, 1)}
            if dash:
                new["most_rows"] = _number(word, key, most, 1)
                if new["rows"] != 1:
                    raise LoadFileError(f"{word!r}: rows is {value!r}; write a number, or 1-N for any number up to N")
        elif key == "timeout":
            new = {"timeout_us": _number(word, key, value, 1)}
        elif key == "burst":
            new = {"burst": _number(word, key, value, 1)}
        elif key == "tenant" and value:
            new = {"tenant": value}
        else:
            raise LoadFileError(
                f"{word!r}: {setting!r} is no setting of a load; write rows=N, rows=1-N, timeout=MICROSECONDS, burst=N "
                "or tenant=NAME"
            )
        if new.keys() & made.keys():
            raise LoadFileError(f"{word!r}: {key} is given twice; write it once")
        made |= new
    return Rate(**made)


def _per_second(word: str, value: str) -> float:
    try:
        found = float(value)
    except ValueError:
        found = 0.0
    if not 0 < found <= _MOST_PER_SECOND:
        raise LoadFileError(
            f"{word!r}: the rate is {value!r}; write requests per second, above 0 and up to {_MOST_PER_SECOND:.0f}"
        )
    return found


def _number(word: str, key: str, value: str, least: int) -> int:
    if not (value.isascii() and value.isdigit() and len(value) < 16 and int(value) >= least):
        raise LoadFileError(f"{word!r}: {key} is {value!r}; write a whole number of at least {least}")
    return int(value)


def parse(text: str, source: str, classes: Collection[str]) -> list[Arrival]:
    """Reads a file of requests: JSON lines, or CSV with a line of column names.

    Args:
        text: of the file.
        source: its name, for errors.
        classes: those of the policy.

    Returns:
        The requests in order of time, the first of them at 0 or later.

    Raises:
        LoadFileError: with line, value and remedy.
    """
    lines = text.removeprefix("\ufeff").splitlines()
    entries = _json_lines(lines, source) if _is_json(lines) else _table(lines, source)
    found = [_arrival(place, entry, classes) for place, entry in entries]
    if not found:
        raise LoadFileError(f"{source}: no request in it; write one JSON object a line, or CSV with {COLUMNS[0]},…")
    return sorted(found, key=lambda arrival: arrival.time)


def _is_json(lines: Iterable[str]) -> bool:
    return next((line.lstrip().startswith("{") for line in lines if line.strip()), False)


def _json_lines(lines: Iterable[str], source: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        place = f"{source}:{number}"
        try:
            entry = json.loads(line)
        except ValueError as error:
            raise LoadFileError(f"{place}: not JSON ({error}); write one object a line") from None
        if not isinstance(entry, dict):
            raise LoadFileError(f'{place}: no object; write one a line, such as {{"time": 0.5, "class": "online"}}')
        yield place, entry


def _table(lines: list[str], source: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    reader = csv.reader(lines)
    names = [name.strip() for name in next(reader, [])]
    unknown = [name for name in names if name not in COLUMNS]
    if unknown:
        raise LoadFileError(f"{source}:1: {_no_such_column(unknown[0])}")
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise LoadFileError(f"{source}:1: column {twice[0]!r} stands there twice; write each once")
    missing = [name for name in COLUMNS[:2] if name not in names]
    if missing:
        raise LoadFileError(
            f"{source}:1: no column {missing[0]!r}; write the columns' names there: {','.join(COLUMNS)}"
        )
    for row in reader:
        if not any(row):
            continue
        place = f"{source}:{reader.line_num}"
        if len(row) != len(names):
            raise LoadFileError(f"{place}: {len(row)} values for {len(names)} columns; write one for each")
        yield (
            place,
            {
                name: _value(cell.strip()) if name in _NUMBERS else cell.strip()
                for name, cell in zip(names, row, strict=True)
                if cell.strip()
            },
        )


def _no_such_column(name: str) -> str:
    return f"no such column {name!r}; there are {', '.join(COLUMNS)}"


def _value(cell: str) -> object:
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            continue
    return cell


def _arrival(place: str, entry: Mapping[str, Any], classes: Collection[str]) -> Arrival:
    unknown = [name for name in entry if name not in COLUMNS]
    if unknown:
        raise LoadFileError(f"{place}: {_no_such_column(unknown[0])}")
    time, name = entry.get("time"), str(entry.get("class", ""))
    if isinstance(time, bool) or not isinstance(time, int | float) or not 0 <= time <= MOST_SECONDS:
        raise LoadFileError(f"{place}: time is {time!r}; write seconds from the start, from 0 to {MOST_SECONDS:.0f}")
    if name not in classes:
        raise LoadFileError(f"{place}: no class {name!r} in the policy; there are {', '.join(classes)}")
    rows, timeout = _whole(place, entry, "rows", 1, 1), _whole(place, entry, "timeout", 0, 0)
    tenant, signature = str(entry.get("tenant", "")), entry.get("signature", 0)
    if not isinstance(signature, str | int | float):
        raise LoadFileError(
            f"{place}: signature is {signature!r}; write a text: requests with equal ones may be joined"
        )
    return Arrival(math.floor(time * SECOND), name, rows, signature, timeout * MICROSECOND, tenant=tenant)


def _whole(place: str, entry: Mapping[str, Any], key: str, least: int, default: int) -> int:
    value = entry.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 1 << 62:
        unit = "microseconds, 0 for none" if key == "timeout" else f"a whole number of at least {least}"
        raise LoadFileError(f"{place}: {key} is {value!r}; write {unit}")
    return value
