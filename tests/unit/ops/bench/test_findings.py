# SPDX-License-Identifier: Apache-2.0
"""The verdict: what it claims of online and background, and that it claims nothing where chance could have done it."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from priority_router.core.values import SECOND
from priority_router.ops.bench import details, doubts, findings
from priority_router.ops.bench.arrivals import drawn
from priority_router.ops.bench.experiment import Results
from priority_router.ops.bench.ledger import Ledger
from priority_router.ops.bench.requests import by_class
from priority_router.ops.bench.scenarios import SCENARIOS
from priority_router.ops.bench.stats import summarise
from priority_router.ops.bench.wire import Outcome

SCENARIO = replace(SCENARIOS["overload"], warmup_seconds=0.0, seconds=20.0)


def made_ledger(number, seed, online_ms=80.0, served=0.6, wander=0.5, late_ms=0.5):
    """A round: online latencies, those of a second up or down together, and a share of the background served."""
    schedule = drawn(SCENARIO.loads, SCENARIO.seconds, (1, number), [1, 1])
    random = np.random.default_rng(seed)
    count = len(schedule)
    level = np.exp(random.normal(0, wander, int(SCENARIO.seconds) + 1))
    of_second = level[(schedule.at // SECOND).astype(int)]
    latency = online_ms * of_second * random.gamma(20, 1 / 20, count)
    online = schedule.class_index == 0
    answered = online | (random.random(count) < served)
    done = schedule.at + (np.where(online, latency, 50.0) * 1e6).astype(np.int64)
    return Ledger(
        classes=schedule.classes,
        class_index=schedule.class_index,
        rows=np.ones(count, np.int64),
        scheduled=schedule.at,
        sent=schedule.at + int(late_ms * 1e6),
        done=np.where(answered, done, -1),
        outcome=np.where(answered, Outcome.SUCCESS, Outcome.UNANSWERED).astype(np.int64),
        queue_us=np.full(count, -1, np.int64),
        failures=Counter(),
        duration=schedule.duration,
        cpu_seconds=1.0,
        connections=1,
    )


def results(rounds=3, scenario=SCENARIO, **arms):
    """Arms by name, with ``_`` for ``-``: how `made_ledger` makes their rounds; ``seed`` is drawn anew in each."""
    made = Results(replace(scenario, arms=tuple(name.replace("_", "-") for name in arms), rounds=rounds), seed=1)
    for number in range(rounds):
        ledgers = {
            name.replace("_", "-"): made_ledger(number, **{**options, "seed": options.get("seed", 0) + 1000 * number})
            for name, options in arms.items()
        }
        made.rounds.append({name: summarise(one) for name, one in ledgers.items()})
        made.requests.append({name: by_class(one, 0.0) for name, one in ledgers.items()})
        made.details.append({name: details.of_round(one, 0.0, scenario.targets, 0, 4) for name, one in ledgers.items()})
    return made


def found(made):
    return {(one.arm, one.against, one.class_name, one.what): one.numbers.finding.value for one in made.compared}


def test_what_online_gained_and_background_paid_is_said():
    made = findings.judge(results(flat={"online_ms": 900, "seed": 1}, router={"seed": 2, "served": 0.3}))
    [sentence] = made.sentences
    assert sentence.startswith("Against flat, router makes online requests faster: p50 ")
    assert re.search(r"; \d\d% instead of \d% answered within 150 ms; background lost \d", sentence)
    compared = found(made)
    assert compared["router", "flat", "online", "p99_ms"] == "lower"
    assert compared["router", "flat", "online", "in_time"] == "higher"
    assert compared["router", "flat", "background", "rows_per_s"] == "lower"


def test_the_numbers_of_the_sentence_are_those_of_the_requests():
    made = results(flat={"online_ms": 900, "seed": 1}, router={"seed": 2})
    [sentence] = findings.judge(made).sentences
    for arm in ("flat", "router"):
        latencies = np.concatenate([one[arm]["online"].latency_ms for one in made.requests])
        assert f"{np.quantile(latencies, 0.95, method='inverted_cdf'):.0f} ms" in sentence


@pytest.mark.parametrize("rounds", [1, 3])
def test_two_runs_of_one_arm_are_no_difference(rounds):
    """Latencies that go up and down together are no evidence for each request alone."""
    claims = 0
    for seed in range(10):
        made = findings.judge(results(rounds, flat={"seed": 10 + seed}, router={"seed": 500 + seed}))
        claims += not {"lower", "higher"}.isdisjoint(found(made).values())
    assert claims <= 1


def test_no_difference_is_said_in_these_words():
    [sentence] = findings.judge(results(flat={"seed": 1}, router={"seed": 2})).sentences
    assert "makes no difference to online requests beyond chance: p50 no difference (" in sentence
    assert "background has no difference in rows/s (" in sentence


def test_each_router_is_held_against_what_most_have_and_against_the_best_without_one():
    arms = {
        name: {"seed": place} for place, name in enumerate(("flat", "flat_levels", "levels", "router", "router_plain"))
    }
    made = findings.judge(results(1, **arms))
    pairs = list(dict.fromkeys((one.arm, one.against) for one in made.compared))
    assert pairs == [(arm, other) for arm in ("router", "router-plain") for other in ("flat", "levels")]
    assert len(made.sentences) == 4


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        ({"flat": {"seed": 1}}, "it takes a router's arm"),
        ({"router": {"seed": 1}}, "it takes a router's arm"),
        ({"flat": {"seed": 1, "late_ms": 30}, "router": {"seed": 2}}, "flat: requests were sent up to 30.0 ms late"),
        (
            {"flat": {"seed": 1}, "router": {"seed": 2}, "scenario": replace(SCENARIO, in_flight=(1,))},
            "closed loops have no latency",
        ),
    ],
)
def test_why_there_is_no_verdict_is_said(made, reason):
    judged = findings.judge(results(1, **made))
    assert judged.sentences[0].startswith("No verdict: ")
    assert reason in judged.sentences[0]
    assert judged.compared == ()


def test_a_run_of_a_few_seconds_bears_no_verdict(monkeypatch):
    short = replace(SCENARIO, seconds=4.0)
    monkeypatch.setattr(f"{__name__}.SCENARIO", short)
    assert (
        "4 s per arm are too short"
        in findings.judge(results(1, short, flat={"seed": 1}, router={"seed": 2})).sentences[0]
    )


def test_a_p99_of_few_requests_is_not_judged(monkeypatch):
    few = replace(SCENARIO, loads=(replace(SCENARIO.loads[0], rate=4), SCENARIO.loads[1]))
    monkeypatch.setattr(f"{__name__}.SCENARIO", few)
    made = results(1, few, flat={"seed": 1}, router={"seed": 2})
    assert ("router", "flat", "online", "p99_ms") not in found(findings.judge(made))
    assert "p99" not in findings.judge(made).sentences[0]
    assert any("answers of class online in a round stand behind its p99" in text for text in doubts.warnings(made))


def test_without_a_queue_priority_cannot_show():
    made = results(1, flat={"seed": 1}, router={"seed": 2})
    for arms in made.details:
        for one in arms.values():
            one["waiting_share"] = 0.01
    assert "No queue built up" in findings.judge(made).sentences[-1]
    assert any(text.startswith("no queue: ") for text in doubts.warnings(made))


def test_a_client_that_is_too_busy_is_said():
    made = results(1, flat={"seed": 1}, router={"seed": 2})
    made.rounds[0]["router"] = replace(made.rounds[0]["router"], client_cpu=1.8, processes=2)
    warned = doubts.warnings(made)
    assert "router: a generator process used 90% of a core; give it more with --processes" in warned
    assert not any(text.startswith("flat: a generator") for text in warned)


def test_requests_without_a_reply_make_the_latencies_of_the_others_too_good():
    made = results(1, flat={"seed": 1}, router={"seed": 2})
    assert not any("had no reply" in text for text in doubts.warnings(made))
    online = made.rounds[0]["flat"].classes["online"]
    online.outcomes["unanswered"], online.outcomes["success"] = 30, online.outcomes["success"] - 30
    total = sum(online.outcomes.values())
    assert any(f"flat: 30 of {total} requests of class online had no reply" in text for text in doubts.warnings(made))


def test_arms_that_were_left_out_are_said():
    made = results(1, flat={"seed": 1}, router={"seed": 2})
    made.dropped["levels"] = "closed"
    assert "levels was left out: closed" in doubts.warnings(made)
