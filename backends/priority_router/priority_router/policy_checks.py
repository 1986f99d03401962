# SPDX-License-Identifier: Apache-2.0
"""What a key of ``policy.toml`` is: its kind, its default, and the check on its single value.

Law: predicates only; which keys there are stands in ``policy_fields``.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

POLICY_VERSION: Final = 1

MAX_TENANT_BYTES: Final = 256
"""Longer than any account, address or key that names a tenant; what is longer is a mistake, and costs memory."""

MAX_SLOWDOWN: Final = 1_000_000
"""No batch is that many times slower, so it means: fill whatever it costs."""

_CLASS_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}")
HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
HEADER_PREFIX = "header:"


class _Required(enum.Enum):
    REQUIRED = enum.auto()


REQUIRED: Final = _Required.REQUIRED


@dataclass(frozen=True, slots=True)
class Check:
    """What one value of the right type may be.

    Attributes:
        allowed: in words, as errors and docs/policy.md have it.
        fits: whether a value is that.
    """

    allowed: str
    fits: Callable[[Any], bool]

    def __call__(self, value: Any) -> str | None:
        """What to write instead; None when the value is fine."""
        return None if self.fits(value) else self.allowed


@dataclass(frozen=True, slots=True)
class Field:
    """One key of the policy.

    Attributes:
        key: as written in the file.
        kind: ``integer``, ``number``, ``boolean``, ``text`` or ``list of texts``.
        default: the value where the key is left out; REQUIRED where it may not be; None where it follows from others.
        meaning: one sentence, with the unit.
        check: on the single value; what depends on several keys is checked by ``_cross_check``.
    """

    key: str
    kind: str
    default: Any
    meaning: str
    check: Check | None = None


def between(low: int, high: int) -> Check:
    """A number within bounds, both included."""
    return Check(f"a value from {low} to {high}", lambda value: low <= value <= high)


def one_of(*choices: str) -> Check:
    """One of these texts."""
    return Check(" or ".join(f'"{choice}"' for choice in choices), lambda value: value in choices)


def _is_model_name(value: str) -> bool:
    return value.isprintable() and value == value.strip() and value not in ("", ".", "..") and "/" not in value


def _is_class_name(value: str) -> bool:
    return _CLASS_NAME.fullmatch(value) is not None


def _is_tenant_name(value: str) -> bool:
    return value.isprintable() and value == value.strip() and 0 < len(value.encode()) <= MAX_TENANT_BYTES


def sources(*kinds: str) -> Check:
    """A list of these and of headers."""

    def are_sources(value: Sequence[str]) -> bool:
        if not value or len({source.lower() for source in value}) < len(value):
            return False
        for source in value:
            header = source.removeprefix(HEADER_PREFIX) if source.startswith(HEADER_PREFIX) else None
            if source not in kinds and (header is None or not HEADER_NAME.fullmatch(header)):
                return False
        return True

    named = ", ".join(f'"{kind}"' for kind in kinds)
    return Check(f'a list of {named} and "header:NAME", each at most once', are_sources)


VERSION_ONE = Check(
    f"policy_version = {POLICY_VERSION}, the only form this release reads", lambda value: value == POLICY_VERSION
)
SHARE = Check("a value above 0 and at most 1", lambda value: 0 < value <= 1)
SLOWDOWN = Check(f"a value from 0 to {MAX_SLOWDOWN}, such as 0.1", lambda value: 0 <= value <= MAX_SLOWDOWN)
MODEL_NAME = Check("the name of the model to call: that of its folder, without spaces around it", _is_model_name)
NAME_OF_CLASS = Check("1 to 64 letters, digits and '_.:-', beginning with a letter or a digit", _is_class_name)
NAME_OF_TENANT = Check(
    f"what can be printed, without spaces around it, at most {MAX_TENANT_BYTES} bytes",
    _is_tenant_name,
)


def is_a(value: object, kind: str) -> bool:
    """Whether a parsed TOML value is of a field's kind; a boolean is never a number."""
    if kind == "boolean":
        return isinstance(value, bool)
    if kind == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if kind == "number":
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind == "text":
        return isinstance(value, str)
    return isinstance(value, list) and all(isinstance(item, str) for item in value)
