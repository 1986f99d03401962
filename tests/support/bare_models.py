# SPDX-License-Identifier: Apache-2.0
"""Models as people have them, before a router is put in front of them: folders that no server has seen."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper

from support import onnx_models

IDENTITY = """\
# The owner's own words.
name: "model"
backend: "python"
max_batch_size: 4
input [ { name: "X" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 4 ] } ]
instance_group [ { kind: KIND_CPU count: 1 } ]
"""
"""A configuration that has everything a router needs to know."""


def model(folder: Path, config: str | bytes = IDENTITY, files: Mapping[str, str | bytes] | None = None) -> Path:
    """Writes a model's folder.

    Args:
        folder: must not exist.
        config: its ``config.pbtxt``.
        files: further ones by their place in it.

    Returns:
        The folder.
    """
    for name, content in {"config.pbtxt": config, "1/model.py": "", **(files or {})}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def snapshot(folder: Path) -> dict[str, Any]:
    """Everything below a folder: content, mode, and where links lead."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        else:
            mode = path.stat().st_mode
            found[name] = (mode, None if path.is_dir() else path.read_bytes())
    return found


def with_data(folder: Path, location: str = "weights.bin") -> Path:
    """An ONNX file ``m.onnx`` whose weights lie in ``weights.bin`` beside it; it may say that they are elsewhere."""
    folder.mkdir(exist_ok=True)
    weights = onnx.numpy_helper.from_array(np.ones((4,), np.float32), "B")
    node = helper.make_node("Add", ["X", "B"], ["Y"])
    graph = helper.make_graph(
        [node], "g", [onnx_models.value("X", ("n", 4))], [onnx_models.value("Y", ("n", 4))], [weights]
    )
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
    onnx.save(model, folder / "m.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    if location != "weights.bin":
        entry = onnx.load(folder / "m.onnx", load_external_data=False)
        next(one for one in entry.graph.initializer[0].external_data if one.key == "location").value = location
        onnx.save(entry, folder / "m.onnx")
    return folder / "m.onnx"
