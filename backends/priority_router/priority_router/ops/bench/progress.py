# SPDX-License-Identifier: Apache-2.0
"""What a run says while it runs: a line for each arm, with the time left, and on a terminal a bar that moves."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol, TextIO

from priority_router.ops.terminal_bar import BAR, TerminalBar


class Listener(Protocol):
    """Is told what happens."""

    def step(self, text: str) -> None:
        """One more of the equal parts of a run begins."""

    def say(self, text: str) -> None:
        """Something is known."""


def clock_text(seconds: float) -> str:
    """A time in minutes and seconds."""
    whole = max(0, round(seconds))
    return f"{whole // 60}:{whole % 60:02}"


class Progress(TerminalBar):
    """What a run says of itself."""

    def __init__(self, stream: TextIO, steps: int, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Begins.

        Args:
            stream: where to write.
            steps: how many there will be.
            seconds: of each, expected; once one has ended, what they took counts.
            clock: seconds.
        """
        super().__init__(stream)
        self._steps = steps
        self._expected = seconds
        self._clock = clock
        self._step = 0
        self._first = self._since = clock()

    def step(self, text: str) -> None:
        """One more of the equal parts of a run begins."""
        with self._lock:
            now = self._clock()
            if self._step == 0:
                self._first = now
            else:
                self._expected = (now - self._first) / self._step
            self._step += 1
            self._since = now
        self.say(f"{text} ({clock_text(self.left())} left)")

    def say(self, text: str) -> None:
        """Something is known."""
        with self._lock:
            self._write_line(f"bench: {text}")

    def left(self) -> float:
        """Seconds to the end, as far as one can tell."""
        passed = self._clock() - self._since if self._step else 0.0
        current = max(0.0, self._expected - passed) if self._step else 0.0
        return current + (self._steps - self._step) * self._expected

    def _bar(self) -> str | None:
        if self._step == 0:
            return None
        left = self.left()
        whole = self._steps * self._expected
        share = min(1.0, max(0.0, 1 - left / whole)) if whole else 1.0
        done = round(BAR * share)
        return f"       {'#' * done}{'.' * (BAR - done)} {share:4.0%}, {clock_text(left)} left"
