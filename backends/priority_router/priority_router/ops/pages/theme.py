# SPDX-License-Identifier: Apache-2.0
"""The colours of pages and charts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Theme:
    """Colours on one background.

    Attributes:
        surface: behind everything.
        ink: text.
        muted: axes, and what stays in the back.
        grid: lines behind the data.
        arms: what is told apart by colour, such as arms in the order in which they ran.
        good: what went as it should.
        bad: what went wrong.
    """

    surface: str
    ink: str
    muted: str
    grid: str
    arms: Sequence[str]
    good: str
    bad: str

    def variables(self) -> str:
        """As CSS: ``--surface``, ``--ink``, ``--muted``, ``--line``, ``--arm0`` and so on, ``--good``, ``--bad``."""
        named = {"surface": self.surface, "ink": self.ink, "muted": self.muted, "line": self.grid}
        named |= {f"arm{place}": colour for place, colour in enumerate(self.arms)}
        named |= {"good": self.good, "bad": self.bad}
        return f":root {{ {' '.join(f'--{name}: {colour};' for name, colour in named.items())} }}"


LIGHT: Final = Theme(
    "#ffffff", "#1f2328", "#59636e", "#d8dee4", ("#6e7781", "#a33f94", "#aa5a00", "#0062b8"), "#1a7f4b", "#c4321f"
)
DARK: Final = Theme(
    "#14181d", "#e6edf3", "#9aa4ae", "#363d45", ("#a3acb5", "#e28fd3", "#f2a33c", "#5cb0ff"), "#4fbf83", "#ff7b6b"
)
