# SPDX-License-Identifier: Apache-2.0
"""A run's page as a browser shows it: on a desktop and on a phone, without asking anyone for anything."""

from __future__ import annotations

import pytest
from priority_router.ops.bench.page import page
from priority_router.ops.pages.theme import DARK, LIGHT
from support import bench_document, browser

pytestmark = [pytest.mark.slow, pytest.mark.browser]


@pytest.fixture(scope="module")
def html():
    return page.as_html(bench_document.told(bench_document.results()))


@pytest.mark.parametrize(("width", "theme"), [(1200, LIGHT), (360, DARK)], ids=["desktop", "phone"])
def test_it_fits_whatever_is_folded_away(html, width, theme, tmp_path):
    opened = html.replace("<details>", "<details open>")
    assert opened.count("<details open>") >= 3
    seen = browser.measure(opened, width, theme is DARK, tmp_path)
    assert (seen["width"], seen["scrollWidth"]) == (width, width)
    assert seen["overflowing"] == []
    assert seen["background"] == f"rgb{browser.rgb(theme.surface)}"
    assert seen["requests"] == []


def test_what_overflows_or_asks_for_something_is_noticed(html, tmp_path):
    spoilt = html.replace("<main>", '<main><img src="http://127.0.0.1:1/x.png"><p style="width: 700px">too wide</p>')
    seen = browser.measure(spoilt, 360, False, tmp_path)
    assert "too wide" in seen["overflowing"][0]
    assert seen["requests"] == ["http://127.0.0.1:1/x.png"]
