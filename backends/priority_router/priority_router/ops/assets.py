# SPDX-License-Identifier: Apache-2.0
"""Where the files that a server needs lie: in a clone beside the package, in an installed wheel inside it.

==================  ============================================  ==================================
file                clone                                         wheel
==================  ============================================  ==================================
the package         ``backends/priority_router/priority_router``  ``priority_router``
``model.py``        ``backends/priority_router``                  ``priority_router/_backend``
the hooks           ``backends/priority_router/hooks``            ``priority_router/_backend``
CPU onnx backend    ``backends/onnxruntime``                      ``priority_router/_backend/onnxruntime``
==================  ============================================  ==================================

A wheel has no ``backends`` folder, a clone no ``_backend``, so the first that exists is the one that belongs to this
package.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from priority_router.errors import SetupError
from priority_router.hooks import LIBRARY_NAME

HOOKS_PLACE: Final = f"hooks/{LIBRARY_NAME}"
"""Where the compiled hooks lie in that folder."""

_PACKAGE = Path(__file__).resolve().parents[1]
_IN_WHEEL = _PACKAGE / "_backend"
_IN_CLONE = _PACKAGE.parent


def package_folder() -> Path:
    """The folder ``priority_router`` itself, to be placed beside ``model.py`` in a backend folder."""
    return _PACKAGE


def model_file() -> Path:
    """``model.py`` of the router backend.

    Raises:
        SetupError: this installation lacks it.
    """
    return _found("the router's model.py", _IN_WHEEL / "model.py", _IN_CLONE / "model.py")


def hooks_library() -> Path:
    """The compiled hooks, for ``LD_PRELOAD``.

    Raises:
        SetupError: not compiled; the text says how to.
    """
    return _found("the compiled hooks", _IN_WHEEL / LIBRARY_NAME, _IN_CLONE / HOOKS_PLACE)


def onnxruntime_backend() -> Path:
    """The folder of the Python-based ``onnxruntime`` backend that stands in for the C++ one on the embedded server.

    Raises:
        SetupError: this installation lacks it.
    """
    return _found("the CPU onnxruntime backend", _IN_WHEEL / "onnxruntime", _IN_CLONE.parent / "onnxruntime")


def _found(what: str, *candidates: Path) -> Path:
    for candidate in candidates:
        if candidate.exists():
            return candidate
    places = " nor ".join(str(candidate) for candidate in candidates)
    raise SetupError(f"{what}: found neither {places}; run scripts/setup in a clone, or install the package again")
