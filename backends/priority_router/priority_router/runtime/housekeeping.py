# SPDX-License-Identifier: Apache-2.0
"""What a router does beside its requests: metrics, the order to drain, a look at the hooks.

Law: one thread; nothing here may hold up a request.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from priority_router.control import DRAIN_POLL_SECONDS, RouterChannel
from priority_router.core.values import MILLISECOND
from priority_router.hooks import HookCounters, HookCounts
from priority_router.runtime.audit import Audit, Received
from priority_router.runtime.driver import Driver
from priority_router.runtime.export import Exporter
from priority_router.runtime.log import Log
from priority_router.runtime.metrics import Family, Readings, Tally, samples
from priority_router.runtime.watch import HookWatch, Sight

FLUSH_PERIOD: Final = 500 * MILLISECOND
"""ns between two flushes of the metrics; one changed number costs about 50 us of the server."""


@dataclass(frozen=True)
class Sources:
    """Where the numbers come from.

    Attributes:
        tallies: one per thread that answers requests.
        counters: reads the families without labels.
        received: as ``execute`` counts it.
        levels_sent: executor calls that asked for a level.
        capped: requests that asked for more than their tenant may, as the intake counts them.
    """

    tallies: Sequence[Tally]
    counters: Callable[[], Mapping[Family, float]]
    received: Received
    levels_sent: Callable[[], int]
    capped: Callable[[], Mapping[tuple[str, str], int]] = dict


class Housekeeping:
    """``run`` is the body of one thread."""

    def __init__(
        self,
        driver: Driver,
        sources: Sources,
        exporter: Exporter,
        hooks: HookCounters | None,
        watched: bool,
        channel: RouterChannel | None,
        clock: Callable[[], int],
        log: Log,
    ) -> None:
        """Exports every metric once, at 0.

        Args:
            driver: to look at, and to drain.
            sources: of the numbers.
            exporter: for the metrics.
            hooks: the hooks' counters; None where there are none to read.
            watched: this router relies on the hooks.
            channel: to ``serve``; None where the server was not started by it.
            clock: monotonic ns.
            log: for complaints.
        """
        self._driver = driver
        self._sources = sources
        self._exporter = exporter
        self._hooks = hooks
        self._hooks_before = hooks.read() if hooks is not None else None
        self._audit = Audit(sources.received, sources.tallies, log)
        self._watch = HookWatch() if watched and hooks is not None else None
        self._channel = channel
        self._clock = clock
        self._log = log
        self._stop = threading.Event()
        self._draining = False
        self._drained = False
        self._flushed = clock()
        self._exporter.flush(samples(self._readings()))

    def run(self) -> None:
        """Keeps house until stopped."""
        while not self._stop.wait(DRAIN_POLL_SECONDS):
            self.step()

    def step(self) -> None:
        """One round; what fails in it is logged, and tried again in its next turn."""
        now = self._clock()
        with self._log.caught("looking for the order to drain failed"):
            self._look_for_drain()
        if now - self._flushed >= FLUSH_PERIOD:
            self._flushed = now
            with self._log.caught("looking at the hooks failed"):
                self._look_at_hooks(now)
            with self._log.caught("exporting the metrics failed"):
                self._exporter.flush(samples(self._readings()))

    def stop(self) -> None:
        """Ends ``run``."""
        self._stop.set()

    def close(self, server_answers: bool = True) -> None:
        """The last numbers, then gives up metrics, channel and counters; what fails keeps nothing else open.

        Args:
            server_answers: False where a thread is stuck in a call to Triton, in which this one would be stuck, too:
                the metrics are then left as they are.
        """
        if server_answers:
            with self._log.caught("exporting the last numbers failed"):
                self._exporter.flush(samples(self._readings()))
            with self._log.caught("giving up the metrics failed"):
                self._exporter.close()
        if self._channel is not None:
            with self._log.caught("signing off from serve failed"):
                self._channel.close()
        if self._hooks is not None:
            with self._log.caught("closing the hooks' counters failed"):
                self._hooks.close()

    def _look_for_drain(self) -> None:
        if self._channel is None or self._drained:
            return
        if not self._draining and self._channel.drain_requested():
            self._driver.drain()
            self._draining = True
            self._log.info("draining: new requests are refused, waiting ones served")
        if self._draining and self._driver.idle and self._unanswered() == 0:
            self._channel.report_drained()
            self._drained = True

    def _unanswered(self) -> int:
        return self._sources.received.begun - sum(tally.answered for tally in self._sources.tallies)

    def _look_at_hooks(self, now: int) -> None:
        if self._watch is None or self._hooks is None:
            return
        sight = Sight(
            at=now,
            completions=self._driver.completions,
            levels_sent=self._sources.levels_sent(),
            backlog=self._driver.backlog,
            hooks=self._hooks.read(),
        )
        for complaint in self._watch.see(sight):
            self._log.error("hooks", complaint)

    def _readings(self) -> Readings:
        return Readings(
            tallies=self._sources.tallies,
            observed=self._audit.look(self._driver.observe),
            counters=self._sources.counters(),
            hooks=self._hook_counts(),
            hook_working=self._watch.working if self._watch is not None else {},
            capped=self._sources.capped(),
            unaccounted=self._audit.unaccounted,
        )

    def _hook_counts(self) -> HookCounts | None:
        if self._hooks is None or self._hooks_before is None:
            return None
        now, before = self._hooks.read(), self._hooks_before
        return HookCounts(
            now.priorities_set - before.priorities_set,
            now.waits_cut - before.waits_cut,
            now.calls_refused - before.calls_refused,
            now.idle_waits_cut - before.idle_waits_cut,
        )
