# SPDX-License-Identifier: Apache-2.0
"""Whether the preloaded hooks work, proved from outside by what they do.

Law: each hook that the router relies on is given an occasion, and its own counter on the metrics page tells whether it
took it. One that is loaded and does nothing fails the proof; one that the router does not rely on is left out.
"""

from __future__ import annotations

import contextlib
import re
import threading
import time
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from priority_router.hooks import DISPATCH, PRIORITY
from priority_router.ops.probe.asking import ProbeFailed, Question, address, ask, connection, request, within

AT_ONCE: Final = 8
"""Requests sent together: more than an executor begins at once, so that one waits inside Triton."""

_PAGE_SECONDS: Final = 0.6
"""The router sends its numbers to the page twice a second."""

_COUNTERS: Final = {PRIORITY: "hook_priorities_set_total", DISPATCH: "hook_waits_cut_total"}
_GUARD: Final = "guard_active"
_REFUSAL: Final = re.compile(r"takes no requests from clients: call model '")


@dataclass(frozen=True)
class Places:
    """Where to look.

    Attributes:
        url: of the server's HTTP or gRPC API.
        metrics_url: of its metrics, without the path.
        model: the router.
        executor: the model that it calls.
    """

    url: str
    metrics_url: str
    model: str
    executor: str


def prove(places: Places, question: Question, timeout: float) -> str:
    """Gives every hook its occasion.

    Args:
        places: where to look.
        question: what is asked of the router, by real requests.
        timeout: seconds for everything.

    Returns:
        What each hook was seen to do.

    Raises:
        ProbeFailed: a hook that should have acted did not, or nothing could be proved.
    """
    deadline = time.monotonic() + timeout
    before = _page(places, deadline)
    proved = []
    if before.get(_GUARD) == 1:
        _prove_guard(places, question, deadline)
        proved.append("guard: a client's call was turned away")
    expected = [hook for hook in _COUNTERS if f"hook_working:{hook}" in before]
    if expected:
        _prove_counted(places, question, deadline, {hook: before.get(_COUNTERS[hook], 0.0) for hook in expected})
        proved += [f"{hook}: seen to act" for hook in expected]
    if not proved:
        raise ProbeFailed("it relies on no hook (plain mode without the guard), so there is nothing to prove")
    return "; ".join(proved)


def _prove_guard(places: Places, question: Question, deadline: float) -> None:
    plain = Question(headers=question.headers)
    try:
        ask(places.url, places.executor, _left(deadline), plain)
    except ProbeFailed as reason:
        if _REFUSAL.search(str(reason)):
            return
        raise ProbeFailed(
            f"whether the guard works cannot be told: {places.executor} says {reason}; name the model that the router "
            "calls with --executor"
        ) from reason
    raise ProbeFailed(f"guard: loaded without effect: {places.executor} has served a client's own call")


def _prove_counted(places: Places, question: Question, deadline: float, before: Mapping[str, float]) -> None:
    while True:
        _ask_at_once(places, question, deadline)
        time.sleep(min(_PAGE_SECONDS, _left(deadline)))
        page = _page(places, deadline)
        idle = [hook for hook, count in before.items() if page.get(_COUNTERS[hook], 0.0) <= count]
        if not idle:
            return
        if _left(deadline) <= _PAGE_SECONDS:
            hint = " (an executor faster than its slices gives it no occasion)" if idle == [DISPATCH] else ""
            raise ProbeFailed(f"{' and '.join(idle)}: loaded without effect in the time given{hint}")


def _ask_at_once(places: Places, question: Question, deadline: float) -> None:
    faults: list[ProbeFailed] = []

    def once() -> None:
        try:
            ask(places.url, places.model, _left(deadline), question)
        except ProbeFailed as fault:
            faults.append(fault)

    threads = [threading.Thread(target=once, daemon=True) for _ in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if faults:
        raise faults[0]


def _page(places: Places, deadline: float) -> dict[str, float]:
    """The router's samples: name, without what all have in common, to value; of hooks ``hook_working:HOOK``."""
    parts = address(places.metrics_url, ("http", "https"))
    text: list[str] = []

    def read() -> None:
        with contextlib.closing(connection(parts, _left(deadline))) as to:
            text.append(request(to, "GET", f"{parts.path.rstrip('/')}/metrics").decode(errors="replace"))

    try:
        within(_left(deadline), read)
    except ProbeFailed as reason:
        raise ProbeFailed(f"the metrics at {urllib.parse.urlunsplit(parts)} cannot be read: {reason}") from reason
    found: dict[str, float] = {}
    for name, labels, value in re.findall(r"^priority_router_(\w+)\{(.*)\} (\S+)$", text[0], re.MULTILINE):
        if f'model="{places.model}"' in labels:
            hook = re.search(r'hook="(\w+)"', labels)
            found[f"{name}:{hook[1]}" if hook else name] = float(value)
    if not found:
        raise ProbeFailed(f"no router of that name has metrics at {urllib.parse.urlunsplit(parts)}")
    return found


def _left(deadline: float) -> float:
    return max(0.01, deadline - time.monotonic())
