# SPDX-License-Identifier: Apache-2.0
"""The page: complete in itself, and its numbers are the measured ones."""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from priority_router.ops.demo import page, tables, verdict
from support.demo_results import BEFORE, CLASSIFIED, results
from support.html_page import Page, assert_it_needs_nothing_else

CREATED = "2026-01-02 03:04 UTC"
RESULTS = results(replace(BEFORE, online_ms=30, unanswered=0.01, seed=2))


@pytest.fixture(scope="module")
def charts():
    return page.pictures(RESULTS)


@pytest.fixture(scope="module")
def html(charts):
    return page.as_html(RESULTS, verdict.judge(RESULTS), charts, CREATED)


@pytest.fixture(scope="module")
def read(html):
    return Page(html)


def test_it_needs_nothing_else(html):
    assert_it_needs_nothing_else(html)


def test_its_images_need_nothing_else(read):
    uris = [value for _, attributes in read.elements for value in attributes.values() if value.startswith("data:")]
    assert len(uris) == 2 * 4
    for uri in uris:
        head, _, content = uri.partition(",")
        assert head == "data:image/svg+xml;base64"
        root = ElementTree.fromstring(base64.b64decode(content))
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        for element in root.iter():
            assert not element.tag.endswith(("}script", "}foreignObject"))
            for name, value in element.attrib.items():
                assert not name.endswith("href") or value.startswith(("#", "data:image/png;base64,"))


def test_each_theme_and_width_has_its_own_image(read, charts):
    sources = [attributes["media"] for tag, attributes in read.elements if tag == "source"]
    dark, narrow = "(prefers-color-scheme: dark)", f"(max-width: {page.NARROW_PIXELS}px)"
    assert sources == [f"{dark} and {narrow}", narrow, dark] * 2
    for chart in charts:
        widths = [float(re.findall(r'viewBox="0 0 ([\d.]+)', text)[0]) for text in chart.drawn]
        assert widths[0] == widths[1] < 300 < widths[2] == widths[3]
        assert ["#14181d" in text for text in chart.drawn] == [True, False, True, False]


def test_images_are_told_in_words(read):
    for tag, attributes in read.elements:
        if tag == "img":
            assert all(arm in attributes["alt"] for arm in RESULTS.arms)
    latency = RESULTS.arms["router"].classes["online"].latency
    times = ", ".join(f"{name} {latency[key]:.0f} ms" for name, key in tables.TIMES.items())
    assert f"router {times}." in next(a["alt"] for tag, a in read.elements if tag == "img")


def test_the_verdict_and_what_the_router_adds_are_said(read):
    assert verdict.judge(RESULTS).sentence in read.text
    assert "What the router adds is the difference between router and levels+hooks." in read.text
    assert CREATED in read.text


@pytest.mark.parametrize("arm", RESULTS.arms)
def test_the_numbers_of_each_class_are_the_measured_ones(read, arm):
    summary = RESULTS.arms[arm]
    for caption in ("Outcomes", "Latency, ms"):
        table = read.tables[caption]
        at = table.index([arm])
        for row, (name, one) in zip(table[at + 1 : at + 3], summary.classes.items(), strict=True):
            failed = sum(one.outcomes[label] for label in ("queue_full", "timeout", "cancelled", "other"))
            answered, waiting = one.outcomes["success"], one.outcomes["unanswered"]
            expected = {
                "Outcomes": [str(answered), str(waiting), str(failed), f"{one.rows_per_s:.1f}"],
                "Latency, ms": [f"{one.latency[key]:.0f}" for key in ("p50_ms", "p95_ms", "p99_ms")],
            }[caption]
            assert row == [name, *expected]


def test_the_numbers_of_the_executor_are_the_measured_ones(read):
    head, *rows = read.tables["Busy: share of the time in which it computed"]
    assert head == ["arm", "busy", "rows per batch", "ms per row"]
    assert rows == [[name, f"{one.busy:.0%}", "3.9", "10.0"] for name, one in RESULTS.arms.items()]


def test_the_classified_files_are_told(read):
    _, first, second = read.tables["Time in the router’s queue and in the executor, ms"]
    assert first == ["setup.py", "python", "99.8%", "1.5", "9.0"]
    assert len(second[0]) < len(CLASSIFIED[1].path.name)
    assert second[1:] == ["zip", "92.0%", "25.9", "11.2"]


def test_a_label_that_the_model_is_not_sure_of_is_marked(charts):
    unsure = replace(CLASSIFIED[0], label="lua", score=0.33)
    spoilt = replace(RESULTS, classified=[unsure, *CLASSIFIED])
    told = Page(page.as_html(spoilt, verdict.judge(spoilt), charts, CREATED))
    _, first, second, _ = told.tables["Time in the router’s queue and in the executor, ms"]
    assert (first[1], second[1]) == ("lua?", "python")
    assert "Through the router, class online, while background work was still queued" in told.text
    assert "(?: the model is less than 50% sure)." in told.text


def test_the_load_is_that_of_the_run(read):
    assert "can do 100 rows/s on this machine is offered 1.4 times that for 25 s" in read.text
    assert "online 20 and background 120 rows/s, real files" in read.text


def test_what_spoils_the_numbers_is_told_and_text_is_no_markup(charts):
    failures: list[dict[str, int | str]] = [{"status": 500, "text": "<script>broken</script>", "count": 3}]
    spoilt = replace(RESULTS, arms=RESULTS.arms | {"router": replace(RESULTS.arms["router"], failures=failures)})
    read = Page(page.as_html(spoilt, verdict.judge(spoilt), charts, CREATED))
    assert "router: 3 failed: <script>broken</script> (status 500)" in read.text
    assert "script" not in {tag for tag, _ in read.elements}


def test_without_warnings_there_is_no_place_for_them(read):
    assert "Beware" not in read.text
