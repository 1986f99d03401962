# SPDX-License-Identifier: Apache-2.0
"""Models from short texts."""

from __future__ import annotations

from typing import Any

from priority_router.config import RouterPolicy, parse_policy
from priority_router.ops.rules import repository
from priority_router.ops.rules.finding import Finding
from priority_router.ops.rules.models import Model, Repository
from support.lint_samples.reading import config


def policy(executor: str = "scorer", *, mode: str = "levels", top: str = "", **shape: int) -> RouterPolicy:
    """Two classes, ``online`` before ``background``, with limits."""
    sizes = {"instances": 1, "max_batch_size": 4} | shape
    return parse_policy(
        f"""policy_version = 1
        executor = "{executor}"
        mode = "{mode}"
        {top}
        executor_shape = {{ instances = {sizes["instances"]}, max_batch_size = {sizes["max_batch_size"]} }}
        class = [
            {{ name = "online", level = 1, max_queue_size = 8 }},
            {{ name = "background", level = 2, max_queue_size = 8 }}
        ]
        """
    )


def model(name: str, text: str, **more: Any) -> Model:
    """A model with this config.pbtxt."""
    return Model(name, config(text), **more)


def router(name: str = "lane", executor: str = "scorer", **more: Any) -> Model:
    """A router with nothing wrong about it."""
    text = """backend: "priority_router" max_batch_size: 64
    input [
      { name: "X" data_type: TYPE_FP32 dims: [ 4 ] },
      { name: "CLASS" data_type: TYPE_STRING dims: [ 1 ] optional: true }
    ]
    output [ { name: "Y" data_type: TYPE_FP32 dims: [ 2 ] } ]
    instance_group [ { kind: KIND_CPU count: 1 } ]
    dynamic_batching { }"""
    return model(name, text, policy=policy(executor, **more), policy_file="1/policy.toml")


LEVELS = """dynamic_batching {
  priority_levels: 2 default_priority_level: 2
  priority_queue_policy { key: 1 value { } } priority_queue_policy { key: 2 value { } }
}"""
ONE_CPU = "instance_group { kind: KIND_CPU count: 1 }"
TENSORS = """max_batch_size: 4
input { name: "X" data_type: TYPE_FP32 dims: [ 4 ] } output { name: "Y" data_type: TYPE_FP32 dims: [ 2 ] }"""


def scorer(
    name: str = "scorer", text: str = LEVELS, groups: str = ONE_CPU, tensors: str = TENSORS, backend: str = "python"
) -> Model:
    """An executor with nothing wrong about it."""
    return model(name, f'backend: "{backend}" {tensors} {groups} {text}')


def ensemble(name: str, *steps: str, versions: tuple[int, ...] = ()) -> Model:
    """An ensemble of some steps."""
    numbers = versions or (-1,) * len(steps)
    written = " ".join(
        f'step {{ model_name: "{step}" model_version: {version} }}'
        for step, version in zip(steps, numbers, strict=True)
    )
    return model(name, f'platform: "ensemble" max_batch_size: 4 ensemble_scheduling {{ {written} }}')


def found(*models: Model, unreadable: tuple[str, ...] = ()) -> list[Finding]:
    """All findings about a repository of these."""
    return repository.check(Repository({one.name: one for one in models}, frozenset(unreadable)))


def codes(*models: Model, unreadable: tuple[str, ...] = ()) -> list[str]:
    """Their rules, each with the model to mend."""
    return [f"{finding.rule.code} {finding.place.model}" for finding in found(*models, unreadable=unreadable)]
