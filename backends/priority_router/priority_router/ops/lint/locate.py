# SPDX-License-Identifier: Apache-2.0
"""From a place in a repository to a file, a line and a column."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from priority_router.ops.lint import toml_places
from priority_router.ops.lint.reading import Contents
from priority_router.ops.pbtxt.document import Position
from priority_router.ops.rules.catalogue.files import POLICY_UNUSABLE
from priority_router.ops.rules.finding import CONFIG_FILE, Finding, Place

_SYNTAX: Final = re.compile(r"\(at line (\d+), column (\d+)\)")
"""How `tomllib` says where it stopped."""

_BEGINNING: Final = Position(1, 1)

_CUT_SHORT: Final = "(at end of document)"

_NAME: Final = r"([\w-]+|'[^']*')"
_KEY: Final = re.compile(rf"(?:^|: )(?:unknown key )?{_NAME}(?:\[(\d+)\])?(?:\.{_NAME})? (?:=|is missing|missing)")
"""The key that an error of a policy begins with: ``mode``, ``executor_shape.instances`` or ``class[0].level``."""


class Locator:
    """Finds places in what was read; each policy is looked through once."""

    def __init__(self, contents: Contents) -> None:
        self._contents = contents
        self._policies: dict[Path, tuple[str, Mapping[toml_places.Path, int]]] = {}

    def file(self, place: Place) -> Path:
        """The file, or the model's folder."""
        return self._contents.folders[place.model] / place.file

    def position(self, finding: Finding) -> Position | None:
        """Where in the file: its beginning where the whole is meant; None for folders and where there is no file."""
        place = finding.place
        if place.file == CONFIG_FILE:
            document = self._contents.documents.get(place.model)
            return document.position(place.path) if document is not None else None
        if place.file.endswith(".toml") and os.path.isfile(self.file(place)):
            found = None
            if finding.rule is POLICY_UNUSABLE:
                found = self._of_error(self.file(place), self._contents.models[place.model].policy_error)
            return found or self._in_policy(self.file(place), place.path) or _BEGINNING
        return None

    def _in_policy(self, file: Path, path: toml_places.Path) -> Position | None:
        text, known = self._policy(file)
        for length in range(len(path), 0, -1):
            if path[:length] in known:
                return _position(text, known[path[:length]])
        return None

    def _of_error(self, file: Path, error: str) -> Position | None:
        if syntax := _SYNTAX.search(error):
            return Position(int(syntax[1]), int(syntax[2]))
        if _CUT_SHORT in error:
            text, _ = self._policy(file)
            return _position(text, len(text.rstrip()))
        if (key := _KEY.search(error)) is None:
            return None
        steps = (key[1].strip("'"), key[2] and int(key[2]), key[3] and key[3].strip("'"))
        return self._in_policy(file, tuple(step for step in steps if step is not None))

    def _policy(self, file: Path) -> tuple[str, Mapping[toml_places.Path, int]]:
        if file not in self._policies:
            try:
                text = file.read_text(encoding="utf-8-sig", errors="replace")
            except OSError:
                text = ""
            self._policies[file] = text, toml_places.places(text)
        return self._policies[file]


def _position(text: str, index: int) -> Position:
    return Position(text.count("\n", 0, index) + 1, index - text.rfind("\n", 0, index))
