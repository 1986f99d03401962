# SPDX-License-Identifier: Apache-2.0
"""Threads that take items from a queue, and threads that loop until told to stop.

Law: a fault in one item is logged and never ends its thread.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from priority_router.runtime.log import Log

Item = TypeVar("Item")


def start(name: str, target: Callable[[], None]) -> threading.Thread:
    """Starts a thread that does not keep the process alive: one may be stuck in a call that never returns."""
    thread = threading.Thread(target=target, name=f"priority_router {name}", daemon=True)
    thread.start()
    return thread


class Crew(Generic[Item]):
    """A fixed number of threads behind one queue.

    A handler may return an item that it is to get next, before those in the queue.
    """

    def __init__(self, name: str, log: Log) -> None:
        self._name = name
        self._log = log
        self._queue: queue.SimpleQueue[Item | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self.put: Callable[[Item], None] = self._queue.put

    def start(self, handlers: Sequence[Callable[[Item], Item | None]]) -> None:
        """Starts one thread per handler."""
        for index, handler in enumerate(handlers):
            self._threads.append(start(f"{self._name} {index}", lambda handler=handler: self._run(handler)))  # type: ignore[misc]

    def stop(self, seconds: float) -> bool:
        """Ends the threads once the queue is empty, waiting at most ``seconds``; False if one is left."""
        for _ in self._threads:
            self._queue.put(None)
        deadline = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(deadline - time.monotonic(), 0))
        return not any(thread.is_alive() for thread in self._threads)

    def _run(self, handler: Callable[[Item], Item | None]) -> None:
        while True:
            item = self._queue.get()
            if item is None:
                return
            # The name is rebound each time: tensors of one item must not stay while others are handled.
            while item is not None:
                try:
                    item = handler(item)
                except Exception as error:  # noqa: BLE001 - the thread is needed for the next item
                    self._log.exception(self._name, f"{self._name}: unexpected fault", error)
                    item = None
