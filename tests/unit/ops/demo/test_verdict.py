# SPDX-License-Identifier: Apache-2.0
"""The verdict: what it claims, and that it claims nothing else."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from priority_router.ops.bench.paired import Finding
from priority_router.ops.demo import verdict
from support.demo_results import BEFORE, PLAIN, Made, results

LOWER, HIGHER, SAME, UNKNOWN = Finding.LOWER, Finding.HIGHER, Finding.SAME, Finding.UNKNOWN
OTHER = replace(BEFORE, seed=2)


@pytest.mark.parametrize(
    ("router", "findings", "words"),
    [
        (replace(OTHER, online_ms=30), (LOWER, LOWER, LOWER), "makes online requests faster: p50 "),
        (replace(OTHER, online_ms=120), (HIGHER, HIGHER, HIGHER), "makes online requests slower: p50 "),
        (OTHER, (SAME, SAME, SAME), "makes no difference to online requests beyond chance: p50 no difference ("),
        (
            replace(OTHER, online_ms=30, slow=0.2),
            (LOWER, HIGHER, HIGHER),
            "makes some online requests faster and others slower: p50 ",
        ),
        (replace(OTHER, unanswered=0.2), (HIGHER, HIGHER, HIGHER), "p95 no answer instead of "),
    ],
    ids=["better", "worse", "no difference", "mixed", "a part fails"],
)
def test_online(router, findings, words):
    found = verdict.judge(results(router))
    assert tuple(one.finding for one in found.online.values())[1:] == findings[1:]
    if not router.unanswered:
        assert found.online["p50"].finding is findings[0]
    assert words in found.sentence
    assert found.sentence.startswith("Against levels+hooks, the router makes ")
    assert found.sentence.count(".") - len(re.findall(r"\d\.\d", found.sentence)) == 1


def test_the_numbers_of_the_sentence_are_the_measured_ones():
    made = results(replace(OTHER, online_ms=30, background=0.5))
    sentence = verdict.judge(made).sentence
    for name, key in (("p50", "p50_ms"), ("p95", "p95_ms"), ("p99", "p99_ms")):
        before, after = (made.arms[arm].classes["online"].latency[key] for arm in ("levels+hooks", "router"))
        assert f"{name} {after:.0f} ms instead of {before:.0f} ms ({after / before - 1:+.0%})" in sentence
    for arm in ("levels+hooks", "flat"):
        before, after = (made.arms[one].classes["background"].rows_per_s for one in (arm, "router"))
        assert f"lost {before - after:.1f} of {before:.1f} rows/s ({1 - after / before:.0%}) against {arm}" in sentence


@pytest.mark.parametrize(
    ("router", "words"),
    [
        (
            replace(OTHER, background=0.5),
            r"background lost \d+\.\d of \d+\.\d rows/s \(\d+%\) against levels\+hooks and ",
        ),
        (
            replace(OTHER, background=1.0),
            r"background gained \d+\.\d on \d+\.\d rows/s \(\d+%\) against levels\+hooks and ",
        ),
        (OTHER, r"background has no difference in rows/s \(\d+\.\d and \d+\.\d\) against levels\+hooks and "),
    ],
    ids=["paid", "gained", "no difference"],
)
def test_background(router, words):
    assert re.search(words, verdict.judge(results(router)).sentence)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"router": Made(unanswered=1)}, "no request of class online was answered on router"),
        ({"router": Made(), "hooks": Made(unanswered=1)}, "no request of class online was answered on levels+hooks"),
        ({"router": Made(online_ms=30, ms_per_row=12)}, "on router a row took 12.0 ms instead of 10.0"),
        (
            {"router": Made(online_ms=30), "hooks": Made(late_p99_ms=25)},
            "on levels+hooks requests were sent up to 25 ms",
        ),
        ({"router": Made(online_ms=30), "seconds": 5.0}, "5 s per arm are too short for one; it takes 10 s"),
    ],
    ids=["everything failed", "nothing to compare with", "another machine", "late", "short"],
)
def test_no_verdict(changes, reason):
    found = verdict.judge(results(**changes))
    assert found.sentence.startswith(f"No verdict: {reason}")
    assert not found.online
    assert not found.background


def test_an_arm_on_another_machine_is_left_out():
    found = verdict.judge(results(OTHER, plain=replace(PLAIN, ms_per_row=13)))
    assert list(found.background) == ["levels+hooks"]
    assert "flat" not in found.sentence


def test_chance_alone_is_rarely_taken_for_a_difference():
    claims = 0
    for seed in range(60):
        made = results(replace(BEFORE, seed=100 + seed), hooks=replace(BEFORE, seed=200 + seed))
        found = verdict.judge(made)
        claims += any(one.finding is not SAME for one in (*found.online.values(), found.background["levels+hooks"]))
    assert claims <= 6
