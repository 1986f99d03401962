# SPDX-License-Identifier: Apache-2.0
"""The documents: every link leads somewhere, the index has them all, quoted error texts are those of the sources."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BACKEND = ROOT / "backends" / "priority_router"
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^()\s]+)\)")
HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)
LEAST_FRAGMENT = 6
"""Letters that a quoted text must have without its gaps; less would be found anywhere."""


def prose(path: Path) -> str:
    return FENCE.sub("", path.read_text())


def anchors(path: Path) -> set[str]:
    """Names of the headings, as GitHub makes them."""
    names: set[str] = set()
    for heading in HEADING.findall(prose(path)):
        plain = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        again = (f"{name}-{number}" for number in range(1, 99))
        names.add(name if name not in names else next(other for other in again if other not in names))
    return names


def links(path: Path) -> list[str]:
    without_code = re.sub(r"`[^`\n]*`", "`", prose(path))
    return [target for target in LINK.findall(without_code) if "://" not in target]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_leads_somewhere(path: Path) -> None:
    lost = []
    for target in links(path):
        place, _, anchor = target.partition("#")
        file = (path.parent / place).resolve() if place else path
        if not file.exists() or (anchor and anchor not in anchors(file)):
            lost.append(target)
    assert lost == []


def test_the_index_has_every_document() -> None:
    listed = {target.partition("#")[0] for target in links(ROOT / "docs" / "README.md")}
    assert {path.name for path in (ROOT / "docs").glob("*.md")} - listed == {"README.md"}


def test_tests_that_are_named_exist() -> None:
    named = {name for path in DOCUMENTS for name in re.findall(r"`[\w/]*?(test_\w+\.py)`", path.read_text())}
    assert len(named) > 10
    assert named - {path.name for path in (ROOT / "tests").rglob("test_*.py")} == set()


def texts() -> Iterator[str]:
    """Every text in the backend's sources but its docstrings, with a gap where a value is filled in."""
    for path in BACKEND.rglob("*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text())))
        docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        for node in nodes:
            if id(node) in docstrings:
                continue
            if isinstance(node, ast.JoinedStr):
                yield "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value
    for path in BACKEND.rglob("*.c"):
        for literal in re.findall(r'"((?:[^"\\]|\\.)*)"', path.read_text()):
            yield re.sub(r"%[.*\d]*l?[sd]", "…", literal)


def holds(text: str, quoted: str) -> bool:
    """Whether all that is quoted stands in a text, in its order."""
    at = 0
    for fragment in filter(None, (fragment.strip() for fragment in quoted.split("…"))):
        at = text.find(fragment, at)
        if at < 0:
            return False
        at += len(fragment)
    return True


def quoted(triton: bool) -> list[str]:
    """Texts that docs/troubleshooting.md says are the router's own, or Triton's."""
    before = "Triton: " if triton else ""
    whole = " ".join((ROOT / "docs" / "troubleshooting.md").read_text().split())
    return re.findall(rf"\*\*{before}`([^`]*)`\*\*", whole)


def test_quoted_texts_are_found() -> None:
    assert len(quoted(triton=False)) > 20
    assert len(quoted(triton=True)) > 4


def test_texts_quoted_as_ours_are_in_the_sources() -> None:
    found = list(texts())
    ours = quoted(triton=False)
    assert [text for text in ours if max(len(part.strip()) for part in text.split("…")) < LEAST_FRAGMENT] == []
    assert [text for text in ours if not any(holds(one, text) for one in found)] == []
