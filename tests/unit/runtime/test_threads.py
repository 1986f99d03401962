# SPDX-License-Identifier: Apache-2.0
"""Crews of threads, and the log they write to."""

from __future__ import annotations

import gc
import threading
import weakref

from priority_router.runtime.log import Log
from priority_router.runtime.threads import Crew
from support.fake_triton import Logger


class Item:
    """Something that can be seen to be gone."""


def test_a_fault_does_not_end_the_thread() -> None:
    logger = Logger()
    done = threading.Event()

    def handle(item: str) -> None:
        if item == "bad":
            raise RuntimeError("broken item")
        done.set()

    crew: Crew[str] = Crew("crew", Log(logger, "router"))
    crew.start([handle])
    crew.put("bad")
    crew.put("good")
    assert done.wait(10)
    assert crew.stop(10)
    assert "broken item" in logger.lines[0][1]


def test_each_handler_has_a_thread_and_all_items_are_done_before_the_end() -> None:
    seen: list[int] = []
    crew: Crew[int] = Crew("crew", Log(Logger(), "router"))
    crew.start([seen.append] * 3)
    for number in range(100):
        crew.put(number)
    assert crew.stop(10)
    assert sorted(seen) == list(range(100))


def test_the_last_item_is_let_go() -> None:
    crew: Crew[Item] = Crew("crew", Log(Logger(), "router"))
    handled = threading.Event()
    crew.start([lambda item: handled.set()])
    item = Item()
    gone = weakref.ref(item)
    crew.put(item)
    del item
    assert handled.wait(10)
    later = threading.Event()
    for _ in range(1000):
        gc.collect()
        if gone() is None or later.wait(0.005):
            break
    assert gone() is None
    assert crew.stop(10)


def test_a_stuck_thread_is_reported() -> None:
    gate = threading.Event()

    def stuck(item: int) -> None:
        gate.wait(10)

    crew: Crew[int] = Crew("crew", Log(Logger(), "router"))
    crew.start([stuck])
    crew.put(1)
    assert not crew.stop(0.01)
    gate.set()


def test_repeated_errors_come_once_a_second_with_their_number() -> None:
    now = 100.0
    logger = Logger()
    log = Log(logger, "router", lambda: now)
    for _ in range(50):
        log.error("a", "the same")
    log.error("b", "another")
    assert [text for _, text in logger.lines] == ["priority_router router: the same", "priority_router router: another"]
    now = 101.0
    log.error("a", "the same")
    assert logger.lines[-1][1] == "priority_router router: the same (49 more of this kind since the last line)"


def test_a_log_that_fails_does_not_matter() -> None:
    class Broken(Logger):
        def log_info(self, text: str) -> None:
            raise RuntimeError("no log")

    Log(Broken(), "router").info("anything")
