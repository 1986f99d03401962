# SPDX-License-Identifier: Apache-2.0
"""The result file keeps its documented form."""

from __future__ import annotations

import copy
import importlib
import json
from pathlib import Path
from typing import Any

import pytest
from priority_router.ops import result_file
from priority_router.ops.bench import client_rate, details, document
from priority_router.ops.bench.scenarios import SCENARIOS
from priority_router.ops.bench.wire import Outcome

from . import ledgers
from .ledgers import ledger, summary

jsonschema: Any = importlib.import_module("jsonschema")  # it has no type stubs
SCHEMA = json.loads((Path(__file__).resolve().parents[4] / "docs" / "bench.schema.json").read_text())
FAST = {"p50_ms": 80.0, "p95_ms": 100.0, "p99_ms": 110.0, "max_ms": 120.0}


CLIENT = client_rate.Client(False, client_rate.Top(9000.0, 0.99), 1, 2, 126.0, 150.0)


def made(scenario="overload", count=2, **changes):
    rounds = [{arm: summary(online=FAST, background=FAST) for arm in ("flat", "router")} for _ in range(count)]
    ideals = [summary(online=FAST, background=FAST)] * count
    results = ledgers.results(SCENARIOS[scenario], rounds, **{"ideals": ideals, "client": CLIENT, **changes})
    return json.loads(json.dumps(document.as_json(results, ["priority-router", "bench"]), allow_nan=False))


DOCUMENT = made()


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["properties"]["schema"]["const"] == document.SCHEMA


@pytest.mark.parametrize(
    "changes", [{}, {"interrupted": True}, {"url": "http://localhost:8000", "dropped": {"flat": "guarded"}}]
)
def test_a_result_has_the_documented_form(changes):
    jsonschema.validate(made(**changes), SCHEMA)


def test_nothing_measured_has_it_too():
    results = ledgers.results(SCENARIOS["overload"], [{}], interrupted=True)
    jsonschema.validate(json.loads(json.dumps(document.as_json(results, []), allow_nan=False)), SCHEMA)


def places(value, path=()):
    """Every object of a document, by the way to it; of objects that are alike by name the first."""
    if isinstance(value, dict):
        yield path
        for key, one in value.items():
            yield from places(one, (*path, key))
    elif isinstance(value, list) and value:
        yield from places(value[0], (*path, 0))


def at(value, path):
    for step in path:
        value = value[step]
    return value


OPEN = {("versions",), ("scenario", "levels"), ("dropped",), ("arms",), ("rounds", 0)}
"""Whose keys are names."""

OPEN_BY_NAME = {("classes",), ("batches",), ("execution_ms",), ("latency",), ("queue_ms",)}
"""Likewise, wherever they stand, or keys that a round without successes lacks."""


def test_the_schema_misses_every_key_that_is_gone():
    """Unless its keys are names or numbers."""
    small = made(count=1)
    small["edges_ms"], small["verdict"]["compared"] = [1.0], small["verdict"]["compared"][:1]
    del small["oracle"]["classes"]["background"], small["oracle"]["rounds"][0]["classes"]["background"]
    for key in ("rounds", "arms"):
        arms = small[key][0] if key == "rounds" else small[key]
        del arms["flat"]
        del arms["router"]["classes"]["background"]
    validator = jsonschema.Draft202012Validator(SCHEMA)
    assert validator.is_valid(small)
    for path in places(small):
        if path in OPEN or path[-1:] in OPEN_BY_NAME or path[:1] == ("scenario",):
            continue
        for key in at(small, path):
            changed = copy.deepcopy(small)
            del at(changed, path)[key]
            assert not validator.is_valid(changed), (path, key)


def test_numbers_of_a_list_stand_in_one_line_and_nothing_else_changes():
    text = result_file.as_text({**DOCUMENT, "words": ["a  b", "[\n1\n]"], "none": [], "mixed": [1, "x"]})
    assert json.loads(text) == {**DOCUMENT, "words": ["a  b", "[\n1\n]"], "none": [], "mixed": [1, "x"]}
    assert max(map(len, text.splitlines())) > 1000
    assert '"edges_ms": [0.01, 0.01122,' in text


def test_the_timeline_counts_what_came_went_and_stayed():
    told = details.of_round(
        ledger(
            [
                ("online", 50, 250, Outcome.SUCCESS),
                ("online", 150, 160, Outcome.SUCCESS),
                ("online", 260, None, Outcome.UNANSWERED),
                ("online", 310, 390, Outcome.TIMEOUT),
                ("background", 350, 360, Outcome.SUCCESS),
            ],
            duration_ms=500,
        ),
        warmup_s=0.1,
        targets={"online": 50.0},
        samples=2,
        takes=1,
    )
    assert told["bin_s"] == 0.1
    online = told["classes"]["online"]
    assert online["timeline"]["arrived"] == [1, 1, 1, 0]
    # The one of the warm-up ends within the second bin; one is never answered.
    assert online["timeline"]["answered"] == [1, 1, 0, 0]
    assert online["timeline"]["waiting"] == [1, 1, 1, 1]
    assert online["timeline"]["p50_ms"] == [10, None, None, None]
    assert (online["goodput"]["in_time"], online["goodput"]["of"], online["goodput"]["per_s"]) == (1, 3, 2.5)
    assert online["samples"]["every"] == 2
    assert online["samples"]["at_s"] == [0.05, 0.21]
    assert online["samples"]["latency_ms"] == [10, 80]
    assert [DOCUMENT["outcomes"][code] for code in online["samples"]["outcome"]] == ["success", "timeout"]
    # Two at once from 150 to 160, from 310 to 390.
    assert told["waiting_share"] == pytest.approx((10 + 80) / 400)


def test_the_histogram_counts_every_success_once_and_at_its_place():
    entries = [("online", 0, latency, Outcome.SUCCESS) for latency in (1, 80, 81, 900_000)]
    told = details.of_round(ledger(entries, duration_ms=1000), 0.0, {}, 0, 1)
    histogram = told["classes"]["online"]["histogram"]
    edges = DOCUMENT["edges_ms"]
    found = [(edges[histogram["first"] + i], count) for i, count in enumerate(histogram["counts"]) if count]
    assert sum(count for _, count in found) == 4
    for edge, count in found:
        inside = sum(edge <= latency < 1.13 * edge for latency in (1, 80, 81, 900_000))
        assert count == inside
    assert told["classes"]["online"]["samples"]["at_s"] == []


def test_a_file_is_bounded_however_long_the_run():
    count = 20_000
    entries = [("online", at, at + 5, Outcome.SUCCESS) for at in range(count)]
    told = details.of_round(ledger(entries, duration_ms=count), 0.0, {}, 100, 1)
    online = told["classes"]["online"]
    assert len(online["samples"]["at_s"]) <= 100
    assert len(online["timeline"]["arrived"]) <= details.MOST_BINS
    assert len(online["histogram"]["counts"]) < len(details.EDGES_MS)
