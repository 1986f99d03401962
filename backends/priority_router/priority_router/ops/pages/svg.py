# SPDX-License-Identifier: Apache-2.0
"""SVG that takes the width it is given: places across are shares of it, and heights and texts keep their pixels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final, Literal

GRAIN: Final = 1000
"""Units across a stretched shape."""

Anchor = Literal["start", "middle", "end"]
Point = tuple[float, float]
"""A share of the width, 0 to 1, and pixels from above."""


def drawing(height: float, parts: Iterable[str], label: str = "") -> str:
    """An SVG element as wide as its place.

    Args:
        height: pixels.
        parts: markup of what is drawn.
        label: what it shows, for those who cannot see it; without one it says nothing that is not written beside it.
    """
    told = f'role="img" aria-label="{escape(label)}"' if label else 'aria-hidden="true"'
    return f'<svg class="plot" width="100%" height="{height:g}" {told}>{"".join(parts)}</svg>\n'


def line(style: str, from_x: float, to_x: float, from_y: float, to_y: float) -> str:
    """A straight line; x in shares of the width."""
    return (
        f'<line class="{style}" x1="{from_x:.2%}" x2="{to_x:.2%}" y1="{_pixels(from_y)}" y2="{_pixels(to_y)}"></line>'
    )


def bar(style: str, from_x: float, to_x: float, y: float, height: float, title: str = "") -> str:
    """A box; x in shares of the width. ``title`` is what a pointer over it shows."""
    told = f"<title>{escape(title)}</title>" if title else ""
    return (
        f'<rect class="{style}" x="{from_x:.2%}" width="{max(0.0, to_x - from_x):.2%}" y="{_pixels(y)}" '
        f'height="{_pixels(height)}">{told}</rect>'
    )


def dot(style: str, x: float, y: float, radius: float = 3.5) -> str:
    """A round mark."""
    return f'<circle class="{style}" cx="{x:.2%}" cy="{_pixels(y)}" r="{radius:g}"></circle>'


def text(x: float, y: float, words: str, style: str = "m", anchor: Anchor = "start", aside: float = 0.0) -> str:
    """One line of text on its base line, ``aside`` pixels to the right of x."""
    shift = f' dx="{aside:g}"' if aside else ""
    return f'<text class="{style}" x="{x:.2%}" y="{_pixels(y)}" text-anchor="{anchor}"{shift}>{escape(words)}</text>'


def stretched(height: float, parts: Iterable[str], top: float = 0.0) -> str:
    """Room for paths, whose x goes from 0 to ``GRAIN`` over the whole width."""
    return (
        f'<svg x="0" y="{_pixels(top)}" width="100%" height="{_pixels(height)}" viewBox="0 0 {GRAIN} {height:g}" '
        f'preserveAspectRatio="none">{"".join(parts)}</svg>'
    )


def path(style: str, pieces: Iterable[Sequence[Point]], *, closed: bool = False) -> str:
    """Lines through points, one for each piece, for use in `stretched`; a piece of one point is a dot."""
    end = "Z" if closed else ""
    drawn = "".join(f"M{_along(piece if len(piece) > 1 else [*piece, *piece])}{end}" for piece in pieces if piece)
    return f'<path class="{style}" d="{drawn}"></path>' if drawn else ""


def _along(points: Sequence[Point]) -> str:
    return "L".join(f"{_pixels(x * GRAIN)} {_pixels(y)}" for x, y in points)


def _pixels(value: float) -> str:
    """A tenth of a pixel is as fine as anyone sees."""
    return f"{value:.1f}".removesuffix(".0")
