# SPDX-License-Identifier: Apache-2.0
"""What keeps a file of a model from being opened, and what its ``model.onnx`` says.

Law: nothing waits, and nothing is raised, whatever lies there.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from priority_router.ops.lint import onnx_tensors
from priority_router.ops.rules import backends, configs
from priority_router.ops.rules.catalogue import files as rules
from priority_router.ops.rules.files import model_file
from priority_router.ops.rules.finding import Finding, Place
from priority_router.ops.rules.models import Model, OnnxTensors

_FOLDER: Final = "is a folder"
_ORT_FORMAT: Final = ".ort"
"""Of files that onnxruntime reads and nobody here does."""


def not_opened(path: Path) -> str:
    """Why a file is not opened, as ``is a folder``; empty where it is. Opening a pipe would wait for its writer."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    if not stat.S_ISREG(mode):
        return _FOLDER if stat.S_ISDIR(mode) else "is no file"
    return "" if os.access(path, os.R_OK) else "cannot be read (its rights forbid it)"


def dead_link(model: str, file: str, path: Path, effect: str) -> Finding | None:
    """A link that leads nowhere, or to itself.

    Args:
        model: whose.
        file: relative to the model's folder; empty for the folder.
        path: of the link.
        effect: what comes of it.
    """
    try:
        path.stat()
    except PermissionError:
        return None
    except OSError as error:
        try:
            target = f" to {os.readlink(path)}"
        except OSError:
            target = ""
        what = f"{file or path.name} is a link{target} that leads nowhere ({error.strerror}): {effect}"
        return Finding(rules.DEAD_LINK, Place(model, file), what, f"remove the link {path}, or correct it")
    return None


def check(model: Model, folder: Path) -> Iterator[Finding]:
    """The files of the versions that serve, as far as rules take them to be there.

    Args:
        model: no router.
        folder: of the model.
    """
    file = model_file(model)
    for version in configs.served_versions(model) or ():
        name = f"{version}/{file}"
        if not file or name not in (model.files or ()):
            continue
        if link := dead_link(model.name, name, folder / name, "its backend refuses to load it"):
            yield link
            continue
        if reason := _useless(folder / name, configs.backend(model)):
            yield unusable(model, name, f"{model.name}/{name} {reason}")


def _useless(path: Path, backend: str) -> str:
    """As `not_opened`; some backends take a folder in place of a file."""
    reason = not_opened(path)
    if reason != _FOLDER or backend == backends.PYTHON_BACKEND:
        return reason
    if backend == backends.ONNX_BACKEND and not os.path.lexists(path / backends.ONNX_FILE):
        return f"{_FOLDER} without {backends.ONNX_FILE}"
    return ""


def unusable(model: Model, file: str, what: str) -> Finding:
    """A model's file that its backend cannot load."""
    fix = f"put the model into {model.name}/{file}, as a file that the server's user may read"
    return Finding(rules.NO_VERSION, Place(model.name, file), f"{what}: its backend refuses to load it", fix)


def onnx(model: Model, folder: Path) -> OnnxTensors | Finding | str | None:
    """What the ONNX file of a version says.

    Args:
        model: its model.
        folder: of the version.

    Returns:
        Its tensors; what is wrong with it; why it is not looked at; None where there is none.
    """
    if configs.backend(model) != backends.ONNX_BACKEND:
        return None
    try:
        path = backends.onnx_file(folder, configs.text(model, "default_model_filename"))
        if not_opened(path) or path.suffix == _ORT_FORMAT:
            return None
        return onnx_tensors.read(path)
    except onnx_tensors.OnnxError as error:
        file = f"{folder.name}/{path.relative_to(folder)}"
        return unusable(model, file, f"{model.name}/{file} cannot be read as an ONNX model: {error}")
    except (OSError, ValueError) as error:
        return f"{model.name}/{folder.name}: its ONNX model cannot be read ({error})"
    except ModuleNotFoundError:
        return f"{model.name}/{folder.name}/{path.name}: that needs the package onnx"
