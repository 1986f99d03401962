# SPDX-License-Identifier: Apache-2.0
"""The shipped model repository: its Python files as modules, and its parts as files."""

from __future__ import annotations

import importlib.util
import re
import shutil
import sys
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http

from support.fake_triton import InferenceResponse, Tensor
from support.models import Record

ROOT = Path(__file__).parents[2]
MODELS = ROOT / "model_repository"


class TritonModelException(Exception):
    """Refuses a model."""


class StepRequest:
    """A request as a step of an ensemble reads it."""

    def __init__(self, **inputs: Any) -> None:
        self.inputs = inputs


def module(model: str, name: str, patch: pytest.MonkeyPatch) -> ModuleType:
    """A Python file of a model's version folder, imported by its bare name as in Triton's stub.

    Args:
        model: a model of the shipped repository.
        name: the file's name without its suffix.
        patch: takes everything back at the end of the test.
    """
    api = types.ModuleType("triton_python_backend_utils")
    api.__dict__.update(
        Tensor=Tensor,
        InferenceResponse=InferenceResponse,
        TritonModelException=TritonModelException,
        get_input_tensor_by_name=lambda request, name: Tensor(name, request.inputs[name]),
    )
    patch.setitem(sys.modules, api.__name__, api)
    folder = MODELS / model / "1"
    patch.setattr(sys, "path", [*sys.path, str(folder)])
    spec = importlib.util.spec_from_file_location(f"{model}_{name}", folder / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    patch.setitem(sys.modules, spec.name, made)
    spec.loader.exec_module(made)
    return made


def write_copy(folder: Path, mode: str = "levels", limits: Mapping[str, str] | None = None) -> Path:
    """A copy of the shipped repository, in levels mode as it is or in plain mode as its comments say.

    Args:
        folder: where it goes; must not exist.
        mode: ``levels`` or ``plain``.
        limits: class name to further lines of its table in the policy, in place of limit and timeout.

    Returns:
        The folder.
    """
    shutil.copytree(MODELS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    policy = folder / "router" / "1" / "policy.toml"
    text = policy.read_text()
    if mode == "plain":
        text = _replaced(text, 'mode = "levels"', 'mode = "plain"')
        executor = folder / "executor" / "config.pbtxt"
        block = re.compile(r"^dynamic_batching \{.*?^\}", re.DOTALL | re.MULTILINE)
        executor.write_text(block.sub("dynamic_batching { }", executor.read_text()))
        for step in ("file_type_features", "file_type_label"):
            config = folder / step / "config.pbtxt"
            limit = "{ default_queue_policy { max_queue_size: 1024 } }"
            config.write_text(_replaced(config.read_text(), f"dynamic_batching {limit}", "dynamic_batching { }"))
    for name, lines in (limits or {}).items():
        table = re.compile(rf'(name = "{name}"\nlevel = \d\n)(\w+ = .*\n)*')
        assert table.search(text)
        text = table.sub(rf"\1{lines}\n", text)
    policy.write_text(text)
    return folder


def put_door(repository: Path) -> Record:
    """Replaces the executor of a copy by one that calls every file a shell script; its door is the record's."""
    folder = repository / "executor"
    record = repository.parent / f"{repository.name}.executor.jsonl"
    for source, target in (("shell_executor", "model"), ("recording_executor", "recording_executor")):
        shutil.copy(Path(__file__).with_name(f"{source}.py"), folder / "1" / f"{target}.py")
    config = _replaced((folder / "config.pbtxt").read_text(), 'backend: "onnxruntime"', 'backend: "python"')
    config += f'parameters {{ key: "record" value {{ string_value: "{record}" }} }}\n'
    (folder / "config.pbtxt").write_text(config)
    return Record(record)


def file_tensor(client: Any, contents: Sequence[bytes]) -> Any:
    """Files as the ensemble file_type takes them, for an HTTP or a gRPC client."""
    grpc = isinstance(client, tritonclient.grpc.InferenceServerClient)
    module = tritonclient.grpc if grpc else tritonclient.http
    tensor = module.InferInput("content", [len(contents), 1], "BYTES")
    tensor.set_data_from_numpy(np.array([[content] for content in contents], object))
    return tensor


def ask(client: Any, contents: Sequence[bytes], **arguments: Any) -> Any:
    """Asks the ensemble file_type for the types of some files; ``arguments`` are those of ``infer``."""
    return client.infer("file_type", [file_tensor(client, contents)], **arguments)


def _replaced(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1
    return text.replace(old, new)
