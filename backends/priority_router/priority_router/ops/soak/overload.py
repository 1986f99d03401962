# SPDX-License-Identifier: Apache-2.0
"""Far too much, for long: whom it may hurt, for how long, and that everybody is told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from priority_router.ops.bench import executor_stats, load
from priority_router.ops.bench.arms import EXECUTOR, ROUTER
from priority_router.ops.bench.arrivals import poisson
from priority_router.ops.bench.ledger import Ledger
from priority_router.ops.bench.load import Target
from priority_router.ops.bench.venue import ones
from priority_router.ops.bench.wire import Outcome as Seen
from priority_router.ops.bench.wire import Route
from priority_router.ops.loads import BACKGROUND, LEVELS, ONLINE, OVERLOAD, ClassLoad
from priority_router.ops.soak import books, resources
from priority_router.ops.soak.checks import Check, balanced, flat
from priority_router.ops.soak.kinds import Kind
from priority_router.ops.soak.mixed import serving

LIMITS: Final[Mapping[str, int]] = {ONLINE: 64, BACKGROUND: 256}
"""Requests that may wait."""

TIMES: Final = 10.0
"""The capacity, of those who ask for far too much."""

HALF: Final = 0.5
"""Of the capacity, of the class that does not."""

SLOWER: Final = 1.5
"""Times the online p99 under the benchmark's load."""

AT_ONCE_BATCHES: Final = 1.0
"""Batch times within which nearly all refusals are there: less than what waiting for anything would take."""

_GRACE_SECONDS: Final = 30.0
_WARMUP: Final = 1 / 6
_WINDOW: Final = 1 / 3
"""Shares of a phase: before anything counts, and of its beginning and its end that are compared."""

_KINDS: Final = (Kind(ONLINE, 0, ONLINE), Kind(BACKGROUND, 0, BACKGROUND))


@dataclass(frozen=True, slots=True)
class Phase:
    """A load.

    Attributes:
        name: for people.
        share: of the run.
        online: requests per second.
        background: likewise.
    """

    name: str
    share: float
    online: float
    background: float


_CAPACITY: Final = OVERLOAD.executor.rows_per_s
USUAL: Final = Phase("the benchmark's overload", 0.2, OVERLOAD.online, OVERLOAD.background)
BACKGROUND_TOO_MUCH: Final = Phase("background ten times", 0.4, HALF * _CAPACITY, TIMES * _CAPACITY)
BOTH_TOO_MUCH: Final = Phase("both ten times", 0.4, TIMES * _CAPACITY, TIMES * _CAPACITY)
PHASES: Final = (USUAL, BACKGROUND_TOO_MUCH, BOTH_TOO_MUCH)


@dataclass(frozen=True, slots=True)
class _Ran:
    """What a phase was like.

    Attributes:
        measured: as plain values.
        ledger: every request of it.
    """

    measured: dict[str, Any]
    ledger: Ledger


def run(mode: str, minutes: float, seed: int) -> tuple[dict[str, Any], list[Check]]:
    """One mode, all phases one after the other on one server.

    Args:
        mode: of the router.
        minutes: of arrivals, in all.
        seed: of them.

    Returns:
        As plain values what each phase was like and the books; and what it is judged by.

    Raises:
        PriorityRouterError: the server did not start or not live, or the load could not be generated.
    """
    keys = {name: {"max_queue_size": limit} for name, limit in LIMITS.items()}
    ran: dict[str, _Ran] = {}
    with serving(mode, OVERLOAD.executor, LEVELS, keys) as server:
        triton = executor_stats.get_json(server.http, "/v2")["version"]
        target = Target(server.http, {name: Route(ROUTER, class_name=name) for name in LEVELS}, ones(1))
        with resources.watched(server) as watch:
            for number, phase in enumerate(PHASES):
                ran[phase.name] = _phase(target, phase, phase.share * minutes * 60, (seed, number), watch)
                counted = books.settled(server)
        watch.samples.append(resources.read(server))
    whole = Ledger.merge([one.ledger for one in ran.values()])
    compared = books.compared(whole, _KINDS, counted).as_json()
    phases = {name: one.measured for name, one in ran.items()}
    checks = list(_judged(phases))
    checks += balanced(compared, watch.unaccounted())
    measured = {
        "triton": triton,
        "phases": phases,
        "books": compared,
        "unaccounted": watch.unaccounted(),
        "failures": books.failures(whole),
    }
    return measured, checks


