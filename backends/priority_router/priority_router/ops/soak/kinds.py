# SPDX-License-Identifier: Apache-2.0
"""What a soak sends: a table of kinds of requests, their classes, and how each may end.

Law: data, and values made of it; nothing is sent here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from priority_router.core.values import SECOND
from priority_router.errors import Outcome
from priority_router.ops.bench.arms import ROUTER
from priority_router.ops.bench.arrivals import Schedule
from priority_router.ops.bench.load import Target, Variant
from priority_router.ops.bench.wire import Route
from priority_router.ops.loads import BACKGROUND, ONLINE, ExecutorShape

EXECUTOR: Final = ExecutorShape(batch_us=10_000, row_us=500, max_batch_size=8)
"""Slow enough that what is compared is not the speed of the machine's cores."""

HASTY: Final = "hasty"
NARROW: Final = "narrow"
IMPATIENT: Final = "impatient"
LEVELS: Final[Mapping[str, int]] = {ONLINE: 1, HASTY: 1, IMPATIENT: 1, BACKGROUND: 2, NARROW: 2}
"""Of every class. Of one the callers leave, so that how its requests ended only the router knows."""

CLASS_KEYS: Final[Mapping[str, Mapping[str, Any]]] = {
    HASTY: {"default_timeout_microseconds": 15_000},
    NARROW: {"max_queue_size": 1},
}

_WIDTH: Final = 4
_WIDE: Final = 16_384
"""Values of a row: 64 KiB."""

_FAILING: Final = 5
"""Values of a row that the executor refuses: no other row has so many, so none shares a call with it."""

NO_CLASS: Final = "_none"
"""Where the router counts requests that no class could be found for."""

VARIANTS: Final = 16
"""Of each kind, with values and sizes of their own."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Requests that are alike.

    Attributes:
        name: what they are called.
        turns: how many of them are sent among so many of the others.
        class_name: the class that they ask for.
        rows: the fewest and the most.
        widths: values of a row, any of them as likely.
        other: how a request ends that ends neither well nor by a limit of its class; None: none may.
        patience_s: the shortest and the longest time after which their callers leave; both 0: they stay.
        received: they reach the router.
        dtype: of their values.
    """

    name: str
    turns: int
    class_name: str
    rows: tuple[int, int] = (1, 2)
    widths: tuple[int, ...] = (_WIDTH,)
    other: Outcome | None = None
    patience_s: tuple[float, float] = (0.0, 0.0)
    received: bool = True
    dtype: str = "float32"

    @property
    def label(self) -> str:
        """The class that the router counts them under."""
        return NO_CLASS if self.other is Outcome.INVALID else self.class_name

    @property
    def leaves(self) -> bool:
        """Their callers do."""
        return self.patience_s[1] > 0

    def variants(self, random: np.random.Generator) -> list[Variant]:
        """Requests of the kind, each with the answer that belongs to it."""
        made = []
        for _ in range(VARIANTS):
            shape = (int(random.integers(self.rows[0], self.rows[1], endpoint=True)), int(random.choice(self.widths)))
            values = (random.random(shape) * 1000).astype(self.dtype)
            if shape[1] == _FAILING:
                values[:] = np.nan
            answer = (values * 2).tobytes() if self.other is None else b""
            made.append(Variant({"X": values}, "", float(random.uniform(*self.patience_s)), answer))
        return made


KINDS: Final = (
    Kind("online", 10, ONLINE),
    Kind("background", 7, BACKGROUND, (1, 8), (_WIDTH, _WIDTH, _WIDE)),
    Kind("split", 1, BACKGROUND, (20, 40)),
    Kind("hasty", 4, HASTY),
    Kind("narrow", 4, NARROW),
    Kind("failing", 2, BACKGROUND, (1, 1), (_FAILING,), Outcome.EXECUTOR_ERROR),
    Kind("of no class", 2, "gold", other=Outcome.INVALID),
    Kind("of a wrong type", 2, ONLINE, other=Outcome.INVALID, received=False, dtype="int32"),
    Kind("impatient", 6, IMPATIENT, (1, 4), patience_s=(0.01, 0.1)),
)


def turns(seed: int, duration_s: float) -> Schedule:
    """The order in which a closed loop sends them, shuffled."""
    random = np.random.default_rng(seed)
    rounds = np.concatenate([np.full(kind.turns * VARIANTS, index) for index, kind in enumerate(KINDS)])
    payload = np.concatenate([np.arange(kind.turns * VARIANTS) % VARIANTS for kind in KINDS])
    order = random.permutation(len(rounds))
    names = tuple(kind.name for kind in KINDS)
    return Schedule(names, np.zeros(len(order), int), rounds[order], payload[order], int(duration_s * SECOND))


def target(address: str, seed: int) -> Target:
    """A server, and the kinds as they are sent to it."""
    random = np.random.default_rng(seed)
    routes = {kind.name: Route(ROUTER, class_name=kind.class_name) for kind in KINDS}
    variants: dict[str, Sequence[Variant]] = {kind.name: kind.variants(random) for kind in KINDS}
    return Target(address, routes, [{}], variants=variants)
