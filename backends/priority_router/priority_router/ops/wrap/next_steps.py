# SPDX-License-Identifier: Apache-2.0
"""What to do with a wrapped model: start it, ask it, measure it.

Law: pure; commands that work as they are printed.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from priority_router.control import thread_pool_size
from priority_router.interface import CLASS_PARAMETER, TIMING_OUTPUTS
from priority_router.ops.probe.question import ZeroTensor, zero_inputs
from priority_router.ops.wrap.options import WantedClass
from priority_router.ops.wrap.source import Source
from priority_router.ops.wrap.tensors import Tensor

_MOST_SHOWN: Final = 32
"""Elements of a tensor that a command line or a terminal bears."""

_MOST_LETTERS: Final = 4_000
"""Of a command that somebody is to read and paste; a terminal takes about as many in one line."""

_BACKENDS: Final = "/opt/tritonserver/backends"


def lines(repository: Path, router: str, source: Source, classes: Sequence[WantedClass], plain: bool) -> Iterator[str]:
    """The steps.

    Args:
        repository: with both models.
        router: its name.
        source: its executor.
        classes: of its policy.
        plain: nothing need be preloaded.
    """
    urgent = min(classes, key=lambda wanted: wanted.level).name
    yield "Start:"
    yield f"  priority-router serve --model-repository {shlex.quote(str(repository))}"
    pool = thread_pool_size(source.instances.count)
    how = (
        f"then start it with --backend-config=python,thread-pool-size={pool}"
        if plain
        else f"which prints what to start it with (EXECUTOR=ROUTER: {source.name}={router}, thread-pool-size={pool})"
    )
    yield f"or, a tritonserver of your own: priority-router install {_BACKENDS}, {how};"
    yield "  every step: docs/existing-server.md"
    yield f"Ask, as {urgent}:"
    command = curl(router, source, urgent)
    if len(command) > _MOST_LETTERS:
        yield (
            f"  priority-router probe --model {router} --class {shlex.quote(urgent)}  # a request of zeros; as curl it "
            f"has {len(command)} letters"
        )
    else:
        yield f"  {command}"
    yield (
        "Measure under your own load, each class apart: latency at the client (p50, p99), refusals and timeouts "
        "(priority_router_requests_total on port 8002, /metrics), time in the queue (ROUTER_QUEUE_US in each answer)."
    )
    if source.max_batch_size:
        yield (
            "The batch size decides how long urgent requests wait: priority-router sweep tells what each size gives, "
            "on a server with the model alone."
        )


def curl(router: str, source: Source, traffic_class: str) -> str:
    """One request of zeros, as a line for a shell."""
    tensors = zero_inputs({"max_batch_size": source.max_batch_size, "input": [_json(one) for one in source.inputs]})
    small = all(math.prod(tensor.shape) <= _MOST_SHOWN and tensor.datatype != "FP16" for tensor in tensors)
    header: dict[str, object] = {"inputs": [_as_json(tensor) if small else _as_binary(tensor) for tensor in tensors]}
    if not all(_is_short(tensor) for tensor in source.outputs):
        header["outputs"] = [{"name": name} for name in sorted(TIMING_OUTPUTS)]
    header["parameters"] = {CLASS_PARAMETER: traffic_class}
    text = json.dumps(header, ensure_ascii=False)
    url = f"http://127.0.0.1:8000/v2/models/{router}/infer"
    if small:
        return f"curl -s {url} -d {shlex.quote(text)}"
    zeros = sum(len(tensor.raw) for tensor in tensors)
    return (
        f"{{ printf %s {shlex.quote(text)}; head -c {zeros} /dev/zero; }} | curl -s {url} "
        f"-H 'Inference-Header-Content-Length: {len(text.encode())}' --data-binary @-"
    )


def _json(tensor: Tensor) -> dict[str, object]:
    return {
        "name": tensor.name,
        "data_type": tensor.data_type,
        "dims": tensor.dims,
        "optional": tensor.optional,
    }


def _as_json(tensor: ZeroTensor) -> dict[str, object]:
    zero: object = {"BYTES": "", "BOOL": False, "FP32": 0.0, "FP64": 0.0}.get(tensor.datatype, 0)
    data = [zero] * math.prod(tensor.shape)
    return {"name": tensor.name, "datatype": tensor.datatype, "shape": tensor.shape, "data": data}


def _as_binary(tensor: ZeroTensor) -> dict[str, object]:
    size = {"binary_data_size": len(tensor.raw)}
    return {"name": tensor.name, "datatype": tensor.datatype, "shape": tensor.shape, "parameters": size}


def _is_short(tensor: Tensor) -> bool:
    """Whether an answer can be read: 16-bit floats have no JSON form."""
    return (
        tensor.data_type != "TYPE_FP16"
        and all(length > 0 for length in tensor.dims)
        and (math.prod(tensor.dims) <= 8 * _MOST_SHOWN)
    )
