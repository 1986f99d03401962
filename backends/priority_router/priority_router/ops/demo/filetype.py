# SPDX-License-Identifier: Apache-2.0
"""The file-type model's client side: its tensors, and its rule for a file's bytes, as the model repository has it.

Law: no sockets and no server. The rule itself is the ensemble's first step and stands there alone.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from priority_router.errors import SetupError

INPUT: Final = "bytes"
OUTPUT: Final = "target_label"

_RULE = Path("file_type_features", "1", "file_features.py")


class FeatureRule(Protocol):
    """What is used of ``file_features.py``; see there."""

    MINIMUM_BYTES: int
    BLOCK_SIZE: int

    def features_of_bytes(self, content: bytes) -> NDArray[np.int32] | None:
        """The model's input for a file, int32 [2048]; None for one that is too short for the model."""

    def features_of_file(self, path: Path) -> NDArray[np.int32] | None:
        """As `features_of_bytes`, reading only both ends of a file."""


def load_rule(models: Path) -> FeatureRule:
    """Loads the rule that a model repository's own servers use.

    Args:
        models: the model repository.

    Raises:
        SetupError: the repository has none.
    """
    path = models / _RULE
    if not path.is_file():
        raise SetupError(f"{path} is missing; name this project's model_repository or a copy of it")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise SetupError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return cast(FeatureRule, module)


def read_labels(path: Path) -> tuple[str, ...]:
    """The labels in the order of the model's scores, from the ``labels.txt`` that lies beside its configuration."""
    return tuple(path.read_text(encoding="utf-8").split())


def best_label(scores: NDArray[Any], labels: Sequence[str]) -> tuple[str, float]:
    """The most likely type and its score.

    Args:
        scores: float32 [n], one per label.
        labels: n labels.

    Raises:
        ValueError: unequal lengths.
    """
    if scores.shape != (len(labels),):
        raise ValueError(f"{len(labels)} labels do not fit scores of shape {scores.shape}")
    best = int(scores.argmax())
    return labels[best], float(scores[best])
