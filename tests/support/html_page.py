# SPDX-License-Identifier: Apache-2.0
"""What stands in an HTML page: its elements, its tables, its text."""

from __future__ import annotations

import re
from html.parser import HTMLParser

_FOREIGN = {"script", "link", "iframe", "object", "embed", "base", "form", "audio", "video"}


class Page(HTMLParser):
    """Reads a page.

    Attributes:
        elements: tags in order, with their attributes.
        tables: by caption, rows of cells, the head first.
        text: everything outside elements ``style``, white space joined.
    """

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.tables: dict[str, list[list[str]]] = {}
        self._words: list[str] = []
        self._rows: list[list[str]] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()
        self.text = " ".join(" ".join(self._words).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in ("meta", "img", "source", "br"):
            self._open.append(tag)
        if tag == "tr":
            self._rows.append([])
        elif tag in ("td", "th"):
            self._rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" in self._open:
            return
        self._words.append(data)
        if "caption" in self._open:
            self._rows = self.tables[data] = []
        elif "td" in self._open or "th" in self._open:
            self._rows[-1][-1] += data


def assert_it_needs_nothing_else(html: str) -> None:
    """Nothing runs in a page, and nothing in it comes from elsewhere."""
    read = Page(html)
    assert not {tag for tag, _ in read.elements} & _FOREIGN
    for tag, attributes in read.elements:
        assert not [name for name in attributes if name.startswith("on")]
        for name in ("src", "srcset", "href", "xlink:href", "data", "action"):
            assert attributes.get(name, "data:").startswith("data:"), tag
    assert not re.search(r"https?:|url\(|@import|//[a-z]", re.sub(r"base64,[A-Za-z0-9+/=]+", "", html))
