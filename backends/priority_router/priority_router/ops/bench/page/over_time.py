# SPDX-License-Identifier: Apache-2.0
"""How latency and queue went over a round, a panel for each arm."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any, Final

from priority_router.ops.bench.page.run import Class, Run, axis_time, section
from priority_router.ops.pages import svg
from priority_router.ops.pages.axes import LogScale, ticks

_LATENCY: Final = 150.0
_QUEUE: Final = 70.0
_HEADROOM: Final = 14.0
"""Above the data of a panel, for the highest label."""

MOST_ROUNDS: Final = 5
"""That are drawn."""

_FEW_WAITING: Final = 20
"""Up to so many they are counted on a linear axis."""


def timelines(run: Run) -> str:
    """The section: the first round in sight, the others folded away."""
    drawn = [(number, finished) for number, finished in enumerate(run.document["rounds"], 1) if finished]
    parts = []
    for number, finished in drawn[:MOST_ROUNDS]:
        panels = _panels(run, finished)
        if len(drawn) == 1:
            parts.append(panels)
        elif not parts:
            parts.append(f'<h3 class="round">Round {number}</h3>\n{panels}')
        else:
            parts.append(f"<details><summary>Round {number}</summary>\n{panels}</details>\n")
    if len(drawn) > MOST_ROUNDS:
        parts.append(f'<p class="how">Of {len(drawn)} rounds the first {MOST_ROUNDS} are drawn.</p>\n')
    words = (
        "Above: latency of the requests that were due at a time; the line is the median, the band reaches to the 95th "
        "percentile. What never had a reply has no latency. Below: requests without a reply."
    )
    words += " All arms share their axes" + ("." if run.closed else " and saw the same arrivals.")
    legend = " ".join(f"<span>{one.swatch}</span>" for one in run.classes)
    return section("Over time", words, f'<p class="legend">{legend}</p>\n{"".join(parts)}')


def _panels(run: Run, finished: Mapping[str, Mapping[str, Any]]) -> str:
    told = [one["timeline"] for arm in finished.values() for one in arm["classes"].values()]
    scale = LogScale.around(
        value for one in told for key in ("p50_ms", "p95_ms") for value in one[key] if value is not None
    )
    most = max((value for one in told for value in one["waiting"]), default=0)
    panels = []
    for name in [arm for arm in run.document["scenario"]["arms"] if arm in finished]:
        arm = finished[name]
        seconds = arm["window_s"]
        latency = svg.drawing(_LATENCY, _latency(run.classes, arm, scale), f"{name}: latency over {seconds:g} s")
        queue = svg.drawing(_QUEUE + 16, _queue(run.classes, arm, most), f"{name}: requests without a reply")
        panels.append(f"<figure><figcaption>{escape(name)}</figcaption>{latency}{queue}</figure>\n")
    return f'<div class="panels">{"".join(panels)}</div>\n'


def _latency(classes: Sequence[Class], arm: Mapping[str, Any], scale: LogScale) -> Iterator[str]:
    def height(value: float) -> float:
        return _HEADROOM + (_LATENCY - _HEADROOM) * (1 - scale.at(value))

    for tick in scale.ticks():
        yield svg.line("g", 0, 1, height(tick), height(tick))
    shapes = []
    for one in reversed(classes):
        told = arm["classes"][one.name]["timeline"]
        pieces = list(_pieces(told["p50_ms"], told["p95_ms"]))
        bins = len(told["p50_ms"])
        middle = [[((at + 0.5) / bins, height(p50)) for at, p50, _ in piece] for piece in pieces]
        upper = [[((at + 0.5) / bins, height(p95)) for at, _, p95 in piece] for piece in pieces]
        bands = [[*low, *reversed(high)] for low, high in zip(middle, upper, strict=True)]
        shapes.append(f"<g {one.style}>{svg.path('band', bands, closed=True)}{svg.path('curve', middle)}</g>")
    yield svg.stretched(_LATENCY, shapes)
    for tick in scale.ticks():
        yield svg.text(0, height(tick) - 3, axis_time(tick))
    yield svg.text(1, 9, "latency", anchor="end")


def _pieces(p50: Sequence[float | None], p95: Sequence[float | None]) -> Iterator[list[tuple[int, float, float]]]:
    """Bins that have both, in runs without a gap."""
    piece: list[tuple[int, float, float]] = []
    for at, (middle, upper) in enumerate(zip(p50, p95, strict=True)):
        if middle is not None and upper is not None:
            piece.append((at, middle, upper))
        elif piece:
            yield piece
            piece = []
    if piece:
        yield piece


def _decades(most: int) -> list[float]:
    """The powers of 10 up to ``most``, two at most."""
    powers = [10.0**digits for digits in range(1, math.floor(math.log10(most)) + 1)]
    return powers[:: -math.ceil(len(powers) / 2)][::-1]


def _queue(classes: Sequence[Class], arm: Mapping[str, Any], most: int) -> Iterator[str]:
    """Linear for few; else logarithmic from 0 on, so that a short queue beside a long one can be seen."""
    linear = most <= _FEW_WAITING
    marks = [tick for tick in ticks(most) if tick.is_integer()][::2] if linear else [0.0, *_decades(most)]

    def height(value: float) -> float:
        share = value / max(1, most, marks[-1]) if linear else math.log1p(value) / math.log1p(most)
        return _HEADROOM + (_QUEUE - _HEADROOM) * (1 - share)

    for mark in marks:
        yield svg.line("g", 0, 1, height(mark), height(mark))
    shapes = []
    for one in reversed(classes):
        waiting = arm["classes"][one.name]["timeline"]["waiting"]
        points = [((at + 1) / len(waiting), height(count)) for at, count in enumerate(waiting)]
        shapes.append(f"<g {one.style}>{svg.path('curve', [points])}</g>")
    yield svg.stretched(_QUEUE, shapes)
    for mark in marks[1:]:
        yield svg.text(0, height(mark) - 3, f"{mark:,.0f}")
    yield svg.text(1, 9, "without a reply", anchor="end")
    yield svg.text(0, _QUEUE + 13, "0 s")
    yield svg.text(1, _QUEUE + 13, f"{arm['window_s']:g} s", anchor="end")
