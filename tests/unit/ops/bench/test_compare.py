# SPDX-License-Identifier: Apache-2.0
"""What changed between two results: what is claimed, what is refused, and how the command ends."""

from __future__ import annotations

import copy
import importlib
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from priority_router.ops.bench import command, compare, compare_file, details, document, paired
from priority_router.ops.bench.compare_command import NO_WORSE, NOT_USABLE, WORSE
from priority_router.ops.bench.experiment import Results
from priority_router.ops.bench.paired import Finding, Interval
from priority_router.ops.bench.requests import by_class
from priority_router.ops.bench.scenarios import SCENARIOS
from priority_router.ops.bench.stats import summarise
from priority_router.ops.bench.wire import Outcome

from .ledgers import ledger

jsonschema: Any = importlib.import_module("jsonschema")  # it has no type stubs
DOCS = Path(__file__).resolve().parents[4] / "docs"
SCHEMA = json.loads((DOCS / "bench-compare.schema.json").read_text())
SECONDS = 12


def one_round(number, scale, seed):
    """A round whose arrivals are its own and whose latencies hang on a seed."""
    arrivals, random = np.random.default_rng((7, number)), np.random.default_rng((seed, number))
    entries = []
    for name, mean in (("online", 80), ("background", 200)):
        at = np.sort(arrivals.random(30 * SECONDS)) * SECONDS * 1000
        waits = 20 + random.gamma(4.0, mean / 4, len(at)) * scale.get(name, 1.0)
        entries += [(name, int(a), int(a + wait), Outcome.SUCCESS) for a, wait in zip(at, waits, strict=True)]
    return ledger(sorted(entries, key=lambda entry: entry[1]), SECONDS * 1000)


def made(seed=1, rounds=3, arms=("levels", "router"), **scale):
    """A result as its file has it."""
    results = Results(replace(SCENARIOS["overload"], seconds=SECONDS, warmup_seconds=0), seed=4, triton="2.51.0")
    for number in range(rounds):
        ledgers = {arm: one_round(number, scale if arm == "router" else {}, seed) for arm in arms}
        results.rounds.append({arm: summarise(one, 0.0, 0.98) for arm, one in ledgers.items()})
        results.details.append(
            {arm: details.of_round(one, 0.0, {"online": 150.0}, 0, 4) for arm, one in ledgers.items()}
        )
        results.requests.append({arm: by_class(one, 0.0) for arm, one in ledgers.items()})
    return json.loads(json.dumps(document.as_json(results, ["priority-router", "bench", "overload"])))


SAME = made()
SLOWER = made(online=1.5)


def written(folder, **documents):
    paths = [folder / f"{name}.json" for name in documents]
    for path, one in zip(paths, documents.values(), strict=True):
        path.write_text(json.dumps(one))
    return [str(path) for path in paths]


def result(found, tmp_path, name="made"):
    [path] = written(tmp_path, **{name: found})
    return compare_file.read(Path(path))


def compared(before, after, tmp_path, only=()):
    return compare.compare(result(before, tmp_path, "A"), result(after, tmp_path, "B"), only)


def verdicts(found):
    return {(one.arm, one.class_name, one.what): one.verdict for one in found.changes}


def test_a_result_is_no_different_from_itself(tmp_path, capsys):
    assert command.main(["compare", *written(tmp_path, A=SAME, B=SAME)]) == NO_WORSE
    assert "0 numbers are worse, 0 better, of 22" in capsys.readouterr().out


def test_what_became_slower_is_worse_and_the_other_way_round_better(tmp_path):
    found = compared(SAME, SLOWER, tmp_path)
    names = [("router", "online", what) for what in ("p50_ms", "p95_ms", "p99_ms", "in_time")]
    assert {key for key, verdict in verdicts(found).items() if verdict != "no difference"} == set(names)
    assert {verdicts(found)[name] for name in names} == {"worse"}
    p50 = next(one for one in found.changes if (one.arm, one.what) == ("router", "p50_ms"))
    assert p50.ratio.low < 1.4 < p50.ratio.high
    assert found.fails(1.0)
    assert found.fails(1.2)
    assert not found.fails(3.0)
    back = compared(SLOWER, SAME, tmp_path)
    assert {verdicts(back)[name] for name in names} == {"better"}
    assert not back.fails(1.0)


