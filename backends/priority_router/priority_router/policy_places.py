# SPDX-License-Identifier: Apache-2.0
"""Where in the text of a ``policy.toml`` a key stands, and what an error about it means.

Law: places only, for people: line and column, both from 1. What a policy may say is ``config``'s, whose errors are read
here by their text.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Final

from priority_router import toml_places

Spot = tuple[int, int]
"""Line and column."""

_SYNTAX: Final = re.compile(r"\(at line (\d+), column (\d+)\)")
"""How `tomllib` says where it stopped."""

_CUT_SHORT: Final = "(at end of document)"

_NAME: Final = r"([\w-]+|'[^']*')"
_KEY: Final = re.compile(rf"(?:^|: )(?:unknown key )?{_NAME}(?:\[(\d+)\])?(?:\.{_NAME})? (?:=|is missing|missing)")
"""The key that an error of a policy begins with: ``mode``, ``executor_shape.instances`` or ``class[0].level``."""


class PolicyPlaces:
    """One text, looked through once, when a key is first asked for."""

    def __init__(self, text: str) -> None:
        self._text = text

    @functools.cached_property
    def _known(self) -> Mapping[toml_places.Path, int]:
        """Not before it is needed: a text that TOML refuses may have keys of any number of parts."""
        return toml_places.places(self._text)

    def of_path(self, path: toml_places.Path) -> Spot | None:
        """Where a key stands, or the innermost of the tables around it that is there; None where none is."""
        for length in range(len(path), 0, -1):
            if path[:length] in self._known:
                return self._spot(self._known[path[:length]])
        return None

    def of_error(self, error: str) -> Spot | None:
        """What an error of this policy is about; None where that is not one place."""
        if syntax := _SYNTAX.search(error):
            return int(syntax[1]), int(syntax[2])
        if _CUT_SHORT in error:
            return self._spot(len(self._text.rstrip()))
        if (key := _KEY.search(error)) is None:
            return None
        steps = (key[1].strip("'"), key[2] and int(key[2]), key[3] and key[3].strip("'"))
        return self.of_path(tuple(step for step in steps if step is not None))

    def _spot(self, index: int) -> Spot:
        return self._text.count("\n", 0, index) + 1, index - self._text.rfind("\n", 0, index)
