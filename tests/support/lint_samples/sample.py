# SPDX-License-Identifier: Apache-2.0
"""What a sample of a lint rule is: a small repository that breaks it, as text, and the edits that its fix asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from priority_router.ops.rules.models import Recorded

Files = Mapping[str, str]
"""Path from the repository to text."""


@dataclass(frozen=True)
class Edit:
    """Text to replace in one file, once.

    Attributes:
        path: from the repository.
        old: what is there; empty for the end of the file.
        new: what takes its place; empty to remove it.
        said: how the fix names it; default the new text, or the removed one.
    """

    path: str
    old: str
    new: str
    said: str = ""

    @property
    def literal(self) -> str:
        """What the printed fix must contain."""
        return self.said or self.new.strip() or self.old.strip()

    def apply(self, files: Files) -> Files:
        text = files[self.path]
        assert self.old == "" or text.count(self.old) == 1, f"{self.path} has not one {self.old!r}"
        changed = text.replace(self.old, self.new) if self.old else text + self.new + "\n"
        return {**files, self.path: changed}


@dataclass(frozen=True)
class Move:
    """A file to move, in the repository."""

    path: str
    to: str
    literal: str

    def apply(self, files: Files) -> Files:
        return {self.to if path == self.path else path: text for path, text in files.items()}


@dataclass(frozen=True)
class Refusal:
    """The server does not load a model.

    Attributes:
        model: which.
        text: a regular expression for what it says.
    """

    model: str
    text: str


@dataclass(frozen=True)
class Failure:
    """All loads, and a request fails.

    Attributes:
        text: a regular expression for what its caller hears.
        rows: of the request.
        tensors: names of further inputs that it brings.
    """

    text: str
    rows: int = 1
    tensors: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sample:
    """A repository with one fault.

    Attributes:
        code: the rule.
        name: which of the rule's samples.
        files: the repository, with the fault.
        fix: what the printed fix asks for; nothing is wrong afterwards.
        shows: what the server makes of the fault; None where it loads and answers all the same.
        onnx: shapes of the executor's ``model.onnx``, inputs and outputs by name; empty where it is a Python model.
        asked: whether a request through it tells anything: it has an end, and not one or the other by chance.
        pool: threads that the server is started with.
        fixed_pool: likewise, after the fix.
        profile: that lint is given; None where it is given none.
    """

    code: str
    name: str
    files: Files
    fix: tuple[Edit | Move, ...]
    shows: Refusal | Failure | None = None
    onnx: Mapping[str, tuple[int | None, ...]] = field(default_factory=dict)
    asked: bool = True
    pool: int | None = None
    fixed_pool: int | None = None
    profile: Recorded | None = None

    def __str__(self) -> str:
        return f"{self.code} {self.name}".rstrip()

    def fixed(self) -> Sample:
        """The same repository without the fault."""
        return replace(self, files=_edited(self.files, self.fix), pool=self.fixed_pool)


SCORER = """name: "scorer"
backend: "python"
max_batch_size: 4
input [ { name: "X" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 2 ] } ]
instance_group [ { kind: KIND_CPU count: 1 } ]
dynamic_batching {
  priority_levels: 2
  default_priority_level: 2
  priority_queue_policy { key: 1 value { } }
  priority_queue_policy { key: 2 value { } }
}
"""
LANE = """name: "lane"
backend: "priority_router"
max_batch_size: 64
input [
  { name: "X" data_type: TYPE_FP32 dims: [ 4 ] },
  { name: "CLASS" data_type: TYPE_STRING dims: [ 1 ] optional: true }
]
output [
  { name: "Y" data_type: TYPE_FP32 dims: [ 2 ] },
  { name: "ROUTER_QUEUE_US" data_type: TYPE_INT64 dims: [ 1 ] },
  { name: "ROUTER_EXECUTOR_US" data_type: TYPE_INT64 dims: [ 1 ] }
]
instance_group [ { kind: KIND_CPU count: 1 } ]
dynamic_batching { }
"""
POLICY = """policy_version = 1
mode = "levels"
executor = "scorer"

[executor_shape]
instances = 1
max_batch_size = 4

[[class]]
name = "online"
level = 1
max_queue_size = 32
default_timeout_microseconds = 50_000

[[class]]
name = "background"
level = 2
max_queue_size = 128
"""
ENSEMBLE = """name: "whole"
platform: "ensemble"
max_batch_size: 4
input [ { name: "X" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 2 ] } ]
ensemble_scheduling {
  step [
    {
      model_name: "scorer"
      model_version: -1
      input_map { key: "X" value: "X" }
      output_map { key: "Y" value: "Y" }
    }
  ]
}
"""

_POLICIES = "priority_queue_policy { key: 1 value { } } priority_queue_policy { key: 2 value { } }"
LEVELS_BLOCK = f"dynamic_batching {{ priority_levels: 2 default_priority_level: 2 {_POLICIES} }}"
"""The block of an executor with two levels, as a fix writes it."""

SCORER_BLOCK = SCORER[SCORER.index("dynamic_batching") :].rstrip()

SCORER_CONFIG = "scorer/config.pbtxt"
SCORER_MODEL = "scorer/1/model.py"
LANE_CONFIG = "lane/config.pbtxt"
LANE_POLICY = "lane/1/policy.toml"

CLEAN: Files = {
    SCORER_CONFIG: SCORER,
    SCORER_MODEL: "",
    LANE_CONFIG: LANE,
    LANE_POLICY: POLICY,
}
"""Nothing is wrong with it. Whoever loads it writes a model of its own into `SCORER_MODEL`."""

WITH_ENSEMBLE: Files = {**CLEAN, "whole/config.pbtxt": ENSEMBLE, "whole/1/.gitkeep": ""}


def _edited(files: Files, edits: tuple[Edit | Move, ...]) -> Files:
    for edit in edits:
        files = edit.apply(files)
    return files


def sample(
    code: str,
    name: str,
    *edits: Edit | Move,
    fix: tuple[Edit | Move, ...] = (),
    files: Files = CLEAN,
    shows: Refusal | Failure | None = None,
    onnx: Mapping[str, tuple[int | None, ...]] | None = None,
    asked: bool = True,
    profile: Recorded | None = None,
) -> Sample:
    """A sample made from a clean repository; by default its fix takes the only edit back."""
    if not fix:
        (edit,) = edits
        assert isinstance(edit, Edit)
        fix = (Edit(edit.path, edit.new, edit.old),)
    return Sample(code, name, _edited(files, edits), fix, shows, onnx or {}, asked, profile=profile)


def scorer(old: str, new: str, said: str = "") -> Edit:
    return Edit(SCORER_CONFIG, old, new, said)


def lane(old: str, new: str, said: str = "") -> Edit:
    return Edit(LANE_CONFIG, old, new, said)


def policy(old: str, new: str, said: str = "") -> Edit:
    return Edit(LANE_POLICY, old, new, said)


def with_line(
    code: str, name: str, *, path: str, line: str, said: str, shows: Refusal | Failure | None = None
) -> Sample:
    """A sample with one line too many at the end of a file."""
    return sample(code, name, Edit(path, "", line), fix=(Edit(path, line, "", said),), shows=shows)
