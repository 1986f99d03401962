# SPDX-License-Identifier: Apache-2.0
"""The demonstration's text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from priority_router.ops.bench.stats import ClassSummary, RoundSummary
from priority_router.ops.bench.wire import Outcome
from priority_router.ops.demo import report
from priority_router.ops.demo.measurements import Capacity, Results
from priority_router.ops.demo.verdict import Verdict
from support.demo_results import CLASSIFIED

CAPACITY = Capacity(rows_per_s=100.0, busy=0.9, mean_batch=4.0)
VERDICT = Verdict(" ".join(["So it is said."] * 20), {}, {})


def of_class(rows_per_s, **outcomes):
    everything = {outcome.label: outcomes.get(outcome.label, 0) for outcome in Outcome}
    latency = {"p50_ms": 40.4, "p95_ms": 95.0, "p99_ms": 99.0, "max_ms": 100.0} if everything["success"] else {}
    return ClassSummary(everything, latency, rows_per_s, {})


def summary(busy=0.9, late_p99_ms=1.0, failures=(), online=None):
    classes = {"online": online or of_class(20.0, success=5), "background": of_class(80.0, success=20, unanswered=7)}
    return RoundSummary(10.0, classes, busy, 3.9, late_p99_ms, 0.1, 10, list(failures))


def text(**arms):
    named = {name.replace("_", "+"): one for name, one in arms.items()}
    return report.as_text(Results(CAPACITY, named, {}, CLASSIFIED[:1]), VERDICT)


def words(line):
    return line.split()


def test_each_class_of_each_arm_has_its_row():
    lines = text(levels=summary(), router=summary()).splitlines()
    at = next(index for index, line in enumerate(lines) if line.startswith("levels"))
    assert words(lines[at]) == ["levels", "online", "5", "0", "0", "20.0", "40", "95", "99"]
    assert words(lines[at + 1]) == ["background", "20", "7", "0", "80.0", "40", "95", "99"]
    assert words(lines[at + 2])[0] == "router"


def test_refusals_and_failures_are_counted_and_a_class_without_answers_has_no_times():
    lines = text(router=summary(online=of_class(0.0, queue_full=1, timeout=2, other=3))).splitlines()
    assert words(next(line for line in lines if line.startswith("router"))) == [
        "router", "online", "0", "0", "6", "0.0", "-", "-", "-",
    ]  # fmt: skip


def test_the_executors_share_and_the_classified_files_are_told():
    told = text(levels_hooks=summary(busy=0.97))
    assert "  levels+hooks  busy 97%, 3.9 rows per batch, 9.7 ms per row" in told
    assert words(next(line for line in told.splitlines() if "setup.py" in line)) == [
        "setup.py",
        "python",
        "99.8%",
        "router",
        "1.5",
        "ms,",
        "executor",
        "9.0",
        "ms",
    ]


def test_a_label_that_the_model_is_not_sure_of_is_marked_and_the_mark_explained():
    means = "(?: the model is less than 50% sure):"
    results = Results(CAPACITY, {"router": summary()}, {}, [replace(CLASSIFIED[0], label="lua", score=0.499)])
    told = report.as_text(results, VERDICT)
    assert " lua?  " in told
    assert f"Files classified through the router, class online, while background work was still queued {means}" in told
    assert means not in text(router=summary())


@pytest.mark.parametrize(
    ("path", "shown"),
    [("clone/demo-results/demo.html", "../demo-results/demo.html"), ("x", "../../x"), ("clone/docs/x", "x")],
)
def test_a_written_file_is_named_from_the_current_folder_on_where_that_is_shorter(path, shown, tmp_path, monkeypatch):
    (tmp_path / "clone" / "docs").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "clone" / "docs")
    assert report.written(tmp_path / path) == f"{shown}: written"


def test_a_written_file_far_away_is_named_by_its_whole_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert report.written(Path("/a/b")) == "/a/b: written"


def test_the_verdict_ends_it_in_lines_of_a_terminals_width_and_says_what_the_router_adds():
    *_, last = blocks = text(router=summary()).split("\n\n")
    assert len(blocks) > 3
    assert (
        last.replace("\n", " ")
        == f"{VERDICT.sentence} What the router adds is the difference between router and levels+hooks."
    )
    assert max(map(len, last.splitlines())) <= 100


@pytest.mark.parametrize(
    ("shown", "warning"),
    [
        (summary(busy=0.99), None),
        (summary(busy=1.2), "on router a row took 12.0 ms instead of 9.0: the machine's speed changed"),
        (summary(late_p99_ms=25.0), "on router requests were sent up to 25 ms late (p99)"),
        (summary(failures=[{"status": 500, "text": "broken", "count": 3}]), "router: 3 failed: broken (status 500)"),
    ],
)
def test_what_spoils_the_numbers_is_told(shown, warning):
    warnings = [line for line in text(router=shown).splitlines() if line.startswith("warning: ")]
    assert len(warnings) == (0 if warning is None else 1)
    assert warning is None or warning in warnings[0]
