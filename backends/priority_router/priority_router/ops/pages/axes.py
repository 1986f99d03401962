# SPDX-License-Identifier: Apache-2.0
"""Where values lie on an axis, and which of them are written beside it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

TICKS: Final = 5
"""Lines across a chart, at most, the one at 0 not counted."""

_LEAST_FACTOR: Final = 4.0
"""Between the ends of a logarithmic axis: on less, differences that do not matter would look large."""

_WITHIN_DECADE: Final = ((1, 2, 3, 5, 7), (1, 2, 5), (1,))
_MOST_LOG_TICKS: Final = 6


def ticks(most: float) -> list[float]:
    """Round numbers from 0 to at least ``most``, as many as fit; of 0 as of 1.

    Raises:
        ValueError: ``most`` is too large for a chart.
    """
    most = most or 1.0
    for exponent in range(-4, 12):
        for step in (1, 2, 5):
            size = step * 10.0**exponent
            if size * TICKS >= most:
                found = [round(place * size, 6) for place in range(TICKS + 1)]
                return [tick for before, tick in pairwise([-size, *found]) if before < most]
    raise ValueError(f"{most} is too large for a chart")


@dataclass(frozen=True, slots=True)
class LogScale:
    """A logarithmic axis.

    Attributes:
        low: its beginning, above 0.
        high: its end.
    """

    low: float
    high: float

    @classmethod
    def around(cls, values: Iterable[float]) -> LogScale:
        """One on which all values above 0 have room; 1 to 10 without any."""
        known = [value for value in values if 0 < value < math.inf]
        low, high = (min(known), max(known)) if known else (1.0, 10.0)
        missing = max(1.0, _LEAST_FACTOR * low / high)
        return cls(low / math.sqrt(missing) / 1.06, high * math.sqrt(missing) * 1.06)

    def at(self, value: float) -> float:
        """Where a value lies, 0 to 1; what is outside lies at the end."""
        inside = min(max(value, self.low), self.high)
        return math.log(inside / self.low) / math.log(self.high / self.low)

    def ticks(self) -> list[float]:
        """Round numbers on it, as many as fit."""
        decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        for digits in _WITHIN_DECADE:
            found = [float(f"{digit}e{decade}") for decade in decades for digit in digits]
            found = [tick for tick in found if self.low <= tick <= self.high]
            if len(found) <= _MOST_LOG_TICKS:
                return found
        return found[:: -(-len(found) // _MOST_LOG_TICKS)]
