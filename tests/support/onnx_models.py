# SPDX-License-Identifier: Apache-2.0
"""Tiny ONNX models, one per property that the tests of the onnxruntime backend need."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

FLOAT, INT64, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING

Dims = Sequence[int | str]


def write(
    path: Path,
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    initializers: Sequence[onnx.TensorProto] = (),
) -> Path:
    """Checks the graph and writes it to ``path``; the versions are old enough for any supported ONNX Runtime."""
    graph = helper.make_graph(nodes, "tiny", inputs, outputs, initializers)
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
    onnx.checker.check_model(model)
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, path)
    return path


def value(name: str, dims: Dims, kind: int = FLOAT) -> Any:
    return helper.make_tensor_value_info(name, kind, list(dims))


def doubling(path: Path, dims: Dims = ("n", 4)) -> Path:
    """Y = X + X and Z = -X."""
    nodes = [helper.make_node("Add", ["X", "X"], ["Y"]), helper.make_node("Neg", ["X"], ["Z"])]
    return write(path, nodes, [value("X", dims)], [value("Y", dims), value("Z", dims)])


def adding(path: Path) -> Path:
    """Y = X + W, both ``[n, k]``: the model itself refuses unequal lengths, Triton's configuration cannot."""
    nodes = [helper.make_node("Add", ["X", "W"], ["Y"])]
    return write(path, nodes, [value("X", ("n", "k")), value("W", ("n", "m"))], [value("Y", ("n", "l"))])


def summing(path: Path) -> Path:
    """Y = the sum of each row of X: one number per row, so that the output has no dims beside the batch axis."""
    axes = helper.make_tensor("axes", INT64, [1], [1])
    nodes = [helper.make_node("ReduceSum", ["X", "axes"], ["Y"], keepdims=0)]
    return write(path, nodes, [value("X", ("n", 4))], [value("Y", ("n",))], [axes])


def echoing_text(path: Path) -> Path:
    """Y = X, strings."""
    nodes = [helper.make_node("Identity", ["X"], ["Y"])]
    return write(path, nodes, [value("X", ("n", "k"), STRING)], [value("Y", ("n", "k"), STRING)])


def scalar(path: Path) -> Path:
    """Y = X + X, both without any dimension."""
    return write(path, [helper.make_node("Add", ["X", "X"], ["Y"])], [value("X", ())], [value("Y", ())])


def with_default(path: Path) -> Path:
    """Y = X + B, ``[2]`` each, where B has a default of [10, 20] that a request may replace."""
    default = onnx.numpy_helper.from_array(np.array([10, 20], np.float32), "B")
    nodes = [helper.make_node("Add", ["X", "B"], ["Y"])]
    return write(path, nodes, [value("X", (2,)), value("B", (2,))], [value("Y", (2,))], [default])


def repeating_rows(path: Path) -> Path:
    """Y has two rows for each row of X: declared like a batch, but it is none."""
    nodes = [helper.make_node("Concat", ["X", "X"], ["Y"], axis=0)]
    return write(path, nodes, [value("X", ("n", 4))], [value("Y", ("m", 4))])
