# SPDX-License-Identifier: Apache-2.0
"""What rules look at: models with their configurations and policies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from priority_router.config import RouterPolicy
from priority_router.interface import BACKEND

Config = Mapping[str, Any]
"""A ModelConfig as JSON with the names of the .proto file; enums by name; 64-bit numbers may be texts, map keys are."""


@dataclass(frozen=True, slots=True)
class OnnxTensors:
    """What a ``model.onnx`` says of its own tensors.

    Attributes:
        inputs: name to shape with the batch axis; None where the length is free.
        outputs: likewise.
        types: of all inputs (``input``) and outputs (``output``), those without a known rank and weights included, name
            to Triton's data type; empty where that has none. Without entries nobody looked.
    """

    inputs: Mapping[str, tuple[int | None, ...]]
    outputs: Mapping[str, tuple[int | None, ...]]
    types: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Model:
    """One model.

    Attributes:
        name: of its folder.
        config: its configuration.
        completed: it is what Triton made of it, nothing left out; otherwise what the owner wrote.
        versions: its version folders' numbers; empty where there are none, or where nobody looked.
        policy: of a router, that in the highest version folder which serves, where it can be used.
        policy_file: relative to the model's folder; empty for other models.
        onnx: what its ``model.onnx`` says, where there is one and it was looked at.
        policy_error: of a router, why its policy cannot be used; empty where there is none, or where it can.
        files: all in its folder, relative to that; None where nobody looked.
    """

    name: str
    config: Config
    completed: bool = False
    versions: tuple[int, ...] = ()
    policy: RouterPolicy | None = None
    policy_file: str = ""
    onnx: OnnxTensors | None = None
    policy_error: str = ""
    files: frozenset[str] | None = None

    @property
    def is_router(self) -> bool:
        """Whether the router's backend runs it."""
        return self.config.get("backend") == BACKEND


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a profile says about executions.

    Attributes:
        source: its file.
        router: of which it was recorded; empty where it does not say.
        median: ns by row count, at least one.
        nearly: likewise, what nine in ten keep to.
        executor: whose they are; empty where it does not say.
    """

    source: str
    router: str
    median: Mapping[int, int]
    nearly: Mapping[int, int]
    executor: str = ""


@dataclass(frozen=True, slots=True)
class Repository:
    """All models that one server serves.

    Attributes:
        models: by name; those whose configuration can be read.
        unreadable: names of models that have a folder and a configuration which cannot be read.
        thread_pool_size: of Python backends, as the server is started; None where nobody starts one.
        profile: of an executor; None where none was given.
    """

    models: Mapping[str, Model]
    unreadable: frozenset[str] = field(default_factory=frozenset)
    thread_pool_size: int | None = None
    profile: Recorded | None = None

    def recorded(self, router: Model) -> Recorded | None:
        """The profile, if it is that of a router's executor: by both names, or by the executor's alone where the router
        that it names is none of these. One that names nothing is taken for all."""
        profile = self.profile
        if profile is None or not (profile.router or profile.executor):
            return profile
        called = "" if router.policy is None else router.policy.executor
        same_executor = called == profile.executor
        named = self.models.get(profile.router)
        if named is not None and named.is_router:
            return profile if named is router and (same_executor or not profile.executor) else None
        return profile if same_executor else None

    def profile_of_others(self) -> str:
        """Why the profile is compared with nothing; empty where it is, or where there is none."""
        routers = [model for model in self.models.values() if model.is_router]
        if self.profile is None or not routers or any(self.recorded(router) is not None for router in routers):
            return ""
        profile = self.profile
        of = [f"{what} {name!r}" for what, name in (("router", profile.router), ("executor", profile.executor)) if name]
        return (
            f"{profile.source}: it was recorded of {' and '.join(of)}, which no router here is or calls; record one of "
            f"these: {', '.join(sorted(router.name for router in routers))}"
        )
