# SPDX-License-Identifier: Apache-2.0
"""How requests ended, what was served, and what the executor did meanwhile."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any, Final

from priority_router.ops.bench.page.run import NOTHING, Class, Run, section, share
from priority_router.ops.bench.table import short
from priority_router.ops.pages import svg
from priority_router.ops.pages.axes import ticks

_BAR: Final = 14.0
_THIN: Final = 10.0
_AXIS: Final = 18.0
_BATCHES: Final = 74.0
MOST_BARS: Final = 16
"""Of a histogram of batch sizes; more of them are taken together."""

_IN_WORDS: Final = {"unanswered": "no reply"}


def outcomes(run: Run) -> str:
    """The section: a bar for each arm in each class."""
    seen = [
        name
        for name in run.document["outcomes"]
        if any(told["outcomes"].get(name) for one in run.classes for _, told in run.of_class(one.name))
    ]
    legend = " ".join(f'<span><i class="key o-{_plain(name)}"></i>{escape(_words(name))}</span>' for name in seen)
    body = "".join(_outcomes_of(run, one, seen) for one in run.classes)
    means = (
        "Every request that was due after the warm-up, over all rounds. No reply: none had come when the wait was "
        "over; where more is asked for than can be done that is what must happen to the rest."
    )
    return section("How requests ended", means, f'<p class="legend">{legend}</p>\n<div class="columns">{body}</div>\n')


def _outcomes_of(run: Run, one: Class, seen: list[str]) -> str:
    rows = []
    for arm, told in run.of_class(one.name):
        counts = {name: told["outcomes"].get(name, 0) for name in seen}
        asked = sum(counts.values())
        counted = [f"{count:,} {_words(name)}" for name, count in counts.items() if count]
        drawn = svg.drawing(_BAR, _stacked(counts, asked))
        text = escape(", ".join(counted) or "no request")
        rows.append(f'<div class="item"><p><b>{escape(arm)}</b> <small>{text}</small></p>{drawn}</div>')
    return f'<div class="chart"><h3>{one.swatch}</h3>\n{"".join(rows)}</div>\n'


def _stacked(counts: Mapping[str, int], asked: int) -> Iterator[str]:
    at = 0.0
    for name, count in counts.items():
        if count:
            end = at + count / asked
            title = f"{_words(name)}: {count:,} of {asked:,} ({share(count / asked)})"
            yield svg.bar(f"o-{_plain(name)}", at, end, 0, _BAR, title)
            at = end


def _words(outcome: str) -> str:
    return _IN_WORDS.get(outcome, outcome.replace("_", " "))


def _plain(outcome: str) -> str:
    """As a name in CSS."""
    return "".join(letter if letter.isalnum() else "-" for letter in outcome)


def served(run: Run) -> str:
    """The section: rows per second of each class on each arm."""
    most = ticks(max(_rates(run), default=0.0))[-1]
    rows = []
    for arm, told in run.arms.items():
        height = _THIN * len(run.classes) + 6
        parts = [svg.line("g", tick / most, tick / most, 0, height) for tick in ticks(most)]
        words = []
        for place, one in enumerate(run.classes):
            rate = told["classes"][one.name]
            parts.append(f"<g {one.style}>{''.join(_rate(rate, _offered(run, arm, one), most, 3 + place * _THIN))}</g>")
            words.append(f"{one.name} {_spread(rate['rows_per_s'])}")
        total = "" if run.closed else f"<small>{escape(', '.join(words))}</small>"
        rows.append(f'<div class="row"><p><b>{escape(arm)}</b>{total}</p>{svg.drawing(height, parts)}</div>')
    axis = svg.drawing(_AXIS, (_tick(tick / most, f"{tick:,g}") for tick in ticks(most)))
    legend = " ".join(f"<span>{one.swatch}</span>" for one in run.classes)
    offered = "" if run.closed else '<span><i class="key offered"></i>asked for</span>'
    means = "Rows answered per second while requests arrived: median of the rounds, and 95 % interval of their mean."
    body = f'<p class="legend">{legend} {offered}</p>\n<div class="chart">{"".join(rows)}'
    return section("Rows per second", means, f'{body}<div class="row axis"><span></span>{axis}</div></div>\n')


def _tick(at: float, words: str) -> str:
    return svg.text(at, 12, words, anchor="start" if at < 0.02 else "end" if at > 0.98 else "middle")


def _rates(run: Run) -> Iterator[float]:
    for arm, told in run.arms.items():
        for one in run.classes:
            rate = told["classes"][one.name]
            yield rate["rows_per_s"]["high"] if rate["rows_per_s"] else 0.0
            yield rate["rows_per_s_interval"]["high"] or 0.0
            yield _offered(run, arm, one) or 0.0


def _offered(run: Run, arm: str, one: Class) -> float | None:
    """Rows that were due per second, on average over the rounds; a closed loop asks for what it gets."""
    if run.closed:
        return None
    rates = [finished["classes"][one.name]["offered_rows_per_s"] or 0.0 for finished in run.in_rounds(arm)]
    return sum(rates) / len(rates)


def _rate(rate: Mapping[str, Any], offered: float | None, most: float, y: float) -> Iterator[str]:
    spread, ends = rate["rows_per_s"], rate["rows_per_s_interval"]
    if spread is None:
        return
    middle = y + _THIN / 2 - 1
    yield svg.bar("own", 0, spread["median"] / most, y, _THIN - 2)
    if ends["low"] is not None and ends["high"] is not None:
        yield svg.line("over", ends["low"] / most, ends["high"] / most, middle, middle)
    if offered is not None:
        yield svg.line("offered", offered / most, offered / most, y - 1, y + _THIN - 1)


def _spread(told: Mapping[str, float] | None) -> str:
    return NOTHING if told is None else short(told["median"])


def executor(run: Run) -> str:
    """The section: how busy the executor was and how large its batches were."""
    cards = []
    for arm, told in run.arms.items():
        batches = {int(rows): count for rows, count in told["batches"].items() if count}
        busy, mean = told["busy"], told["mean_batch"]
        words = [f"{_percent(busy)} busy", f"{short(mean['median'])} rows per batch" if mean else "batches unknown"]
        bar = svg.drawing(_BAR, _busy(busy)) if busy else ""
        sizes = svg.drawing(_BATCHES + 16, _sizes(batches), _sizes_in_words(arm, batches)) if batches else ""
        lines = "<br>".join(map(escape, words))
        cards.append(
            f'<figure class="card"><figcaption>{escape(arm)}</figcaption><p><small>{lines}</small></p>'
            f"{bar}{sizes}</figure>\n"
        )
    means = (
        "From Triton’s statistics. Bar: the share of the time in which it computed, the median of the rounds with the "
        "lowest and the highest. Columns: executions by their rows."
    )
    return section("What the executor did", means, f'<div class="cards">{"".join(cards)}</div>\n')


def _percent(spread: Mapping[str, float] | None) -> str:
    if spread is None:
        return "unknown how"
    low, middle, high = (f"{spread[key]:.0%}" for key in ("low", "median", "high"))
    return middle if low == high else f"{middle} ({low}–{high})"


def _busy(spread: Mapping[str, float]) -> Iterator[str]:
    low, middle, high = (min(1.0, spread[key]) for key in ("low", "median", "high"))
    yield svg.bar("rest", 0, 1, 0, _BAR)
    yield svg.bar("busy", 0, middle, 0, _BAR)
    yield svg.line("over", low, high, _BAR / 2, _BAR / 2)


def _grouped(batches: Mapping[int, int]) -> list[tuple[str, int]]:
    """Sizes and how often they were, of neighbouring sizes together where there are too many."""
    largest = max(batches)
    width = math.ceil(largest / MOST_BARS)
    found = []
    for first in range(1, largest + 1, width):
        last = min(largest, first + width - 1)
        count = sum(times for rows, times in batches.items() if first <= rows <= last)
        found.append((str(first) if width == 1 else f"{first}–{last}", count))
    return found


def _sizes(batches: Mapping[int, int]) -> Iterator[str]:
    groups = _grouped(batches)
    most, executions = max(count for _, count in groups), sum(batches.values())
    room = 1 / len(groups)
    for place, (name, count) in enumerate(groups):
        height = (_BATCHES - 16) * count / most
        title = f"{name} rows: {count:,} of {executions:,} executions ({share(count / executions)})"
        yield svg.bar("busy", (place + 0.1) * room, (place + 0.9) * room, _BATCHES - height, height, title)
        if len(groups) <= MOST_BARS // 2:
            middle = (place + 0.5) * room
            if count:
                yield svg.text(middle, _BATCHES - height - 4, share(count / executions), anchor="middle")
            yield svg.text(middle, _BATCHES + 13, name, anchor="middle")
    yield svg.line("g", 0, 1, _BATCHES, _BATCHES)
    if len(groups) > MOST_BARS // 2:
        yield svg.text(0, _BATCHES + 13, groups[0][0])
        yield svg.text(1, _BATCHES + 13, f"{groups[-1][0]} rows", anchor="end")


def _sizes_in_words(arm: str, batches: Mapping[int, int]) -> str:
    told = ", ".join(f"{count:,} of {name} rows" for name, count in _grouped(batches) if count)
    return f"{arm}: executions {told}"
