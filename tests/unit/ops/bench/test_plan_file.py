# SPDX-License-Identifier: Apache-2.0
"""Plans: what they make, and what is said of what cannot be used."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from priority_router.ops.bench import plan_file
from priority_router.ops.bench.plan_file import PlanError
from priority_router.ops.bench.scenarios import COMPARED
from priority_router.ops.loads import ClassLoad, ExecutorShape

DOCUMENT = Path(__file__).resolve().parents[4] / "docs" / "bench.md"

WHOLE = """
meaning = "mine"
seconds = 12
warmup_seconds = 2.5
grace_seconds = 1
rounds = 2
arms = ["flat", "router"]
[executor]
batch_microseconds = 20_000
row_microseconds = 500
max_batch_size = 8
instances = 2
[[class]]
name = "chat"
level = 1
rate = 5.5
arrivals = "burst"
burst_size = 4
burst_start_seconds = 1.5
target_milliseconds = 80
[class.policy]
max_queue_size = 100
[[class]]
name = "batch"
level = 2
rate = 200
rows = 2
tenants = 2
direct = true
"""

LEAST = """
[[class]]
name = "x"
level = 1
rate = 3
"""


def test_a_plan_is_a_scenario():
    made = plan_file.parse(WHOLE, "plan.toml", "plan")
    assert (made.name, made.meaning, made.arms) == ("plan", "mine", ("flat", "router"))
    assert (made.seconds, made.warmup_seconds, made.grace_seconds, made.rounds) == (12, 2.5, 1, 2)
    assert made.executor == ExecutorShape(20_000, 500, 8, 2)
    assert made.loads == (
        ClassLoad("chat", 5.5, 80, "burst", 4, 1.5),
        ClassLoad("batch", 200, rows=2, tenants=("batch-1", "batch-2")),
    )
    assert made.levels == {"chat": 1, "batch": 2}
    assert made.direct == ("batch",)
    assert made.class_keys == {"chat": {"max_queue_size": 100}}
    assert made.urgent == "chat"


def test_what_is_left_out_is_as_in_the_scenarios():
    made = plan_file.parse(LEAST, "plan.toml", "plan")
    assert made.arms == COMPARED
    assert (made.seconds, made.rounds, made.loads) == (15.0, 5, (ClassLoad("x", 3),))


def test_a_closed_loop():
    made = plan_file.parse('in_flight = [1, 8]\n[[class]]\nname = "x"\nlevel = 1\n', "plan.toml", "plan")
    assert (made.in_flight, made.loads) == ((1, 8), ())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("[[class]]", "[[klass]]"), "klass: there is no such key; there are meaning, seconds"),
        (("rate = 3", ""), "class 1.rate: it must be there; write requests per second"),
        (("rate = 3", "rate = -3"), "class 1.rate = -3: write requests per second from 0"),
        (("rate = 3", "rate = true"), "class 1.rate = true: write"),
        (("rate = 3", "rate = nan"), "class 1.rate = NaN: write"),
        (("level = 1", "level = 0"), "class 1.level = 0: write a whole number from 1 to 1000"),
        (("rate = 3", 'rate = 3\narrivals = "often"'), 'class 1.arrivals = "often": write one of poisson, constant'),
        (("rate = 3", 'rate = 3\narrivals = "burst"'), "class 1.burst_size: a burst must have one"),
        (("rate = 3", "rate = 3\nburst_size = 3"), "class 1.burst_size: it is of bursts alone"),
        (("rate = 3", "rate = 3\n[class.policy]\nmax_queue = 1"), "its policy for a router in levels mode: "),
        (("rate = 3", "rate = 3\n[class.policy]\nlevel = 1"), "its policy for a router in levels mode: "),
        (("rate = 3", LEAST.join(["rate = 3\n", ""])), "class: give every class a name of its own"),
        (("\n[[class]]", "arms = []\n[[class]]"), "arms = []: write a list of flat, flat-levels"),
        (("\n[[class]]", 'arms = ["no"]\n[[class]]'), 'arms = ["no"]: write a list of flat, flat-levels'),
        (("\n[[class]]", "seconds = 0\n[[class]]"), "seconds = 0: write seconds from 0.1"),
        (("\n[[class]]", "executor = 3\n[[class]]"), "executor = 3: write a table"),
        (("\n[[class]]", 'in_flight = [1]\ntrace = "x"\n[[class]]'), "in_flight: leave out either in_flight or trace"),
        (("[[class]]", "[class]"), "class = {"),
        (("level = 1", "level ="), "not TOML: "),
    ],
)
def test_what_cannot_be_used_is_said_with_its_place_and_a_remedy(change, words):
    text = LEAST.replace(*change)
    assert text != LEAST
    with pytest.raises(PlanError) as refused:
        plan_file.parse(text, "plan.toml", "plan")
    assert str(refused.value).startswith(f"plan.toml: {words}")


def test_no_class_at_all():
    with pytest.raises(PlanError, match=re.escape("plan.toml: class: write at least one [[class]]")):
        plan_file.parse("rounds = 1", "plan.toml", "plan")


TRACED = 'trace = "day.csv"\nseconds = 8\nwarmup_seconds = 1\n' + LEAST.replace("rate = 3", "")


def test_a_trace_lies_beside_its_plan_and_gives_the_rates(tmp_path):
    (tmp_path / "my.toml").write_text(TRACED)
    (tmp_path / "day.csv").write_text("time,class\n0.5,x\n1.5,x\n8.9,x\n9.5,x\n")
    scenario, trace = plan_file.load(tmp_path / "my.toml")
    assert scenario.name == "my"
    assert trace is not None
    assert [one.time for one in trace] == [500_000_000, 1_500_000_000, 8_900_000_000, 9_500_000_000]
    assert scenario.loads[0].rate == pytest.approx(3 / 9)


def test_a_trace_must_last_as_long_as_the_run(tmp_path):
    (tmp_path / "my.toml").write_text(TRACED)
    (tmp_path / "day.csv").write_text("time,class\n0.5,x\n2.5,x\n")
    with pytest.raises(PlanError, match=r"its last request is at 2.5 s, and warmup_seconds \+ seconds are 9"):
        plan_file.load(tmp_path / "my.toml")


def test_files_that_are_not_there_are_said(tmp_path):
    with pytest.raises(PlanError, match=r"none.toml: cannot be read"):
        plan_file.load(tmp_path / "none.toml")
    (tmp_path / "my.toml").write_text(TRACED)
    with pytest.raises(PlanError, match=r"day.csv: cannot be read"):
        plan_file.load(tmp_path / "my.toml")


@pytest.mark.parametrize("keys", [plan_file.TOP, plan_file.EXECUTOR_KEYS, plan_file.CLASS_KEYS])
def test_every_key_is_documented(keys):
    text = DOCUMENT.read_text()
    assert [key for key in keys if f"| `{key}` |" not in text] == []


def test_the_plan_of_the_document_is_one():
    [text] = re.findall(r"```toml\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    assert plan_file.parse(text, "plan.toml", "plan").levels == {"chat": 1, "nightly": 2}
