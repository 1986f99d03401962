# SPDX-License-Identifier: Apache-2.0
"""The page: its parts in their order."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any, Final

from priority_router.ops.bench.page import bars, latency, over_time, summary
from priority_router.ops.bench.page.run import Run
from priority_router.ops.pages import html

_STYLE: Final = Path(__file__).with_name("page.css")


def as_html(document: Mapping[str, Any]) -> str:
    """A run as a page that needs nothing else.

    Args:
        document: in the form of docs/bench.schema.json; of a run that was cut short what there is of it.
    """
    run = Run.of(document)
    scenario = document["scenario"]
    parts = [summary.verdict(run), html.warnings(document["warnings"])]
    parts += _measured(run) if run.arms else ["<section><p>No arm was measured to its end.</p></section>\n"]
    body = (
        f'<header>\n<p class="eyebrow">priority-router bench · {escape(_when(run))}</p>\n'
        f'<h1>{escape(scenario["name"])}</h1>\n<p class="lead">{escape(scenario["meaning"])}</p>\n</header>\n'
        f"<main>\n{''.join([*parts, summary.how(run)])}</main>\n"
    )
    return html.page(f"{scenario['name']}: priority-router bench", _STYLE.read_text(encoding="utf-8"), body)


def _measured(run: Run) -> list[str]:
    return [
        summary.glance(run),
        summary.compared(run),
        latency.distributions(run),
        _figures(run),
        over_time.timelines(run),
        bars.outcomes(run),
        bars.served(run),
        bars.executor(run),
        summary.aims(run),
    ]


def _figures(run: Run) -> str:
    tables = f"{latency.numbers(run)}\n{latency.router_queue(run)}"
    return f'<details><summary>The same in figures</summary>\n<div class="columns">{tables}</div>\n</details>\n'


def _when(run: Run) -> str:
    document = run.document
    count = sum(bool(finished) for finished in document["rounds"])
    planned = document["scenario"]["rounds"]
    rounds = f"{count} of {planned} rounds" if document["interrupted"] else f"{count} round{'' if count == 1 else 's'}"
    version = document["versions"]["triton"]
    triton = [f"Triton {version}"] if version else []
    return " · ".join([document["created"][:10], *triton, rounds])
