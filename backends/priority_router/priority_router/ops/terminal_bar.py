# SPDX-License-Identifier: Apache-2.0
"""Lines of what a run does and, on a terminal, a bar below the last one that moves."""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Final, Self, TextIO

BAR: Final = 30
"""Marks of a bar."""

_TICK_SECONDS: Final = 0.5


class TerminalBar(ABC):
    """Writes to a stream; use it as a context, which takes the last bar away.

    On a terminal a thread redraws the bar. Anything else gets whole lines only.
    """

    def __init__(self, stream: TextIO) -> None:
        """Shows nothing yet."""
        self._stream = stream
        self._live = stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self._lock = threading.Lock()
        self._shown = 0
        self._ended = threading.Event()
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

    def draw(self) -> None:
        """Shows how far the run is."""
        with self._lock:
            bar = self._bar()
            if bar is not None:
                self._stream.write("\r" + bar.ljust(self._shown))
                self._shown = len(bar)
                self._stream.flush()

    @abstractmethod
    def _bar(self) -> str | None:
        """The bar as it is now, None = there is none; called under the lock."""

    def _write_line(self, text: str) -> None:
        """A line in the place of the bar; call it under the lock."""
        self._clear()
        self._stream.write(f"{text}\n")
        self._stream.flush()

    def _clear(self) -> None:
        if self._shown:
            self._stream.write("\r" + " " * self._shown + "\r")
            self._shown = 0

    def _tick(self) -> None:
        while not self._ended.wait(_TICK_SECONDS):
            self.draw()
