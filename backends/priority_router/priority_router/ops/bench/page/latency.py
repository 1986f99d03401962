# SPDX-License-Identifier: Apache-2.0
"""How long requests of each class took on each arm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any, Final

from priority_router.ops.bench.aims import ORACLE
from priority_router.ops.bench.page.run import (
    NOTHING,
    ORACLE_MEANS,
    QUANTILES,
    Class,
    Run,
    axis_time,
    milliseconds,
    section,
    share,
    with_ends,
)
from priority_router.ops.pages import html, svg
from priority_router.ops.pages.axes import LogScale

_SHAPE: Final = 26.0
"""Pixels of height for the shape of a distribution..."""

_LANE: Final = 13.0
"""...and for each quantile below it."""

_STRIP: Final = _SHAPE + len(QUANTILES) * _LANE + 4
_AXIS: Final = 18.0
_UNKNOWN: Final = {"value": None, "low": None, "high": None}
_RIGHT_HALF: Final = 0.6
"""From here on what is written beside a mark stands on its left."""


def distributions(run: Run) -> str:
    """The section: a strip for each arm in each class."""
    body = "".join(_of_class(run, one) for one in run.classes)
    words = (
        "Hills: how often a latency was seen, on a logarithmic scale. Below them the quantiles of all answered "
        "requests, each with its 95 % interval. Latency counts from the scheduled time; what had no answer is not in "
        "the hills."
    )
    if run.oracle is not None:
        words += " Of the oracle it is the median of the rounds, with the lowest and the highest."
    return section("Latency", words, body)


def numbers(run: Run) -> str:
    """The same in figures."""
    groups = []
    for one in run.classes:
        rows = []
        for arm, told in run.of_class(one.name):
            longest = told["latency"]["max_ms"]
            cells = [with_ends(told["pooled"][f"{key}_ms"], "value") for key in QUANTILES]
            cells.append(NOTHING if longest is None else escape(f"{longest['high']:.0f}"))
            rows.append(html.row(escape(arm), cells))
        groups.append(html.group(one.swatch, 5, rows))
    return html.table("Latency of answered requests, ms, with 95 % intervals", "arm", (*QUANTILES, "max"), groups)


def router_queue(run: Run) -> str:
    """Time in the router's own queue, in figures; nothing where no arm has a router."""
    groups = []
    for one in run.classes:
        rows = [
            html.row(escape(arm), [with_ends(told["queue_ms"][f"{key}_ms"], "median") for key in QUANTILES])
            for arm, told in run.of_class(one.name)
            if told["queue_ms"]["p50_ms"] is not None
        ]
        if rows:
            groups.append(html.group(one.swatch, 4, rows))
    if not groups:
        return ""
    caption = "Of that in the router’s own queue, ms: median of the rounds, lowest–highest"
    return html.table(caption, "arm", QUANTILES, groups)


def _of_class(run: Run, one: Class) -> str:
    edges = run.document["edges_ms"]
    histograms = {arm: run.histogram(arm, one.name) for arm in run.arms}
    scale = LogScale.around(_values(run, one, histograms, edges))
    rows = []
    for arm, told in run.of_class(one.name):
        parts = [*_grid(scale, one, _STRIP), *_strip(histograms[arm], edges, told["pooled"], scale)]
        strip = svg.drawing(_STRIP, parts)
        rows.append(f'<div class="row"><p><b>{escape(arm)}</b>{_beside(told)}</p>{strip}</div>')
    ideal = _ideal(run, one)
    if ideal:
        height = _STRIP - _SHAPE
        strip = svg.drawing(height, [*_grid(scale, one, height), *_marks(ideal, scale, 0)])
        rows.append(f'<div class="row"><p><b>{ORACLE}</b><small>{ORACLE_MEANS}</small></p>{strip}</div>')
    target = "" if one.target_ms is None else f" <small>target {escape(milliseconds(one.target_ms))}</small>"
    axis = svg.drawing(_AXIS, _axis(scale))
    return (
        f'<div class="chart" {one.style}><h3>{one.swatch}{target}</h3>\n{"".join(rows)}'
        f'<div class="row axis"><span></span>{axis}</div></div>\n'
    )


