# SPDX-License-Identifier: Apache-2.0
"""The shipped model repository: its Python files as modules, and its parts as files."""

from __future__ import annotations

import importlib.util
import sys
import types
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from support.fake_triton import InferenceResponse, Tensor

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
