# SPDX-License-Identifier: Apache-2.0
"""The page of a run: complete in itself, and its numbers are the document's."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator

import pytest
from priority_router.ops.bench.page import bars, over_time, page
from priority_router.ops.bench.scenarios import SCENARIOS
from priority_router.ops.bench.table import short
from support import bench_document
from support.bench_document import ARMS
from support.html_page import Page, assert_it_needs_nothing_else

from . import ledgers

DOCUMENT = bench_document.told(bench_document.results())
HTML = page.as_html(DOCUMENT)
READ = Page(HTML)
HEADLINES = ("Latency", "Over time", "How requests ended", "Rows per second", "What the executor did", "Aims")


def changed(**changes):
    return {**copy.deepcopy(DOCUMENT), **changes}


def drawn(html: str, style: str) -> Iterator[dict[str, str]]:
    """The attributes of all elements of a style."""
    return (attributes for _, attributes in Page(html).elements if attributes.get("class") == style)


def test_it_needs_nothing_else():
    assert_it_needs_nothing_else(HTML)


def test_the_verdict_comes_first_and_then_every_part():
    first, *others = DOCUMENT["verdict"]["sentences"]
    places = [READ.text.index(words) for words in (first, *others, "Beware", *HEADLINES, "How it was measured")]
    assert places == sorted(places)
    assert READ.text.index(first) < 300


def test_warnings_command_and_versions_are_told():
    for warning in DOCUMENT["warnings"]:
        assert warning in READ.text
    assert "priority-router bench 'my plan.toml' --json result.json" in READ.text
    assert f"Triton 2.51.0, Python {DOCUMENT['versions']['python']}" in READ.text
    assert "online 16 requests/s, poisson arrivals, target 150 ms" in READ.text
    assert "Beware" not in Page(page.as_html(changed(warnings=[]))).text


def test_the_table_of_all_arms_has_the_numbers_of_the_document():
    head, *rows = READ.tables["Each arm at a glance"]
    assert head == ["arm", "online p50", "p99", "in time", "background rows/s", "busy"]
    for row, (name, arm) in zip(rows, DOCUMENT["arms"].items(), strict=True):
        assert row[0] == name + arm["meaning"]
        online, background = arm["classes"]["online"], arm["classes"]["background"]
        p50 = online["pooled"]["p50_ms"]["value"]
        assert row[1] == (f"{short(p50)} ms" if p50 < 1000 else f"{short(p50 / 1000)} s")
        assert row[4:] == [short(background["rows_per_s"]["median"]), "97%"]


def test_the_numbers_behind_the_verdict_are_all_there():
    rows = READ.tables["An interval of 99 % decides whether a difference is more than chance"]
    compared = DOCUMENT["verdict"]["compared"]
    assert [row[0] for row in rows if len(row) == 1] == ["router against flat", "router against levels+hooks"]
    told = [row for row in rows[1:] if len(row) == 4]
    for row, one in zip(told, compared, strict=True):
        assert row[0].startswith(one["class"])
        assert row[3].split()[-1] == one["finding"].split()[-1]


@pytest.mark.parametrize("arm", ARMS)
def test_latencies_stand_in_figures_with_their_intervals(arm):
    table = READ.tables["Latency of answered requests, ms, with 95 % intervals"]
    for place, name in enumerate(("online", "background")):
        row = [row for row in table if row[0] == arm][place]
        for cell, key in zip(row[1:], ("p50_ms", "p95_ms", "p99_ms"), strict=False):
            one = DOCUMENT["arms"][arm]["classes"][name]["pooled"][key]
            assert cell == f"{short(one['value'])}{short(one['low'])}–{short(one['high'])}"


def test_each_arm_and_class_has_its_strip_with_quantiles_in_order():
    assert len(list(drawn(HTML, "hill"))) == len(ARMS) * 2
    dots = [float(one["cx"].rstrip("%")) for one in drawn(HTML, "own") if "cx" in one]
    assert len(dots) == len(ARMS) * 2 * 3
    for at in range(0, len(dots), 3):
        assert dots[at] < dots[at + 1] < dots[at + 2]


def test_a_strip_reaches_as_far_as_its_answers():
    """The hill of arm flat begins where its first answers are, on the axis of its class."""
    hills = [one["d"] for one in drawn(HTML, "hill")]
    online = [[float(x) for x in re.findall(r"[ML]([\d.]+) ", hill)] for hill in hills[: len(ARMS)]]
    assert max(online[0]) > 950
    assert max(online[2]) < max(online[0])
    assert min(online[2]) < 50


def test_time_has_a_panel_for_each_arm_and_round():
    labels = [one.get("aria-label", "") for tag, one in READ.elements if tag == "svg"]
    for arm in ARMS:
        assert labels.count(f"{arm}: latency over 12 s") == 2
        assert labels.count(f"{arm}: requests without a reply") == 2
    assert READ.text.count("Round ") == 2


def test_a_gap_in_time_stays_a_gap():
    timeline = {"p50_ms": [1, 2, None, 3], "p95_ms": [2, 3, None, 4], "waiting": [0, 30, 30, 1]}
    spoilt = changed()
    for finished in spoilt["rounds"]:
        for arm in finished.values():
            for one in arm["classes"].values():
                one["timeline"] |= timeline
    curves = [one["d"] for one in drawn(page.as_html(spoilt), "curve")]
    # The first half of each pair is latency: two bins in a line, and one alone, which is a dot.
    assert curves[0].count("M") == 2
    assert re.fullmatch(r"M[\d.]+ [\d.]+L[\d.]+ [\d.]+M([\d.]+ [\d.]+)L\1", curves[0])
    assert curves[2].count("M") == 1


def test_of_many_rounds_the_first_are_drawn():
    many = changed(rounds=DOCUMENT["rounds"] * 4)
    text = Page(page.as_html(many)).text
    assert text.count("Round ") == over_time.MOST_ROUNDS
    assert f"Of 8 rounds the first {over_time.MOST_ROUNDS} are drawn." in text


def test_every_request_is_in_a_bar_by_how_it_ended():
    told = changed()
    ended = {"success": 50, "timeout": 10, "queue_full": 15, "predicted_late": 5, "cancelled": 4, "other": 6}
    told["arms"]["router"]["classes"]["online"]["outcomes"] = {**ended, "unanswered": 10}
    html = page.as_html(told)
    words = "50 success, 10 timeout, 15 queue full, 5 predicted late, 4 cancelled, 6 other, 10 no reply"
    assert words in Page(html).text
    bars_ = [next(drawn(html, f"o-{name}")) for name in ("timeout", "queue-full", "predicted-late", "cancelled")]
    assert [one["width"] for one in bars_] == ["10.00%", "15.00%", "5.00%", "4.00%"]
    assert [one["x"] for one in bars_] == ["50.00%", "60.00%", "75.00%", "80.00%"]


def test_outcomes_of_all_are_counted():
    for arm in DOCUMENT["arms"].values():
        outcomes = arm["classes"]["background"]["outcomes"]
        assert f"{outcomes['success']:,} success, {outcomes['unanswered']:,} no reply" in READ.text


def test_the_executor_is_told_by_time_and_batches():
    told = changed()
    told["arms"]["router"] |= {"busy": {"median": 0.9, "low": 0.8, "high": 0.95}, "mean_batch": None, "batches": {}}
    text = Page(page.as_html(told)).text
    assert "90% (80%–95%) busy batches unknown" in text
    assert "97% busy 3.9 rows per batch" in text
    assert "4 rows: 380 of 400 executions (95%)" in text


def test_many_batch_sizes_are_taken_together():
    told = changed()
    told["arms"]["router"]["batches"] = {str(rows): 1 for rows in range(1, 101)}
    labels = [one.get("aria-label", "") for tag, one in Page(page.as_html(told)).elements if tag == "svg"]
    [words] = [label for label in labels if label.startswith("router: executions")]
    assert words.count(" of ") <= bars.MOST_BARS
    assert "7 of 1–7 rows" in words
    assert "2 of 99–100 rows" in words


@pytest.mark.parametrize(
    "hostile", ["<script>alert(1)</script>", "\"'><img src=x onerror=y>", "&lt;b&gt; </style> -->"]
)
def test_names_are_text_whatever_they_are(hostile):
    quoted = json.dumps(hostile)[1:-1]
    text = json.dumps(changed(command=["x", hostile], warnings=[hostile]))
    for name in ("online", "router", "overload", "2.51.0", "timeout"):
        text = text.replace(f'"{name}"', f'"{quoted}-{name}"')
    spoilt = json.loads(text)
    spoilt["scenario"]["meaning"] = spoilt["scenario"]["trace"] = spoilt["verdict"]["sentences"][0] = hostile
    spoilt["server"] = {"kind": "url", "url": hostile}
    spoilt["arms"]["flat"]["meaning"] = hostile
    html = page.as_html(spoilt)
    read = Page(html)
    assert {tag for tag, _ in read.elements} == {tag for tag, _ in READ.elements}
    assert {name for _, attributes in read.elements for name in attributes} == {
        name for _, attributes in READ.elements for name in attributes
    }
    assert read.text.count(hostile) > 20
    assert html.count("</style>") == 1


def test_what_there_is_of_a_run_that_was_cut_short_is_shown():
    part = changed(interrupted=True)
    part["rounds"] = [part["rounds"][0], {"flat": part["rounds"][1]["flat"]}]
    read = Page(page.as_html(part))
    assert "2 of 2 rounds" in read.text
    assert len(read.tables["Each arm at a glance"]) == 1 + len(ARMS)
    labels = [one.get("aria-label", "") for tag, one in read.elements if tag == "svg"]
    assert [sum(label.startswith(f"{arm}: latency over") for label in labels) for arm in ARMS] == [2, 1, 1]


def test_a_run_without_an_arm_has_a_page():
    for rounds in ([], [()]):
        read = Page(page.as_html(bench_document.told(bench_document.results(rounds, interrupted=True))))
        assert "No arm was measured to its end." in read.text
        assert "No verdict: " in read.text
        assert "How it was measured" in read.text


def test_a_class_without_an_answer_has_a_page():
    silent = changed()
    for arm in silent["arms"].values():
        one = arm["classes"]["online"]
        one["outcomes"] = dict.fromkeys(one["outcomes"], 0)
        one["pooled"] = {key: {"value": None, "low": None, "high": None} for key in one["pooled"]}
        one["latency"] = one["queue_ms"] = dict.fromkeys(one["latency"])
        one["goodput"]["share"] = one["rows_per_s"] = None
    for finished in silent["rounds"]:
        for arm in finished.values():
            arm["classes"]["online"]["histogram"] = {"first": 0, "counts": []}
    text = Page(page.as_html(silent)).text
    assert "no request" in text
    assert "–" in text


def test_steps_of_a_closed_loop_stand_where_classes_do():
    scenario = SCENARIOS["overhead"]
    steps = {"1 in flight": {"p50_ms": 1.0}, "64 in flight": {"p50_ms": 9.0}}
    rounds = [{arm: ledgers.summary(**steps) for arm in ("flat", "router")}]
    html = page.as_html(bench_document.told(ledgers.results(scenario, rounds)))
    read = Page(html)
    assert "closed loop, 1 and 64 requests in flight" in read.text
    assert not list(drawn(html, "offered"))
    assert list(drawn(HTML, "offered"))
    assert read.text.count("1 in flight") >= 5


def test_the_most_urgent_class_comes_first_whatever_its_place():
    other = changed()
    other["scenario"]["loads"].reverse()
    for arm in other["arms"].values():
        arm["classes"] = dict(reversed(arm["classes"].items()))
    read = Page(page.as_html(other))
    assert read.tables["Each arm at a glance"][0][1] == "online p50"


def test_the_oracle_and_what_the_client_can_do_stand_beside_the_arms():
    spread = {"median": 12.0, "low": 11.0, "high": 13.0}
    quantiles = ("p50_ms", "p95_ms", "p99_ms")
    online = {"rows_per_s": spread, "latency": dict.fromkeys(quantiles, spread)}
    background = {"rows_per_s": spread, "latency": dict.fromkeys(quantiles)}
    oracle = {"classes": {"online": online, "background": background}, "busy": None}
    client = {"protocol": "http", "reach_rate": 8000.4, "asked_rate": 126.2, "peak_rate": 156}
    html = page.as_html(changed(oracle=oracle, client=client))
    read = Page(html)
    last = read.tables["Each arm at a glance"][-1]
    assert last == ["oraclesimulated: the best that could be", "12 ms", "12 ms", "–", "12", "–"]
    # Beside the arms' own dots, three in one class; in the other it has no latencies.
    assert len([1 for one in drawn(html, "own") if "cx" in one]) == len(ARMS) * 2 * 3 + 3
    assert "by http it can send 8000 requests/s in time, asked for 126, up to 156 in a second" in read.text
    assert "simulated" not in READ.text
