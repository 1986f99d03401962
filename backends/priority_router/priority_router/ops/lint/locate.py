# SPDX-License-Identifier: Apache-2.0
"""From a place in a repository to a file, a line and a column."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from priority_router.ops.lint.reading import Contents
from priority_router.ops.pbtxt.document import Position
from priority_router.ops.rules.catalogue.files import POLICY_UNUSABLE
from priority_router.ops.rules.finding import CONFIG_FILE, Finding, Place
from priority_router.policy_places import PolicyPlaces

_BEGINNING: Final = Position(1, 1)


class Locator:
    """Finds places in what was read; each policy is looked through once."""

    def __init__(self, contents: Contents) -> None:
        self._contents = contents
        self._policies: dict[Path, PolicyPlaces] = {}

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
            policy, found = self._policy(self.file(place)), None
            if finding.rule is POLICY_UNUSABLE:
                found = policy.of_error(self._contents.models[place.model].policy_error)
            found = found or policy.of_path(place.path)
            return _BEGINNING if found is None else Position(*found)
        return None

    def _policy(self, file: Path) -> PolicyPlaces:
        if file not in self._policies:
            try:
                text = file.read_text(encoding="utf-8-sig", errors="replace")
            except OSError:
                text = ""
            self._policies[file] = PolicyPlaces(text)
        return self._policies[file]
