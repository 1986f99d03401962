# SPDX-License-Identifier: Apache-2.0
"""Samples in the documents: policies load as printed, the executor's block is the rules', commands print what stands
there.

A policy of which only a part is shown has ``<!-- fragment -->`` in the line above it.
"""

from __future__ import annotations

import re
import shlex
import textwrap
from pathlib import Path

import pytest
from google.protobuf import text_format
from priority_router.config import parse_policy
from priority_router.ops import cli
from priority_router.ops.rules import levels
from tritonclient.grpc.model_config_pb2 import ModelConfig

ROOT = Path(__file__).resolve().parents[2]
FILES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TEXTS = {str(path.relative_to(ROOT)): path.read_text() for path in FILES}
TOML = re.compile(r"(?P<mark><!-- fragment -->\n)?^ *```toml\n(?P<text>.*?)^ *```$", re.MULTILINE | re.DOTALL)
WRITTEN_TOML = re.compile(r"^cat > \"\S+\.toml\" <<'END'\n(?P<text>.*?)^END$", re.MULTILINE | re.DOTALL)
CONSOLE = re.compile(r"^(?P<indent> *)```console\n(?P<text>.*?)^ *```$", re.MULTILINE | re.DOTALL)
LEVELS = re.compile(r"<!-- tested: levels -->\n```protobuf\n(.*?)```", re.DOTALL)
REPOSITORY = "/tmp/models"


def policies(text):
    """Those that are printed whole."""
    return [found["text"] for found in TOML.finditer(text) if not found["mark"]] + [
        found["text"] for found in WRITTEN_TOML.finditer(text)
    ]


@pytest.mark.parametrize("name", [name for name, text in TEXTS.items() if policies(text)])
def test_policies_load_as_they_are_printed(name):
    for text in policies(TEXTS[name]):
        parse_policy(textwrap.dedent(text))


def test_those_are_the_policies_that_readers_copy():
    assert {"README.md", "docs/existing-server.md"} <= {name for name, text in TEXTS.items() if policies(text)}


def test_the_executors_block_is_the_one_that_warnings_ask_for():
    text = TEXTS["docs/existing-server.md"]
    (block,) = LEVELS.findall(text)
    (policy,) = policies(text)
    asked = levels.block(parse_policy(policy))
    assert text_format.Parse(block, ModelConfig()) == text_format.Parse(asked, ModelConfig())


def runs(text):
    """Commands that need no server, each with the lines below it."""
    for found in CONSOLE.finditer(text):
        for part in re.split(r"^\$ ", textwrap.dedent(found["text"]), flags=re.MULTILINE)[1:]:
            command, *printed = part.replace("\\\n", " ").splitlines()
            if re.match("priority-router (wrap|lint) ", command) and printed:
                yield shlex.split(command)[1:], printed


def prints(said, printed):
    """Whether all of some lines were said, one after the other; a line ``…`` stands for any number of them."""
    at = 0
    anywhere = False
    for line in printed:
        if line == "…":
            anywhere = True
            continue
        places = [place for place, other in enumerate(said[at:], at) if other == line]
        if not places or (places[0] != at and not anywhere):
            return False
        at, anywhere = places[0] + 1, False
    return anywhere or at == len(said)


def test_wrapping_and_linting_print_what_stands_in_the_readme(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    verbs = []
    for words, printed in runs(TEXTS["README.md"]):
        verbs.append(words[0])
        assert cli.main([word.replace(REPOSITORY, str(tmp_path / "models")) for word in words]) == 0
        said = capsys.readouterr().out.replace(str(tmp_path / "models"), REPOSITORY).splitlines()
        assert prints(said, printed), "\n".join(said)
    assert verbs == ["wrap", "lint"]


COMMAND = re.compile(rf"priority-router ({'|'.join(cli.COMMANDS)})\b([^`\n|]*)")
OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")
OTHER_HELP = {"bench": ("report", "compare"), "simulate": ("--record-profile=x", "--worst-case")}
"""Words behind which a command has options of its own."""


def printed_options():
    """Command to its options in all documents, each with where it was found."""
    for path in [*FILES, ROOT / "compose.yaml", ROOT / "Dockerfile"]:
        for found in COMMAND.finditer(path.read_text().replace("\\\n", " ")):
            for option in OPTION.findall(found[2].partition(" -- ")[0].partition(" #")[0]):
                yield found[1], option, path.name


def test_commands_are_printed_with_options_that_they_have(capsys):
    printed = set(printed_options())
    known = {}
    for name in cli.COMMANDS:
        for words in [[name], *([name, word] for word in OTHER_HELP.get(name, ()))]:
            with pytest.raises(SystemExit):
                cli.main([*words, "--help"])
        known[name] = set(OPTION.findall(capsys.readouterr().out))
    assert {name for name, _, _ in printed} >= {"serve", "probe", "lint", "wrap", "sweep", "simulate", "bench"}
    assert [one for one in sorted(printed) if one[1] not in known[one[0]]] == []
