# SPDX-License-Identifier: Apache-2.0
"""How long a decision takes to become an executor call.

Law: durations in, counts out; kept by the driver, under its lock.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Final, NamedTuple

BUCKETS_SECONDS: Final = (0.0001, 0.0002, 0.0003, 0.0004, 0.0005, 0.0007, 0.001, 0.0015, 0.002, 0.003, 0.005, 0.01, 0.1)
"""A thread's wake-up on an idle machine, and what a starved one makes of it; close together, since the 90th percentile
decides how early dispatches are sent ahead."""

_BOUNDS_NS: Final = tuple(round(bound * 1e9) for bound in BUCKETS_SECONDS)


class Counted(NamedTuple):
    """Durations per bucket, the last for those above all bounds, and their sum in ns."""

    counts: tuple[int, ...] = (0,) * (len(BUCKETS_SECONDS) + 1)
    total_ns: int = 0


class HandOver:
    """What was counted so far."""

    __slots__ = ("_counts", "_total_ns")

    def __init__(self) -> None:
        self._counts = [0] * (len(BUCKETS_SECONDS) + 1)
        self._total_ns = 0

    def add(self, duration_ns: int) -> None:
        """Counts one."""
        self._counts[bisect_left(_BOUNDS_NS, duration_ns)] += 1
        self._total_ns += duration_ns

    def read(self) -> Counted:
        """All of them."""
        return Counted(tuple(self._counts), self._total_ns)
