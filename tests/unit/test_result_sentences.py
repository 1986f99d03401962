# SPDX-License-Identifier: Apache-2.0
"""scripts/result_sentences.py: what is written rests on docs/results, and is refused once it no longer does."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from support.modules import load_module

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "result_sentences.py"


@pytest.fixture
def sentences(tmp_path, monkeypatch):
    """On a copy of the committed results."""
    monkeypatch.syspath_prepend(SCRIPT.parent)
    module = load_module("result_sentences", SCRIPT)
    shutil.copytree(ROOT / "docs" / "results", tmp_path / "docs" / "results")
    monkeypatch.setattr(module.values.result_tables, "ROOT", tmp_path)
    monkeypatch.setattr(module.values.result_tables, "RESULTS", tmp_path / "docs" / "results")
    return module


def change(root, name, value, *keys):
    path = root / "docs" / "results" / name
    document = part = json.loads(path.read_text())
    for key in keys[:-1]:
        part = part[int(key) if isinstance(part, list) else key]
    part[keys[-1]] = value
    path.write_text(json.dumps(document))


def aim(root, scenario, text, arm):
    aims = json.loads((root / "docs" / "results" / f"bench-{scenario}.json").read_text())["aims"]
    return next(place for place, one in enumerate(aims) if (one["text"], one["arm"]) == (text, arm))


def test_every_number_has_its_place_and_every_place_its_number(sentences):
    for of_document in sentences.SENTENCES.values():
        for sentence in of_document:
            assert sentence.numbers().keys() == set(re.findall(r"\{(\w+)\}", sentence.words)), sentence.words


def test_a_number_follows_its_file(sentences, tmp_path):
    change(tmp_path, "hooks.json", 99.4, "settings", "levels, slices of 100 us", "backlog_of_1_cpu_percent", "median")
    assert sentences.values.dispatch_cost()["percent"] == "99"
    text = (ROOT / "docs" / "hooks.md").read_text()
    assert "costs 99 % of a core" not in text
    assert "costs 99 % of a core" in sentences.refreshed("docs/hooks.md", text)


@pytest.mark.parametrize(
    ("claim", "file", "place", "value"),
    [
        ("plain_serves_more", "bench-fast", "arms/router-plain/classes/background/rows_per_s/median", 1.0),
        ("oracle_serves_less", "simulated", "scenarios/base-and-slope/oracle/rows_per_s", 5000.0),
        ("least_model", "overhead-parts", "ways/likewise, with two more outputs/of_direct/median", 0.6),
        ("missed_linear", "bench-linear", "oracle/rounds/0/execution_ms/8", 8.0),
        ("dispatch_idle", "hooks", "settings/levels, slices of 100 us/idle_cpu_percent/median", 3.0),
        (
            "dispatch_behind_a_router",
            "hooks",
            "settings/router in front, slices of 100 us/overload_waits_cut_per_second/median",
            900.0,
        ),
        ("bench_cores", "bench-linear", "cores", 64),
    ],
)
def test_words_are_refused_that_the_numbers_do_not_bear(sentences, tmp_path, claim, file, place, value):
    getattr(sentences.values, claim)()
    change(tmp_path, f"{file}.json", value, *place.split("/"))
    with pytest.raises(sentences.ResultsError, match="no longer bears"):
        getattr(sentences.values, claim)()


@pytest.mark.parametrize(
    ("scenario", "text", "arm", "met"),
    [
        ("linear", "rows/s / those of levels+hooks", "router", False),
        ("shared", "online p99 / that of levels+hooks", "router", False),
        ("shared", "online p99 / that of levels+hooks", "router-plain", True),
    ],
)
def test_the_aims_explained_are_those_missed(sentences, tmp_path, scenario, text, arm, met):
    sentences.values.missed_aims()
    change(tmp_path, f"bench-{scenario}.json", met, "aims", aim(tmp_path, scenario, text, arm), "met")
    with pytest.raises(sentences.ResultsError, match=f"aim {re.escape(text)} of {scenario}"):
        sentences.values.missed_aims()
