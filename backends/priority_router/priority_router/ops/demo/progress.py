# SPDX-License-Identifier: Apache-2.0
"""What a run says while it runs: a line per step, and on a terminal the seconds that pass within one."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self, TextIO

_BAR: Final = 30
_TICK_SECONDS: Final = 0.5


def line(seconds: float, text: str) -> str:
    """What is known, so many seconds after the beginning."""
    return f"[{seconds:4.0f} s] {text}"


class Progress:
    """Writes to a stream; use it as a context, which takes the last bar away.

    On a terminal a thread redraws a bar below the last line. Anything else gets whole lines only.

    Attributes:
        said: the lines so far, as seconds from the beginning and text.
    """

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self.said: list[tuple[float, str]] = []
        self._stream = stream
        self._clock = clock
        self._began = clock()
        self._live = stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self._lock = threading.Lock()
        self._shown = 0
        self._ended = threading.Event()
        self._step: tuple[float, float] | None = None
        self._thread = threading.Thread(target=self._tick, daemon=True)

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
            self._stream.flush()

    def step(self, text: str, seconds: float) -> None:
        """Something begins that takes about so many seconds."""
        self.say(text)
        with self._lock:
            self._step = self._clock(), seconds

    def say(self, text: str) -> None:
        """Something is known; what was going on has ended."""
        with self._lock:
            self._step = None
            self._clear()
            self.said.append((self._clock() - self._began, text))
            self._stream.write(f"{line(*self.said[-1])}\n")
            self._stream.flush()

    def draw(self) -> None:
        """Shows how far the step is."""
        with self._lock:
            if self._step is None:
                return
            since, expected = self._step
            passed = self._clock() - since
            done = min(_BAR, int(_BAR * passed / expected))
            bar = f"         {'#' * done}{'.' * (_BAR - done)} {passed:.0f} of about {expected:.0f} s"
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