def test_chance_is_hardly_ever_taken_for_a_change(tmp_path):
    """The same arrivals, other latencies of one distribution, often enough."""
    claims = [verdict for seed in range(2, 7) for verdict in verdicts(compared(SAME, made(seed), tmp_path)).values()]
    assert len(claims) == 5 * 22
    assert sum(verdict != "no difference" for verdict in claims) <= 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda one: one["scenario"].update(name="linear"), "another scenario (overload and linear)"),
        (lambda one: one["scenario"]["executor"].update(batch_us=50_500), "another executor"),
        (lambda one: one["scenario"]["loads"][0].update(rate=17.0), "another loads"),
        (lambda one: one["scenario"].update(class_keys={"online": {"max_queue_size": 9}}), "another class_keys"),
        (lambda one: one["scenario"].update(seconds=25.0), "seconds is 12 and 25"),
        (lambda one: one.update(server={"kind": "url", "url": "grpc://x:1"}), "another kind (embedded and url)"),
        (lambda one: one["command"].extend(["--model", "mine"]), "another --model (None and mine)"),
        (lambda one: one.update(rounds=[{}]), "have not both the same arm"),
    ],
)
def test_what_cannot_be_compared_is_refused(tmp_path, capsys, change, words):
    other = copy.deepcopy(SAME)
    change(other)
    assert command.main(["compare", *written(tmp_path, A=SAME, B=other)]) == NOT_USABLE
    captured = capsys.readouterr()
    assert words in captured.err
    assert captured.out == ""


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda one: one.update(seed=5), "the seeds differ (4 and 5)"),
        (lambda one: one.update(cores=SAME["cores"] + 1), f"and {SAME['cores'] + 1} cores"),
        (lambda one: one["versions"].update(triton="2.60.0"), "versions: triton 2.51.0 and 2.60.0"),
        (lambda one: one.update(interrupted=True), "B.json was interrupted"),
        (lambda one: [finished.pop("levels") for finished in one["rounds"]], "A.json has levels"),
        (lambda one: one["rounds"].pop(), "A.json has 3 rounds"),
        (lambda one: one["scenario"].update(grace_seconds=9.0), "grace_seconds is 3 and 9"),
    ],
)
def test_what_else_may_stand_behind_a_change_is_said(tmp_path, change, words):
    other = copy.deepcopy(SAME)
    change(other)
    found = compared(SAME, other, tmp_path)
    assert any(words in text for text in found.warnings)
    assert "worse" not in verdicts(found).values()
    assert not compared(SAME, SAME, tmp_path).warnings


def test_capacities_measured_anew_are_nearly_the_same_load(tmp_path):
    def own(by):
        one = copy.deepcopy(SAME)
        one["command"] += ["--model", "mine"]
        one["scenario"]["executor"]["batch_us"] = round(50_000 * by)
        one["scenario"]["loads"][0]["rate"] /= by
        return one

    assert any("the loads differ a little" in text for text in compared(own(1), own(1.04), tmp_path).warnings)
    with pytest.raises(compare_file.ResultError, match="measure both with the same --capacity"):
        compared(own(1), own(1.1), tmp_path)


def test_an_arm_whose_client_was_late_is_not_judged(tmp_path):
    late = copy.deepcopy(SLOWER)
    late["rounds"][1]["router"]["late_p99_ms"] = 5.1
    found = compared(SAME, late, tmp_path)
    assert any("router: in " in text and "5.1 ms late" in text for text in found.warnings)
    assert verdicts(found)["router", "online", "p50_ms"] == "changed"
    assert not found.fails(1.0)


@pytest.mark.parametrize(("before", "after", "worse"), [(0, 3, False), (0, 9, True), (20, 29, False), (20, 60, True)])
def test_failures_beyond_chance_are_worse(tmp_path, before, after, worse):
    def failing(count):
        one = copy.deepcopy(SAME)
        outcomes = one["rounds"][0]["router"]["classes"]["online"]["outcomes"]
        outcomes["success"] -= count
        outcomes["other"] = count
        return one

    found = compared(failing(before), failing(after), tmp_path)
    assert found.fails(9.0) is worse
    [counted] = [one for one in found.outcomes if one.outcome == "other"]
    assert (counted.before, counted.after) == (before, after)


def test_a_class_without_answers_has_no_latency_to_compare(tmp_path):
    none = copy.deepcopy(SAME)
    for finished in none["rounds"]:
        finished["router"]["classes"]["online"]["latency"] = {}
    found = verdicts(compared(none, none, tmp_path))
    assert found["router", "online", "p50_ms"] == "unknown"
    assert verdicts(compared(SAME, none, tmp_path))["router", "online", "p50_ms"] != "better"


def test_only_some_arms(tmp_path, capsys):
    files = written(tmp_path, A=SAME, B=SLOWER)
    assert command.main(["compare", *files, "--arms", "levels"]) == NO_WORSE
    assert command.main(["compare", *files, "--arms", "router"]) == WORSE
    assert "worse: router online: p50 ms" in capsys.readouterr().out
    assert command.main(["compare", *files, "--arms", "router,flat"]) == NOT_USABLE
    assert "have not both flat" in capsys.readouterr().err


