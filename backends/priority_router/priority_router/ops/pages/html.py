# SPDX-License-Identifier: Apache-2.0
"""A page that needs nothing else, light or dark as its reader prefers, and the parts that pages are made of.

What is called markup is HTML already; everything else is text, and escaped here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Final

from priority_router.ops.pages.theme import DARK, LIGHT

_STYLE: Final = Path(__file__).with_name("base.css")


def page(title: str, style: str, body: str) -> str:
    """A whole page.

    Args:
        title: of the window.
        style: CSS, beside what all pages have.
        body: markup.
    """
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(title)}</title>
<style>
{LIGHT.variables()}
@media (prefers-color-scheme: dark) {{ {DARK.variables()} }}
{_STYLE.read_text(encoding="utf-8")}{style}</style>
</head>
<body>
{body}</body>
</html>
"""


def warnings(texts: Sequence[str]) -> str:
    """What a reader must know before believing the numbers, or nothing."""
    if not texts:
        return ""
    items = "".join(f"<li>{escape(text)}</li>" for text in texts)
    return f'<section class="warnings"><h2>Beware</h2><ul>{items}</ul></section>\n'


def table(caption: str, first: str, columns: Sequence[str], groups: Iterable[str]) -> str:
    """A table.

    Args:
        caption: what it shows.
        first: the name of the first column.
        columns: the names of the others.
        groups: markup, from `rows` or `group`.
    """
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in (first, *columns))
    body = "\n".join(groups)
    return f"<table><caption>{escape(caption)}</caption><thead><tr>{heads}</tr></thead>\n{body}</table>"


def rows(texts: Iterable[str]) -> str:
    """Rows of a table together."""
    return f"<tbody>{''.join(texts)}</tbody>"


def group(head: str, width: int, texts: Iterable[str]) -> str:
    """Rows of a table under a name of their own.

    Args:
        head: markup of the name.
        width: columns of the table, the first one included.
        texts: from `row`.
    """
    name = f'<tr class="arm"><th colspan="{width}" scope="rowgroup">{head}</th></tr>'
    return rows([name, *texts])


def row(head: str, cells: Iterable[str]) -> str:
    """A row of a table: markup of its name, and of its cells."""
    return f'<tr><th scope="row">{head}</th>' + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def cells(named: Mapping[str, str], columns: Iterable[str]) -> list[str]:
    """The texts of a row's cells as markup, in the order of the columns."""
    return [escape(named[one]) for one in columns]


def swatch(colour: str, name: str) -> str:
    """A name behind a patch of its colour, which is the name of a CSS variable."""
    return f'<span class="swatch" style="--arm: var(--{colour})"></span>{escape(name)}'
