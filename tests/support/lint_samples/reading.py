# SPDX-License-Identifier: Apache-2.0
"""Samples as the rules see them: texts to models, by Triton's own definitions and the router's own reader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from google.protobuf import json_format, text_format
from priority_router.config import parse_policy
from priority_router.errors import PolicyError
from priority_router.ops.rules.configs import served_versions
from priority_router.ops.rules.models import Model, OnnxTensors, Repository
from tritonclient.grpc import model_config_pb2

from support.lint_samples.sample import Files, Sample


def config(text: str) -> dict[str, Any]:
    """A config.pbtxt as JSON, with what is written and nothing else."""
    parsed = text_format.Parse(text, model_config_pb2.ModelConfig())
    found: dict[str, Any] = json_format.MessageToDict(parsed, preserving_proto_field_name=True)
    return found


def repository(sample: Sample) -> Repository:
    """A sample as a repository."""
    names = dict.fromkeys(path.partition("/")[0] for path in sample.files)
    models = {name: model(name, sample.files, sample.onnx) for name in names}
    return Repository(models, thread_pool_size=sample.pool, profile=sample.profile)


def model(name: str, files: Files, onnx: Mapping[str, tuple[int | None, ...]] | None = None) -> Model:
    """One model of some files; those that stand for ``model.onnx`` have the shapes given, X in and the rest out."""
    inside = {path.partition("/")[2]: text for path, text in files.items() if path.startswith(f"{name}/")}
    versions = tuple(sorted({int(path.partition("/")[0]) for path in inside if path[0].isdigit()}))
    found = Model(name, config(inside["config.pbtxt"]), versions=versions, files=frozenset(inside))
    policy = policy_error = None
    policy_file = f"{(served_versions(found) or (0,))[-1]}/policy.toml"
    if policy_file in inside:
        try:
            policy = parse_policy(inside[policy_file], f"{name}/{policy_file}")
        except PolicyError as error:
            policy_error = str(error)
    shapes = onnx if onnx and "1/model.onnx" in inside else None
    return Model(
        name,
        found.config,
        versions=versions,
        policy=policy,
        policy_file=policy_file if policy or policy_error else "",
        policy_error=policy_error or "",
        onnx=OnnxTensors({"X": shapes["X"]}, {"Y": shapes["Y"]}) if shapes else None,
        files=found.files,
    )
