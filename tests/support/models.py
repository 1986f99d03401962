# SPDX-License-Identifier: Apache-2.0
"""Builds model repositories: recording executors, and routers in front of them in either mode."""

from __future__ import annotations

import contextlib
import itertools
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_EXECUTOR_SOURCE = Path(__file__).with_name("recording_executor.py")

INTERACTIVE = "interactive"
BULK = "bulk"

LEARNED = 15
"""Calls from which a router knows how long its executor takes, whatever it took before: from then on it binds late."""


@dataclass(frozen=True)
class Tensor:
    """One entry of a config's inputs or outputs. `dims` leaves out the batch axis."""

    name: str
    data_type: str
    dims: tuple[int, ...]
    optional: bool = False

    def text(self) -> str:
        dims = ", ".join(map(str, self.dims))
        optional = " optional: true" if self.optional else ""
        return f'{{ name: "{self.name}" data_type: {self.data_type} dims: [ {dims} ]{optional} }}'


X = Tensor("X", "TYPE_FP32", (4,))
TAG = Tensor("TAG", "TYPE_INT64", (1,), optional=True)
TEXT = Tensor("TEXT", "TYPE_STRING", (1,), optional=True)
EXTRA = Tensor("EXTRA", "TYPE_FP32", (2,), optional=True)
ANSWERS = {"X": "Y", "TAG": "TAG_OUT", "TEXT": "TEXT_OUT", "EXTRA": "EXTRA_OUT"}


@dataclass(frozen=True)
class ErrorReply:
    """What the executor answers for a tag: a message and the name of a Triton error code."""

    message: str
    code: str = "INTERNAL"


@dataclass(frozen=True)
class Executor:
    """A recording executor.

    Attributes:
        name: model name.
        batch_seconds: time per batch, whatever its size.
        row_seconds: time per row on top.
        max_batch_size: rows per batch; 0 = no batch axis.
        instances: CPU instances.
        priority_levels: 0 gives a plain `dynamic_batching { }`.
        default_priority_level: default the lowest level.
        inputs: see `Tensor`; their answers become the outputs (Y = 2 X, the rest unchanged).
        error_tags: tag to the error answered for a request with a row of that tag.
        raise_tags: tags at which `execute` raises.
        exit_tags: tags at which the process dies.
        wrong_rows_tags: tags whose request gets one row too few back.
        initialize_error: text with which loading fails.
        batching: the batching block of the config instead of the one made from the levels.
        config: more lines for the config.
    """

    name: str = "executor"
    batch_seconds: float = 0.0
    row_seconds: float = 0.0
    max_batch_size: int = 4
    instances: int = 1
    priority_levels: int = 2
    default_priority_level: int | None = None
    inputs: Sequence[Tensor] = (X, TAG)
    error_tags: Mapping[int, ErrorReply] = field(default_factory=dict)
    raise_tags: Sequence[int] = ()
    exit_tags: Sequence[int] = ()
    wrong_rows_tags: Sequence[int] = ()
    initialize_error: str = ""
    batching: str | None = None
    config: str = ""

    @property
    def outputs(self) -> list[Tensor]:
        return [Tensor(ANSWERS[tensor.name], tensor.data_type, tensor.dims) for tensor in self.inputs]


@dataclass(frozen=True)
class Batch:
    """One executed batch, as the executor wrote it down; times are `time.monotonic` seconds."""

    start: float
    end: float
    instance: str
    rows: list[int]
    tags: list[int]
    inputs: list[list[str]]


class Record:
    """What an executor ran so far, in the order in which batches ended, and the door that it passes first.

    A shut door holds whatever the executor begins, so that a test can arrange what should happen meanwhile without a
    guess at how long that takes.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._door = Path(f"{path}.shut")
        self._seen = 0

    @contextlib.contextmanager
    def shut(self) -> Iterator[None]:
        """While the block lasts, or until `open`, no batch that begins ends, and no load."""
        self._door.touch()
        try:
            yield
        finally:
            self.open()

    def open(self) -> None:
        """Lets everybody pass."""
        self._door.unlink(missing_ok=True)

    def held(self) -> int:
        """Instances that stand before the shut door: with a batch, or loading."""
        return len(self._held())

    def held_rows(self) -> int:
        """Rows of their batches."""
        return sum(int(path.read_text() or "0") for path in self._held())

    def batches(self) -> list[Batch]:
        """Every batch since the last `forget`."""
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        return [Batch(**json.loads(line)) for line in lines[self._seen :]]

    def tags(self) -> list[int]:
        """Tags of all rows since the last `forget`, in the order in which they ran."""
        return [tag for batch in sorted(self.batches(), key=lambda batch: batch.start) for tag in batch.tags]

    def forget(self) -> None:
        """Leaves out what ran until now."""
        self._seen += len(self.batches())

    def _held(self) -> list[Path]:
        return list(self.path.parent.glob(f"{self.path.name}.*.held"))


STALL_SECONDS = 0.4
"""Longer than anything that is not Triton's batcher asleep, for 0.5 s, while an instance is free and requests wait."""


def stalls(batches: Sequence[Batch]) -> int:
    """How often the one instance of an executor that always had work stood idle for so long."""
    ordered = sorted(batches, key=lambda batch: batch.start)
    return sum(after.start - before.end > STALL_SECONDS for before, after in itertools.pairwise(ordered))


