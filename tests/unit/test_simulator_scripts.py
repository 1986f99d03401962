# SPDX-License-Identifier: Apache-2.0
"""The simulator's own measurements: their files have what the documents read, and the example is what is shown."""

import json
import sys
from pathlib import Path

import pytest
from support.modules import load_module

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


@pytest.fixture(scope="module")
def script():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(SCRIPTS)

        def load(name):
            patch.delitem(sys.modules, name, raising=False)
            return load_module(name, SCRIPTS / f"{name}.py")

        yield load


def test_the_speed_is_measured_and_told(script, tmp_path, monkeypatch):
    target = tmp_path / "simulator.json"
    words = ["--requests", "2000", "--dispatches", "50", "--json", str(target)]
    assert script("measure_simulator").main(words) == 0
    measured = json.loads(target.read_text())
    assert measured["requests"] == 2000
    assert measured["seconds"] > 0
    assert all(cost["decision"] > 0 for cost in measured["queued"].values())
    results = script("result_simulator")
    monkeypatch.setattr(results, "simulator", lambda: measured)
    assert results.speed()["requests"] == "2,000"
    assert results.speed()["queued"] == "100,000"


def test_the_example_prints_the_same_every_time(script):
    results = script("result_simulator")
    for line in results.EXAMPLE:
        first, second = results.printed(line), results.printed(line)
        assert first == second
        assert "oracle" in first


def test_a_disagreement_is_counted(script, monkeypatch):
    def numbers(median):
        spread = {"median": median, "low": median, "high": median}
        return {"classes": {"online": {"latency": {"p50_ms": spread, "p95_ms": spread}}}}

    document = {
        "rounds": 5,
        "seconds": 25.0,
        "warmup_seconds": 5.0,
        "cores": 2,
        "draws": 5,
        "limit": 0.15,
        "loads": {
            "overload": {
                "arms": {"server": numbers(100.0), "simulator": numbers(110.0)},
                "differences": {"online": {"p50_ms": 0.1, "p95_ms": -0.2}},
            }
        },
    }
    results = script("result_simulator")
    monkeypatch.setattr(results, "agreement", lambda: document)
    text = "\n".join(results.agreement_section())
    assert "| overload | online | p50 | 100 | 110 | +10.0 % |" in text
    assert "1 of 2 are within it" in text
