# SPDX-License-Identifier: Apache-2.0
"""Whether everybody was answered once: what callers saw, request by request, beside what the router counted.

Law: values in, values out, but for `settled`, which waits for the router's own numbers.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from priority_router.errors import Outcome, SetupError
from priority_router.ops.bench.ledger import Ledger
from priority_router.ops.bench.wire import ID_PLACE
from priority_router.ops.bench.wire import Outcome as Seen
from priority_router.ops.server import Server
from priority_router.ops.soak import resources
from priority_router.ops.soak.kinds import Kind

Counts = Mapping[tuple[str, str], int]
"""Requests by class and outcome, as the router labels them; what never happened may be missing."""

PATIENCE_SECONDS: Final = 60.0
_FLUSHED_SECONDS: Final = 1.5
"""For the page to follow, which lags by half a second."""

_ID: Final = re.compile(rf"\d{{{len(ID_PLACE)}}}")
_HOLDS: Final = ("queue_size", "in_flight_rows")
_SAME: Final[Mapping[Seen, Outcome]] = {
    Seen.SUCCESS: Outcome.SUCCESS,
    Seen.TIMEOUT: Outcome.TIMEOUT,
    Seen.QUEUE_FULL: Outcome.QUEUE_FULL,
    Seen.PREDICTED_LATE: Outcome.PREDICTED_LATE,
}
"""Ends that caller and router have the same name for."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Two books, beside each other.

    Attributes:
        ended: by kind how many requests ended how, in the callers' words.
        unexpected: those that ended as their kind never should, in the same form.
        differences: by class and outcome what callers and router counted, where that cannot both be true.
        router: all that the router counted, by class and outcome.
    """

    ended: Mapping[str, Mapping[str, int]]
    unexpected: Mapping[str, int]
    differences: Mapping[str, tuple[int, int]]
    router: Mapping[str, int]

    @property
    def requests(self) -> int:
        """All that were sent."""
        return sum(sum(of.values()) for of in self.ended.values())

    def as_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "requests": self.requests,
            "ended": {kind: dict(of) for kind, of in self.ended.items()},
            "unexpected": dict(self.unexpected),
            "differences": {name: list(pair) for name, pair in self.differences.items()},
            "router": dict(self.router),
        }


def compared(ledger: Ledger, kinds: Sequence[Kind], counted: Counts) -> Compared:
    """Balances the callers' ledger against the router's metrics.

    A class whose callers leave cannot agree to the request: of theirs the router may have counted as many more as left.

    Args:
        ledger: of every request since the server began; its classes are the names of ``kinds``, in their order.
        kinds: what was sent.
        counted: by the router.
    """
    ended: dict[str, dict[str, int]] = {}
    unexpected: dict[str, int] = {}
    expected: Counter[tuple[str, str]] = Counter()
    left: Counter[str] = Counter()
    for index, kind in enumerate(kinds):
        own = Counter(Seen(code) for code in ledger.outcome[ledger.class_index == index].tolist())
        ended[kind.name] = {seen.label: own[seen] for seen in Seen if own[seen]}
        for seen, count in own.items():
            outcome = kind.other if seen is Seen.OTHER else _SAME.get(seen)
            if seen is Seen.CANCELLED and kind.leaves:
                left[kind.label] += count
            elif outcome is None or (kind.other is not None and seen is Seen.SUCCESS):
                unexpected[f"{kind.name} {seen.label}"] = count
            elif kind.received:
                expected[kind.label, outcome.value] += count
    differences = {}
    for class_name, outcome_name in sorted({*expected, *counted}):
        pair = expected[class_name, outcome_name], counted.get((class_name, outcome_name), 0)
        if not 0 <= pair[1] - pair[0] <= left[class_name]:
            differences[f"{class_name} {outcome_name}"] = pair
    for class_name, most in left.items():
        sums = [sum(n for (of, _), n in book.items() if of == class_name) for book in (expected, counted)]
        if not 0 <= sums[1] - sums[0] <= most:
            differences[f"{class_name} together"] = (sums[0], sums[1])
    router = {" ".join(key): count for key, count in sorted(counted.items()) if count}
    return Compared(ended, unexpected, differences, router)


def settled(server: Server) -> Counts:
    """Waits until the router holds nothing, and reads what it has counted.

    Raises:
        SetupError: it goes on holding requests.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        time.sleep(_FLUSHED_SECONDS)
        page = resources.page(server)
        held = sum(value for (name, _), value in page.items() if name in _HOLDS)
        if not held:
            break
        if time.monotonic() > deadline:
            raise SetupError(
                f"the router still holds {held:g} requests {PATIENCE_SECONDS:g} s after the last one was sent"
            )
    found = {}
    for (name, labels), value in page.items():
        if name == "requests_total":
            of = dict(labels)
            found[of["class"], of["outcome"]] = int(value)
    return found


def failures(ledger: Ledger) -> list[dict[str, Any]]:
    """Error texts that are no limit of a class, the most frequent first, without ids and with their HTTP status."""
    found: Counter[tuple[int, str]] = Counter()
    for (status, text), count in ledger.failures.items():
        found[status, _ID.sub("ID", text)] += count
    return [{"status": status, "text": text, "count": count} for (status, text), count in found.most_common(20)]


def window(ledger: Ledger, begin: int, end: int) -> dict[str, Any]:
    """What callers saw between two times, in ns from the ledger's zero.

    Returns:
        ``requests_per_s`` and ``rows_per_s`` that were answered well, and by kind ``p50_ms`` and ``p99_ms`` of those
        that were sent in it.
    """
    seconds = (end - begin) / 1e9
    success = ledger.outcome == Seen.SUCCESS
    answered = success & (ledger.done >= begin) & (ledger.done < end)
    latency = (ledger.done - ledger.sent) / 1e6
    classes = {}
    for index, name in enumerate(ledger.classes):
        chosen = success & (ledger.class_index == index) & (ledger.sent >= begin) & (ledger.sent < end)
        if chosen.any():
            p50, p99 = np.quantile(latency[chosen], [0.5, 0.99], method="inverted_cdf")
            classes[name] = {"p50_ms": round(float(p50), 2), "p99_ms": round(float(p99), 2)}
    return {
        "requests_per_s": round(float(np.count_nonzero(answered)) / seconds, 2),
        "rows_per_s": round(float(ledger.rows[answered].sum()) / seconds, 2),
        "classes": classes,
    }
