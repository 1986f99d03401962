# SPDX-License-Identifier: Apache-2.0
"""``policy.toml`` to frozen values.

Law: pure apart from reading the one file; the router, ``serve`` and lint all read a policy through here, so that none
of them can think differently about it. Every fault is a :class:`PolicyError` that names file, key, value and remedy.
"""

from __future__ import annotations

import difflib
import enum
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from priority_router.core.values import MICROSECOND, FairBy, Order, SchedulingPolicy, TimeoutAction, TrafficClass
from priority_router.errors import PolicyError
from priority_router.policy_checks import HEADER_PREFIX, REQUIRED, Field, is_a
from priority_router.policy_fields import CLASS, EXECUTOR_SHAPE, HABITS, LATEST_VERSION, TENANT, TOP_LEVEL
from priority_router.policy_places import PolicyPlaces

__all__ = [
    "LATEST_VERSION",
    "POLICY_FILE",
    "Above",
    "ClassSource",
    "Mode",
    "RouterPolicy",
    "SourceKind",
    "TenantRule",
    "load_policy",
    "parse_file",
    "parse_policy",
    "read_text",
]

POLICY_FILE: Final = "policy.toml"
_TABLES: Final = ("executor_shape", "class", "tenant")
_TOP: Final = "at the top of the file"
_PLACES: Final = {
    _TOP: TOP_LEVEL,
    "in [executor_shape]": EXECUTOR_SHAPE,
    "in [[class]]": CLASS,
    "in [[tenant]]": TENANT,
}
_LONGEST_SHOWN: Final = 100


class Mode(enum.Enum):
    """How the executor is called."""

    LEVELS = "levels"
    PLAIN = "plain"


class SourceKind(enum.Enum):
    """Where a request may name its class, or its tenant."""

    TENSOR = "tensor"
    PARAMETER = "parameter"
    HEADER = "header"


@dataclass(frozen=True, slots=True)
class ClassSource:
    """One place to look for the class, or for the tenant.

    Attributes:
        kind: tensor ``CLASS``, request parameter ``class`` or ``tenant``, or a header that the front end forwards as a
            parameter.
        name: the header's name in lower case; empty for the other kinds.
    """

    kind: SourceKind
    name: str = ""


class Above(enum.Enum):
    """What becomes of a request that asks for more than its tenant may."""

    LOWER = "lower"
    REJECT = "reject"


@dataclass(frozen=True, slots=True)
class TenantRule:
    """What a tenant may ask for.

    Attributes:
        name: the tenant, or EVERY_OTHER.
        most_urgent_class: whose level is the most urgent one that it may have.
        above: LOWER: served in that class.
    """

    name: str
    most_urgent_class: str
    above: Above = Above.LOWER


EVERY_OTHER: Final = "*"
"""Name of the rule for tenants without one of their own, and for requests without a tenant."""


@dataclass(frozen=True, slots=True)
class RouterPolicy:
    """Everything ``policy.toml`` says.

    Attributes:
        scheduling: what the core needs; ``scheduling.levels`` follows ``mode``.
        mode: levels or plain.
        executor: name of the model that is called.
        executor_version: its version, at least 1, or LATEST_VERSION.
        default_class: class of requests that name none.
        unknown_class_is_default: a request that names an unknown class is served as ``default_class``, not refused.
        class_sources: in the order of look-up, at least one.
        guard_executor: clients are to be kept from calling the executor directly.
        tenant_sources: in the order of look-up, at least one, none a tensor.
        tenants: names differ.
    """

    scheduling: SchedulingPolicy
    mode: Mode
    executor: str
    executor_version: int
    default_class: str
    unknown_class_is_default: bool
    class_sources: tuple[ClassSource, ...]
    guard_executor: bool
    tenant_sources: tuple[ClassSource, ...] = (ClassSource(SourceKind.PARAMETER),)
    tenants: tuple[TenantRule, ...] = ()

    @property
    def reads_tenants(self) -> bool:
        """Whether it matters whose a request is; where it does not nobody's parameter ``tenant`` is looked at."""
        return bool(self.tenants) or any(each.fair_by is FairBy.TENANT for each in self.scheduling.classes)


def load_policy(path: Path) -> RouterPolicy:
    """Reads a policy.

    Args:
        path: the file.

    Raises:
        PolicyError: the file cannot be read or used.
    """
    return parse_file(read_text(path), path)


def parse_file(text: str, path: Path) -> RouterPolicy:
    """Reads a policy from the text of a file.

    Args:
        text: what `read_text` gave.
        path: the file.

    Raises:
        PolicyError: the text cannot be used; it begins with ``FILE:LINE`` where the fault stands in one place.
    """
    try:
        return parse_policy(text, str(path))
    except PolicyError as error:
        fault = str(error)
        spot = PolicyPlaces(text).of_error(fault)
        if spot is None:
            raise
        raise PolicyError(f"{path}:{spot[0]}{fault.removeprefix(str(path))}") from error


