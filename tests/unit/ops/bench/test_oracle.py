# SPDX-License-Identifier: Apache-2.0
"""The oracle beside a run: its times, what it makes of the arrivals, and where there is none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from priority_router.ops.bench import experiment, oracle, report
from priority_router.ops.bench.aims import ORACLE
from priority_router.ops.bench.executor_stats import ExecutorStats
from priority_router.ops.bench.scenarios import SCENARIOS, Scenario
from priority_router.ops.bench.wire import Outcome
from priority_router.ops.loads import ClassLoad, ExecutorShape

from . import ledgers
from .ledgers import ledger, summary

SCENARIO = Scenario(
    "made",
    "",
    ExecutorShape(100_000, 0, max_batch_size=2),
    (ClassLoad("online", 1), ClassLoad("background", 1)),
    warmup_seconds=0.2,
    grace_seconds=0.05,
)


def arm(**seen):
    """An arm that saw executions: how many of how many ms, by ``rows_N``."""
    counts = {name.removeprefix("rows_"): pair for name, pair in seen.items()}
    return replace(
        summary(online={}),
        batches={rows: count for rows, (count, _) in counts.items()},
        execution_ms={rows: float(mean) for rows, (_, mean) in counts.items()},
    )


def due(*entries, **options):
    """Arrivals: class and ms; what became of them does not count."""
    return ledger([(name, at, None, Outcome.OTHER, *rows) for name, at, *rows in entries], **options)


def test_times_are_means_over_all_arms_of_what_was_seen_often_enough():
    arms = [arm(rows_1=(2, 90), rows_4=(30, 50)), arm(rows_1=(1, 120), rows_2=(2, 70), rows_4=(10, 54))]
    assert oracle.execution_ms(arms) == {1: 100.0, 4: 51.0}


def test_the_oracle_serves_the_same_arrivals_within_the_same_seconds():
    arrivals = due(
        ("background", 100),  # of the warm-up, runs until 200
        ("background", 210),
        ("background", 220),
        ("background", 230),
        ("online", 240),  # 310 to 410, a background request with it
        ("online", 930),  # 930 to 1030, which is waited for
        ("background", 980),  # 1030 to 1130, which is not
    )
    ideal = oracle.of_round(SCENARIO, arrivals, {"flat": arm(rows_1=(9, 100), rows_2=(9, 100))})
    assert ideal is not None
    assert ideal.classes["online"].latency == {"p50_ms": 100, "p95_ms": 170, "p99_ms": 170, "max_ms": 170}
    background = ideal.classes["background"]
    # 210-310, 220 with online until 410, 230-510; that of the warm-up ended as the count began.
    assert (background.latency["p50_ms"], background.latency["max_ms"]) == (190, 280)
    assert background.rows_per_s == pytest.approx(4 / 0.8)
    assert (background.outcomes["success"], background.outcomes["unanswered"]) == (3, 1)
    assert ideal.busy == pytest.approx(0.37 / 0.8)


@pytest.mark.parametrize(
    ("scenario", "seen", "entries"),
    [
        (replace(SCENARIO, loads=(), in_flight=(1,)), {"rows_1": (9, 50)}, [("online", 1)]),
        (replace(SCENARIO, class_keys={"online": {"max_queue_size": 1}}), {"rows_1": (9, 50)}, [("online", 1)]),
        (SCENARIO, {"rows_1": (2, 50)}, [("online", 1)]),
        (SCENARIO, {"rows_1": (9, 50)}, [("online", 1, 3)]),
    ],
)
def test_where_it_knows_too_little_there_is_none(scenario, seen, entries):
    assert oracle.of_round(scenario, due(*entries), {"flat": arm(**seen)}) is None


def test_aims_and_the_table_have_the_oracle_beside_the_arms():
    fast = {"p50_ms": 80.0, "p95_ms": 110.0, "p99_ms": 110.0, "max_ms": 120.0, "rows_per_s": 60.0}
    best = {"p50_ms": 75.0, "p95_ms": 100.0, "p99_ms": 100.0, "max_ms": 100.0, "rows_per_s": 64.0}
    rounds = [{"router": summary(busy=0.98, online=fast, background=fast)} for _ in range(2)]
    made = ledgers.results(SCENARIOS["overload"], rounds, ideals=[summary(online=best, background=best), None])
    judged = {one.text: (one.values, one.met) for one in made.verdicts()}
    assert judged["online p95 / that of the oracle"] == ((1.1,), True)
    assert judged["background rows/s / those of the oracle"] == ((60 / 64,), False)
    assert ORACLE not in made.arms()
    table = [line.split() for line in report.as_text(made).splitlines()]
    at = next(place for place, words in enumerate(table) if words[:2] == ["oracle", "online"])
    assert "75" in table[at]
    assert table[at + 1][0] == "background"


def test_a_run_keeps_the_oracle_of_every_round(monkeypatch):
    """Whatever arm ran first, and where the last round was cut short."""
    arrivals = due(("online", 300))
    seen = arm(rows_1=(9, 80))
    told, requests = ledgers.told(seen)
    runs = iter([None, None, None, KeyboardInterrupt()])

    def run_arm(plan, chosen, number, results):
        if error := next(runs):
            raise error
        return experiment._Measured(arrivals, seen, told, requests)

    class Venue:
        url = ""

        def refused(self, arms):
            return {}

    class Quiet:
        def step(self, text):
            pass

        say = step

    monkeypatch.setattr(experiment, "_run_arm", run_arm)
    monkeypatch.setattr(experiment, "_client", lambda plan, progress: None)
    venue: Any = Venue()
    plan = experiment.Plan(replace(SCENARIO, rounds=3, arms=("flat", "router")), 1, venue)
    results = experiment.run(plan, Quiet())
    assert [ideal and ideal.classes["online"].latency["p50_ms"] for ideal in results.ideals] == [80.0, 80.0]
    assert [list(one) for one in results.rounds] == [["flat", "router"], ["router"]]


def test_the_executors_times_are_those_between_two_readings():
    before = ExecutorStats(0, 0, 0, 0, {1: 5, 4: 2}, {1: 5_000_000, 4: 2_000_000})
    after = ExecutorStats(9, 0, 0, 0, {1: 5, 4: 4, 2: 1}, {1: 5_000_000, 4: 8_000_000, 2: 7_000_000})
    assert after.execution_ms_since(before) == {"2": 7.0, "4": 3.0}