def _ideal(run: Run, one: Class) -> dict[str, dict[str, float | None]]:
    """The oracle's quantiles, as an arm has them, medians of the rounds with their ends; empty without any."""
    if run.oracle is None or one.name not in run.oracle["classes"]:
        return {}
    told = run.oracle["classes"][one.name]["latency"]
    spreads = {f"{key}_ms": told[f"{key}_ms"] for key in QUANTILES}
    return {
        key: {"value": spread["median"], "low": spread["low"], "high": spread["high"]}
        for key, spread in spreads.items()
        if spread is not None
    }


def _values(
    run: Run, one: Class, histograms: Mapping[str, Mapping[int, int]], edges: Sequence[float]
) -> Iterator[float]:
    """All that must have room on the axis."""
    for counted in histograms.values():
        places = [place for place, count in counted.items() if count]
        if places:
            yield from (edges[min(places)], edges[max(places) + 1])
    for _, told in run.of_class(one.name):
        for quantile in told["pooled"].values():
            yield from (end for end in quantile.values() if end is not None)
    for quantile in _ideal(run, one).values():
        yield from (end for end in quantile.values() if end is not None)
    if one.target_ms is not None:
        yield one.target_ms


def _beside(told: Mapping[str, Any]) -> str:
    """What stands beside a strip: how many were answered, and in time."""
    outcomes = told["outcomes"]
    asked = sum(outcomes.values())
    lines = [f"{share(outcomes['success'] / asked)} answered" if asked else "no request"]
    goodput = told["goodput"]
    if goodput["target_ms"] is not None:
        lines.append(f"{share(goodput['share'])} in time")
    return "".join(f"<small>{escape(line)}</small> " for line in lines)


def _grid(scale: LogScale, one: Class, height: float) -> Iterator[str]:
    for tick in scale.ticks():
        yield svg.line("g", scale.at(tick), scale.at(tick), 0, height)
    if one.target_ms is not None:
        yield svg.line("target", scale.at(one.target_ms), scale.at(one.target_ms), 0, height)


def _axis(scale: LogScale) -> Iterator[str]:
    for tick in scale.ticks():
        at = scale.at(tick)
        yield svg.text(at, 12, axis_time(tick), anchor="start" if at < 0.05 else "end" if at > 0.95 else "middle")


def _strip(
    counted: Mapping[int, int],
    edges: Sequence[float],
    pooled: Mapping[str, Mapping[str, float | None]],
    scale: LogScale,
) -> Iterator[str]:
    yield svg.stretched(_SHAPE, [svg.path("hill", _hill(counted, edges, scale), closed=True)])
    yield from _marks(pooled, scale, _SHAPE)


def _marks(quantiles: Mapping[str, Mapping[str, float | None]], scale: LogScale, top: float) -> Iterator[str]:
    """The quantiles that are known, each in a lane of its own."""
    for place, key in enumerate(QUANTILES):
        one = quantiles.get(f"{key}_ms", _UNKNOWN)
        y = top + (place + 0.6) * _LANE
        value, low, high = one["value"], one["low"], one["high"]
        if value is None:
            continue
        at = scale.at(value)
        left, right = (at if low is None else scale.at(low)), (1.0 if high is None else scale.at(high))
        yield svg.line("whisker", left, right, y, y)
        yield svg.dot("own", at, y)
        told = f"{key} {milliseconds(value)}"
        if at < _RIGHT_HALF:
            yield svg.text(right, y + 4, told, "value", aside=8)
        else:
            yield svg.text(left, y + 4, told, "value", "end", aside=-8)


def _hill(counted: Mapping[int, int], edges: Sequence[float], scale: LogScale) -> list[list[svg.Point]]:
    """The outline of a histogram, as high as there is room."""
    most = max(counted.values(), default=0)
    if not most:
        return []
    points: list[svg.Point] = []
    for place in range(min(counted), max(counted) + 1):
        y = _SHAPE * (1 - 0.96 * counted.get(place, 0) / most)
        points += [(scale.at(edges[place]), y), (scale.at(edges[place + 1]), y)]
    return [[(points[0][0], _SHAPE), *points, (points[-1][0], _SHAPE)]]
