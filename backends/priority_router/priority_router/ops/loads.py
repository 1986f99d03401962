# SPDX-License-Identifier: Apache-2.0
"""The loads that benchmark and simulator share: two classes, an executor, and who sends how much where.

Law: data only, and no import but the standard library's; so the simulator stays free of I/O.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

ONLINE: Final = "online"
BACKGROUND: Final = "background"
LEVELS: Final[Mapping[str, int]] = {ONLINE: 1, BACKGROUND: 2}
"""Class to level, 1 the most urgent."""


ARRIVALS: Final = ("poisson", "constant", "burst")
"""How the requests of a class may come, where no trace says it."""


@dataclass(frozen=True, slots=True)
class ClassLoad:
    """Some of the requests of a load, as a rule those of a class.

    Attributes:
        name: what they are called.
        rate: mean requests per second.
        target_ms: the latency that its requests are to keep; None: any answer is good.
        arrivals: one of ARRIVALS: independent of each other, evenly, or ``burst_size`` at once.
        burst_size: requests of a burst.
        burst_start_s: seconds from the end of the warm-up to the first burst; the rate gives the time between bursts.
        rows: of each request.
        tenants: who its requests are for, any of them as likely; empty: they do not say.
        class_name: the class that they ask for; empty: the one of their name.
    """

    name: str
    rate: float
    target_ms: float | None = None
    arrivals: str = "poisson"
    burst_size: int = 1
    burst_start_s: float = 0.0
    rows: int = 1
    tenants: tuple[str, ...] = ()
    class_name: str = ""

    @property
    def of(self) -> str:
        """The class that they ask for."""
        return self.class_name or self.name


@dataclass(frozen=True, slots=True)
class ExecutorShape:
    """What an executor takes and how long.

    Attributes:
        batch_us: microseconds that a batch takes whatever its size.
        row_us: microseconds that each row adds.
        max_batch_size: rows per batch.
        instances: batches at a time.
    """

    batch_us: int
    row_us: int
    max_batch_size: int
    instances: int = 1

    @property
    def full_batch_us(self) -> int:
        """Microseconds that a full batch takes."""
        return self.batch_us + self.max_batch_size * self.row_us

    @property
    def rows_per_s(self) -> float:
        """Rows per second in full batches; the executor must take some time."""
        return self.instances * self.max_batch_size * 1e6 / self.full_batch_us

    @property
    def floor_ms(self) -> float:
        """Mean time of a newcomer that cannot preempt: half of the batch that runs, and its own, both full."""
        return 1.5 * self.full_batch_us / 1e3


@dataclass(frozen=True, slots=True)
class Load:
    """Requests of one row from both classes at an executor.

    Attributes:
        executor: the executor.
        online: requests per second of class online.
        background: requests per second of class background.
        direct: classes that call the executor even where there is a router.
    """

    executor: ExecutorShape
    online: float
    background: float
    direct: tuple[str, ...] = ()

    @property
    def classes(self) -> tuple[ClassLoad, ...]:
        """The load of each class; an online request is to take no more than twice the floor."""
        return ClassLoad(ONLINE, self.online, 2 * self.executor.floor_ms), ClassLoad(BACKGROUND, self.background)

    @property
    def demand(self) -> float:
        """Rows asked for, as a multiple of what the executor can do."""
        return (self.online + self.background) / self.executor.rows_per_s


OVERLOAD: Final = Load(ExecutorShape(batch_us=50_000, row_us=0, max_batch_size=4), online=16, background=110)
"""A batch costs the same whatever its size, and there is far too much to do."""

LINEAR: Final = Load(ExecutorShape(batch_us=0, row_us=4_100, max_batch_size=8), online=20, background=230)
"""Every row costs the same, and there is just too much to do: background batches need not be full."""

FAST: Final = Load(ExecutorShape(batch_us=5_000, row_us=0, max_batch_size=4), online=100, background=800)
"""Batches so short that the server's own work per request matters."""

BELOW: Final = replace(OVERLOAD, background=32)
"""All of it can be done: a queue comes and goes."""

ONLINE_OVERLOAD: Final = replace(OVERLOAD, online=100, background=30)
"""The urgent class alone asks for more than there is: nothing is left for the other one."""

QUIET: Final = replace(OVERLOAD, online=4, background=0)
"""Hardly ever are two requests there at once: what a way costs when nobody is in it."""

SHARED: Final = replace(OVERLOAD, direct=(BACKGROUND,))
"""A deployment that is being moved: background still calls the executor itself."""
