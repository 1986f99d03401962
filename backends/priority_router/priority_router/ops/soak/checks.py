# SPDX-License-Identifier: Apache-2.0
"""What a long run is judged by: limits, and what was reached.

Law: values in, values out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from priority_router.ops.bench.table import short
from priority_router.ops.soak import resources

KEPT: Final = 0.9
"""Share of the throughput at the beginning that is still there at the end."""

SLOWER: Final = 1.5
"""Times the latency at the beginning."""

GROWN: Final = 0.1
"""Share by which memory may be larger: some of what has been used is never given back."""

GROWN_MIB: Final = 16.0
"""Or by so much, which is half of what an allocator keeps for each thread."""

MORE: Final = 8.0
"""Threads, descriptors and sockets: connections come and go."""


@dataclass(frozen=True, slots=True)
class Check:
    """One limit.

    Attributes:
        what: is limited.
        reached: None where it could not be measured.
        limit: the most, or the least.
        least: it is the least.
    """

    what: str
    reached: float | None
    limit: float
    least: bool = False

    @property
    def met(self) -> bool:
        """It was kept to."""
        if self.reached is None:
            return False
        return self.reached >= self.limit if self.least else self.reached <= self.limit

    def as_json(self) -> dict[str, Any]:
        """As plain values."""
        return {**asdict(self), "met": self.met}

    @property
    def words(self) -> str:
        """A line for people."""
        reached = "not measured" if self.reached is None else short(self.reached)
        return f"{'ok    ' if self.met else 'FAILED'}  {self.what}: {reached}, {self._limit}"

    @property
    def _limit(self) -> str:
        return f"{'at least' if self.least else 'at most'} {short(self.limit)}"


def flat(
    before: Mapping[str, float], after: Mapping[str, float], when: str, but: Collection[str] = ()
) -> Iterator[Check]:
    """What a server holds is not more at the end.

    Args:
        before: figures of `resources`, in a window; empty where there are none.
        after: likewise, later.
        when: for people.
        but: figures that may be anything.
    """
    for name in resources.FIGURES:
        if name in but:
            continue
        if name not in before or name not in after:
            yield Check(f"{name} {when}", None, 0.0)
        elif name.endswith("MiB"):
            yield Check(f"{name} {when}", after[name], before[name] + max(GROWN_MIB, GROWN * before[name]))
        else:
            yield Check(f"{name} {when}", after[name], before[name] + MORE)


def balanced(books: Mapping[str, Any], unaccounted: float | None) -> Iterator[Check]:
    """Everybody was answered once, as their requests deserve.

    Args:
        books: of `books.Compared`.
        unaccounted: by the router's own audit; None where it could not be read.
    """
    yield Check("numbers in which callers and router differ", float(len(books["differences"])), 0.0)
    yield Check("requests that ended as they never should", float(sum(books["unexpected"].values())), 0.0)
    yield Check("requests that the router lost sight of", unaccounted, 0.0)