def longest_batches() -> float:
    """Batch times after which an accepted online request has its answer: all that may wait, one running, one sent."""
    return LIMITS[ONLINE] / OVERLOAD.executor.max_batch_size + 2


def _phase(target: Target, phase: Phase, duration_s: float, seed: Sequence[int], watch: resources.Watch) -> _Ran:
    loads = (ClassLoad(ONLINE, phase.online), ClassLoad(BACKGROUND, phase.background))
    schedule = poisson(loads, duration_s, seed)
    begin, end = int(_WARMUP * schedule.duration), schedule.duration
    with load.begin(target, schedule, grace_s=_GRACE_SECONDS, queue_time=True) as running:
        before, after = executor_stats.over(target.address, EXECUTOR, running.start + begin, running.start + end)
        ledger = running.result()
    length = int(_WINDOW * schedule.duration)
    batches = after.executions - before.executions
    batch_ms = (after.at - before.at) / 1e6 / batches if batches else 0.0
    measured = {
        **asdict(phase),
        "seconds": duration_s,
        "batch_ms": round(batch_ms, 2),
        "busy": round(after.busy_since(before, OVERLOAD.executor.instances), 3),
        "late_p99_ms": round(ledger.lateness() * 1e3, 2),
        "classes": {name: _seen(ledger, index, begin) for index, name in enumerate(ledger.classes)},
        "first": watch.between(running.start + begin, running.start + begin + length),
        "last": watch.between(running.start + end - length, running.start + end),
    }
    return _Ran(measured, ledger)


def _seen(ledger: Ledger, index: int, begin: int) -> dict[str, Any]:
    """What the callers of a class saw from a time on, ns: all of them where it says how many, the times in ms."""
    own = ledger.class_index == index
    counted = own & (ledger.scheduled >= begin)
    success, full = ledger.outcome == Seen.SUCCESS, ledger.outcome == Seen.QUEUE_FULL
    took = (ledger.done - ledger.sent) / 1e6
    latency = (ledger.done - ledger.scheduled) / 1e6
    return {
        "requests": int(np.count_nonzero(own)),
        "answered": int(np.count_nonzero(own & success)),
        "refused": int(np.count_nonzero(own & full)),
        "p50_ms": _quantile(latency[counted & success], 0.5),
        "p99_ms": _quantile(latency[counted & success], 0.99),
        "longest_ms": _quantile(took[counted & success], 1.0),
        "longest_queue_ms": _quantile(ledger.queue_us[counted & success] / 1e3, 1.0),
        "refused_p50_ms": _quantile(took[counted & full], 0.5),
        "refused_p99_ms": _quantile(took[counted & full], 0.99),
    }


def _quantile(values: Any, share: float) -> float | None:
    return round(float(np.quantile(values, share, method="inverted_cdf")), 2) if len(values) else None


def _judged(phases: Mapping[str, Any]) -> Iterator[Check]:
    usual, background, both = (phases[phase.name] for phase in PHASES)
    online = background["classes"][ONLINE]
    yield Check("online requests refused beside background ten times", float(online["refused"]), 0.0)
    yield _times("online p99 ms beside background ten times", online["p99_ms"], usual["classes"][ONLINE]["p99_ms"])
    online = both["classes"][ONLINE]
    longest = longest_batches() * both["batch_ms"]
    yield Check("longest ms of an accepted online request, both ten times", online["longest_ms"], longest)
    at_once = AT_ONCE_BATCHES * OVERLOAD.executor.full_batch_us / 1e3
    for name in LEVELS:
        refused = both["classes"][name]
        yield Check(f"{name} requests that were refused, both ten times", float(refused["refused"]), 1.0, least=True)
        yield Check(f"p99 ms of a refusal of {name}, both ten times", refused["refused_p99_ms"], at_once)
    for phase in (background, both):
        # The load keeps to its schedule, over as many connections as that takes.
        yield from flat(phase["first"], phase["last"], f"at the end of {phase['name']}", {resources.SOCKETS})


def _times(what: str, reached: float | None, of: float | None) -> Check:
    return Check(what, reached if of is not None else None, SLOWER * (of or 0.0))
