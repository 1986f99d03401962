# SPDX-License-Identifier: Apache-2.0
"""The routers of a model repository, found by their ``policy.toml``, and what the server must be told about them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from priority_router.config import POLICY_FILE, RouterPolicy, SourceKind, load_policy
from priority_router.control import TRITON_DEFAULT_POOL, thread_pool_size
from priority_router.errors import SetupError
from priority_router.ops.server.layout import SAFE_PATH

_PYTHON_MODELS = {POLICY_FILE, "model.py"}
"""Files in a version folder that tell a model of the Python backend, or of one based on it."""


@dataclass(frozen=True)
class Router:
    """One router model.

    Attributes:
        model: its name, that of its folder.
        policy: what its newest version says.
    """

    model: str
    policy: RouterPolicy

    @property
    def executor(self) -> str:
        """The model it calls."""
        return self.policy.executor

    @property
    def instances(self) -> int:
        """Instances of that model over all devices, as the policy has them."""
        return self.policy.scheduling.instances


def find_routers(repositories: Iterable[Path]) -> list[Router]:
    """Every router, read from its highest version, which is the one that Triton serves unless told otherwise.

    Raises:
        SetupError: a repository is missing, is a model's folder, or is named twice.
        PolicyError: a policy cannot be used.
    """
    found = []
    seen: set[Path] = set()
    for repository in repositories:
        if repository.resolve() in seen:
            raise SetupError(f"model repository {repository} is named twice; name each one once")
        seen.add(repository.resolve())
        check_repository(repository)
        newest: dict[str, Path] = {}
        for path in repository.glob(f"*/*/{POLICY_FILE}"):
            model, version = path.parts[-3:-1]
            if version.isdigit() and (model not in newest or int(version) > int(newest[model].parent.name)):
                newest[model] = path
        found += [Router(model, load_policy(newest[model])) for model in sorted(newest)]
    return found


def check_repository(repository: Path) -> None:
    """Refuses what cannot be a model repository, before tritonserver says it in other words.

    Raises:
        SetupError: not a folder, a model's own folder, or names that Triton's Python backend would break on.
    """
    if not repository.is_dir():
        raise SetupError(f"model repository {repository}: no such folder; name the folder that the models' own lie in")
    if (repository / "config.pbtxt").exists():
        raise SetupError(f"{repository} is the folder of one model; name the folder above it")
    for model in sorted({path.parents[1].name for path in repository.glob("*/*/*") if path.name in _PYTHON_MODELS}):
        if not SAFE_PATH.fullmatch(model):
            raise SetupError(
                f"{repository / model}: Triton's Python backend hands a model's name to a shell without quotes; "
                "rename the folder to letters, digits and _ - ."
            )


def guarded_models(routers: Sequence[Router]) -> dict[str, str]:
    """Executors that clients may not call, each with the router to call instead.

    An executor is closed only when every router in front of it wants that: one that shares it needs the door open.
    """
    open_doors = {router.executor for router in routers if not router.policy.guard_executor}
    closed: dict[str, str] = {}
    for router in routers:
        if router.executor not in open_doors:
            closed.setdefault(router.executor, router.model)
    return closed


def least_pool(routers: Sequence[Router]) -> int:
    """Threads per instance of the Python-based backends; each router has its own pool, so the largest need counts."""
    return max((thread_pool_size(router.instances) for router in routers), default=TRITON_DEFAULT_POOL)


def probe_notes(routers: Iterable[Router]) -> list[str]:
    """Routers at which ``priority-router probe --class`` names no class, since only headers are read.

    Returns:
        One sentence for each; none for a router whose default class is among its most urgent.
    """
    notes = []
    for router in routers:
        policy = router.policy
        level = {one.name: one.level for one in policy.scheduling.classes}
        urgent = min(level, key=lambda name: level[name])
        only_headers = all(source.kind is SourceKind.HEADER for source in policy.class_sources)
        if not only_headers or level[policy.default_class] == level[urgent]:
            continue
        notes.append(
            f"router {router.model!r}: class_sources has headers alone, so `priority-router probe --class` asks as "
            f"class {policy.default_class!r} all the same; give it --header "
            f"'{policy.class_sources[0].name}: {urgent}'"
        )
    return notes