def read_text(path: Path) -> str:
    """The text of a policy.

    Raises:
        PolicyError: the file cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8-sig")  # some editors write a byte order mark
    except FileNotFoundError as error:
        raise PolicyError(f"{path}: no such file; a router's version folder must hold {POLICY_FILE}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise PolicyError(f"{path}: cannot be read ({error}); write it as UTF-8 text readable by the server") from error


def parse_policy(text: str, source: str = POLICY_FILE) -> RouterPolicy:
    """Reads a policy from text.

    Args:
        text: TOML.
        source: what errors call the file.

    Raises:
        PolicyError: the text cannot be used.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PolicyError(f"{source}: not valid TOML: {error}") from error
    except ValueError as error:  # of the digits that Python turns into an integer
        raise PolicyError(f"{source}: a number in it is too long ({error}); write one that its key can have") from error
    except RecursionError as error:
        raise PolicyError(
            f"{source}: lists or tables in it are nested too deep; no key needs more than a list"
        ) from error
    return _Reader(source).policy(document)


class _Reader:
    """Turns the parsed document into values; holds nothing but the name that errors need."""

    def __init__(self, source: str) -> None:
        self._source = source

    def policy(self, document: Mapping[str, Any]) -> RouterPolicy:
        top = self._table(document, _TOP, "")
        shape = document.get("executor_shape")
        if not isinstance(shape, dict):
            raise self._error("executor_shape", shape, "a table [executor_shape] with instances and max_batch_size")
        size = self._table(shape, "in [executor_shape]", "executor_shape.")
        classes = self._classes(document.get("class"))
        mode = Mode(top["mode"])
        scheduling = SchedulingPolicy(
            classes=classes,
            instances=size["instances"],
            max_batch_size=size["max_batch_size"],
            levels=mode is Mode.LEVELS,
            executor_timeout=top["executor_timeout_microseconds"] * MICROSECOND,
            max_fill_slowdown=float(top["max_fill_slowdown"]),
            batch_efficiency=float(top["batch_efficiency"]),
            overtaking=top["overtaking"],
            shared_executor=top["shared_executor"],
            max_queue_bytes=top["max_queue_bytes"],
            max_execution=top["max_execution_microseconds"] * MICROSECOND,
        )
        default_class, guard = top["default_class"], top["guard_executor"]
        policy = RouterPolicy(
            scheduling=scheduling,
            mode=mode,
            executor=top["executor"],
            executor_version=top["executor_version"],
            default_class=_least_urgent(classes) if default_class is None else default_class,
            unknown_class_is_default=top["unknown_class"] == "default",
            class_sources=tuple(_class_source(text) for text in top["class_sources"]),
            guard_executor=not top["shared_executor"] if guard is None else guard,
            tenant_sources=tuple(_class_source(text) for text in top["tenant_sources"]),
            tenants=self._tenants(document.get("tenant", [])),
        )
        self._cross_check(policy)
        return policy

    def _cross_check(self, policy: RouterPolicy) -> None:
        """Whatever depends on more than one key."""
        names = [traffic_class.name for traffic_class in policy.scheduling.classes]
        for name in names:
            if names.count(name) > 1:
                raise self._error("class.name", name, "a name that no other [[class]] has")
        if policy.default_class not in names:
            raise self._error("default_class", policy.default_class, f"one of {', '.join(names)}")
        for rule in policy.tenants:
            if sum(other.name == rule.name for other in policy.tenants) > 1:
                raise self._error("tenant.name", rule.name, "a name that no other [[tenant]] has")
            if rule.most_urgent_class not in names:
                path = "tenant.most_urgent_class"
                raise self._error(path, rule.most_urgent_class, f"for {rule.name!r} one of {', '.join(names)}")
        for each in policy.scheduling.classes:
            if each.reject_predicted_late and each.timeout_action is not TimeoutAction.REJECT:
                remedy = f'false, or timeout_action = "REJECT" for class {each.name!r}: with DELAY nobody is too late'
                raise self._error("class.reject_predicted_late", True, remedy)
        shares = math.fsum(traffic_class.min_share for traffic_class in policy.scheduling.classes)
        if shares > 1:
            raise self._error("class.min_share", shares, "values that are together at most 1")
        for key in ("overtaking", "shared_executor"):
            if getattr(policy.scheduling, key) and policy.mode is Mode.PLAIN:
                raise self._error(key, True, f'{key} = false, or mode = "levels": Triton orders nothing in plain mode')

    def _classes(self, tables: object) -> tuple[TrafficClass, ...]:
        if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
            raise self._error("class", tables, "at least one table [[class]] with name and level")
        classes = []
        for index, table in enumerate(tables):
            values = self._table(table, "in [[class]]", f"class[{index}].")
            classes.append(
                TrafficClass(
                    name=values["name"],
                    level=values["level"],
                    max_queue_size=values["max_queue_size"],
                    default_timeout=values["default_timeout_microseconds"] * MICROSECOND,
                    allow_timeout_override=values["allow_timeout_override"],
                    timeout_action=TimeoutAction(values["timeout_action"]),
                    order=Order(values["order"]),
                    max_blocking=values["max_blocking_microseconds"] * MICROSECOND,
                    max_wait=values["max_wait_microseconds"] * MICROSECOND,
                    min_share=float(values["min_share"]),
                    max_queue_bytes=values["max_queue_bytes"],
                    fair_by=FairBy(values["fair_by"]),
                    reject_predicted_late=values["reject_predicted_late"],
                )
            )
        return tuple(classes)

    def _tenants(self, tables: object) -> tuple[TenantRule, ...]:
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            raise self._error("tenant", tables, "tables [[tenant]] with name and most_urgent_class, or none")
        rules = []
        for index, table in enumerate(tables):
            values = self._table(table, "in [[tenant]]", f"tenant[{index}].")
            rules.append(TenantRule(values["name"], values["most_urgent_class"], Above(values["above"])))
        return tuple(rules)

    def _table(self, table: Mapping[str, Any], place: str, prefix: str) -> dict[str, Any]:
        """The values of one table, defaults filled in, each checked by itself."""
        fields = _PLACES[place]
        known = _keys(place)
        for key in table:
            if key not in known:
                shown = f"{prefix}{_shown_key(key)} = {_shown(table[key])}"
                raise PolicyError(f"{self._source}: unknown key {shown}: {_instead(key, place)}")
        values = {}
        for field in fields:
            value = table.get(field.key, field.default)
            if value is REQUIRED:
                missing = f"{prefix}{field.key} is missing; add it {place}, as {_a(field.kind)}: {field.meaning}"
                raise PolicyError(f"{self._source}: {missing}")
            if field.key in table:
                self._check(prefix + field.key, value, field)
            values[field.key] = value
        return values

    def _check(self, path: str, value: object, field: Field) -> None:
        if not is_a(value, field.kind):
            raise self._error(path, value, f"{_a(field.kind)}: {field.meaning}")
        remedy = field.check(value) if field.check is not None else None
        if remedy is not None:
            raise self._error(path, value, remedy)

    def _error(self, path: str, value: object, remedy: str) -> PolicyError:
        shown = "missing" if value is None else f"= {_shown(value)}"
        return PolicyError(f"{self._source}: {path} {shown} cannot be used; write {remedy}")


