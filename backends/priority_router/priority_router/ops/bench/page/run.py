# SPDX-License-Identifier: Apache-2.0
"""What a page reads from a run's document, and numbers as it writes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Final

from priority_router.ops.bench.table import short
from priority_router.ops.pages import html

QUANTILES: Final = ("p50", "p95", "p99")
NOTHING: Final = "–"
ORACLE_MEANS: Final = "simulated: the best that could be"

_COLOURS: Final = ("arm3", "arm2", "arm1", "good", "arm0")


@dataclass(frozen=True, slots=True)
class Class:
    """A class, or a step of a closed loop, as the page shows it.

    Attributes:
        name: as in the document.
        colour: name of a CSS variable.
        target_ms: the latency that its requests are to keep; None: any answer is good.
    """

    name: str
    colour: str
    target_ms: float | None

    @property
    def style(self) -> str:
        """For an element inside which ``var(--own)`` is the colour."""
        return f'style="--own: var(--{self.colour})"'

    @property
    def swatch(self) -> str:
        """Markup of its name behind its colour."""
        return html.swatch(self.colour, self.name)


@dataclass(frozen=True, slots=True)
class Run:
    """A document, with what a page asks of it.

    Attributes:
        document: in the form of docs/bench.schema.json.
        classes: the most urgent one first.
    """

    document: Mapping[str, Any]
    classes: Sequence[Class]

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Run:
        """Reads a document."""
        scenario = document["scenario"]
        targets = {load["name"]: load["target_ms"] for load in scenario["loads"]}
        levels = {load["name"]: scenario["levels"][load["class_name"] or load["name"]] for load in scenario["loads"]}
        seen = dict.fromkeys(name for arm in document["arms"].values() for name in arm["classes"])
        names = sorted(seen, key=lambda name: levels.get(name, 0))
        colours = [_COLOURS[place % len(_COLOURS)] for place in range(len(names))]
        return cls(
            document, [Class(name, colour, targets.get(name)) for name, colour in zip(names, colours, strict=True)]
        )

    @property
    def arms(self) -> Mapping[str, Mapping[str, Any]]:
        """By name the arms that finished at least one round, over their rounds."""
        arms: Mapping[str, Mapping[str, Any]] = self.document["arms"]
        return arms

    @property
    def oracle(self) -> Mapping[str, Any] | None:
        """The best that the same arrivals could have had, where that is known."""
        oracle: Mapping[str, Any] | None = self.document.get("oracle")
        return oracle

    @property
    def closed(self) -> bool:
        """Whether it was a closed loop, whose steps stand where classes do."""
        return bool(self.document["scenario"]["in_flight"])

    def of_class(self, name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Each arm with what it says of a class over its rounds."""
        return ((arm, one["classes"][name]) for arm, one in self.arms.items())

    def in_rounds(self, arm: str) -> list[Mapping[str, Any]]:
        """An arm in each round that it finished."""
        return [finished[arm] for finished in self.document["rounds"] if arm in finished]

    def histogram(self, arm: str, name: str) -> dict[int, int]:
        """A class's answers over all rounds, by the place of the edge that they lie above."""
        counted: dict[int, int] = {}
        for finished in self.in_rounds(arm):
            told = finished["classes"][name]["histogram"]
            for place, count in enumerate(told["counts"], told["first"]):
                counted[place] = counted.get(place, 0) + count
        return counted


def milliseconds(value: float | None) -> str:
    """A time with its unit."""
    if value is None:
        return NOTHING
    return f"{short(value / 1000)} s" if value >= 1000 else f"{short(value)} ms"


def axis_time(value: float) -> str:
    """Likewise beside an axis, where values are round."""
    return f"{value / 1000:g} s" if value >= 1000 else f"{value:g} ms"


def share(value: float | None) -> str:
    """A share in percent, to a tenth where that says more."""
    if value is None:
        return NOTHING
    return f"{value:.1%}" if 0.99 <= value < 0.9995 or 0 < value < 0.01 else f"{value:.0%}"


def with_ends(told: Mapping[str, float | None], key: str) -> str:
    """Markup of a number with the ends of its interval below it.

    Args:
        told: has the number, ``low`` and ``high``.
        key: of the number.
    """
    value, low, high = (told[one] for one in (key, "low", "high"))
    if value is None:
        return NOTHING
    ends = "" if low is None or high is None or low == high else f"<small>{short(low)}–{short(high)}</small>"
    return f"{short(value)}{ends}"


def section(head: str, words: str, body: str) -> str:
    """A part of the page: markup under a headline, with a line on how to read it."""
    return f'<section>\n<h2>{escape(head)}</h2>\n<p class="how">{escape(words)}</p>\n{body}</section>\n'
