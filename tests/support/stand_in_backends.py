# SPDX-License-Identifier: Apache-2.0
"""Serves configurations of any backend: a server whose backends, whatever their name, are `any_model`.

Also requests that fit any configuration, with a mark in every row that `any_model` repeats.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import tritonclient.grpc
from priority_router.ops.server import installation
from tritonclient.grpc.model_config_pb2 import DataType
from tritonclient.utils import triton_to_np_dtype

from support import stand_in

Array = np.ndarray[Any, Any]

MODEL = Path(__file__).with_name("any_model.py")
MODEL_FILES = {"onnxruntime": "model.onnx", "python": "model.py", "pytorch": "model.pt", "tensorrt": "model.plan"}
"""What backends look for where the configuration names no file; of the others it is not asked."""

TENSORFLOW_FILES = {"tensorflow_savedmodel": "model.savedmodel", "tensorflow_graphdef": "model.graphdef"}
"""Likewise, by platform."""

TRITONS_OWN = {*MODEL_FILES, "openvino", "tensorflow"}
"""Backends whose models get the same number of instances from every server where the count is left out."""

FREE_LENGTH = 2
"""Of dimensions that each request chooses."""


def write_server(folder: Path, backends: Iterable[str]) -> installation.Installation:
    """The embedded server, with stand-ins for further backends beside its Python backend.

    It gives way to all other processes: with many models it would disturb what other tests measure.
    """
    stand_in.write_server(folder, stand_in.embedded())
    server = folder / "bin" / "tritonserver"
    stand_in.program(server, server.read_text().replace("exec ", "exec nice -n 19 ", 1))
    for name in set(backends) - {"python"}:
        (folder / "backends" / name).mkdir()
        shutil.copy(MODEL, folder / "backends" / name / "model.py")
    return installation.find(server)


def environment() -> dict[str, str]:
    """What such a server needs: the tests' own interpreter for its models."""
    return {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


def write_model(folder: Path, text: bytes, config: Any, backend: str) -> None:
    """A model's folder with everything that its configuration asks for.

    Args:
        folder: not there yet.
        text: of its config.pbtxt.
        config: what that means.
        backend: that runs it.
    """
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").write_bytes(text)
    file = config.default_model_filename or (MODEL_FILES | TENSORFLOW_FILES).get(config.platform or backend, "")
    file = file or MODEL_FILES.get(backend, "")
    if backend == "python":
        shutil.copy(MODEL, folder / "1" / file)
    elif backend == "onnxruntime":
        onnx.save(_empty_graph(config), folder / "1" / file)
    elif file:
        (folder / "1" / file).touch()
    for output in config.output:
        if output.label_filename:
            (folder / output.label_filename).write_text("one\ntwo\n")


def _empty_graph(config: Any) -> onnx.ModelProto:
    """An ONNX model with a configuration's tensors, and nothing that computes them."""

    def declared(entries: Any) -> list[onnx.ValueInfoProto]:
        return [
            onnx.helper.make_tensor_value_info(e.name, _onnx_type(e.data_type), _model_dims(config, e)) for e in entries
        ]

    graph = onnx.helper.make_graph([], "empty", declared(config.input), declared(config.output))
    return onnx.helper.make_model(graph)


def _onnx_type(data_type: int) -> int:
    name = DataType.Name(data_type).removeprefix("TYPE_")
    if name == "STRING":
        return int(onnx.TensorProto.STRING)
    return int(onnx.helper.np_dtype_to_tensor_dtype(np.dtype(triton_to_np_dtype(name))))


def _model_dims(config: Any, entry: Any) -> list[int | None]:
    dims = entry.reshape.shape if entry.HasField("reshape") else entry.dims
    return [*([None] if config.max_batch_size else []), *(None if dim < 0 else dim for dim in dims)]


def inputs(config: Any, marks: Sequence[int]) -> list[Any]:
    """A request with one row per mark; the first mark only where the model has no batch axis."""
    made = []
    for place, entry in enumerate(config.input):
        shape = [FREE_LENGTH if dim < 0 else dim for dim in entry.dims]
        name = DataType.Name(entry.data_type).removeprefix("TYPE_").replace("STRING", "BYTES")
        rows = [_row(shape, name, mark if place == 0 else 0) for mark in marks]
        array = np.stack(rows) if config.max_batch_size else rows[0]
        tensor = tritonclient.grpc.InferInput(entry.name, list(array.shape), name)
        tensor.set_data_from_numpy(array)
        made.append(tensor)
    return made


def answers(config: Any, marks: Sequence[int]) -> dict[str, Array]:
    """What `any_model` makes of that request."""
    return {entry.name: _answer(config, entry, marks) for entry in config.output}


def _answer(config: Any, entry: Any, marks: Sequence[int]) -> Array:
    # Free lengths are 1.
    shape = [max(dim, 1) for dim in entry.dims]
    name = DataType.Name(entry.data_type).removeprefix("TYPE_").replace("STRING", "BYTES")
    rows = [np.full(shape, row.flat[0], row.dtype) for row in (_row([1], name, mark) for mark in marks)]
    return np.stack(rows) if config.max_batch_size else rows[0]


def _row(shape: Sequence[int], name: str, mark: int) -> Array:
    dtype = triton_to_np_dtype(name)
    return np.full(shape, str(mark).encode() if dtype == np.object_ else mark, dtype)
