# SPDX-License-Identifier: Apache-2.0
"""The shipped router and executor are what the documented command writes from the bare model."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from priority_router.ops.wrap import command

ROOT = Path(__file__).parents[4]
REPOSITORY = ROOT / "model_repository"
COMMAND = re.compile(r"^ *\$ priority-router wrap (examples/unwrapped/(?:.*\\\n)*.*)$", re.MULTILINE)
SHIPPED = ["executor/config.pbtxt", "router/1/policy.toml", "router/config.pbtxt"]


def documented(name):
    (found,) = COMMAND.findall((ROOT / name).read_text())
    return shlex.split(found.replace("\\\n", " "))


@pytest.mark.parametrize("document", ["README.md", "docs/wrap.md"])
def test_the_documented_command_writes_the_shipped_files(tmp_path, monkeypatch, document):
    monkeypatch.chdir(ROOT)
    words = documented(document)
    assert words[1:3] == ["--into", "model_repository"]
    assert command.main([words[0], "--into", str(tmp_path / "repository"), *words[3:]]) == 0
    written = sorted(path.relative_to(tmp_path / "repository") for path in tmp_path.rglob("*") if path.is_file())
    assert [str(path) for path in written] == SHIPPED
    for path in written:
        assert (tmp_path / "repository" / path).read_bytes() == (REPOSITORY / path).read_bytes(), path


def test_in_this_repository_it_changes_nothing(monkeypatch, capfd):
    monkeypatch.chdir(ROOT)
    words = documented("docs/wrap.md")
    assert command.main([*words, "--dry-run"]) == 0
    said = capfd.readouterr()
    assert said.out == ""
    assert "model_repository/executor: is as it should be\nmodel_repository/router: is as it should be\n" in said.err
    assert [line for line in said.err.splitlines() if line.startswith(("Lint", "ATTENTION"))] == []
