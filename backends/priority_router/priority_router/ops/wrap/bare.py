# SPDX-License-Identifier: Apache-2.0
"""The configuration of a model that has none: a bare ONNX file.

Law: pure; what the file says in, text out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from priority_router.ops.rules.backends import ONNX_BACKEND
from priority_router.ops.rules.configs import cpu_instances
from priority_router.ops.wrap.onnx_file import OnnxModel
from priority_router.ops.wrap.tensors import Tensor
from priority_router.ops.wrap.texts import comment, pbtxt_string

TEACHING_BATCH_SIZE: Final = 8
"""Large enough to see rows joined, small enough not to be long in the way."""


@dataclass(frozen=True, slots=True)
class BareConfig:
    """A configuration made up.

    Attributes:
        text: of ``config.pbtxt``, without a batching block.
        max_batch_size: in it.
        notes: what was decided; sentences without a full stop.
    """

    text: str
    max_batch_size: int
    notes: tuple[str, ...]


def config(name: str, model: OnnxModel, instances: int) -> BareConfig:
    """Makes one.

    Args:
        name: of the model.
        model: what the file says.
        instances: on the CPU.
    """
    batched = model.batched and not model.unequal
    size = TEACHING_BATCH_SIZE if batched else 0
    decided = _decided(model, size)
    lines = [
        *comment(f"{name}.onnx for Triton, written by priority-router wrap; yours from now on."),
        f"name: {pbtxt_string(name)}",
        f"backend: {pbtxt_string(ONNX_BACKEND)}",
        "",
        *comment(f"{decided[0].upper()}{decided[1:]}."),
        f"max_batch_size: {size}",
        "",
        *_list("input", model.configured("input", batched)),
        *_list("output", model.configured("output", batched)),
        "",
        *comment(
            "Always write the count: without it Triton starts two CPU instances, or one for each GPU. The router's "
            "policy.toml says the same number. On a GPU: kind: KIND_GPU count: 1 gpus: [ 0 ]."
        ),
        cpu_instances(instances),
    ]
    return BareConfig("".join(f"{line}\n" for line in lines), size, (decided,))


def _decided(model: OnnxModel, size: int) -> str:
    if size:
        return (
            "every input and output of the model begins with a free dimension, which is taken for the batch axis; "
            f"max_batch_size: {size} is a teaching value: measure what each size gives, and keep the smallest that "
            "gives about the most rows/s"
        )
    if model.unequal:
        return (
            f"the inputs begin with different free dimensions ({', '.join(model.unequal)}), of which none can be the "
            "batch axis of all; without one (max_batch_size: 0) requests are never joined"
        )
    return (
        "not every input and output of the model begins with a free dimension, so that it has no batch axis "
        "(max_batch_size: 0) and requests are never joined; export it with a free first dimension to change that"
    )


def _list(kind: str, tensors: Sequence[Tensor]) -> list[str]:
    entries = [f"  {_entry(tensor)}" for tensor in tensors]
    return [f"{kind} [", *(f"{entry}," for entry in entries[:-1]), entries[-1], "]"]


def _entry(tensor: Tensor) -> str:
    if tensor.model_dims is None:
        return tensor.entry()
    lengths = "".join(f" {length}" for length in tensor.model_dims)
    return f"{tensor.entry()[:-2]} reshape {{ shape: [{lengths} ] }} }}"
