# SPDX-License-Identifier: Apache-2.0
"""One sleeper that wakes at a given moment, which others may bring forward.

Law: no decisions. ``set`` is called by whoever holds the driver's lock, ``wait`` by the one timer thread.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Final

_LONGEST_SLEEP_SECONDS: Final = 3600.0
"""A deadline may lie beyond what the system's timers take."""

_SECOND: Final = 1e9
_AWAKE: Final = float("-inf")
_FOREVER: Final = float("inf")


class Alarm:
    """A moment in ns, or none, and the sleep until it.

    The sleeper must call for a new ``set`` after every ``wait``: a moment set while it was waking up may be lost.
    """

    def __init__(self, clock: Callable[[], int]) -> None:
        """Starts without a moment.

        Args:
            clock: monotonic ns.
        """
        self._clock = clock
        self._moment: int | None = None
        self._asleep_until = _AWAKE
        self._stopped = False
        # Held means silent: the sleeper blocks on it, and a release is one ring. Cheaper than a condition variable.
        self._bell = threading.Lock()
        self._bell.acquire()

    def set(self, moment: int | None) -> None:
        """Moves the moment; a sleeper who wakes before it in any case is left alone."""
        self._moment = moment
        if moment is not None and moment < self._asleep_until:
            self._ring()

    def stop(self) -> None:
        """Ends the sleep for good."""
        self._stopped = True
        self._ring()

    def wait(self) -> int | None:
        """Sleeps until the moment, which is then forgotten.

        Returns:
            How late the sleeper woke, ns; None after ``stop``.
        """
        while not self._stopped:
            moment = self._moment
            if moment is not None and moment <= (now := self._clock()):
                self._moment = None
                return now - moment
            # Said before the last look at the moment: whoever moves it afterwards sees that a ring is needed.
            self._asleep_until = _FOREVER if moment is None else moment
            if self._moment == moment and not self._stopped:
                if moment is None:
                    self._bell.acquire()
                else:
                    left = max(moment - self._clock(), 0)
                    self._bell.acquire(timeout=min(left / _SECOND, _LONGEST_SLEEP_SECONDS))
            self._asleep_until = _AWAKE
        return None

    def _ring(self) -> None:
        with contextlib.suppress(RuntimeError):  # rung already, and not heard yet
            self._bell.release()
