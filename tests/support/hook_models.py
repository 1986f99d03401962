# SPDX-License-Identifier: Apache-2.0
"""A recording executor with the ways around its front door: a model that calls it by BLS, and an ensemble."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from priority_router.hooks import LEVEL_KEY, HookCounters, HookCounts, HookMarker, marker_of_process
from priority_router.ops.server import Server, children

from support import models

CALLER = "caller"
ENSEMBLE = "pipeline"
EXECUTOR = "executor"

_CALLER_CONFIG = f"""
name: "{CALLER}"
backend: "python"
input {{ name: "X" data_type: TYPE_FP32 dims: [ 1, 4 ] }}
input {{ name: "TAG" data_type: TYPE_INT64 dims: [ 1, 1 ] }}
input {{ name: "LEVEL" data_type: TYPE_INT64 dims: [ 1 ] }}
output {{ name: "Y" data_type: TYPE_FP32 dims: [ 1, 4 ] }}
instance_group {{ kind: KIND_CPU count: 1 }}
parameters {{ key: "key" value {{ string_value: "{LEVEL_KEY}" }} }}
"""
_ENSEMBLE_CONFIG = f"""
name: "{ENSEMBLE}"
platform: "ensemble"
max_batch_size: 1
input {{ name: "X" data_type: TYPE_FP32 dims: [ 4 ] }}
input {{ name: "TAG" data_type: TYPE_INT64 dims: [ 1 ] }}
output {{ name: "Y" data_type: TYPE_FP32 dims: [ 4 ] }}
ensemble_scheduling {{ step {{
  model_name: "{EXECUTOR}"
  model_version: -1
  input_map {{ key: "X" value: "X" }}
  input_map {{ key: "TAG" value: "TAG" }}
  output_map {{ key: "Y" value: "Y" }}
}} }}
"""


@dataclass
class Case:
    """A server with what its executor ran, and whether the hooks in question are on."""

    server: Server
    record: models.Record
    on: bool


def write_repository(repository: Path, executor: models.Executor) -> models.Record:
    """Writes the executor, the caller and the ensemble; the executor's batch size must be 1."""
    for name, config in ((CALLER, _CALLER_CONFIG), (ENSEMBLE, _ENSEMBLE_CONFIG)):
        (repository / name / "1").mkdir(parents=True)
        (repository / name / "config.pbtxt").write_text(config)
    shutil.copy(Path(__file__).with_name("bls_caller.py"), repository / CALLER / "1" / "model.py")
    return models.write_executor(repository, executor)


def marker_of(server: Server) -> HookMarker | None:
    """The mark that the models of a server inherited."""
    return marker_of_process(next(iter(server.stub_pids().values())))


def counts_of(server: Server) -> HookCounts:
    """What the hooks of a server did so far."""
    return counts_in(server.pid)


def counts_in(tritonserver: int) -> HookCounts:
    """The same, from the server's process id."""
    marker = marker_of_process(next(iter(children.stubs(tritonserver))))
    assert marker is not None
    assert marker.active_in(tritonserver)
    counters = HookCounters.open(marker)
    try:
        return counters.read()
    finally:
        counters.close()
