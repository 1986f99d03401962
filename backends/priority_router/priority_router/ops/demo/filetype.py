# SPDX-License-Identifier: Apache-2.0
"""The file-type model's client side: bytes of a file to its input, its scores to a label.

Law: no sockets and no server. The rule is that of the ``magika`` package, which ships the model; a test compares both.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

INPUT: Final = "bytes"
OUTPUT: Final = "target_label"

BEGIN_SIZE: Final = 1024
END_SIZE: Final = 1024
FEATURES: Final = BEGIN_SIZE + END_SIZE
BLOCK_SIZE: Final = 4096
PADDING: Final = 256
"""Stands where the file has no byte, so that it differs from a zero byte."""

MINIMUM_BYTES: Final = 8
"""Files with fewer bytes, leading white space not counted, say too little: the model was not trained on them."""


def features_of_bytes(content: bytes) -> NDArray[np.int32] | None:
    """The model's input for a file.

    Args:
        content: the whole file.

    Returns:
        int32 [2048], values 0 to 256: the first KiB without leading white space, then the last KiB without trailing
        white space, each taken from at most 4 KiB and filled up with `PADDING` at its far side. None for a file that is
        too short for the model.
    """
    return _features(content[:BLOCK_SIZE], content[-BLOCK_SIZE:])


def features_of_file(path: Path) -> NDArray[np.int32] | None:
    """As `features_of_bytes`, reading only both ends of a file."""
    with path.open("rb") as file:
        first = file.read(BLOCK_SIZE)
        size = file.seek(0, 2)
        file.seek(max(0, size - BLOCK_SIZE))
        return _features(first, file.read(BLOCK_SIZE))


def _features(first: bytes, last: bytes) -> NDArray[np.int32] | None:
    begin = first.lstrip()[:BEGIN_SIZE]
    end = last.rstrip()[-END_SIZE:]
    if len(begin) < MINIMUM_BYTES:
        return None
    row = np.full(FEATURES, PADDING, np.int32)
    row[: len(begin)] = np.frombuffer(begin, np.uint8)
    row[FEATURES - len(end) :] = np.frombuffer(end, np.uint8)
    return row


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
