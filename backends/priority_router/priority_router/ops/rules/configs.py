# SPDX-License-Identifier: Apache-2.0
"""Reads configurations, whoever wrote them: numbers may be texts, defaults absent or spelled out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from priority_router.config import POLICY_FILE
from priority_router.ops.rules import backends
from priority_router.ops.rules.finding import CONFIG_FILE, Place
from priority_router.ops.rules.models import Config, Model

OVERRIDE: Final = "allow_timeout_override: true"
PLAIN_BATCHING: Final = "dynamic_batching { }"


def cpu_instances(count: int) -> str:
    """The one group that a model needs which runs on the CPU alone."""
    return f"instance_group [ {{ kind: KIND_CPU count: {count} }} ]"


ONE_CPU_INSTANCE: Final = cpu_instances(1)

_UNTYPED: Final = "TYPE_INVALID"
_EMPTY: Final[Config] = MappingProxyType({})


def number(config: Config, key: str) -> int:
    """A number, 0 where it is not written."""
    return int(config.get(key) or 0)


def section(config: Config, key: str) -> Config:
    """A message in a configuration, an empty one where it is not written."""
    return config.get(key) or _EMPTY


def batching(model: Model) -> Config:
    """The block ``dynamic_batching``."""
    return section(model.config, "dynamic_batching")


def levels(model: Model) -> int:
    """The number of priority levels, 0 for none."""
    return number(batching(model), "priority_levels")


def batch_limit(model: Model) -> int | None:
    """``max_batch_size``; None where the backend has yet to find it, beside missing inputs or outputs, and below 0."""
    size = number(model.config, "max_batch_size")
    if size < 0:
        return None
    written = model.config.get("input") and model.config.get("output") and backend(model) != backends.TENSORRT_BACKEND
    return size if size or model.completed or is_ensemble(model) or written else None


def backend(model: Model) -> str:
    """What runs a model, as far as its configuration and its files say it."""
    parts = (file.partition("/") for file in model.files or ())
    present = {inner for folder, _, inner in parts if folder.isdecimal()}
    written, platform, file = (text(model, key) for key in ("backend", "platform", "default_model_filename"))
    return backends.find(written, platform, file, present)


def text(model: Model, key: str) -> str:
    """A text at the top of a configuration, empty where it is not written."""
    return str(model.config.get(key) or "")


def is_ensemble(model: Model) -> bool:
    """Such a model has no queue and no instances of its own; those of its steps are theirs."""
    return "ensemble_scheduling" in model.config


def groups(model: Model) -> list[tuple[int, Config]]:
    """Groups of instances that serve requests, each with its place in the list."""
    return [
        (index, group)
        for index, group in enumerate(model.config.get("instance_group") or ())
        if not group.get("passive")
    ]


@dataclass(frozen=True, slots=True)
class Tensor:
    """An input or output.

    Attributes:
        index: its place in the list.
        name: as requests have it.
        data_type: Triton's name of it.
        dims: as requests have them, without the batch axis; -1 is any length.
        inner: likewise as the backend has them, which ``reshape`` makes another shape.
        optional: requests may leave it out.
    """

    index: int
    name: str
    data_type: str
    dims: tuple[int, ...]
    inner: tuple[int, ...]
    optional: bool

    @property
    def untyped(self) -> bool:
        """Whether it has no data type, which some backends find by themselves."""
        return self.data_type == _UNTYPED

    @property
    def refused_lengths(self) -> list[int]:
        """Those that Triton takes for none."""
        return [length for length in self.dims if length == 0 or length < -1]

    @property
    def comparable(self) -> bool:
        """Whether it says enough to be compared with another."""
        return not self.untyped and not self.refused_lengths

    def entry(self) -> str:
        """As it is written in a configuration, seen from outside."""
        optional = " optional: true" if self.optional else ""
        return f'{{ name: "{self.name}" data_type: {self.data_type} dims: {listed(self.dims)}{optional} }}'


def tensors(model: Model, kind: str) -> dict[str, Tensor]:
    """Inputs or outputs by name, in the order of the configuration.

    Args:
        model: whose.
        kind: ``input`` or ``output``.
    """
    found = {}
    for index, tensor in enumerate(model.config.get(kind) or ()):
        dims = tuple(int(length) for length in tensor.get("dims") or ())
        reshape = tensor.get("reshape")
        inner = dims if reshape is None else tuple(int(length) for length in reshape.get("shape") or ())
        name = str(tensor.get("name", ""))
        data_type = str(tensor.get("data_type") or _UNTYPED)
        found[name] = Tensor(index, name, data_type, dims, inner, bool(tensor.get("optional")))
    return found


@dataclass(frozen=True, slots=True)
class QueuePolicy:
    """One queue policy of a ``dynamic_batching``.

    Attributes:
        level: whose; None for the default one.
        config: what it says.
    """

    level: int | None
    config: Config

    @property
    def where(self) -> str:
        """As findings name it."""
        return "default_queue_policy" if self.level is None else f"priority_queue_policy {self.level}"

    @property
    def path(self) -> tuple[str, ...]:
        """Of its place."""
        return (
            ("dynamic_batching", "default_queue_policy")
            if self.level is None
            else ("dynamic_batching", "priority_queue_policy", str(self.level))
        )

    @property
    def timeout(self) -> int:
        """Microseconds, 0 for none."""
        return number(self.config, "default_timeout_microseconds")

    @property
    def size(self) -> int:
        """Requests that may wait, 0 for any number."""
        return number(self.config, "max_queue_size")

    @property
    def override(self) -> bool:
        """Whether a request may bring a shorter timeout."""
        return bool(self.config.get("allow_timeout_override"))

    @property
    def delays(self) -> bool:
        """Whether what is past its timeout is served later, instead of not at all."""
        return self.config.get("timeout_action") == "DELAY"

    def limits(self) -> list[str]:
        """Settings by which Triton turns requests away, as they are written; OVERRIDE alone turns none away."""
        timeout, size = self.timeout, self.size
        return [
            *([f"default_timeout_microseconds: {timeout}"] if timeout else []),
            *([f"max_queue_size: {size}"] if size else []),
            *([OVERRIDE] if self.override else []),
        ]


def queue_policies(model: Model) -> list[QueuePolicy]:
    """All that are written, the default one first, then by level."""
    block = batching(model)
    by_level: Mapping[str, Config] = section(block, "priority_queue_policy")
    found = [QueuePolicy(int(level), policy) for level, policy in by_level.items()]
    found.sort(key=lambda policy: policy.level or 0)
    if "default_queue_policy" in block:
        found.insert(0, QueuePolicy(None, section(block, "default_queue_policy")))
    return found


def at(model: Model, *path: str | int) -> Place:
    """A place in a model's configuration."""
    return Place(model.name, CONFIG_FILE, path)


