# SPDX-License-Identifier: Apache-2.0
"""The charts in docs/policies.md are those that scripts/policy_charts.py draws."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from support.modules import load_module

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "charts"
RECORDED = json.loads((ROOT / "docs" / "results" / "policy-charts.json").read_text())["charts"]
MOST_BYTES = 15_000
CHEAPEST = "max_queue_bytes"


@pytest.fixture(scope="module")
def script():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "scripts")
        patch.delitem(sys.modules, "chart_svg", raising=False)
        return load_module("policy_charts", ROOT / "scripts" / "policy_charts.py")


def test_every_chart_is_drawn_from_its_data(script):
    assert list(RECORDED) == list(script.CHARTS)
    drawn = {f"{name}.svg": script.chart_svg.drawn(data) for name, data in RECORDED.items()}
    assert {path.name: path.read_text() for path in FOLDER.iterdir()} == drawn, "run scripts/policy_charts.py"


@pytest.mark.parametrize("name", RECORDED)
def test_a_chart_is_small_and_says_what_it_shows(name):
    file = FOLDER / f"{name}.svg"
    assert file.stat().st_size < MOST_BYTES
    texts = [element.text for element in ElementTree.parse(file).iter() if element.text]
    for panel in RECORDED[name]["panels"]:
        assert panel["y_label"] in texts
    assert texts.count(RECORDED[name]["x_label"]) == len(RECORDED[name]["panels"])
    assert all(
        len(line["y"]) == len(RECORDED[name]["x"]) for panel in RECORDED[name]["panels"] for line in panel["lines"]
    )


def test_policies_show_every_chart_with_its_words(script):
    shown = re.findall(r"!\[(.+)\]\(charts/(\w+)\.svg\)", (ROOT / "docs" / "policies.md").read_text())
    assert dict(map(reversed, shown)) == {name: script.chart_svg.in_words(data) for name, data in RECORDED.items()}


@pytest.mark.parametrize(
    "name", [CHEAPEST, *(pytest.param(name, marks=pytest.mark.slow) for name in RECORDED if name != CHEAPEST)]
)
def test_the_data_are_what_the_simulator_gives(script, name):
    assert script.CHARTS[name]() == RECORDED[name], "run scripts/policy_charts.py"
