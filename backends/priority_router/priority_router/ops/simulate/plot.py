# SPDX-License-Identifier: Apache-2.0
"""A chart of what each class experienced, router and oracle side by side; needs the package matplotlib.

Law: numbers in, an image out. Each class has a panel and a scale of its own, from 0: latencies of classes are decades
apart, and on one scale, or a logarithmic one, the differences that matter would not be seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, NullLocator, StrMethodFormatter

from priority_router.ops.bench.stats import errors_among
from priority_router.ops.bench.table import short
from priority_router.ops.bench.wire import Outcome
from priority_router.ops.demo.chart import settings
from priority_router.ops.pages.theme import LIGHT

_SHOWN: Final = {"p50_ms": "p50", "p95_ms": "p95", "p99_ms": "p99", "max_ms": "max"}
_COLOURS: Final = (LIGHT.arms[3], LIGHT.grid)
_HATCHES: Final = ("", "////")
"""They say the same without colour."""

_COLUMNS: Final = 3
_WIDTH, _HEIGHT = 3.6, 3.1
"""Of a panel, in inches."""

_BAR: Final = 0.4
_SECONDS_FROM: Final = 10_000.0
"""Ms of more digits than a bar is wide."""

_LONGEST: Final = 36
"""Letters of a class's name above its panel."""


def draw(path: Path, arms: Mapping[str, Mapping[str, Any]], meanings: Mapping[str, str], title: str) -> None:
    """Writes a chart.

    Args:
        path: ends with one of `command.PLOT_SUFFIXES`.
        arms: what `table.over_rounds` says of each.
        meanings: what each arm is.
        title: above it.
    """
    names = list(next(iter(arms.values()))["classes"])
    columns = min(len(names), _COLUMNS)
    rows = -(-len(names) // columns)
    with mpl.rc_context({**settings(LIGHT), "hatch.linewidth": 0.5}):
        size = (max(5.6, _WIDTH * columns), _HEIGHT * rows + 0.9)
        figure = Figure(figsize=size, layout="constrained")
        figure.suptitle(title, x=0.01, ha="left", fontsize=9.5)
        panels = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes, name in zip(panels, names, strict=False):
            _panel(axes, name, {arm: numbers["classes"][name] for arm, numbers in arms.items()})
        for axes in panels[len(names) :]:
            axes.set_axis_off()
        legend = [
            Patch(facecolor=_COLOURS[place], edgecolor=LIGHT.muted, hatch=_HATCHES[place], label=f"{arm}: {meaning}")
            for place, (arm, meaning) in enumerate(meanings.items())
        ]
        figure.legend(handles=legend, loc="outside lower left", frameon=False, handlelength=1.6)
        # Dates and random names would make every run's file another one.
        metadata = {"Date": None} if path.suffix == ".svg" else {}
        figure.savefig(path, dpi=120, metadata=metadata)


def _panel(axes: Axes, name: str, arms: Mapping[str, Mapping[str, Any]]) -> None:
    """One class."""
    for place, one in enumerate(arms.values()):
        spreads = [one["latency"][what] for what in _SHOWN]
        known = [(at, spread) for at, spread in enumerate(spreads) if spread is not None]
        heights = [spread["median"] for _, spread in known]
        bars = axes.bar(
            [at + (place - 0.5) * _BAR for at, _ in known],
            heights,
            _BAR,
            color=_COLOURS[place],
            hatch=_HATCHES[place],
            edgecolor=LIGHT.surface if place == 0 else LIGHT.muted,
            linewidth=0.5,
        )
        tops = [spread["high"] for _, spread in known]
        for bar, (_, spread), top in zip(bars, known, tops, strict=True):
            middle = bar.get_x() + _BAR / 2
            if spread["high"] > spread["low"]:
                axes.plot([middle, middle], [spread["low"], spread["high"]], color=LIGHT.ink, lw=1)
            median = spread["median"]
            label = short(median) if median < _SECONDS_FROM else f"{short(median / 1e3)} s"
            axes.annotate(label, (middle, top), xytext=(0, 2), textcoords="offset points", ha="center", fontsize=6.8)
    router = next(iter(arms.values()))
    shown = name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"
    axes.set_title(shown, loc="left", fontweight="bold", pad=20)
    under: dict[str, Any] = {"xytext": (0, 8), "textcoords": "offset points", "fontsize": 7.5, "color": LIGHT.muted}
    axes.annotate(_ended(router["outcomes"]), (0, 1), xycoords="axes fraction", **under)
    axes.set_xticks(range(len(_SHOWN)), list(_SHOWN.values()))
    axes.set_xlim(-0.6, len(_SHOWN) - 0.4)
    axes.set_ylim(bottom=0)
    axes.margins(y=0.1)
    axes.yaxis.set_major_locator(MaxNLocator(5) if axes.patches else NullLocator())
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    axes.set_ylabel("sending to answer, ms")
    axes.grid(visible=True, axis="y", lw=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(axis="x", length=0)
    axes.spines[["top", "right"]].set_visible(False)


def _ended(outcomes: Mapping[str, int]) -> str:
    """How the requests of a class ended at the router."""
    answered, unanswered = outcomes[Outcome.SUCCESS.label], outcomes[Outcome.UNANSWERED.label]
    parts = [f"{answered:,} answered"]
    if refused := errors_among(outcomes):
        parts.append(f"{refused:,} refused or expired")
    if unanswered:
        parts.append(f"{unanswered:,} not yet")
    return ", ".join(parts)
