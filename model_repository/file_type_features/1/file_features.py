# SPDX-License-Identifier: Apache-2.0
"""The file-type model's input: what of a file's bytes it sees, and which files it does not see at all.

Law: bytes in, numbers out; standard library and numpy only, since a Triton server runs it. The rule is that of the
``magika`` package, which ships the model; a test compares both. Clients may load this file by its path.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

BEGIN_SIZE: Final = 1024
END_SIZE: Final = 1024
FEATURES: Final = BEGIN_SIZE + END_SIZE
BLOCK_SIZE: Final = 4096
"""Bytes that are looked at from either end: the first and the last block together give the whole file's answer."""

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


def label_without_model(content: bytes) -> str:
    """The label of a file that is too short for the model.

    Args:
        content: the whole file; at least its first block.

    Returns:
        ``empty``, ``txt`` or ``unknown``.
    """
    if not content:
        return "empty"
    try:
        content[:BLOCK_SIZE].decode("utf-8")
    except UnicodeDecodeError:
        return "unknown"
    return "txt"


def _features(first: bytes, last: bytes) -> NDArray[np.int32] | None:
    begin = first.lstrip()[:BEGIN_SIZE]
    end = last.rstrip()[-END_SIZE:]
    if len(begin) < MINIMUM_BYTES:
        return None
    row = np.full(FEATURES, PADDING, np.int32)
    row[: len(begin)] = np.frombuffer(begin, np.uint8)
    row[FEATURES - len(end) :] = np.frombuffer(end, np.uint8)
    return row
