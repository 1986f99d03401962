# SPDX-License-Identifier: Apache-2.0
"""What a page can draw of one round on one arm: distributions, timelines and single requests, bounded in size.

Law: pure arithmetic on ledgers; the form is that of docs/bench.schema.json.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from priority_router.core.values import SECOND
from priority_router.ops.bench import paired
from priority_router.ops.bench.ledger import Ledger
from priority_router.ops.bench.paired import Interval
from priority_router.ops.bench.requests import by_class
from priority_router.ops.bench.wire import Outcome

Numbers = NDArray[np.float64]

_STEPS_PER_DECADE: Final = 20
_DECADES: Final = (-2, 6)
EDGES_MS: Final = tuple(
    float(f"{10 ** (step / _STEPS_PER_DECADE):.4g}")
    for step in range(_DECADES[0] * _STEPS_PER_DECADE, _DECADES[1] * _STEPS_PER_DECADE + 1)
)
"""Between which latencies are counted: 0.01 ms to 1000 s, each 1.12 times the one before."""

MOST_BINS: Final = 120
"""Of a timeline."""

LEAST_BIN_SECONDS: Final = 0.1

DEFAULT_SAMPLES: Final = 400
"""Requests of each class that are told one by one."""


def of_round(
    ledger: Ledger, warmup_s: float, targets: Mapping[str, float | None], samples: int, takes: int
) -> dict[str, Any]:
    """One round on one arm, the warm-up left out.

    Args:
        ledger: of the whole run.
        warmup_s: seconds at the start to leave out.
        targets: class to the latency in ms that its requests are to keep; None: any answer counts.
        samples: requests of each class that are told one by one; 0 for none.
        takes: requests that the executor takes at once, over all instances.

    Returns:
        Plain values of JSON: ``waiting_share`` and, by class, ``classes``.
    """
    requests = by_class(ledger, warmup_s)
    begin = int(warmup_s * SECOND)
    window_s = (ledger.duration - begin) / SECOND
    bins = max(1, min(MOST_BINS, math.floor(window_s / LEAST_BIN_SECONDS)))
    classes = {}
    for index, name in enumerate(ledger.classes):
        own = ledger.class_index == index
        counted = own & (ledger.scheduled >= begin)
        rounds = [requests[name]]
        answered = requests[name].answered
        classes[name] = {
            "offered_rows_per_s": rounded(float(ledger.rows[counted].sum()) / window_s),
            "rows_per_s_interval": ends(paired.rows_per_s(rounds)),
            "latency_interval": {f"{key}_ms": ends(one) for key, one in paired.latency(rounds).items()},
            "goodput": goodput(rounds, targets.get(name)),
            "histogram": _histogram(answered),
            "timeline": _timeline(ledger, own, begin, window_s, bins),
            "samples": _samples(ledger, np.flatnonzero(counted), begin, samples),
        }
    return {
        "bin_s": rounded(window_s / bins),
        "waiting_share": rounded(_waiting_share(ledger, begin, takes)),
        "classes": classes,
    }


def goodput(rounds: paired.Rounds, target_ms: float | None) -> dict[str, Any]:
    """How much of what was asked for was answered in time."""
    share = paired.in_time(rounds, target_ms)
    asked = sum(len(one.at_s) for one in rounds)
    window_s = sum(one.window_s for one in rounds)
    in_time = round(share.value * asked) if asked else 0
    return {
        "target_ms": target_ms,
        "in_time": in_time,
        "of": asked,
        "share": rounded(share.value),
        "share_interval": ends(share),
        "per_s": rounded(in_time / window_s),
    }


def ends(one: Interval) -> dict[str, float | None]:
    """An interval as JSON has it; null for an end that is not known."""
    return {"low": rounded(one.low), "high": rounded(one.high)}


def rounded(value: float) -> float | None:
    """Four digits, or all of those before the point; None for what is no number."""
    if not math.isfinite(value):
        return None
    return float(f"{value:.4g}") if abs(value) < 10_000 else float(round(value))


def _histogram(latency_ms: Numbers) -> dict[str, Any]:
    """Counts between the edges from the first to the last that is not 0; what lies outside all counts at the ends."""
    places = np.clip(np.searchsorted(EDGES_MS, latency_ms, side="right") - 1, 0, len(EDGES_MS) - 2)
    if not len(places):
        return {"first": 0, "counts": []}
    first = int(places.min())
    return {"first": first, "counts": np.bincount(places - first).tolist()}


def _timeline(ledger: Ledger, own: NDArray[np.bool_], begin: int, window_s: float, bins: int) -> dict[str, Any]:
    """By bins of time: requests that came, were answered, and had no reply at its end; latencies of those that came."""
    edges = begin + np.arange(bins + 1) * (window_s * SECOND / bins)
    scheduled, done = ledger.scheduled[own], ledger.done[own]
    success = ledger.outcome[own] == Outcome.SUCCESS
    place = np.searchsorted(edges, scheduled, side="right") - 1
    latency_ms = (done - scheduled) / 1e6
    ended = np.sort(done[done >= 0])
    came = np.searchsorted(scheduled, edges[1:], side="left")
    gone = np.searchsorted(ended, edges[1:], side="left")
    groups = [latency_ms[success & (place == at)] for at in range(bins)]
    return {
        "arrived": np.histogram(scheduled, edges)[0].tolist(),
        "answered": np.histogram(done[success], edges)[0].tolist(),
        "waiting": (came - gone).tolist(),
        "p50_ms": [_quantile(group, 0.5) for group in groups],
        "p95_ms": [_quantile(group, 0.95) for group in groups],
        "max_ms": [_quantile(group, 1.0) for group in groups],
    }


def _quantile(values: Numbers, share: float) -> float | None:
    return rounded(float(np.quantile(values, share, method="inverted_cdf"))) if len(values) else None


def _samples(ledger: Ledger, chosen: NDArray[np.int64], begin: int, most: int) -> dict[str, Any]:
    """Every n-th request, so that all arms show the same ones; n is as small as ``most`` allows."""
    every = max(1, math.ceil(len(chosen) / most)) if most else 1
    kept = chosen[::every] if most else chosen[:0]
    latency_ms = np.where(ledger.done[kept] >= 0, (ledger.done[kept] - ledger.scheduled[kept]) / 1e6, np.nan)
    queue_ms = np.where(ledger.queue_us[kept] >= 0, ledger.queue_us[kept] / 1e3, np.nan)
    return {
        "every": every,
        "at_s": [round(float(at), 4) for at in (ledger.scheduled[kept] - begin) / SECOND],
        "latency_ms": [rounded(float(value)) for value in latency_ms],
        "queue_ms": [rounded(float(value)) for value in queue_ms],
        "outcome": ledger.outcome[kept].tolist(),
    }


def _waiting_share(ledger: Ledger, begin: int, takes: int) -> float:
    """Share of the window in which more requests had no reply than the executor takes at once."""
    forever = ledger.duration + 1
    done = np.where(ledger.done >= 0, ledger.done, forever)
    times = np.concatenate([ledger.scheduled, done])
    steps = np.concatenate([ledger.rows, -ledger.rows])
    order = np.argsort(times, kind="stable")
    at, held = times[order], np.cumsum(steps[order])
    inside = np.clip(np.append(at, ledger.duration), begin, ledger.duration)
    lasted = np.diff(inside)
    return float(lasted[held > takes].sum()) / max(1, ledger.duration - begin)
