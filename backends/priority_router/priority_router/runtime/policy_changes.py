# SPDX-License-Identifier: Apache-2.0
"""What differs between two policies, for people: key by key, as it is written in the file.

Law: pure; two texts that could be read, with the policies that they are, in; differences out.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from priority_router.config import RouterPolicy
from priority_router.policy_checks import REQUIRED, Field
from priority_router.policy_fields import CLASS, EXECUTOR_SHAPE, FIXED, TENANT, TOP_LEVEL
from priority_router.toml_places import Path

_NAMED: Final = {"class": CLASS, "tenant": TENANT}
_TABLE: Final = ""
"""In place of a key: the table itself."""


@dataclass(frozen=True, slots=True)
class Change:
    """One difference.

    Attributes:
        what: the key with its old and its new value, or the table that is new or gone.
        key: dotted, without the names of tables.
        place: where the new text has it; of what is gone, where the old one had it.
    """

    what: str
    key: str
    place: Path

    @property
    def fixed(self) -> bool:
        """Whether only a router that is loaded anew takes it in."""
        return self.key in FIXED


@dataclass(frozen=True, slots=True)
class _Setting:
    value: Any
    place: Path


def changes(old_text: str, old: RouterPolicy, new_text: str, new: RouterPolicy) -> Sequence[Change]:
    """All differences, in the order of the keys; none where the two mean the same."""
    before, after = dict(_settings(old_text, old)), dict(_settings(new_text, new))
    found = []
    for where in dict.fromkeys((*after, *before)):
        table, name, key = where
        was, now = before.get(where), after.get(where)
        owner = f"{table} {name!r}" if name else table
        dotted = ".".join(filter(None, (table, key)))
        if key == _TABLE:
            if was is None or now is None:
                place = (now or was or _Setting(None, ())).place
                found.append(Change(f"{owner} is {'gone' if now is None else 'new'}", dotted, place))
        elif was is not None and now is not None and was.value != now.value:
            what = f"{owner}: {key}" if name else dotted
            found.append(Change(f"{what} {_shown(was.value)} -> {_shown(now.value)}", dotted, now.place))
    if not found and old != new:
        found.append(Change("the order of the tables", "", ()))
    return found


def _settings(text: str, policy: RouterPolicy) -> Iterator[tuple[tuple[str, str, str], _Setting]]:
    """Everything that a policy says, by table, name and key; defaults included."""
    document = tomllib.loads(text)
    for key, setting in _fields(document, TOP_LEVEL, (), policy):
        yield ("", "", key), setting
    for key, setting in _fields(document["executor_shape"], EXECUTOR_SHAPE, ("executor_shape",), policy):
        yield ("executor_shape", "", key), setting
    for table, fields in _NAMED.items():
        for index, entry in enumerate(document.get(table, ())):
            place: Path = (table, index)
            yield (table, entry["name"], _TABLE), _Setting(None, place)
            for key, setting in _fields(entry, fields, place, policy):
                if key != "name":
                    yield (table, entry["name"], key), setting


def _fields(
    entry: Mapping[str, Any], fields: Sequence[Field], table: Path, policy: RouterPolicy
) -> Iterator[tuple[str, _Setting]]:
    for field in fields:
        default = field.default
        if default is None or default is REQUIRED:
            default = getattr(policy, field.key, None)  # what follows from other keys
        value = entry.get(field.key, default)
        yield field.key, _Setting(list(value) if isinstance(value, tuple) else value, (*table, field.key))


def _shown(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
