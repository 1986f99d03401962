# SPDX-License-Identifier: Apache-2.0
"""ONNX models on the CPU: a Python-based Triton backend named ``onnxruntime`` for the embedded server.

It takes the place of NVIDIA's C++ backend of the same name, which that server does not have, so that one model
repository serves both. What loads here loads there: checks and auto-completion follow the C++ backend (24.10), and what
this one lacks (ragged batches, batch inputs and outputs, sequences) is refused at load instead of being served
differently.

Shapes, types and names of a request are checked by Triton against the model's configuration before they arrive; what is
left to this file is the configuration against the model, the joining of a batch, and whatever the model itself refuses.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils

try:
    import onnxruntime
except ImportError as error:
    raise ImportError(
        f"the Python package onnxruntime is missing from the interpreter that serves ONNX models ({sys.prefix}): "
        f"install triton-priority-router[embedded] there ({error})"
    ) from error

DEFAULT_MODEL_FILENAME = "model.onnx"

DEFAULT_MAX_BATCH_SIZE = 4
"""Row limit of a completed configuration: the C++ backend's own default for ``default-max-batch-size``."""

DYNAMIC = -1
"""A dimension whose length each request chooses."""

TRITON_TYPES = {
    "tensor(bool)": "TYPE_BOOL",
    "tensor(uint8)": "TYPE_UINT8",
    "tensor(uint16)": "TYPE_UINT16",
    "tensor(uint32)": "TYPE_UINT32",
    "tensor(uint64)": "TYPE_UINT64",
    "tensor(int8)": "TYPE_INT8",
    "tensor(int16)": "TYPE_INT16",
    "tensor(int32)": "TYPE_INT32",
    "tensor(int64)": "TYPE_INT64",
    "tensor(float16)": "TYPE_FP16",
    "tensor(float)": "TYPE_FP32",
    "tensor(double)": "TYPE_FP64",
    "tensor(string)": "TYPE_STRING",
}
"""ONNX Runtime's names of element types, and Triton's. BF16 has no numpy type and is left out."""

SESSION_PARAMETERS = ("intra_op_thread_count", "inter_op_thread_count", "execution_mode")
"""The ``parameters`` of a configuration that mean something here; their values are whole numbers."""

UNSUPPORTED_SECTIONS = ("batch_input", "batch_output", "sequence_batching")

Config = Mapping[str, Any]


class RequestRefused(Exception):
    """One request cannot be run; the text and the name of the Triton error code go to its caller."""

    def __init__(self, message: str, code: str = "INVALID_ARG") -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Port:
    """One input or output as the ONNX file declares it. ``shape`` holds `DYNAMIC` for symbolic dimensions."""

    name: str
    onnx_type: str
    shape: tuple[int, ...]

    @classmethod
    def of(cls, node: Any) -> Port:
        """Reads an ``onnxruntime.NodeArg``."""
        return cls(node.name, node.type, tuple(d if isinstance(d, int) else DYNAMIC for d in node.shape))


