# SPDX-License-Identifier: Apache-2.0
"""Triton's own backends: how it finds a model's where none is written, what they load, how many instances they get.

Law: ``AutoCompleteBackendFields`` and ``SetDefaultInstanceCount`` of Triton's core, and nothing else. Only `onnx_file`
looks at the disk.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from priority_router.interface import BACKEND

ONNX_BACKEND: Final = "onnxruntime"
ONNX_FILE: Final = "model.onnx"
PYTHON_BACKEND: Final = "python"
TENSORRT_BACKEND: Final = "tensorrt"
ENSEMBLE_PLATFORM: Final = "ensemble"


@dataclass(frozen=True, slots=True)
class _Format:
    """One kind of models.

    Attributes:
        backend: that runs them.
        file: that a version folder holds, or a folder of that name, unless ``default_model_filename`` says otherwise.
        platforms: the older way to name them; empty among them: what the backend takes where none is written.
    """

    backend: str
    file: str
    platforms: tuple[str, ...]


_FORMATS: Final = (
    _Format("tensorflow", "model.savedmodel", ("tensorflow_savedmodel",)),
    _Format("tensorflow", "model.graphdef", ("tensorflow_graphdef",)),
    _Format(TENSORRT_BACKEND, "model.plan", ("tensorrt_plan", "")),
    _Format(ONNX_BACKEND, ONNX_FILE, ("onnxruntime_onnx", "")),
    _Format("openvino", "model.xml", ("",)),
    _Format("pytorch", "model.pt", ("pytorch_libtorch", "libtorch", "")),
    _Format("pytorch", "model.pt2", ("torch_aoti",)),
    _Format(PYTHON_BACKEND, "model.py", ("",)),
)
"""In the order in which Triton looks for them."""

_OTHERS: Final = ("dali", "fil", "identity", "repeat", "square", "tensorrtllm", "vllm")
"""Further backends of Triton's own."""

_CLOSE: Final = 0.8
"""Of 1; a letter too many, too few or swapped in a name of five is above it."""

_TWO_ON_CPU: Final = (ONNX_BACKEND, "tensorflow")


def find(backend: str, platform: str, file: str, present: Collection[str]) -> str:
    """What runs a model; empty where Triton cannot tell either, or only from the model's name.

    Args:
        backend: as it is written; empty where it is not.
        platform: likewise.
        file: likewise, ``default_model_filename``.
        present: what lies in the version folders.
    """
    if backend:
        return backend
    for known in _FORMATS:
        named = (platform and platform in known.platforms) or file == known.file
        if named or (not platform and not file and known.file in present):
            return known.backend
    return ""


def file_of(backend: str, platform: str) -> str:
    """The file or folder that a backend looks for in a version; empty where nobody knows that, or it takes several.

    Args:
        backend: any.
        platform: as it is written; empty where it is not.
    """
    files = {name: known.file for known in _FORMATS if known.backend == backend for name in known.platforms}
    return files.get(platform) or files.get("", "")


def default_count(backend: str, *, on_cpu: bool) -> int | None:
    """Instances in a group without a count, on each of its devices; None where a backend may ask for its own number."""
    if all(backend != known.backend for known in _FORMATS):
        return None
    return 2 if on_cpu and backend in _TWO_ON_CPU else 1


def close_to(name: str) -> str:
    """A known backend whose name is nearly, and not quite, that of one; empty where there is none."""
    known = [BACKEND, *dict.fromkeys(known.backend for known in _FORMATS), *_OTHERS]
    close = difflib.get_close_matches(name.lower(), known, n=1, cutoff=_CLOSE)
    return close[0] if close and name not in known else ""


def in_place_of(platform: str) -> str:
    """What to write for a platform that Triton does not know, such as ``platform: …`` or ``backend: …``."""
    platforms = {name: known.backend for known in _FORMATS for name in known.platforms if name}
    known_backends = dict.fromkeys(known.backend for known in _FORMATS)
    close = difflib.get_close_matches(platform.lower(), (*known_backends, *platforms), n=1)
    if not close:
        return f'backend: "{platform}", if that is the name of a backend,'
    backend = platforms.get(close[0], close[0])
    own = [name for name, its in platforms.items() if its == backend]
    named = close if close[0] in platforms else own if len(own) == 1 else []
    return " or ".join([*(f'platform: "{name}"' for name in named), f'backend: "{backend}"'])


def onnx_file(version: Path, named: str) -> Path:
    """The file of an ONNX model, which is in a folder of its own where its weights lie in further files.

    Args:
        version: its version folder.
        named: its ``default_model_filename``; empty where none is written.
    """
    path = version / (named or ONNX_FILE)
    return path / ONNX_FILE if path.is_dir() else path
