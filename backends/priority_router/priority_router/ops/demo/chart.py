# SPDX-License-Identifier: Apache-2.0
"""The charts: how latency is distributed on each arm, and how it went over time.

Law: measurements in, images out; nothing is measured or written here. Colours stand for arms; line styles say the same
without colour.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, FigureBase
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator, PercentFormatter

from priority_router.ops.bench.requests import Requests
from priority_router.ops.demo.measurements import Results
from priority_router.ops.loads import BACKGROUND, ONLINE
from priority_router.ops.pages.theme import LIGHT, Theme

_LAST_SHARE: Final = 0.997
_POINTS_DPI: Final = 220
"""Of the points of a timeline, which are thousands and therefore an image inside the SVG."""

_PNG_DPI: Final = 110
_NO_ANSWER_HEIGHT: Final = 0.96
"""Where in a panel requests without an answer are marked, as a share of its height."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Sizes in inches; a page shows an image at 100 to 138 pixels per inch.

    Attributes:
        width: of every figure.
        distribution_height: of the figure with the distributions.
        distribution_columns: panels side by side in it.
        timeline_height: of the figure with the timelines.
        timeline_columns: panels side by side in it.
        legend_columns: names side by side.
    """

    width: float
    distribution_height: float
    distribution_columns: int
    timeline_height: float
    timeline_columns: int
    legend_columns: int


WIDE: Final = Layout(11.0, 3.9, 2, 3.2, 4, 4)
NARROW: Final = Layout(3.6, 6.2, 1, 4.6, 2, 2)
_STYLES: Final = (":", "-.", "--", "-")
_WIDTHS: Final = (1.6, 1.4, 1.6, 2.2)

Draw = Callable[[FigureBase, Results, Theme, Layout], None]


def distribution(figure: FigureBase, results: Results, theme: Theme, layout: Layout) -> None:
    """A panel per class, a curve per arm: which share of all requests was answered within which time."""
    columns = layout.distribution_columns
    panels = np.ravel(figure.subplots(2 // columns, columns))
    for axes, class_name in zip(panels, (ONLINE, BACKGROUND), strict=True):
        for place, by_class in enumerate(results.requests.values()):
            shares, latencies = curve(by_class[class_name])
            axes.plot(shares, latencies, color=theme.arms[place], ls=_STYLES[place], lw=_WIDTHS[place])
        axes.set_title(class_name, loc="left", fontweight="bold")
        if class_name == ONLINE:
            axes.set_xscale("function", functions=(_stretched, _shrunk))
            axes.set_xlim(0, _LAST_SHARE)
            axes.xaxis.set_major_locator(FixedLocator([0, 0.5, 0.9, 0.99]))
            axes.xaxis.set_minor_locator(NullLocator())
        else:
            axes.set_xlim(0, 1)
        axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        axes.set_xlabel("of requests were answered within")
        _milliseconds(axes)
    legend = [
        Line2D([], [], color=theme.arms[place], ls=_STYLES[place], lw=_WIDTHS[place], label=name)
        for place, name in enumerate(results.requests)
    ]
    figure.legend(handles=legend, loc="outside upper left", ncols=layout.legend_columns, frameon=False, handlelength=3)


def curve(requests: Requests) -> tuple[np.ndarray[Any, np.dtype[np.float64]], np.ndarray[Any, np.dtype[np.float64]]]:
    """[m] shares of all requests, ascending, and [m] the times in ms within which those were answered."""
    answered = requests.answered
    return np.arange(len(answered)) / max(1, len(requests.latency_ms)), answered


def timeline(figure: FigureBase, results: Results, theme: Theme, layout: Layout) -> None:
    """A panel per arm, a point per request: latency over arrival time."""
    columns = layout.timeline_columns
    rows = -(-len(results.requests) // columns)
    panels = np.ravel(figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False))
    for place, (axes, (name, by_class)) in enumerate(zip(panels, results.requests.items(), strict=False)):
        _points(axes, by_class[BACKGROUND], color=theme.muted, ms=1.8, alpha=0.55)
        _points(axes, by_class[ONLINE], color=theme.arms[place], ms=2.8, alpha=0.9)
        axes.set_title(name, loc="left", color=theme.arms[place], fontweight="bold")
        _milliseconds(axes)
        axes.label_outer()
        if place // columns == rows - 1:
            axes.set_xlabel("arrival, s")
    legend = [
        Line2D([], [], color=theme.arms[-1], ls="none", marker="o", ms=4, label=f"{ONLINE} (in colour)"),
        Line2D([], [], color=theme.muted, ls="none", marker="o", ms=3, label=BACKGROUND),
        Line2D([], [], color=theme.muted, ls="none", marker="|", ms=6, label="no answer yet"),
    ]
    options = {"frameon": False, "handlelength": 1.0, "handletextpad": 0.4, "columnspacing": 1.2}
    figure.legend(handles=legend, loc="outside upper left", ncols=len(legend), **options)


def _points(axes: Axes, requests: Requests, **style: Any) -> None:
    """A point for each request, or a mark along the top where it has no answer."""
    answered = np.isfinite(requests.latency_ms)
    at_s = requests.at_s
    axes.plot(at_s[answered], requests.latency_ms[answered], ls="none", marker="o", mew=0, rasterized=True, **style)
    height = np.full(len(at_s) - answered.sum(), _NO_ANSWER_HEIGHT)
    marks = {**style, "ls": "none", "marker": "|", "ms": 4, "mew": 0.6, "rasterized": True}
    axes.plot(at_s[~answered], height, transform=axes.get_xaxis_transform(), **marks)


def _stretched(share: Any) -> Any:
    """Gives every further nine of a share the same room."""
    return -np.log10(1 - np.clip(share, 0, _LAST_SHARE))


def _shrunk(stretched: Any) -> Any:
    return 1 - 10 ** -np.asarray(stretched)


def _milliseconds(axes: Axes) -> None:
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_ylabel("latency, ms")
    axes.grid(visible=True, lw=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def svg(draw: Draw, results: Results, theme: Theme, layout: Layout, height: float) -> str:
    """One chart as an SVG element without anything from outside."""
    written = io.StringIO()
    with mpl.rc_context(settings(theme)):
        figure = Figure(figsize=(layout.width, height), layout="constrained")
        draw(figure, results, theme, layout)
        metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(written, format="svg", dpi=_POINTS_DPI, metadata=metadata)
    text = written.getvalue()
    return text[text.index("<svg") :]


def png(results: Results, theme: Theme = LIGHT, layout: Layout = WIDE) -> bytes:
    """Both charts in one image."""
    written = io.BytesIO()
    with mpl.rc_context(settings(theme)):
        heights = (layout.distribution_height, layout.timeline_height)
        figure = Figure(figsize=(layout.width, sum(heights)), layout="constrained")
        grid = figure.add_gridspec(2, 1, height_ratios=heights)
        for place, draw in enumerate((distribution, timeline)):
            draw(figure.add_subfigure(grid[place]), results, theme, layout)
        figure.savefig(written, format="png", dpi=_PNG_DPI, metadata={"Software": None})
    return written.getvalue()


def data_uri(media_type: str, content: bytes) -> str:
    """Content in a reference, so that a page needs no other file."""
    return f"data:{media_type};base64,{base64.b64encode(content).decode()}"


def settings(theme: Theme) -> dict[Any, Any]:
    """For matplotlib: the theme, and the same bytes from the same results."""
    lines = ("axes.edgecolor", "xtick.color", "ytick.color", "axes.labelcolor")
    return {
        "figure.facecolor": theme.surface,
        "savefig.facecolor": theme.surface,
        "axes.facecolor": theme.surface,
        "grid.color": theme.grid,
        "text.color": theme.ink,
        **dict.fromkeys(lines, theme.muted),
        "font.family": "DejaVu Sans",
        "font.size": 8.5,
        "axes.titlesize": 9.5,
        "axes.labelsize": 8.5,
        "svg.fonttype": "path",
        "svg.hashsalt": "priority-router",
    }
