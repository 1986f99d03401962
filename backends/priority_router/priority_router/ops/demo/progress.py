# SPDX-License-Identifier: Apache-2.0
"""What a run says while it runs: a line per step, and on a terminal the seconds that pass within one."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TextIO

from priority_router.ops.terminal_bar import BAR, TerminalBar


def line(seconds: float, text: str) -> str:
    """What is known, so many seconds after the beginning."""
    return f"[{seconds:4.0f} s] {text}"


class Progress(TerminalBar):
    """What a run says of itself.

    Attributes:
        said: the lines so far, as seconds from the beginning and text.
    """

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(stream)
        self.said: list[tuple[float, str]] = []
        self._clock = clock
        self._began = clock()
        self._step: tuple[float, float] | None = None

    def step(self, text: str, seconds: float) -> None:
        """Something begins that takes about so many seconds."""
        self.say(text)
        with self._lock:
            self._step = self._clock(), seconds

    def say(self, text: str) -> None:
        """Something is known; what was going on has ended."""
        with self._lock:
            self._step = None
            self.said.append((self._clock() - self._began, text))
            self._write_line(line(*self.said[-1]))

    def _bar(self) -> str | None:
        if self._step is None:
            return None
        since, expected = self._step
        passed = self._clock() - since
        done = min(BAR, int(BAR * passed / expected))
        return f"         {'#' * done}{'.' * (BAR - done)} {passed:.0f} of about {expected:.0f} s"