def in_policy(router: Model, *path: str | int) -> Place:
    """A place in a router's policy."""
    return Place(router.name, router.policy_file or POLICY_FILE, path)


def config_file(model: Model) -> str:
    """As findings name it."""
    return f"{model.name}/{CONFIG_FILE}"


def policy_file(router: Model) -> str:
    """As findings name it; without its version folder where that is not known."""
    return f"{router.name}/{router.policy_file}" if router.policy_file else POLICY_FILE


def listed(numbers: Iterable[int]) -> str:
    """A list as configurations have it."""
    text = ", ".join(map(str, numbers))
    return f"[ {text} ]" if text else "[ ]"


def joined(parts: Collection[str], last: str = "and") -> str:
    """Parts of a sentence as a list in words."""
    *first, end = parts
    return f"{', '.join(first)} {last} {end}" if first else end


def served_versions(model: Model) -> tuple[int, ...] | None:
    """Versions that Triton loads by ``version_policy``, ascending; None where nobody looked for them."""
    if not model.versions:
        return None if model.files is None else ()
    policy = model.config.get("version_policy")
    present = sorted(model.versions)
    if policy is None:
        return tuple(present[-1:])
    if "latest" in policy:
        return tuple(present[max(0, len(present) - number(policy["latest"], "num_versions")) :])
    if "specific" in policy:
        wanted = {int(version) for version in policy["specific"].get("versions") or ()}
        return tuple(version for version in present if version in wanted)
    return tuple(present)


def steps(model: Model) -> Iterator[tuple[str, int]]:
    """Models that an ensemble calls, each with its version, -1 for the latest."""
    for step in section(model.config, "ensemble_scheduling").get("step") or ():
        yield str(step.get("model_name", "")), number(step, "model_version")