def test_the_file_has_the_documented_form(tmp_path):
    target = tmp_path / "changes.json"
    for before, after, status in ((SAME, SLOWER, WORSE), (made(rounds=1), made(rounds=1), NO_WORSE)):
        files = written(tmp_path, A=before, B=after)
        assert command.main(["compare", *files, "--json", str(target)]) == status
        changes = json.loads(target.read_text())
        jsonschema.validate(changes, SCHEMA)
        assert changes["exit_status"] == status
        assert changes["before"]["file"] == "A.json"
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["properties"]["schema"]["const"] == compare.SCHEMA


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "cannot be read"),
        ("nonsense", "is no JSON"),
        ("[]", "has the form None"),
        ('{"schema": "priority-router-bench/1"}', "has the form 'priority-router-bench/1'"),
        ('{"schema": "priority-router-bench/2"}', "'scenario' is missing"),
        (json.dumps({**SAME, "rounds": 3}), "has not the form"),
        (json.dumps({**SAME, "seed": None}), "has not the form"),
        (json.dumps({**SAME, "server": {"kind": "url"}}), "'url' is missing"),
    ],
)
def test_a_file_that_is_no_result_is_named(tmp_path, capsys, text, words):
    [good] = written(tmp_path, good=SAME)
    bad = tmp_path / "bad.json"
    if text is not None:
        bad.write_text(text)
    assert command.main(["compare", good, str(bad)]) == NOT_USABLE
    said = capsys.readouterr().err
    assert words in said
    assert str(bad) in said


def test_wrong_use_and_places_that_cannot_be_written(tmp_path, capsys):
    files = written(tmp_path, A=SAME, B=SAME)
    assert command.main(["compare", *files, "--json", str(tmp_path / "none" / "x.json")]) == NOT_USABLE
    for words in ([], files[:1], [*files, "--fail-above", "0.9"]):
        with pytest.raises(SystemExit) as stopped:
            command.main(["compare", *words])
        assert stopped.value.code == NOT_USABLE


def exactly(*values):
    return [Interval(value, value, value) for value in values]


def test_rounds_with_the_same_arrivals_are_compared_with_each_other():
    before, after = exactly(10, 20, 40), exactly(12, 24, 48)
    alike, ratio = paired.compare_rounds(before, after, alike=True)
    assert [ratio.value, ratio.low, ratio.high] == pytest.approx([1.2] * 3)
    assert alike.finding is Finding.HIGHER
    apart, ratio = paired.compare_rounds(before, after, alike=False)
    assert ratio.low < 1 < ratio.high
    assert apart.finding is Finding.SAME


def test_what_both_runs_have_in_common_is_no_doubt_once_there_are_rounds_enough():
    def unsure(*values):
        return [Interval(value, value / 2, value * 1.5) for value in values]

    before, after = (10, 20, 40, 30), (12.1, 23.9, 48.3, 35.8)
    comparison, ratio = paired.compare_rounds(unsure(*before), unsure(*after), alike=True)
    assert comparison.finding is Finding.HIGHER
    left = np.array(after) - ratio.value * np.array(before)
    error = math.sqrt((left**2).sum() / 12) / 25
    assert ratio.high - ratio.value == pytest.approx(5.841 * error)
    assert comparison.high == pytest.approx((ratio.high - 1) * 25)
    for alike, rounds in ((False, 4), (True, 2)):
        few = (unsure(*values[:rounds]) for values in (before, after))
        assert paired.compare_rounds(*few, alike=alike)[0].finding is Finding.SAME


def test_what_a_round_is_unsure_of_counts():
    def unsure(value, by):
        return [Interval(value, value - by, value + by)]

    sure, _ = paired.compare_rounds(unsure(100, 2), unsure(110, 2), alike=True)
    assert sure.finding is Finding.HIGHER
    # Half widths at 95 % of 7 each are 3.6 standard deviations, 5.1 together: 10 is less than 2.6 of them.
    doubtful, ratio = paired.compare_rounds(unsure(100, 7), unsure(110, 7), alike=True)
    assert doubtful.finding is Finding.SAME
    assert ratio.low == pytest.approx(1.1 - 2.576 * 5.3 / 100, abs=0.02)


@pytest.mark.parametrize(
    ("before", "after", "finding"),
    [
        (exactly(0), exactly(0), Finding.SAME),
        (exactly(0), exactly(5), Finding.HIGHER),
        (exactly(math.inf), exactly(math.inf), Finding.UNKNOWN),
        (exactly(5, 5), exactly(math.inf, 5), Finding.SAME),
        ([Interval(5, -math.inf, math.inf)], exactly(9), Finding.SAME),
    ],
)
def test_numbers_that_are_none(before, after, finding):
    assert paired.compare_rounds(before, after, alike=True)[0].finding is finding
