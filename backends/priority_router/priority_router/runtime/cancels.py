# SPDX-License-Identifier: Apache-2.0
"""Finding out which waiting requests their callers have given up.

Law: decides only whom to ask and when; what a cancel means is the core's. Every question is asked outside the lock.

Triton tells nobody: it has to be asked, request by request, at 63 to 95 us each. Three occasions are worth that:

- a dispatch was sent, so that the requests of the next one are known: each of them that has waited over 20 ms is asked
  before its turn, in the time that the executor takes for the dispatch before it;
- a class refused a request for its limit: its requests are asked in turn, since each one found frees a place; all full
  classes together take up to 5 % of a core;
- otherwise, within 2 % of a core, all waiting requests in turn and those of the next dispatch again, by halves.

The bound that follows: with N requests waiting for over 20 ms a cancel is noticed within about N x 8 ms plus 30 ms
(80 us / 1 %, plus wait and period), and at the latest when the request's turn is next. A request that was cancelled
after that last question is still executed; its caller no longer waits for it.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable, Iterator
from typing import Final

from priority_router.core.values import MILLISECOND
from priority_router.runtime.driver import Driver
from priority_router.runtime.log import Log
from priority_router.runtime.work import Job

MIN_WAIT: Final = 20 * MILLISECOND
"""ns before a request is worth a question: what waits less is mostly answered before a caller gives up."""

SWEEP_SHARE: Final = 0.02
"""Of one core, for asking all waiting requests in turn."""

PERIOD: Final = 10 * MILLISECOND
"""ns between two looks at the queue while something waits."""

IDLE_PERIOD: Final = 100 * MILLISECOND
"""ns between two looks while nothing waits; at most this much later a first request is noticed at all."""

SWEEP_BURST: Final = 4 * MILLISECOND
"""ns of sweeping that may be saved up, so that a pause of the sweep does not end in a long one."""

FULL_CLASS_SHARE: Final = 0.05
"""Of one core, for asking the requests of full classes, however many classes are full."""

FULL_CLASS_BURST: Final = 5 * MILLISECOND
"""ns of that which may be saved up: once a class is found full, about 60 requests are asked at once."""

GROUP: Final = 8
"""Requests asked between two holds of the lock; a reply to one of them may wait that long (under 1 ms)."""


class _Allowance:
    """A share of one core for asking; what is not used is saved up, within a limit.

    Attributes:
        left: ns that may be spent; below 0 where the last questions took longer than was left.
    """

    def __init__(self, share: float, most: int, now: int) -> None:
        self._share = share
        self._most = most
        self._earned = now
        self.left = float(most)

    def earn(self, now: int) -> None:
        """Adds the share of the time since the last call."""
        self.left = min(self._most, self.left + self._share * (now - self._earned))
        self._earned = now


class Cancels:
    """Asks Triton; ``run`` is the body of one thread.

    Attributes:
        checks: questions asked.
    """

    def __init__(self, driver: Driver, clock: Callable[[], int], log: Log) -> None:
        self._driver = driver
        self._clock = clock
        self._log = log
        self._stopped = False
        self._dispatched = False
        self._bell = threading.Lock()
        self._bell.acquire()
        self._round: Iterator[int] = iter(())
        self._due_next = False
        self._full: dict[str, Iterator[int]] = {}  # the rounds under way, that of the longest unasked class first
        self._sweep_allowance = _Allowance(SWEEP_SHARE, SWEEP_BURST, clock())
        self._full_allowance = _Allowance(FULL_CLASS_SHARE, FULL_CLASS_BURST, clock())
        self.checks = 0

    def dispatched(self, oldest: int) -> None:
        """A dispatch was sent: the next one is known now. Cheap; called under the driver's lock.

        Args:
            oldest: arrival of the longest waiting request, ns.
        """
        if self._clock() - oldest > MIN_WAIT:
            self._dispatched = True
            self._ring()

    def stop(self) -> None:
        """Ends ``run``."""
        self._stopped = True
        self._ring()

    def run(self) -> None:
        """Looks until stopped."""
        while not self._stopped:
            period = PERIOD if self._driver.backlog else IDLE_PERIOD
            self._bell.acquire(timeout=period / 1e9)
            try:
                self.look()
            except Exception as error:  # noqa: BLE001 - the next look may do better
                self._log.exception("cancels", "looking for cancelled requests failed", error)

    def look(self) -> None:
        """Asks whom it is worth asking now."""
        now = self._clock()
        if self._dispatched:
            self._dispatched = False
            due = iter(self._driver.due(MIN_WAIT))
            while ids := _group(due):
                self._poll(self._driver.borrow(ids, now - MIN_WAIT))
        self._ask_full_classes(now)
        self._sweep(now)

    def _ask_full_classes(self, now: int) -> None:
        """Goes on with the round of each full class, the classes by turns."""
        self._full_allowance.earn(now)
        for name in self._driver.full_classes():
            if name not in self._full:
                self._full[name] = iter(self._driver.waiting_ids(name))
        while self._full and self._full_allowance.left > 0:
            begun = self._clock()
            name = next(iter(self._full))
            unasked = self._full.pop(name)
            if ids := _group(unasked):
                self._full[name] = unasked
                self._poll(self._driver.borrow(ids, begun))
            self._full_allowance.left -= self._clock() - begun

    def _sweep(self, now: int) -> None:
        self._sweep_allowance.earn(now)
        rounds = 0
        while self._sweep_allowance.left > 0 and rounds < 2:
            begun = self._clock()
            self._due_next = not self._due_next
            if self._due_next:
                ids = self._driver.due(MIN_WAIT)[:GROUP]
            else:
                ids = _group(self._round)
                if not ids:
                    rounds += 1
                    self._round = iter(self._driver.waiting_ids())
            self._poll(self._driver.borrow(ids, begun - MIN_WAIT))
            self._sweep_allowance.left -= self._clock() - begun

    def _poll(self, jobs: list[Job]) -> None:
        if not jobs:
            return
        cancelled = []
        try:
            for job in jobs:
                if job.sender.is_cancelled():
                    cancelled.append(job)
                job.last_poll = self._clock()
                self.checks += 1
        finally:
            self._driver.give_back(jobs, cancelled)

    def _ring(self) -> None:
        with contextlib.suppress(RuntimeError):  # rung already, and not heard yet
            self._bell.release()


def _group(ids: Iterator[int]) -> list[int]:
    """The next few; empty at the end."""
    return list(itertools.islice(ids, GROUP))