def write_executor(repository: Path, executor: Executor) -> Record:
    """Adds the executor to a repository; its record lies beside the repository."""
    folder = repository / executor.name
    (folder / "1").mkdir(parents=True)
    shutil.copy(_EXECUTOR_SOURCE, folder / "1" / "model.py")
    record = repository.parent / f"{repository.name}.{executor.name}.jsonl"
    parameters = {
        "record": str(record),
        "batch_seconds": str(executor.batch_seconds),
        "row_seconds": str(executor.row_seconds),
        "error_tags": json.dumps({tag: vars(error) for tag, error in executor.error_tags.items()}),
        "raise_tags": json.dumps(list(executor.raise_tags)),
        "exit_tags": json.dumps(list(executor.exit_tags)),
        "wrong_rows_tags": json.dumps(list(executor.wrong_rows_tags)),
        "initialize_error": executor.initialize_error,
    }
    lines = [
        f'name: "{executor.name}"',
        'backend: "python"',
        f"max_batch_size: {executor.max_batch_size}",
        *(f"input {tensor.text()}" for tensor in executor.inputs),
        *(f"output {tensor.text()}" for tensor in executor.outputs),
        f"instance_group {{ kind: KIND_CPU count: {executor.instances} }}",
        _batching(executor) if executor.batching is None else executor.batching,
        *(_parameter(key, value) for key, value in parameters.items()),
        executor.config,
    ]
    (folder / "config.pbtxt").write_text("\n".join(lines) + "\n")
    return Record(record)


def _parameter(key: str, value: str) -> str:
    # JSON's escapes are among those of protobuf text.
    return f"parameters {{ key: {json.dumps(key)} value {{ string_value: {json.dumps(value)} }} }}"


def _batching(executor: Executor) -> str:
    levels = executor.priority_levels
    if not levels:
        return "dynamic_batching { }"
    default = levels if executor.default_priority_level is None else executor.default_priority_level
    policies = "\n".join(f"  priority_queue_policy {{ key: {level} value {{ }} }}" for level in range(1, levels + 1))
    return f"dynamic_batching {{\n  priority_levels: {levels}\n  default_priority_level: {default}\n{policies}\n}}"


@dataclass(frozen=True)
class Router:
    """A router in front of an executor.

    Attributes:
        name: model name.
        mode: ``levels`` or ``plain``.
        classes: each a `[[class]]` table of the policy; ``name`` and ``level`` are required there.
        default_class: as in the policy.
        policy: further top-level keys of the policy.
        tenants: each a `[[tenant]]` table of the policy.
        max_batch_size: default 16 times the executor's.
        instances: instances of the executor, as the policy declares them.
        policy_text: the whole policy instead, for broken ones.
        config: more lines for the config.
    """

    name: str = "router"
    mode: str = "levels"
    classes: Sequence[Mapping[str, Any]] = ({"name": INTERACTIVE, "level": 1}, {"name": BULK, "level": 2})
    default_class: str = BULK
    policy: Mapping[str, Any] = field(default_factory=dict)
    tenants: Sequence[Mapping[str, Any]] = ()
    max_batch_size: int | None = None
    instances: int | None = None
    policy_text: str | None = None
    config: str = ""


def write_router(repository: Path, router: Router, executor: Executor) -> Path:
    """Adds the router to a repository.

    Returns:
        Path of its policy.
    """
    folder = repository / router.name
    (folder / "1").mkdir(parents=True)
    largest = 16 * executor.max_batch_size if router.max_batch_size is None else router.max_batch_size
    lines = [
        f'name: "{router.name}"',
        'backend: "priority_router"',
        f"max_batch_size: {largest}",
        *(f"input {tensor.text()}" for tensor in executor.inputs),
        f"input {Tensor('CLASS', 'TYPE_STRING', (1,), optional=True).text()}",
        *(f"output {tensor.text()}" for tensor in executor.outputs),
        *(f"output {Tensor(name, 'TYPE_INT64', (1,)).text()}" for name in ("ROUTER_QUEUE_US", "ROUTER_EXECUTOR_US")),
        "instance_group { kind: KIND_CPU count: 1 }",
        "dynamic_batching { }" if largest else "",
        router.config,
    ]
    (folder / "config.pbtxt").write_text("\n".join(lines) + "\n")
    policy = folder / "1" / "policy.toml"
    policy.write_text(_policy(router, executor) if router.policy_text is None else router.policy_text)
    return policy


def write_pair(repository: Path, router: Router | None = None, executor: Executor | None = None) -> Record:
    """Adds a router and its executor; in plain mode the executor has no levels, whatever it was given."""
    router = router or Router()
    executor = executor or Executor()
    if router.mode == "plain" and executor.batching is None:
        executor = _without_levels(executor)
    write_router(repository, router, executor)
    return write_executor(repository, executor)


def _without_levels(executor: Executor) -> Executor:
    return Executor(**{**vars(executor), "priority_levels": 0})


def _policy(router: Router, executor: Executor) -> str:
    top = {
        "policy_version": 1,
        "mode": router.mode,
        "executor": executor.name,
        "default_class": router.default_class,
        **router.policy,
    }
    shape = {
        "instances": executor.instances if router.instances is None else router.instances,
        "max_batch_size": executor.max_batch_size,
    }
    text = _table(top) + "\n[executor_shape]\n" + _table(shape)
    text += "".join(f"\n[[class]]\n{_table(dict(entry))}" for entry in router.classes)
    return text + "".join(f"\n[[tenant]]\n{_table(entry)}" for entry in router.tenants)


def _table(entries: Mapping[str, Any]) -> str:
    # JSON writes strings, numbers, booleans and lists of them as TOML does.
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in entries.items())
