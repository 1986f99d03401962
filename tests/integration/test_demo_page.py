# SPDX-License-Identifier: Apache-2.0
"""The demonstration's page as a browser shows it, light and dark, on a desktop and on a phone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from priority_router.ops.demo import page, verdict
from priority_router.ops.pages.theme import DARK, LIGHT
from support import browser
from support.browser import rgb
from support.demo_results import BEFORE, results

pytestmark = [pytest.mark.slow, pytest.mark.browser]

WIDTHS = {"desktop": 1280, "phone": 390}
THEMES = {"light": LIGHT, "dark": DARK}


@pytest.fixture(scope="module")
def html():
    made = results(replace(BEFORE, online_ms=30, seed=2, late_p99_ms=25))
    return page.as_html(made, verdict.judge(made), page.pictures(made), "2026-01-02 03:04 UTC")


@pytest.fixture(scope="module", params=[(theme, device) for theme in THEMES for device in WIDTHS], ids="-".join)
def shown(request, html, tmp_path_factory):
    theme, device = request.param
    folder = tmp_path_factory.mktemp(f"{theme}-{device}")
    return THEMES[theme], WIDTHS[device], browser.show(html, WIDTHS[device], theme == "dark", folder)


def test_nothing_overflows(shown):
    _, width, seen = shown
    assert seen.measured["width"] == width
    assert seen.measured["scrollWidth"] <= width
    assert seen.measured["overflowing"] == []


def test_it_follows_the_readers_theme(shown):
    theme, _, seen = shown
    assert seen.measured["background"] == f"rgb{rgb(theme.surface)}"
    corner = seen.pixels[2, 2] * 255
    assert corner == pytest.approx(rgb(theme.surface), abs=1)


def test_each_image_is_the_one_for_theme_and_width(shown, html):
    theme, width, seen = shown
    place = 2 * (width > page.NARROW_PIXELS) + (theme is LIGHT)
    uris = [part.split('"')[0] for part in html.split('srcset="')[1:]]
    plain = [part.split('"')[0] for part in html.split('<img src="')[1:]]
    for number, image in enumerate(seen.measured["images"]):
        assert image["natural"] > 0
        expected = [*uris[3 * number : 3 * number + 3], plain[number]][place]
        assert image["chosen"] == len(expected)


def test_the_screen_is_not_blank_and_every_arm_has_its_colour(shown):
    theme, width, seen = shown
    assert seen.pixels.shape == (seen.measured["height"], width, 3)
    bands = np.array_split(seen.pixels, seen.measured["height"] // 400)
    assert all(band.std() > 0.01 for band in bands)
    for colour in (*theme.arms, theme.ink):
        near = np.abs(seen.pixels * 255 - rgb(colour)).max(axis=-1) < 6
        assert np.count_nonzero(near) > 100, colour


def test_something_that_overflows_is_noticed(html, tmp_path):
    wide = html.replace("<main>", '<main><div style="width: 700px">too wide</div>')
    seen = browser.show(wide, 390, False, tmp_path)
    assert seen.measured["scrollWidth"] == 700 + 16
    assert "too wide" in seen.measured["overflowing"][0]
