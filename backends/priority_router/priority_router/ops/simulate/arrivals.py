# SPDX-License-Identifier: Apache-2.0
"""Seeded traffic: who asks when, for how many rows of which signature."""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from heapq import merge
from operator import attrgetter

from priority_router.core.values import SECOND


@dataclass(frozen=True, slots=True)
class Arrival:
    """One request as it reaches the router.

    Attributes:
        time: ns.
        class_name: traffic class.
        rows: length of the batch axis.
        signature: see :class:`priority_router.core.values.Request`.
        timeout: the caller's queue timeout in ns, 0 = none.
        cancel_after: ns after which the caller goes away, 0 = stays.
        tenant: whom it is for; empty = not said.
    """

    time: int
    class_name: str
    rows: int = 1
    signature: Hashable = 0
    timeout: int = 0
    cancel_after: int = 0
    tenant: str = ""


SignatureMix = Callable[[random.Random], Hashable]
RowMix = Callable[[random.Random], int]


def one_signature(_rng: random.Random) -> Hashable:
    """Every request may join every other."""
    return 0


def few_signatures(count: int) -> SignatureMix:
    """One of ``count`` signatures at random."""

    def draw(rng: random.Random) -> Hashable:
        return rng.randrange(count)

    return draw


def own_signatures() -> SignatureMix:
    """Every request has its own signature and joins nobody."""
    issued = 0

    def draw(_rng: random.Random) -> Hashable:
        nonlocal issued
        issued += 1
        return ("own", issued)

    return draw


def one_row(_rng: random.Random) -> int:
    """Requests of one row."""
    return 1


def rows_up_to(most: int) -> RowMix:
    """1 to ``most`` rows, each as likely."""

    def draw(rng: random.Random) -> int:
        return rng.randint(1, most)

    return draw


@dataclass(frozen=True, slots=True)
class Stream:
    """The traffic of one class: Poisson arrivals, each of which may bring several requests at once.

    Attributes:
        class_name: traffic class.
        rate: requests per second.
        rows: draws the rows of a request.
        signature: draws its signature.
        burst: requests per arrival; the rate stays that of requests.
        timeout: callers' queue timeout in ns, 0 = none.
        cancel_share: share of the callers that go away.
        patience: mean ns after which those go away, exponential.
        tenant: whom all of them are for.
    """

    class_name: str
    rate: float
    rows: RowMix = one_row
    signature: SignatureMix = one_signature
    burst: int = 1
    timeout: int = 0
    cancel_share: float = 0.0
    patience: int = SECOND
    tenant: str = ""

    def arrivals(self, rng: random.Random, duration: int, begin: int = 0) -> Iterator[Arrival]:
        """Arrivals from ``begin`` to ``begin + duration`` ns, in order of time."""
        if self.rate <= 0:
            return
        mean_gap = SECOND * self.burst / self.rate
        time = float(begin)
        while True:
            time += rng.expovariate(1.0) * mean_gap
            if time >= begin + duration:
                return
            for _ in range(self.burst):
                cancel_after = 0
                if self.cancel_share and rng.random() < self.cancel_share:
                    cancel_after = 1 + int(rng.expovariate(1.0) * self.patience)
                yield Arrival(
                    int(time),
                    self.class_name,
                    self.rows(rng),
                    self.signature(rng),
                    self.timeout,
                    cancel_after,
                    self.tenant,
                )


def traffic(streams: Iterable[Stream], seed: int, duration: int, begin: int = 0) -> Iterator[Arrival]:
    """All streams together in order of time; each draws from its own generator, so that one can change alone."""
    sources = [
        stream.arrivals(random.Random(f"{seed}/{index}/{stream.class_name}"), duration, begin)
        for index, stream in enumerate(streams)
    ]
    return merge(*sources, key=attrgetter("time"))