def _keys(place: str) -> list[str]:
    """What one table may hold; at the top of the file the other tables, too."""
    return [field.key for field in _PLACES[place]] + (list(_TABLES) if place == _TOP else [])


def _instead(key: str, place: str) -> str:
    """What to do about a key that does not belong into a table: the nearest key of all tables, and where it belongs."""
    meant = HABITS.get(key, key)
    here = _keys(place)
    known = here + [other for elsewhere in _PLACES if elsewhere != place for other in _keys(elsewhere)]
    close = difflib.get_close_matches(meant, known, n=1, cutoff=0.6)
    if not close:
        return f"no such key; there are {', '.join(here)}"
    if close[0] in here:
        return f"did you mean {close[0]}?"
    belongs = next(other for other in _PLACES if close[0] in _keys(other))
    return f"it belongs {belongs}" if close[0] == key else f"did you mean {close[0]}, which belongs {belongs}?"


def _a(kind: str) -> str:
    return f"{'an' if kind == 'integer' else 'a'} {kind}"


def _shown(value: object) -> str:
    """A value in an error, cut to what a line bears; Python itself writes neither the longest nor the deepest."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):
        return "a value too long to show"
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "..."


def _shown_key(key: str) -> str:
    return key if key.replace("-", "_").isidentifier() and len(key) <= _LONGEST_SHOWN else _shown(key)


def _class_source(text: str) -> ClassSource:
    if text.startswith(HEADER_PREFIX):
        return ClassSource(SourceKind.HEADER, text.removeprefix(HEADER_PREFIX).lower())
    return ClassSource(SourceKind(text))


def _least_urgent(classes: Sequence[TrafficClass]) -> str:
    """Unmodified callers never become urgent; of several at that level the last one written."""
    lowest = max(traffic_class.level for traffic_class in classes)
    return [traffic_class.name for traffic_class in classes if traffic_class.level == lowest][-1]
