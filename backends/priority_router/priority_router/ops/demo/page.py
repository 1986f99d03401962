# SPDX-License-Identifier: Apache-2.0
"""The demonstration's results as one HTML page that needs nothing else: no script, no other file, no network.

Law: results and images in, HTML out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Final

from priority_router import __version__
from priority_router.ops.bench.paired import BLOCK_SECONDS, JUDGED_CONFIDENCE, LEAST_SHARE
from priority_router.ops.demo import tables
from priority_router.ops.demo.chart import NARROW, WIDE, data_uri, distribution, svg, timeline
from priority_router.ops.demo.measurements import Results
from priority_router.ops.demo.verdict import Verdict
from priority_router.ops.loads import BACKGROUND, ONLINE
from priority_router.ops.pages import html
from priority_router.ops.pages.theme import DARK, LIGHT

NARROW_PIXELS: Final = 640
"""Up to this width a page shows the narrow layout."""

_STYLE: Final = Path(__file__).with_name("page.css")
_VARIANTS: Final = ((DARK, NARROW), (LIGHT, NARROW), (DARK, WIDE), (LIGHT, WIDE))


@dataclass(frozen=True, slots=True)
class Picture:
    """One chart, drawn for each theme and layout.

    Attributes:
        drawn: SVG text by theme and layout, in the order of ``_VARIANTS``.
        alt: what it shows, for those who cannot see it.
        caption: how to read it.
    """

    drawn: Sequence[str]
    alt: str
    caption: str


def pictures(results: Results) -> list[Picture]:
    """Draws the charts of a page."""
    arms = ", ".join(results.requests)
    times = "; ".join(f"{name} {_times(one.classes[ONLINE].latency)}" for name, one in results.arms.items())
    return [
        Picture(
            [svg(distribution, results, theme, size, size.distribution_height) for theme, size in _VARIANTS],
            f"Latency distribution of classes {ONLINE} and {BACKGROUND} on {arms}. {ONLINE}: {times}.",
            "Left to right: the share of all requests that was answered within the time on the left. Each curve ends "
            "where the rest had no answer when the last online request had been answered.",
        ),
        Picture(
            [svg(timeline, results, theme, size, size.timeline_height) for theme, size in _VARIANTS],
            f"Latency of each request over its arrival time, one panel each for {arms}: coloured points are class "
            f"{ONLINE}, grey ones {BACKGROUND}.",
            f"Every point is a request: {ONLINE} in the colour of the arm, {BACKGROUND} in grey. Marks along the top "
            "are requests without an answer by then.",
        ),
    ]


def as_html(results: Results, verdict: Verdict, charts: Iterable[Picture], created: str) -> str:
    """The page.

    Args:
        results: what was measured.
        verdict: what it says.
        charts: from `pictures`.
        created: when, for people.
    """
    distribution_chart, timeline_chart = (_figure(one) for one in charts)
    window = next(iter(next(iter(results.requests.values())).values())).window_s
    body = f"""<header>
