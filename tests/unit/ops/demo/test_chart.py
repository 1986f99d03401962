# SPDX-License-Identifier: Apache-2.0
"""The charts: valid images, readable, and the same from the same results."""

from __future__ import annotations

import io
from dataclasses import replace

import matplotlib.image
import numpy as np
import pytest
from matplotlib.figure import Figure
from priority_router.ops.demo import chart
from priority_router.ops.demo.chart import NARROW, WIDE
from priority_router.ops.pages.theme import DARK, LIGHT
from support.demo_results import BEFORE, results

RESULTS = results(replace(BEFORE, online_ms=30, seed=2))


def drawn(draw, layout=WIDE):
    figure = Figure(layout="constrained")
    draw(figure, RESULTS, LIGHT, layout)
    return figure


def test_the_png_is_an_image_with_something_on_it():
    content = chart.png(RESULTS)
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    pixels = matplotlib.image.imread(io.BytesIO(content))
    height, width, _ = pixels.shape
    assert (width, height) == (1210, 781)
    for colour in LIGHT.arms:
        wanted = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        assert np.count_nonzero(np.abs(pixels[..., :3] - wanted).max(axis=-1) < 0.02) > 200, colour


def test_the_same_results_give_the_same_bytes():
    one, other = (chart.svg(chart.timeline, RESULTS, DARK, NARROW, NARROW.timeline_height) for _ in range(2))
    assert one == other
    assert chart.png(RESULTS) == chart.png(RESULTS)


@pytest.mark.parametrize("class_name", ["online", "background"])
def test_a_curve_ends_at_the_share_that_was_answered(class_name):
    requests = RESULTS.requests["levels"][class_name]
    shares, latencies = chart.curve(requests)
    assert len(shares) == len(requests.answered)
    assert shares[0] == 0
    assert shares[-1] == pytest.approx((len(requests.answered) - 1) / len(requests.latency_ms))
    assert (np.diff(latencies) >= 0).all()
    at = np.searchsorted(shares, 0.5)
    assert np.mean(requests.latency_ms <= latencies[at]) == pytest.approx(0.5, abs=0.01)


def test_the_distribution_has_a_curve_per_class_and_arm():
    online, background = drawn(chart.distribution).axes
    for axes, name in ((online, "online"), (background, "background")):
        assert axes.get_title(loc="left") == name
        assert axes.get_yscale() == "log"
        for line, by_class in zip(axes.lines, RESULTS.requests.values(), strict=True):
            assert line.get_ydata().tolist() == by_class[name].answered.tolist()


def test_the_timeline_has_every_request_of_every_arm():
    panels = drawn(chart.timeline).axes
    assert [axes.get_title(loc="left") for axes in panels] == list(RESULTS.requests)
    for axes, by_class in zip(panels, RESULTS.requests.values(), strict=True):
        assert axes.get_yscale() == "log"
        lengths = [len(line.get_ydata()) for line in axes.lines]
        expected = [(len(one.answered), len(one.at_s) - len(one.answered)) for one in reversed(by_class.values())]
        assert lengths == [number for pair in expected for number in pair]


@pytest.mark.filterwarnings("error")
def test_an_arm_without_any_answer_is_drawn():
    nothing = results(replace(BEFORE, unanswered=1.0, background=0.0))
    assert chart.png(nothing).startswith(b"\x89PNG")


def luminance(colour):
    linear = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in linear]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_contrast_is_enough_for_text(theme):
    """WCAG 2.2, 1.4.3: 4.5 to 1. Names of arms are text in their colours."""
    for colour in (theme.ink, theme.muted, *theme.arms):
        dim, bright = sorted((luminance(colour), luminance(theme.surface)))
        assert (bright + 0.05) / (dim + 0.05) >= 4.5, colour
