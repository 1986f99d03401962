# SPDX-License-Identifier: Apache-2.0
"""From the file-type model's scores to a label that can be trusted.

Law: numbers in, names out; standard library and numpy only, since a Triton server runs it. The rule is that of the
``magika`` package, which ships the model, and its numbers are in ``rules.json``, which scripts/setup makes from that
package; a test compares both.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray


class PredictionMode(enum.Enum):
    """How sure the model must be before its label counts; under that the answer is ``txt`` or ``unknown``."""

    BEST_GUESS = "best-guess"
    MEDIUM_CONFIDENCE = "medium-confidence"
    HIGH_CONFIDENCE = "high-confidence"


@dataclass(frozen=True)
class Rules:
    """How scores become a label.

    Attributes:
        labels: in the order of the model's scores.
        text_labels: those that stand for text files, labels of ``overwrite`` included.
        overwrite: the model's labels that are only known to it, and what they are called for others.
        thresholds: label of the model to the least score with which it counts, where that is not the medium one.
        medium_threshold: the least score for all other labels.
    """

    labels: tuple[str, ...]
    text_labels: frozenset[str]
    overwrite: Mapping[str, str]
    thresholds: Mapping[str, float]
    medium_threshold: float

    @classmethod
    def read(cls, path: Path) -> Rules:
        """Reads ``rules.json``.

        Raises:
            OSError: it is not there.
            ValueError: it is not what scripts/copy_model.py writes.
        """
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            return cls(
                tuple(document["labels"]),
                frozenset(document["text_labels"]),
                document["overwrite"],
                document["thresholds"],
                document["medium_threshold"],
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"{path}: {error!r}") from error

    def label(self, scores: NDArray[Any], mode: PredictionMode) -> tuple[str, float]:
        """The label of one file and the model's score for it.

        Args:
            scores: float32 [n], one per label.
            mode: how sure the model must be.
        """
        best = int(scores.argmax())
        score = float(scores[best])
        found = self.labels[best]
        label = self.overwrite.get(found, found)
        if score >= self._least_score(found, mode):
            return label, score
        return "txt" if label in self.text_labels else "unknown", score

    def _least_score(self, found: str, mode: PredictionMode) -> float:
        if mode is PredictionMode.BEST_GUESS:
            return 0.0
        if mode is PredictionMode.MEDIUM_CONFIDENCE:
            return self.medium_threshold
        return self.thresholds.get(found, self.medium_threshold)
