# SPDX-License-Identifier: Apache-2.0
"""Where a server's output goes: a file, or on to this process's stderr with its end kept for error messages."""

from __future__ import annotations

import abc
import collections
import contextlib
import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

_KEPT_LINES: Final = 2000
_PASS_ON_SECONDS: Final = 1.0
_SIGNAL: Final = re.compile(rb"Signal \((\d{1,2})\) received\.\s*")


class ServerLog(abc.ABC):
    """Takes the output of one server."""

    @abc.abstractmethod
    def writer(self) -> contextlib.AbstractContextManager[int | BinaryIO]:
        """What the child writes to; this process's own handle closes with the context."""

    @abc.abstractmethod
    def text(self) -> str:
        """What was written so far, as far as it is kept."""

    @abc.abstractmethod
    def close(self, seconds: float = _PASS_ON_SECONDS) -> None:
        """Called when the last process of the server is gone; `text` stays.

        Args:
            seconds: how long it may take.
        """


class FileLog(ServerLog):
    """Appends to a file; no thread of this process is involved."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._last = ""

    @contextlib.contextmanager
    def writer(self) -> Iterator[BinaryIO]:
        """The opened file."""
        with self.path.open("ab") as file:
            yield file

    def text(self) -> str:
        """The whole file, as last seen when it is gone."""
        with contextlib.suppress(OSError):
            self._last = self.path.read_text(errors="replace")
        return self._last

    def close(self, seconds: float = _PASS_ON_SECONDS) -> None:  # noqa: ARG002 - of the interface
        """Reads what a file that goes with the server holds."""
        self.text()


class ForwardedLog(ServerLog):
    """Passes each line on to a descriptor and keeps the last ones.

    Attributes:
        signals: numbers of the signals that tritonserver has said it received.
    """

    def __init__(self, target: int = 2) -> None:
        """Begins nothing yet.

        Args:
            target: descriptor to write to; stays open.
        """
        self._target = target
        self._kept: collections.deque[bytes] = collections.deque(maxlen=_KEPT_LINES)
        self._thread: threading.Thread | None = None
        self.signals: frozenset[int] = frozenset()

    @contextlib.contextmanager
    def writer(self) -> Iterator[int]:
        """The writing end of a pipe, emptied by a thread until every holder of it is gone."""
        reading, writing = os.pipe()
        self._thread = threading.Thread(target=self._forward, args=(reading,), name="server-log", daemon=True)
        self._thread.start()
        try:
            yield writing
        finally:
            os.close(writing)

    def text(self) -> str:
        """The last lines."""
        return b"".join(list(self._kept)).decode(errors="replace")

    def close(self, seconds: float = _PASS_ON_SECONDS) -> None:
        """Waits until everything written has been passed on, or its reader takes too long."""
        if self._thread is not None:
            self._thread.join(min(seconds, _PASS_ON_SECONDS))

    def _forward(self, reading: int) -> None:
        with os.fdopen(reading, "rb") as lines:
            for line in lines:
                self._kept.append(line)
                if found := _SIGNAL.fullmatch(line):
                    self.signals |= {int(found[1])}
                # A reader of our stderr that went away must not stop the server by filling its pipe.
                with contextlib.suppress(OSError):
                    os.write(self._target, line)
