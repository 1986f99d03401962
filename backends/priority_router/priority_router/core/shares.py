# SPDX-License-Identifier: Apache-2.0
"""Who has had less of the executor's time than it was promised.

Law: a ledger in ns. It is told what each dispatch cost and whose rows it held, and says which class must come first; it
knows neither requests nor the clock.

A class's lag grows by its share of every dispatch's time while it has work, and falls by the part of that time that its
own rows took. Only the time that dispatches take counts, so an absent class changes nobody else's share.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from priority_router.core.values import SECOND, SchedulingPolicy

LONGEST_DEBT: Final = 1 * SECOND
"""A class that has had more than its share, since nobody else wanted the time, loses at most its share of this much."""

LEAST_CLAIM: Final = 0.5
"""Part of a dispatch that the class for whose share it is sent is charged with at least, whoever fills it: by its rows
alone one that always has a single row waiting would take a whole dispatch for each, many times its share."""

RECENT: Final = 16
"""Dispatches of a class among which the longest is looked for: it must be able to owe one of them."""


@dataclass(slots=True)
class Charge:
    """What one dispatch was charged with so far.

    Attributes:
        parts: share of its rows, by class.
        entitled: classes that had work when it was sent.
        time: ns charged.
    """

    parts: dict[str, float]
    entitled: frozenset[str]
    time: int = 0


class Shares:
    """The lag of every class with a guaranteed share."""

    def __init__(self, policy: SchedulingPolicy) -> None:
        self._shares = {each.name: each.min_share for each in policy.classes if each.min_share}
        self._lag = dict.fromkeys(self._shares, 0.0)
        self._took: dict[str, deque[float]] = {name: deque(maxlen=RECENT) for name in self._shares}
        self._failed: set[str] = set()
        self._charges: dict[int, Charge] = {}

    def adopt(self, policy: SchedulingPolicy) -> None:
        """Promise other shares from now on; who keeps one keeps its lag."""
        lag, took = self._lag, self._took
        self._shares = {each.name: each.min_share for each in policy.classes if each.min_share}
        self._lag = {name: lag.get(name, 0.0) for name in self._shares}
        self._took = {name: took.get(name) or deque(maxlen=RECENT) for name in self._shares}
        self._failed &= set(self._shares)
        for charge in self._charges.values():
            charge.parts = {name: part for name, part in charge.parts.items() if name in self._shares}

    def most_deprived(self, waiting: Mapping[str, int]) -> str | None:
        """The class with work that has had the least of its share; None when each has had it."""
        behind = [name for name, lag in self._lag.items() if lag > 0 and waiting[name]]
        return max(behind, key=self._lag.__getitem__) if behind else None

    def owed(self, name: str) -> float:
        """Executor time in ns that a class with a share has had too little, or, below 0, too much."""
        return self._lag[name]

    def begins(self, name: str) -> None:
        """A class gets its first work: what it did not want meanwhile it cannot claim."""
        if name in self._lag:
            self._lag[name] = min(self._lag[name], 0.0)

    def sent(
        self,
        dispatch_id: int,
        rows: Mapping[str, int],
        waiting: Mapping[str, int],
        estimate: int,
        claimed_for: str | None = None,
    ) -> None:
        """Charge a dispatch with what it is expected to take.

        Args:
            dispatch_id: by which it is settled.
            rows: that it holds, by class.
            waiting: requests that still wait, by class.
            estimate: ns; 0 while nothing is learned.
            claimed_for: class for whose share it is sent; None: it goes in its turn.
        """
        if self._shares:
            total = sum(rows.values())
            entitled = frozenset(name for name in self._shares if waiting[name] or name in rows)
            parts = {name: count / total for name, count in rows.items() if name in self._shares}
            if claimed_for is not None:
                parts[claimed_for] = max(parts[claimed_for], LEAST_CLAIM)
            charge = Charge(parts, entitled)
            self._charges[dispatch_id] = charge
            self._charge(charge, estimate)

    def ended(self, dispatch_id: int, took: int, *, succeeded: bool) -> None:
        """Correct the charge of a dispatch to what it took.

        One that failed is taken back: it gave its classes nothing. Of several failures in a row the first alone is, or
        a class whose every request fails would get all the time there is.
        """
        charge = self._charges.pop(dispatch_id, None)
        if charge is None:
            return
        forgiven = not succeeded and not self._failed & set(charge.parts)
        if succeeded:
            self._failed -= set(charge.parts)
        else:
            self._failed |= set(charge.parts)
        self._charge(charge, (0 if forgiven else took) - charge.time)
        if not forgiven:
            for name, part in charge.parts.items():
                self._took[name].append(part * took)

    def _charge(self, charge: Charge, time: int) -> None:
        charge.time += time
        for name, share in self._shares.items():
            part = charge.parts.get(name, 0.0)
            lag = self._lag[name] + (share - part) * time
            if name not in charge.entitled:
                lag = min(lag, 0.0)  # time that passes without it pays its debts, and earns nothing
            debt = max(share * LONGEST_DEBT, part * charge.time, *self._took[name], 0.0)
            self._lag[name] = max(lag, -debt)
