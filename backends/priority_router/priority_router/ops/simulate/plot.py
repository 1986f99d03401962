# SPDX-License-Identifier: Apache-2.0
"""A chart of what each class experienced, router and oracle side by side; needs the package matplotlib."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from matplotlib.figure import Figure

_SHOWN: Final = {"p50_ms": "p50", "p95_ms": "p95", "p99_ms": "p99"}
_COLOURS: Final = ("#3b6ea8", "#9db8d4")


def draw(path: Path, arms: Mapping[str, Mapping[str, Any]], title: str) -> None:
    """Writes a chart.

    Args:
        path: ends with one of `command.PLOT_SUFFIXES`.
        arms: what `table.over_rounds` says of each.
        title: above it.
    """
    names = list(next(iter(arms.values()))["classes"])
    figure = Figure(figsize=(2 + 2.4 * len(names), 4), layout="constrained")
    axes = figure.add_subplot()
    width = 0.8 / len(arms)
    labels = []
    for place, (arm, numbers) in enumerate(arms.items()):
        spots, heights = [], []
        for at, name in enumerate(names):
            for step, what in enumerate(_SHOWN):
                spread = numbers["classes"][name]["latency"][what]
                spots.append(at * (len(_SHOWN) + 0.6) + step + place * width)
                heights.append(0.0 if spread is None else spread["median"])
        colour = _COLOURS[place % len(_COLOURS)]
        axes.bar(spots, heights, width, label=arm, color=colour)
    for at, name in enumerate(names):
        for step, shown in enumerate(_SHOWN.values()):
            middle = at * (len(_SHOWN) + 0.6) + step + (len(arms) - 1) * width / 2
            labels.append((middle, f"{shown}\n{name}" if step == 1 else shown))
    axes.set_xticks([spot for spot, _ in labels], [text for _, text in labels])
    axes.set_yscale("log")
    axes.set_ylabel("ms from sending to answer")
    axes.set_title(title, fontsize=10)
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    # Dates and random names would make every run's file another one.
    metadata = {"Date": None} if path.suffix == ".svg" else {}
    figure.savefig(path, dpi=120, metadata=metadata)
