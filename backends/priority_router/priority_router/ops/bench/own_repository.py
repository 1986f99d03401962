# SPDX-License-Identifier: Apache-2.0
"""A router and its executor out of a model repository of one's own, copied for each arm with that arm's order.

Executor, inputs and the rest of the policy are the owner's. What limits the queue is left out on every arm, so that all
of them serve the same requests; where it is kept, executors without a router have it as Triton's own queue policies.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from google.protobuf import json_format, text_format
from tritonclient.grpc.model_config_pb2 import ModelConfig

from priority_router.config import POLICY_FILE, load_policy
from priority_router.errors import SetupError
from priority_router.ops.bench import executor_stats, own_model
from priority_router.ops.bench.arms import LIMITS, Arm, executor_batching, known, routes
from priority_router.ops.bench.own_model import Facts
from priority_router.ops.bench.scenarios import Scenario
from priority_router.ops.bench.traffic import Payloads
from priority_router.ops.bench.venue import Stage, too_large
from priority_router.ops.bench.wire import Route
from priority_router.ops.server import Server

UNLIMITED: Final = (*LIMITS, "max_queue_bytes", "reject_predicted_late")
"""Keys of a policy that turn requests away, whose place is not in a comparison of orders."""


@dataclass(frozen=True, slots=True)
class Own:
    """A router's folder and what belongs to it.

    Attributes:
        router: the folder.
        executor: that of its executor.
        policy: the policy, as TOML has it.
        facts: of both.
        classes: of the policy, the most urgent one first.
    """

    router: Path
    executor: Path
    policy: Mapping[str, Any]
    facts: Facts
    classes: tuple[str, ...]


def read(router: Path) -> Own:
    """Reads a router's folder in a model repository.

    Raises:
        SetupError: it is none, or its executor is not beside it.
        PolicyError: its policy cannot be used.
    """
    versions = sorted((path for path in router.glob(f"*/{POLICY_FILE}")), key=lambda path: path.parent.name)
    if not versions:
        raise SetupError(f"--model {router}: no {POLICY_FILE} in a version folder; name the folder of a router")
    policy = load_policy(versions[-1])
    executor = router.resolve().parent / policy.executor
    config = read_config(executor)
    found = json_format.MessageToDict(config, preserving_proto_field_name=True)
    if not found.get("input"):
        found["input"] = json_format.MessageToDict(read_config(router), preserving_proto_field_name=True)["input"]
    scheduling = policy.scheduling
    facts = own_model.facts(router.name, policy.executor, found)
    facts = replace(facts, max_batch_size=scheduling.max_batch_size, instances=scheduling.instances)
    classes = tuple(one.name for one in sorted(scheduling.classes, key=lambda one: one.level))
    return Own(router, executor, tomllib.loads(versions[-1].read_text(encoding="utf-8")), facts, classes)


def read_config(folder: Path) -> Any:
    """A model's ``config.pbtxt``.

    Raises:
        SetupError: it is not there, or cannot be read.
    """
    path = folder / "config.pbtxt"
    try:
        return text_format.Parse(path.read_text(encoding="utf-8"), ModelConfig())
    except OSError as error:
        raise SetupError(f"{path}: {error.strerror}; both models must lie in one repository") from error
    except text_format.ParseError as error:
        raise SetupError(f"{path}: {error}; `priority-router lint` says more") from error


@dataclass(frozen=True, slots=True)
class Copied:
    """A server for each arm and round, with copies of a router and its executor.

    Attributes:
        own: what is copied.
        scenario: whose classes are sent.
        payloads: the inputs of requests.
        limits: the policy's limits are kept.
    """

    own: Own
    scenario: Scenario
    payloads: Payloads = field(repr=False)
    limits: bool = False
    url: str = ""

    def refused(self, arms: Collection[str]) -> dict[str, str]:
        """Arms that call the executor themselves, where its batches are smaller than a request."""
        return too_large(self.scenario, arms)

    @contextlib.contextmanager
    def stage(self, arm: Arm) -> Iterator[Stage]:
        """Starts a server and ends it."""
        with tempfile.TemporaryDirectory(prefix="priority-router-bench-") as folder:
            repository = Path(folder) / "models"
            repository.mkdir()
            write(repository, self.own, arm, self.scenario, limits=self.limits)
            with Server(repository, hooks=arm.hooks, log=Path(folder) / "server.log") as server:
                triton = executor_stats.get_json(server.http, "/v2")["version"]
                to = {
                    name: Route(names[one.model], one.parameters, one.class_name, self.own.facts.batched)
                    for name, one in routes(arm, self.scenario.levels, self.scenario.direct).items()
                    for names in [{"router": self.own.facts.router, "executor": self.own.facts.executor}]
                }
                yield Stage(server.http, to, self.own.facts.executor, triton)


def write(repository: Path, own: Own, arm: Arm, scenario: Scenario, *, limits: bool) -> None:
    """Writes an arm's models: what is not changed is linked."""
    keys = {one["name"]: {key: one[key] for key in LIMITS if key in one} for one in own.policy["class"]}
    executor = read_config(own.executor)
    executor.ClearField("dynamic_batching")
    text_format.Merge(executor_batching(arm, scenario.levels, keys if limits else {}), executor)
    _linked(repository / own.executor.name, own.executor, "config.pbtxt")
    (repository / own.executor.name / "config.pbtxt").write_text(text_format.MessageToString(executor))
    if arm.mode is None:
        return
    router = repository / own.router.name
    _linked(router, own.router, "config.pbtxt")
    (router / "config.pbtxt").write_text(text_format.MessageToString(read_config(own.router)))
    for version in [path for path in router.iterdir() if path.is_dir() and (path / POLICY_FILE).exists()]:
        version.unlink()
        _linked(version, own.router / version.name, POLICY_FILE)
        (version / POLICY_FILE).write_text(policy_text(own.policy, arm, scenario, limits=limits), encoding="utf-8")


def _linked(place: Path, source: Path, *but: str) -> None:
    place.mkdir()
    for path in source.resolve().iterdir():
        if path.name not in but:
            (place / path.name).symlink_to(path, target_is_directory=path.is_dir())


def policy_text(policy: Mapping[str, Any], arm: Arm, scenario: Scenario, *, limits: bool) -> str:
    """The owner's policy in an arm's mode, with the scenario's classes only.

    Plain mode knows no shared executor, so there it is left out.
    """
    shared = {"shared_executor": True} if arm.mode == "levels" else {"guard_executor": False}
    dropped = {"default_class", "shared_executor", "guard_executor", "tenant", *(() if limits else UNLIMITED)}
    if arm.mode == "plain":
        dropped.add("overtaking")
    made = {key: value for key, value in policy.items() if key not in dropped} | {"mode": arm.mode}
    made |= shared if scenario.direct else {}
    told = known(arm, scenario.levels)
    own = {one["name"]: one for one in policy["class"]}
    made["class"] = [
        {key: value for key, value in own.get(name, {"name": name}).items() if key not in dropped} | {"level": level}
        for name, level in told.items()
    ]
    scalars = {key: value for key, value in made.items() if not _is_table(value)}
    lines = _lines(scalars)
    for key, value in made.items():
        if isinstance(value, dict):
            lines += [f"[{key}]", *_lines(value)]
        elif _is_table(value):
            for one in value:
                lines += [f"[[{key}]]", *_lines(one)]
    return "\n".join(lines) + "\n"


def _is_table(value: object) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and any(isinstance(one, dict) for one in value))


def _lines(table: Mapping[str, Any]) -> list[str]:
    # Texts, numbers, flags and lists of them are written alike in JSON and TOML.
    return [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in table.items()]
