# SPDX-License-Identifier: Apache-2.0
"""Whether every request is somewhere: what was received against what waits, is in flight, or has ended in an outcome.

Law: only looks. It takes no lock that a request could wait for, and knows counters, not requests.

A request passes two laws of conservation, and what breaks one of them is lost, or answered twice:

- what ``execute`` received = what the scheduler holds, waiting or in flight + what was handed on to be answered;
- what reply threads are done with = the outcomes they have counted, each where ``send`` had returned.

The counters belong to several threads that never stand still together, and a lock around them would cost every request.
So each is kept twice, before a thread touches a request and after, and read in such an order that whatever moves
meanwhile makes the one bound smaller and the other larger: the truth lies between them, and they are equal unless a
request moves in those microseconds. What is reported stays as it was until a bound leaves it behind. So load never
shows; a loss does with the first look that nothing moves in, and from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from priority_router.runtime.driver import Observed
from priority_router.runtime.log import Log
from priority_router.runtime.metrics import Tally


class Received:
    """What ``execute`` has counted; written by its thread alone.

    Attributes:
        begun: requests taken in, those under way included; questions whether the router lives are none.
        ended: of them, those of calls that are over.
        turned_away: those that were answered without the scheduler.
    """

    __slots__ = ("begun", "ended", "turned_away")

    def __init__(self) -> None:
        self.begun = 0
        self.ended = 0
        self.turned_away = 0


class Audit:
    """Compares; used by one thread.

    Attributes:
        unaccounted: requests that were received and are nowhere; below 0 where outcomes were counted twice.
    """

    def __init__(self, received: Received, tallies: Sequence[Tally], log: Log) -> None:
        self._received = received
        self._tallies = tallies
        self._log = log
        self.unaccounted = 0

    def look(self, observe: Callable[[], Observed]) -> Observed:
        """Brings ``unaccounted`` up to date, and the log when it changes.

        Args:
            observe: of the driver; what it says of ``held`` and ``handed_on`` is of one moment.

        Returns:
            What was observed.
        """
        # The order of these lines is what the bounds rest on.
        least = self._received.ended
        observed = observe()
        elsewhere = observed.held + observed.handed_on + self._received.turned_away
        most = self._received.begun - elsewhere
        least -= elsewhere
        for tally in self._tallies:
            ended, answered, begun = tally.ended, tally.answered, tally.begun
            least += ended - answered
            most += begun - answered
        found = min(max(self.unaccounted, least), most)
        if found != self.unaccounted:
            self.unaccounted = found
            self._tell(observed)
        return observed

    def _tell(self, observed: Observed) -> None:
        answered = sum(tally.answered for tally in self._tallies)
        self._log.error(
            "audit",
            f"{self.unaccounted} requests are unaccounted for: {self._received.begun} received, "
            f"{sum(observed.waiting.values())} wait, {answered} answered; please report it, with this log",
        )
