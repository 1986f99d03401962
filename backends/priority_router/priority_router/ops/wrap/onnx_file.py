# SPDX-License-Identifier: Apache-2.0
"""What an ONNX file says of its own inputs and outputs, and which files it needs beside it.

Law: reads, runs nothing. Whether there is a batch axis is decided as Triton's onnxruntime backend does when it
completes a configuration: every input and output begins with a free dimension.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Final

from priority_router.errors import SetupError
from priority_router.ops.wrap import tensors
from priority_router.ops.wrap.tensors import Tensor

TRITON_TYPES: Final = {
    "BOOL": "TYPE_BOOL",
    "UINT8": "TYPE_UINT8",
    "UINT16": "TYPE_UINT16",
    "UINT32": "TYPE_UINT32",
    "UINT64": "TYPE_UINT64",
    "INT8": "TYPE_INT8",
    "INT16": "TYPE_INT16",
    "INT32": "TYPE_INT32",
    "INT64": "TYPE_INT64",
    "FLOAT16": "TYPE_FP16",
    "FLOAT": "TYPE_FP32",
    "DOUBLE": "TYPE_FP64",
    "STRING": "TYPE_STRING",
    "BFLOAT16": "TYPE_BF16",
}
"""Names of ONNX element types to Triton's."""


@dataclass(frozen=True, slots=True)
class OnnxModel:
    """An ONNX file.

    Attributes:
        inputs: that a request must bring, dims with the first dimension.
        outputs: likewise.
        batched: every input and output begins with a free dimension.
        unequal: names of the first dimension where the inputs name it differently: then it is no batch axis.
        external: files with weights, relative to the model's own.
    """

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    batched: bool
    unequal: tuple[str, ...]
    external: tuple[str, ...]

    def configured(self, kind: str, batched: bool) -> tuple[Tensor, ...]:
        """Inputs or outputs as a configuration declares them: without the batch axis, one value as ``[ 1 ]``."""
        return tuple(_configured(tensor, batched) for tensor in (self.inputs if kind == "input" else self.outputs))


def read(path: Path) -> OnnxModel:
    """Reads a file, without its weights.

    Raises:
        SetupError: it is no ONNX model, or has a tensor that Triton or a router cannot carry.
    """
    import onnx

    try:
        model: Any = onnx.load(str(path), load_external_data=False)
    except OSError as error:
        raise SetupError(f"{path}: cannot be read ({error.strerror or error})") from error
    except Exception as error:  # protobuf's own, which has no base that lasts
        raise SetupError(f"{path}: is no ONNX model ({error}); export it again") from error
    graph = model.graph
    if not graph.output:
        raise SetupError(f"{path}: is no ONNX model, or one without outputs; export it again")
    # Those with a default are no part of what a request must bring, and Triton leaves them out as well.
    defaults = {tensor.name for tensor in graph.initializer}
    defaults |= {tensor.values.name for tensor in graph.sparse_initializer}
    taken = [value for value in graph.input if value.name not in defaults]
    if not taken:
        raise SetupError(f"{path}: its model has no inputs, so that there is nothing to route")
    inputs = tuple(_tensor(path, "input", value) for value in taken)
    outputs = tuple(_tensor(path, "output", value) for value in graph.output)
    free = all(tensor.dims[:1] == (-1,) for tensor in (*inputs, *outputs))
    names = tuple(sorted({value.type.tensor_type.shape.dim[0].dim_param for value in taken} - {""})) if free else ()
    return OnnxModel(inputs, outputs, free, names if len(names) > 1 else (), tuple(sorted(set(_external(path, model)))))


def _tensor(path: Path, kind: str, value: Any) -> Tensor:
    from onnx import TensorProto

    what = value.type.WhichOneof("value")
    if what != "tensor_type":
        raise SetupError(
            f"{path}: {kind} {value.name!r} is no tensor ({what or 'no type'}), which Triton cannot serve; export the "
            "model with tensors only"
        )
    kind_of_element = TensorProto.DataType.Name(value.type.tensor_type.elem_type)
    if kind_of_element not in TRITON_TYPES:
        raise SetupError(
            f"{path}: {kind} {value.name!r} is {kind_of_element}, which Triton cannot serve; export the model with "
            "another type there"
        )
    data_type = TRITON_TYPES[kind_of_element]
    tensors.check(kind, value.name, data_type, lambda _: str(path))
    if not value.type.tensor_type.HasField("shape"):
        raise SetupError(
            f"{path}: {kind} {value.name!r} has no shape; export the model with shapes (onnx.shape_inference), or "
            "write a config.pbtxt with its dims"
        )
    shape = value.type.tensor_type.shape.dim
    return Tensor(value.name, data_type, tuple(dim.dim_value if dim.dim_value > 0 else -1 for dim in shape))


def _configured(tensor: Tensor, batched: bool) -> Tensor:
    dims = tensor.dims[1:] if batched else tensor.dims
    if dims:
        return replace(tensor, dims=dims)
    # Triton has no empty dims. Without a batch axis it also takes no empty reshape, and does without.
    return replace(tensor, dims=(1,), model_dims=() if batched else None)


def _external(path: Path, model: Any) -> Iterator[str]:
    """Files that hold weights, each as the ONNX file names it.

    Raises:
        SetupError: one that is missing, or lies outside the model's folder, which ONNX Runtime refuses.
    """
    from onnx import TensorProto

    for tensor in _weights(model):
        if tensor.data_location != TensorProto.EXTERNAL:
            continue
        location = next((entry.value for entry in tensor.external_data if entry.key == "location"), "")
        parts = PurePosixPath(location).parts
        if not parts or ".." in parts or location.startswith("/"):
            raise SetupError(
                f"{path}: weights of {tensor.name!r} are in {location!r}, which is not inside its folder, so that ONNX "
                "Runtime does not read them; save the model with its data beside it"
            )
        if not (path.parent / location).is_file():
            raise SetupError(f"{path}: its weights are in {location!r}, which is missing; put it beside the model")
        yield str(PurePosixPath(location))


def _weights(model: Any) -> Iterator[Any]:
    """Every tensor that an ONNX file holds."""
    yield from _weights_of(model.graph)
    for function in model.functions:
        yield from _weights_in(function.node)


def _weights_of(graph: Any) -> Iterator[Any]:
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    yield from _weights_in(graph.node)


def _weights_in(nodes: Sequence[Any]) -> Iterator[Any]:
    for node in nodes:
        for attribute in node.attribute:
            yield attribute.t
            yield from attribute.tensors
            for graph in (attribute.g, *attribute.graphs):
                yield from _weights_of(graph)
