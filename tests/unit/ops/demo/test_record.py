# SPDX-License-Identifier: Apache-2.0
"""A run of the demonstration as a file."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from priority_router.ops.demo import record, report, verdict
from support.demo_results import BEFORE, results

SAID = [(0.04, "files"), (12.4, "capacity: 121 rows/s"), (144.0, "done\n")]


def run(**changes):
    made = results(replace(BEFORE, online_ms=30, seed=2), **changes)
    return record.Run(made, verdict.judge(made), SAID, [Path("demo-results/demo.html")])


def stored(one):
    """As a file has it: text that any reader of JSON takes."""
    return json.loads(json.dumps(record.as_json(one, 25.0, 1), allow_nan=False))


def test_what_was_printed_is_made_from_the_file_alone():
    one = run()
    printed = record.from_json(stored(one)).printed()
    assert printed == one.printed()
    assert printed.startswith("[   0 s] files\n[  12 s] capacity: 121 rows/s\n[ 144 s] done\n\nThe same arrivals")
    assert report.as_text(one.results, one.verdict) in printed
    assert printed.endswith("\ndemo-results/demo.html: written")


@pytest.mark.parametrize("figure", ["before", "after"])
def test_its_sentence_follows_the_numbers_of_the_file(figure):
    document = stored(run())
    document["verdict"]["online"]["p50"][figure] = 1234.0
    assert "1234 ms" in record.from_json(document).printed()


def test_without_a_verdict_the_reason_is_kept():
    document = stored(run(hooks=replace(BEFORE, late_p99_ms=99.0)))
    assert document["verdict"]["online"] == {}
    assert "\nNo verdict: on levels+hooks requests were sent up to 99 ms late" in record.from_json(document).printed()


def test_a_class_without_answers_is_no_number_that_json_lacks():
    document = stored(run(hooks=replace(BEFORE, unanswered=0.7)))
    assert document["verdict"]["online"]["p99"]["before"] == "inf"
    assert "instead of no answer" in record.from_json(document).printed()


def test_it_is_small_and_names_no_folder_of_the_machine():
    text = json.dumps(stored(run()))
    assert len(text) < 20_000
    assert "/x/" not in text
    assert "at_s" not in text
