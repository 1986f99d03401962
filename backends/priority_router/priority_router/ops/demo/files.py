# SPDX-License-Identifier: Apache-2.0
"""Real files to classify: whatever lies in some folders, a few of every kind."""

from __future__ import annotations

import os
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from priority_router.ops.demo.filetype import FeatureRule

_OTHERS_FOLDERS = {"site-packages", "dist-packages", "node_modules"}


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """A file and the model's input for it, int32 [1, 2048]."""

    path: Path
    features: NDArray[np.int32]

    @property
    def kind(self) -> str:
        """The file's suffix, by which people know its kind; the model never sees it."""
        return self.path.suffix


def collect(folders: Sequence[Path], count: int, seed: int, rule: FeatureRule) -> list[Sample]:
    """Draws files so that every kind has about the same share, as far as there are enough of it.

    Args:
        folders: searched with everything below them but hidden folders and installed packages.
        count: how many files are wanted.
        seed: the same files and seed give the same sample.
        rule: makes the model's input.

    Returns:
        At most ``count`` samples, in random order; fewer when there are not so many files that fit the model.
    """
    by_kind: dict[str, list[Path]] = defaultdict(list)
    for path in sorted(_files(folders)):
        by_kind[path.suffix].append(path)
    draw = random.Random(seed)
    for paths in by_kind.values():
        draw.shuffle(paths)
    chosen: list[Sample] = []
    while by_kind and len(chosen) < count:
        for kind in sorted(by_kind):
            sample = _next_usable(by_kind[kind], rule)
            if sample is None:
                del by_kind[kind]
            else:
                chosen.append(sample)
    draw.shuffle(chosen)
    return chosen[:count]


def kinds(samples: Iterable[Sample], most: int = 12) -> str:
    """How many files of which kind, the first ``most`` kinds by name."""
    counted = sorted(Counter(sample.kind for sample in samples).items(), key=lambda item: (-item[1], item[0]))
    named = ", ".join(f"{count} {kind}" for kind, count in counted[:most])
    return f"{named} and {len(counted) - most} more kinds" if len(counted) > most else named


def _files(folders: Sequence[Path]) -> Iterable[Path]:
    for folder in folders:
        for parent, below, names in os.walk(folder):
            below[:] = [name for name in below if not name.startswith(".") and name not in _OTHERS_FOLDERS]
            for path in (Path(parent, name) for name in names):
                if path.suffix and path.is_file():
                    yield path


def _next_usable(paths: list[Path], rule: FeatureRule) -> Sample | None:
    while paths:
        path = paths.pop()
        try:
            features = rule.features_of_file(path)
        except OSError:
            continue
        if features is not None:
            return Sample(path, features[None])
    return None