<p class="eyebrow">triton-priority-router {escape(__version__)}</p>
<h1>One model, two classes of traffic</h1>
<p class="lead">{escape(_load(results, window))}</p>
</header>
<main>
<section class="verdict" aria-label="Verdict">
<p>{escape(verdict.sentence)}</p>
<p class="note">{escape(f"{tables.ROUTER_ADDS} {_NOISE}")}</p>
</section>
{html.warnings(tables.warnings(results))}<section class="arms" aria-label="Arms">
{_cards(results)}</section>
<section>
<h2>Latency distribution</h2>
{distribution_chart}</section>
<section>
<h2>Latency over time</h2>
{timeline_chart}</section>
<section>
<h2>What each class experienced</h2>
<p>{escape(tables.LATENCY_MEANS)} “Waiting” had no answer when the last online request had been answered: with more
offered than the model can do, background work must pile up.</p>
<div class="columns">
{_class_table(results, "Outcomes", tables.OUTCOMES)}
{_class_table(results, "Latency, ms", tuple(tables.TIMES))}
</div>
</section>
<section class="columns">
<div>
<h2>What the executor did</h2>
{_executor_table(results)}
</div>
<div>
<h2>Files classified meanwhile</h2>
<p>{escape(tables.files_mean(results).capitalize())}.</p>
{_file_table(results)}
</div>
</section>
</main>
<footer><p>{escape(created)}. Server, model and load generator shared this machine’s cores. <code>scripts/demo</code>
does it again.</p></footer>
"""
    return html.page("Priority router: demonstration", _STYLE.read_text(encoding="utf-8"), body)


_NOISE: Final = (
    f"A difference counts when it keeps its sign in {JUDGED_CONFIDENCE * 100:g} of 100 random draws of the run’s "
    f"{BLOCK_SECONDS:g}-second blocks, the same for both arms, and is at least {LEAST_SHARE * 100:g} % of the number "
    "that it is compared with; requests without an answer count as the slowest."
)


def _load(results: Results, window: float) -> str:
    offered = results.capacity.offered
    share = sum(one.rate for one in offered) / results.capacity.rows_per_s
    rates = " and ".join(f"{one.name} {one.rate:.0f}" for one in offered)
    return (
        f"A file-type model that can do {results.capacity.rows_per_s:.0f} rows/s on this machine is offered "
        f"{share:.1f} times that for {window:g} s: {rates} rows/s, real files in the same order on each of "
        f"{len(results.arms)} arms."
    )


def _times(latency: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {latency[key]:.0f} ms" for name, key in tables.TIMES.items() if key in latency) or "-"


def _cards(results: Results) -> str:
    cards = []
    for place, (name, meaning) in enumerate(tables.meanings(results).items()):
        summary = results.arms[name]
        online, background = (tables.of_class(summary.classes[one]) for one in (ONLINE, BACKGROUND))
        numbers = (
            (f"{online['p50']} / {online['p95']}", "online p50 / p95, ms"),
            (background["rows/s"], "background rows/s"),
            (tables.of_executor(summary)["busy"], "busy"),
        )
        lines = "".join(f"<div><dt>{escape(unit)}</dt><dd>{escape(value)}</dd></div>" for value, unit in numbers)
        head = f"<h3>{escape(name)}</h3><p>{escape(meaning)}</p>"
        cards.append(f'<article style="--arm: var(--arm{place})">{head}<dl>{lines}</dl></article>\n')
    return "".join(cards)


def _figure(chart: Picture) -> str:
    drawn = [data_uri("image/svg+xml", text.encode()) for text in chart.drawn]
    dark, narrow = "(prefers-color-scheme: dark)", f"(max-width: {NARROW_PIXELS}px)"
    sources = zip((f"{dark} and {narrow}", narrow, dark), drawn, strict=False)
    return (
        "<figure><picture>\n"
        + "".join(f'<source media="{media}" srcset="{uri}">\n' for media, uri in sources)
        + f'<img src="{drawn[-1]}" alt="{escape(chart.alt)}">\n</picture>\n'
        + f"<figcaption>{escape(chart.caption)}</figcaption></figure>\n"
    )


def _class_table(results: Results, caption: str, columns: Sequence[str]) -> str:
    groups = []
    for place, (name, summary) in enumerate(results.arms.items()):
        rows = [_row(class_name, tables.of_class(one), columns) for class_name, one in summary.classes.items()]
        groups.append(html.group(html.swatch(f"arm{place}", name), len(columns) + 1, rows))
    return html.table(caption, "class", columns, groups)


def _executor_table(results: Results) -> str:
    rows = [
        html.row(html.swatch(f"arm{place}", name), html.cells(tables.of_executor(summary), tables.EXECUTOR))
        for place, (name, summary) in enumerate(results.arms.items())
    ]
    caption = "Busy: share of the time in which it computed"
    return html.table(caption, "arm", tables.EXECUTOR, [html.rows(rows)])


def _file_table(results: Results) -> str:
    columns = ("label", "score", "router", "executor")
    rows = [_row(one["file"], one, columns) for one in map(tables.of_file, results.classified)]
    return html.table("Time in the router’s queue and in the executor, ms", "file", columns, [html.rows(rows)])


def _row(name: str, cells: Mapping[str, str], columns: Sequence[str]) -> str:
    return html.row(escape(name), html.cells(cells, columns))
