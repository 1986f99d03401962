# SPDX-License-Identifier: Apache-2.0
"""What a run says while it runs: a line for each arm, with the time left, and on a terminal a bar that moves."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final, Protocol, Self, TextIO

_BAR: Final = 30
_TICK_SECONDS: Final = 0.5


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


class Progress:
    """Writes to a stream; use it as a context, which takes the last bar away.

    On a terminal a thread redraws a bar below the last line. Anything else gets whole lines only.
    """

    def __init__(self, stream: TextIO, steps: int, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Begins.

        Args:
            stream: where to write.
            steps: how many there will be.
            seconds: of each, expected; once one has ended, what they took counts.
            clock: seconds.
        """
        self._stream = stream
        self._steps = steps
        self._expected = seconds
        self._clock = clock
        self._began = clock()
        self._live = stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self._lock = threading.Lock()
        self._shown = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._tick, daemon=True)
        self._step = 0
        self._first = self._began
        self._since = self._began

    def __enter__(self) -> Self:
        if self._live:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._live:
            self._thread.join()
        with self._lock:
            self._clear()

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
            self._clear()
            self._stream.write(f"bench: {text}\n")
            self._stream.flush()

    def left(self) -> float:
        """Seconds to the end, as far as one can tell."""
        passed = self._clock() - self._since if self._step else 0.0
        current = max(0.0, self._expected - passed) if self._step else 0.0
        return current + (self._steps - self._step) * self._expected

    def draw(self) -> None:
        """Shows how far the run is."""
        with self._lock:
            if self._step == 0:
                return
            left = self.left()
            whole = self._steps * self._expected
            share = min(1.0, max(0.0, 1 - left / whole)) if whole else 1.0
            done = round(_BAR * share)
            bar = f"       {'#' * done}{'.' * (_BAR - done)} {share:4.0%}, {clock_text(left)} left"
            self._stream.write("\r" + bar.ljust(self._shown))
            self._shown = len(bar)
            self._stream.flush()

    def _clear(self) -> None:
        if self._shown:
            self._stream.write("\r" + " " * self._shown + "\r")
            self._shown = 0

    def _tick(self) -> None:
        while not self._ended.wait(_TICK_SECONDS):
            self.draw()
