# SPDX-License-Identifier: Apache-2.0
"""Triton's log, protected from a fault that repeats with every request.

Law: never raises; at most one line per kind of event and second.
"""

from __future__ import annotations

import contextlib
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

_QUIET_SECONDS = 1.0


class Log:
    """Writes to the server's log under the router's name.

    Attributes:
        name: the router model.
        prefix: how each of its lines begins.
    """

    def __init__(self, logger: Any, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.name = name
        self.prefix = f"priority_router {name}:"
        self._logger = logger
        self._clock = clock
        self._lock = threading.Lock()
        self._last: dict[str, float] = {}
        self._held_back: dict[str, int] = {}

    def info(self, text: str) -> None:
        """Something an operator may want to know once."""
        self._write(self._logger.log_info, text)

    def warning(self, text: str) -> None:
        """Something an operator should change."""
        self._write(self._logger.log_warn, text)

    def error(self, kind: str, text: str) -> None:
        """A fault; lines of one kind come at most once a second, with the number held back."""
        with self._lock:
            now = self._clock()
            if now - self._last.get(kind, -_QUIET_SECONDS) < _QUIET_SECONDS:
                self._held_back[kind] = self._held_back.get(kind, 0) + 1
                return
            self._last[kind] = now
            held_back = self._held_back.pop(kind, 0)
        if held_back:
            text += f" ({held_back} more of this kind since the last line)"
        self._write(self._logger.log_error, text)

    def exception(self, kind: str, text: str, error: BaseException) -> None:
        """A fault of the router itself, with its traceback."""
        trace = "".join(traceback.format_exception(error)).rstrip()
        self.error(kind, f"{text}\n{trace}")

    @contextlib.contextmanager
    def caught(self, text: str) -> Iterator[None]:
        """Logs what the block raises as a fault of that kind, so that what follows the block is done all the same."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - see above
            self.exception(text, text, error)

    def _write(self, write: Callable[[str], None], text: str) -> None:
        with contextlib.suppress(Exception):
            write(f"{self.prefix} {text}")