@dataclass(slots=True)
class Job:
    """One request, read: its place in the batch, its arrays by input name, its rows, and the outputs it wants."""

    place: int
    arrays: dict[str, np.ndarray[Any, Any]]
    rows: int
    wanted: frozenset[str]

    def signature(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Jobs of equal signature can be joined: the same inputs, equal in every dimension but the first."""
        return tuple((name, array.shape[1:]) for name, array in sorted(self.arrays.items()))


class TritonPythonModel:
    """Triton's life cycle of one instance of one ONNX model."""

    @staticmethod
    def auto_complete_config(auto_complete_model_config: Any) -> Any:
        """Completes a configuration without inputs or outputs from the model, as the C++ backend does.

        A model whose inputs and outputs all begin with a variable dimension is taken to support batches: an absent
        ``max_batch_size`` becomes `DEFAULT_MAX_BATCH_SIZE`, and dynamic batching is switched on where the configuration
        names no scheduler.
        """
        config = auto_complete_model_config.as_dict()
        if config.get("input") and config.get("output"):
            return auto_complete_model_config
        # Triton's own get_model_dir() strips the last component of <version>/<default_model_filename>.
        path = Path(pb_utils.get_model_dir()) / Path(_model_filename(config)).name
        session = open_session(path, config)
        inputs, outputs = ([Port.of(n) for n in nodes] for nodes in (session.get_inputs(), session.get_outputs()))
        if all(port.shape[:1] == (DYNAMIC,) for port in (*inputs, *outputs)):
            if not config.get("max_batch_size"):
                auto_complete_model_config.set_max_batch_size(DEFAULT_MAX_BATCH_SIZE)
                pb_utils.Logger.log_warn(
                    f"{config['name']}: max_batch_size set to {DEFAULT_MAX_BATCH_SIZE}: the model supports batches "
                    "and its configuration names no size"
                )
            if config["max_batch_size"] > 1 and "sequence_batching" not in config:
                auto_complete_model_config.set_dynamic_batching()
        elif config.get("max_batch_size"):
            raise pb_utils.TritonModelException(
                f"{config['name']}: max_batch_size is {config['max_batch_size']}, but not every input and output of "
                f"{path} begins with a variable dimension: the model does not support batches; write max_batch_size: 0"
            )
        for key, ports in (("input", inputs), ("output", outputs)):
            if not config.get(key):
                config[key] = [_completed(port, config["max_batch_size"] > 0) for port in ports]
        return auto_complete_model_config

    def initialize(self, args: dict[str, str]) -> None:
        """Loads ``<version>/model.onnx`` and checks the configuration against it.

        Raises:
            pb_utils.TritonModelException: the file is missing or not loadable, or the configuration does not fit it.
        """
        config = json.loads(args["model_config"])
        path = Path(args["model_repository"]) / args["model_version"] / _model_filename(config)
        self._session = open_session(path, config)
        self._inputs = {
            port.name: port
            for port in map(Port.of, (*self._session.get_inputs(), *self._session.get_overridable_initializers()))
        }
        self._outputs = {port.name: port for port in map(Port.of, self._session.get_outputs())}
        check_config(config, [node.name for node in self._session.get_inputs()], self._inputs, self._outputs)
        self._batched = config["max_batch_size"] > 0
        self._output_dims = {entry["name"]: _dims(entry) for entry in config["output"]}
        for key in sorted(config.get("parameters", {})):
            if key not in SESSION_PARAMETERS:
                pb_utils.Logger.log_warn(f"{args['model_name']}: parameter {key} has no effect on this CPU backend")

    def execute(self, requests: Sequence[Any]) -> list[Any]:
        """Answers every request of the batch: one run for those that can be joined.

        An error answers only the request it concerns.
        """
        responses: list[Any] = [None] * len(requests)
        groups: dict[object, list[Job]] = {}
        for place, request in enumerate(requests):
            try:
                job = self._read(place, request)
            except RequestRefused as refusal:
                responses[place] = _refuse(refusal)
            else:
                groups.setdefault(job.signature() if self._batched else place, []).append(job)
        for jobs in groups.values():
            self._answer(jobs, responses)
        return responses

    def finalize(self) -> None:
        """Releases the model."""
        del self._session

    def _read(self, place: int, request: Any) -> Job:
        arrays = {}
        for tensor in request.inputs():
            array = tensor.as_numpy()
            if array.dtype == np.object_:
                array = _decoded(tensor.name(), array)
            if not self._batched and not self._inputs[tensor.name()].shape:
                array = array.reshape(())
            arrays[tensor.name()] = array
        rows = len(next(iter(arrays.values()))) if self._batched and arrays else 1
        return Job(place, arrays, rows, frozenset(request.requested_output_names()) or frozenset(self._output_dims))

    def _answer(self, jobs: list[Job], responses: list[Any]) -> None:
        """Runs ``jobs`` joined and writes each one's response; where that fails, runs each alone to find the guilty."""
        try:
            results = self._run(jobs)
        except RequestRefused as refusal:
            if len(jobs) == 1:
                responses[jobs[0].place] = _refuse(refusal)
                return
            for job in jobs:
                self._answer([job], responses)
            return
        row = 0
        for job in jobs:
            responses[job.place] = pb_utils.InferenceResponse(
                [
                    pb_utils.Tensor(name, result[row : row + job.rows] if self._batched else result)
                    for name, result in results.items()
                    if name in job.wanted
                ]
            )
            row += job.rows

    def _run(self, jobs: list[Job]) -> dict[str, np.ndarray[Any, Any]]:
        """One run of the model over the rows of all ``jobs``, in order.

        Raises:
            RequestRefused: the model refused its input, or an output does not have one row per row of input.
        """
        wanted = [name for name in self._output_dims if any(name in job.wanted for job in jobs)]
        first = jobs[0].arrays
        feed = first if len(jobs) == 1 else {n: np.concatenate([job.arrays[n] for job in jobs]) for n in first}
        try:
            results = dict(zip(wanted, self._session.run(wanted, feed), strict=True))
        except Exception as error:  # ONNX Runtime's exceptions have no base of their own
            code = "INVALID_ARG" if type(error).__name__ == "InvalidArgument" else "INTERNAL"
            raise RequestRefused(f"ONNX Runtime: {error}", code) from error
        rows = sum(job.rows for job in jobs)
        for name, result in results.items():
            if not self._batched and not result.shape:
                results[name] = result.reshape(self._output_dims[name])
            elif self._batched and result.shape[:1] != (rows,):
                raise RequestRefused(
                    f"output {name} has shape {list(result.shape)} for {rows} rows of input: "
                    "a model with max_batch_size > 0 must give one row per row",
                    "INTERNAL",
                )
        return results


def open_session(path: Path, config: Config) -> Any:
    """Loads an ONNX file for the CPU, with the thread counts that ``config`` asks for (0 = one per core).

    Raises:
        pb_utils.TritonModelException: no such file, a parameter that is no whole number, or no valid model.
    """
    if path.is_dir():
        path /= DEFAULT_MODEL_FILENAME
    if not path.is_file():
        raise pb_utils.TritonModelException(
            f"{config['name']}: {path} does not exist: put the ONNX file there, or name it in default_model_filename"
        )
    threads_within, threads_across, mode = (_whole_number(config, key) for key in SESSION_PARAMETERS)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads_within
    options.inter_op_num_threads = threads_across
    if mode:
        options.execution_mode = onnxruntime.ExecutionMode.ORT_PARALLEL
    # Idle threads that spin would take the cores from the server and its other models.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.inter_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise pb_utils.TritonModelException(f"{config['name']}: {path} cannot be loaded: {error}") from error


def check_config(
    config: Config, required: Iterable[str], inputs: Mapping[str, Port], outputs: Mapping[str, Port]
) -> None:
    """Compares names, types and dims of a configuration with the model.

    Args:
        config: Triton's model configuration, as its JSON gives it.
        required: names of the inputs without which the model cannot run.
        inputs: all inputs of the model, those with a default value included.
        outputs: all outputs of the model; a configuration may leave some out.

    Raises:
        pb_utils.TritonModelException: they differ, or the configuration uses what this backend does not have.
    """
    model, batched = config["name"], config["max_batch_size"] > 0
    used = [section for section in UNSUPPORTED_SECTIONS if config.get(section)]
    if used:
        raise pb_utils.TritonModelException(f"{model}: {', '.join(used)}: not supported by this CPU backend")
    missing = sorted(set(required) - {entry["name"] for entry in config["input"]})
    if missing:
        raise pb_utils.TritonModelException(f"{model}: the configuration lacks the model's inputs {', '.join(missing)}")
    for kind, ports in (("input", inputs), ("output", outputs)):
        for entry in config[kind]:
            _check_port(model, kind, entry, ports, batched)
    for entry in config["input"]:
        if entry.get("allow_ragged_batch"):
            raise pb_utils.TritonModelException(
                f"{model}: input {entry['name']}: allow_ragged_batch is not supported by this CPU backend"
            )
        if entry.get("optional") and batched:
            raise pb_utils.TritonModelException(
                f"{model}: input {entry['name']} is optional, which needs max_batch_size: 0"
            )
        if entry.get("optional") and entry["name"] in required:
            raise pb_utils.TritonModelException(
                f"{model}: input {entry['name']} is optional, but the model has no default for it"
            )


def _check_port(model: str, kind: str, entry: Config, ports: Mapping[str, Port], batched: bool) -> None:
    where = f"{model}: {kind} {entry['name']}"
    port = ports.get(entry["name"])
    if port is None:
        raise pb_utils.TritonModelException(f"{where} is not in the model, which has {', '.join(sorted(ports))}")
    if TRITON_TYPES.get(port.onnx_type) != entry["data_type"]:
        raise pb_utils.TritonModelException(
            f"{where}: the configuration says {entry['data_type']}, the model has "
            f"{TRITON_TYPES.get(port.onnx_type, port.onnx_type)}"
        )
    dims = _dims(entry)
    shape = (DYNAMIC, *dims) if batched else dims
    if port.shape or batched:
        # As in the C++ backend: an input may fix a dimension that the model leaves open, an output may not.
        fits = len(shape) == len(port.shape) and all(
            ours == theirs or (kind == "input" and theirs == DYNAMIC)
            for ours, theirs in zip(shape, port.shape, strict=True)
        )
    else:
        fits = all(dim == 1 for dim in shape)
    if not fits:
        batch_axis = ", the batch axis included" if batched else ""
        raise pb_utils.TritonModelException(
            f"{where}: the configuration says {list(shape)}{batch_axis}, the model has {list(port.shape)}"
        )


def _model_filename(config: Config) -> str:
    return config.get("default_model_filename") or DEFAULT_MODEL_FILENAME


def _whole_number(config: Config, key: str) -> int:
    text = config.get("parameters", {}).get(key, {}).get("string_value", "0")
    if not (text.isascii() and text.isdigit()):
        raise pb_utils.TritonModelException(
            f"{config['name']}: parameter {key} is {text!r}: write a whole number, 0 for the default"
        )
    return int(text)


def _dims(entry: Config) -> tuple[int, ...]:
    """The dims that the model sees, the batch axis left out: those of ``reshape`` where an entry has it."""
    dims = entry["reshape"].get("shape", []) if "reshape" in entry else entry["dims"]
    return tuple(int(dim) for dim in dims)


def _completed(port: Port, batched: bool) -> dict[str, Any]:
    """The configuration's entry for ``port``. Triton has no empty dims: a single value becomes ``[ 1 ]``."""
    if port.onnx_type not in TRITON_TYPES:
        raise pb_utils.TritonModelException(f"{port.name}: {port.onnx_type} is not supported by this CPU backend")
    dims = list(port.shape[1:] if batched else port.shape)
    entry: dict[str, Any] = {"name": port.name, "data_type": TRITON_TYPES[port.onnx_type], "dims": dims or [1]}
    if batched and not dims:
        entry["reshape"] = {"shape": []}
    return entry


def _decoded(name: str, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """BYTES as the text that ONNX Runtime wants.

    Raises:
        RequestRefused: an element is not UTF-8.
    """
    try:
        texts = [item.decode() for item in array.flat]
    except UnicodeDecodeError as error:
        raise RequestRefused(f"input {name}: ONNX strings are UTF-8: {error}") from error
    decoded = np.empty(array.shape, dtype=np.object_)
    decoded.flat[:] = texts
    return decoded


def _refuse(refusal: RequestRefused) -> Any:
    return pb_utils.InferenceResponse(
        error=pb_utils.TritonError(str(refusal), getattr(pb_utils.TritonError, refusal.code))
    )
