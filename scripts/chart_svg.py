# SPDX-License-Identifier: Apache-2.0
"""Small line charts as SVG text, for documents: a few hundred lines of text at most, the same bytes on every machine.

Law: numbers in, text out. Written without matplotlib, whose files are larger and change with its version. A chart has a
surface of its own, so that it can be read on any page, and follows the reader's choice of light or dark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any, Final

from priority_router.ops.pages.axes import ticks
from priority_router.ops.pages.theme import DARK, LIGHT, Theme

WIDTH, HEIGHT = 720, 270
LEFT, RIGHT, TOP, BOTTOM = 46, 14, 52, 52
"""Room around the data of a panel, for the labels."""

DASHES: Final = ("none", "6 3", "2 3")

Chart = Mapping[str, Any]
"""``x_label``, ``x``: texts from left to right, ``panels``: each with ``y_label`` and ``lines``, each of those with
``name``, ``y``: numbers, and ``ink``: which colour, the same for the same thing in all panels."""


def in_words(chart: Chart) -> str:
    """What a chart shows: the first and the last value of every line."""
    told = []
    for panel in chart["panels"]:
        for line in panel["lines"]:
            whose = f" ({line['name']})" if len(panel["lines"]) > 1 else ""
            told.append(f"{panel['y_label']}{whose}, from {line['y'][0]:g} to {line['y'][-1]:g}")
    return f"Over {chart['x_label']}, from {chart['x'][0]} to {chart['x'][-1]}: {'; '.join(told)}."


def drawn(chart: Chart) -> str:
    """A chart as an SVG file: its panels side by side."""
    panels = chart["panels"]
    width = WIDTH / len(panels)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        'role="img">',
        f"<title>{escape(in_words(chart))}</title>",
        f"<style>{_style(LIGHT)}@media (prefers-color-scheme: dark) {{{_style(DARK)}}}</style>",
        f'<rect class="s" width="{WIDTH}" height="{HEIGHT}" rx="6"/>',
    ]
    for place, panel in enumerate(panels):
        parts += [f'<g transform="translate({place * width:g} 0)">', *_panel(chart, panel, width), "</g>"]
    return "\n".join([*parts, "</svg>", ""])


def _style(theme: Theme) -> str:
    blue, amber = theme.arms[3], theme.arms[2]
    return (
        f".s{{fill:{theme.surface}}}text{{fill:{theme.ink};font:12px system-ui,sans-serif}}.t{{font-weight:600}}"
        f".m{{fill:{theme.muted}}}"
        f".g{{stroke:{theme.grid}}}.l{{fill:none;stroke-width:2.2}}.l0{{stroke:{blue}}}.l1{{stroke:{amber}}}"
        f".p0{{fill:{blue}}}.p1{{fill:{amber}}}"
    )


def _panel(chart: Chart, panel: Mapping[str, Any], width: float) -> Iterator[str]:
    marks = ticks(max(value for line in panel["lines"] for value in line["y"]))
    across, down = width - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    xs = [LEFT + across * (place + 0.5) / len(chart["x"]) for place in range(len(chart["x"]))]

    def height(value: float) -> float:
        return TOP + down * (1 - value / marks[-1])

    yield f'<text class="t" x="{LEFT - 38}" y="18">{escape(panel["y_label"])}</text>'
    yield from _legend(panel["lines"])
    for tick in marks:
        yield f'<path class="g" d="M{LEFT} {height(tick):.1f}H{LEFT + across:g}"/>'
        yield f'<text class="m" x="{LEFT - 6}" y="{height(tick) + 4:.1f}" text-anchor="end">{tick:,g}</text>'
    for x, name in zip(xs, chart["x"], strict=True):
        yield f'<text class="m" x="{x:.1f}" y="{TOP + down + 17}" text-anchor="middle">{escape(name)}</text>'
    middle = LEFT + across / 2
    yield f'<text x="{middle:g}" y="{HEIGHT - 14}" text-anchor="middle">{escape(chart["x_label"])}</text>'
    for place, line in enumerate(panel["lines"]):
        ink = line["ink"]
        points = [(x, height(value)) for x, value in zip(xs, line["y"], strict=True)]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        yield f'<path class="l l{ink}" stroke-dasharray="{DASHES[place]}" d="M{path}"/>'
        for x, y in points:
            yield f'<circle class="p{ink}" cx="{x:.1f}" cy="{y:.1f}" r="2.8"/>'


def _legend(lines: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    x = LEFT - 38.0
    for place, line in enumerate(lines if len(lines) > 1 else ()):
        ink = line["ink"]
        yield f'<path class="l l{ink}" stroke-dasharray="{DASHES[place]}" d="M{x:g} 33h20"/>'
        yield f'<text class="m" x="{x + 25:g}" y="37">{escape(line["name"])}</text>'
        x += 40 + 6.6 * len(line["name"])
