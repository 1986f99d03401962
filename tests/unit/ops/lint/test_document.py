# SPDX-License-Identifier: Apache-2.0
"""What docs/lint.md shows is what lint prints."""

import json
import re
import shutil
from pathlib import Path

import pytest
from priority_router.ops import cli

ROOT = Path(__file__).parents[4]
SHOWN = re.findall(r"```console\n\$ priority-router lint ([^\n]*)\n(.*?)```", (ROOT / "docs/lint.md").read_text(), re.S)


@pytest.fixture
def models(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "model_repository", "models", ignore=shutil.ignore_patterns("__pycache__"))
    config = Path("models/executor/config.pbtxt")
    text = config.read_text()
    assert text.count("default_priority_level: 2") == 1
    config.write_text(text.replace("default_priority_level: 2", "default_priority_level: 3"))


def test_the_report(models, capsys):
    words, printed = SHOWN[0]
    assert cli.main(["lint", *words.split()]) == 1
    assert capsys.readouterr().out == printed


def test_the_fixes_out_of_json(models, capsys):
    words, printed = SHOWN[1]
    assert words.startswith("models --json | jq ")
    assert cli.main(["lint", "models", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)["findings"]
    assert [one["fix"] for one in found if one["severity"] == "error"] == printed.splitlines()
