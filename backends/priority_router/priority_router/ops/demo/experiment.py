# SPDX-License-Identifier: Apache-2.0
"""Measures the executor's capacity on this machine, then the same overload on each arm, with real files as inputs.

Law: arms, arrivals, load generator and statistics are the benchmark's; only models and inputs differ.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Protocol

import numpy as np
import tritonclient.http

from priority_router.config import POLICY_FILE, load_policy
from priority_router.core.values import SECOND
from priority_router.errors import SetupError
from priority_router.interface import CLASS_TENSOR, EXECUTOR_OUTPUT, QUEUE_OUTPUT
from priority_router.ops.bench import executor_stats, load
from priority_router.ops.bench.arms import ARMS, EXECUTOR, ROUTER, Arm, batching_block, policy_text, routes
from priority_router.ops.bench.arrivals import poisson
from priority_router.ops.bench.experiment import measure
from priority_router.ops.bench.load import Target
from priority_router.ops.bench.requests import by_class
from priority_router.ops.demo import filetype
from priority_router.ops.demo.files import Sample
from priority_router.ops.demo.measurements import (
    BACKGROUND_SHARE,
    ONLINE_SHARE,
    Capacity,
    Classified,
    Results,
)
from priority_router.ops.loads import LEVELS, ONLINE, ExecutorShape
from priority_router.ops.server import Server

SHOWN_ARMS: Final = ("flat", "levels", "levels+hooks", "router")
"""Each takes one more step: from no priority to Triton's own, to that without its idle times, to the router."""

CAPACITY_SECONDS = 6.0
WARMUP_SECONDS = 3.0
"""Left out of every measurement: first runs are slow, and the router learns what a batch takes."""

# The machine may be slower by then than when its capacity was measured.
_GRACE_MARGIN = 1.5
_LEAST_GRACE_SECONDS = 3.0

# Enough to keep every batch full while replies travel.
_CAPACITY_BATCHES_IN_FLIGHT = 4

_BATCHING_BLOCK: Final = re.compile(r"^dynamic_batching \{.*?^\}$", re.DOTALL | re.MULTILINE)


class Progress(Protocol):
    """Is told what happens."""

    def step(self, text: str, seconds: float) -> None:
        """Something begins that takes about so many seconds."""

    def say(self, text: str) -> None:
        """Something is known."""


def run(
    models: Path, samples: Sequence[Sample], shown: Sequence[Sample], seconds: float, seed: int, progress: Progress
) -> Results:
    """Runs the whole demonstration.

    Args:
        models: the model repository with executor and router.
        samples: inputs of the load.
        shown: files to classify one by one at the end.
        seconds: of counted arrivals per arm.
        seed: of the arrivals, the same on every arm.
        progress: told in one line what happens now.

    Raises:
        PriorityRouterError: a server could not be started, or the load not be generated.
    """
    shape = executor_shape(models)
    progress.step(
        f"capacity: the executor alone, always {_in_flight(shape)} requests in flight, {CAPACITY_SECONDS:g} s",
        WARMUP_SECONDS + CAPACITY_SECONDS,
    )
    with serving(models, ARMS["levels+hooks"], shape) as server:
        capacity = measure_capacity(server, shape, samples)
    progress.say(
        f"capacity: {capacity.rows_per_s:.0f} rows/s in batches of {capacity.mean_batch:.1f}, "
        f"{capacity.ms_per_row:.1f} ms per row"
    )
    duration = WARMUP_SECONDS + seconds
    schedule = poisson(capacity.offered, duration, seed, payloads=len(samples))
    payloads = [{filetype.INPUT: sample.features} for sample in samples]
    arms, requests, classified = {}, {}, []
    for name in SHOWN_ARMS:
        arm = ARMS[name]
        rates = " and ".join(f"{one.name} {one.rate:.0f}" for one in capacity.offered)
        unordered = arm.mode is None and not arm.executor_levels
        expected = duration + (backlog_seconds(duration) if unordered else 0)
        progress.step(f"{name}: {arm.meaning}; {rates} rows/s for {seconds:g} s", expected)
        with serving(models, arm, shape) as server:
            arms[name], ledger = measure(
                Target(server.http, routes(arm, LEVELS), payloads, outputs=[filetype.OUTPUT]),
                schedule,
                executor=EXECUTOR,
                instances=shape.instances,
                warmup_s=WARMUP_SECONDS,
                settle=[ONLINE],
                grace_s=grace_seconds(duration),
            )
            requests[name] = by_class(ledger, WARMUP_SECONDS)
            if arm.mode is not None:
                classified = classify(server, models, shown)
    return Results(capacity, arms, requests, classified)


def backlog_seconds(duration: float) -> float:
    """How long what has piled up in the end takes the executor."""
    return (ONLINE_SHARE + BACKGROUND_SHARE - 1) * duration


def grace_seconds(duration: float) -> float:
    """How long the last online request may wait, behind everything that has piled up where nobody orders it."""
    return _GRACE_MARGIN * backlog_seconds(duration) + _LEAST_GRACE_SECONDS


def executor_shape(models: Path) -> ExecutorShape:
    """Instances and batch size of the shipped executor, as the shipped policy has them.

    Raises:
        SetupError: the model is not there.
        PolicyError: the policy cannot be used.
    """
    if not (models / EXECUTOR / "1" / "model.onnx").is_file():
        raise SetupError(f"{models / EXECUTOR}/1/model.onnx is missing; run scripts/setup, which copies it in")
    scheduling = load_policy(models / ROUTER / "1" / POLICY_FILE).scheduling
    return ExecutorShape(0, 0, scheduling.max_batch_size, scheduling.instances)


@contextlib.contextmanager
def serving(models: Path, arm: Arm, shape: ExecutorShape) -> Iterator[Server]:
    """A server for one arm, ended at once: a backlog that nobody waits for is not worth a drain."""
    with tempfile.TemporaryDirectory(prefix="priority-router-demo-") as folder:
        repository = Path(folder) / "models"
        write_repository(repository, models, arm, shape)
        with Server(repository, hooks=arm.hooks, log=Path(folder) / "server.log") as server:
            yield server


def write_repository(repository: Path, models: Path, arm: Arm, shape: ExecutorShape) -> None:
    """The shipped executor with the arm's batching, and for the router's arm the shipped router without limits.

    Raises:
        SetupError: the executor's configuration is not as it was shipped.
    """
    repository.mkdir()
    shipped = (models / EXECUTOR).resolve()
    if arm.executor_levels:
        (repository / EXECUTOR).symlink_to(shipped, target_is_directory=True)
    else:
        (repository / EXECUTOR).mkdir()
        for path in shipped.iterdir():
            (repository / EXECUTOR / path.name).symlink_to(path, target_is_directory=path.is_dir())
        config = repository / EXECUTOR / "config.pbtxt"
        text, found = _BATCHING_BLOCK.subn(batching_block(0), config.read_text())
        if found != 1:
            raise SetupError(f"{shipped}/config.pbtxt has no block `dynamic_batching {{ … }}` as it was shipped")
        config.unlink()
        config.write_text(text)
    if arm.mode is not None:
        shutil.copytree(models / ROUTER, repository / ROUTER)
        policy = policy_text(arm.mode, EXECUTOR, shape, LEVELS, shared=False)
        (repository / ROUTER / "1" / POLICY_FILE).write_text(policy)


def _in_flight(shape: ExecutorShape) -> int:
    return _CAPACITY_BATCHES_IN_FLIGHT * shape.max_batch_size * shape.instances


def measure_capacity(server: Server, shape: ExecutorShape, samples: Sequence[Sample]) -> Capacity:
    """Keeps the executor saturated for a while and reads what Triton counted.

    Raises:
        LoadError: the load could not be generated, or nothing was answered.
    """
    payloads = [{filetype.INPUT: sample.features} for sample in samples]
    target = Target(server.http, {ONLINE: routes(ARMS["levels+hooks"], LEVELS)[ONLINE]}, payloads)
    with load.begin_closed(target, ONLINE, _in_flight(shape), WARMUP_SECONDS + CAPACITY_SECONDS) as running:
        begin = running.start + int(WARMUP_SECONDS * SECOND)
        before, after = executor_stats.over(server.http, EXECUTOR, begin, begin + int(CAPACITY_SECONDS * SECOND))
        running.result()
    mean_batch = after.mean_batch_since(before)
    if mean_batch is None:
        raise load.LoadError(f"the executor answered nothing in {CAPACITY_SECONDS:g} s")
    rows_per_s = (after.rows - before.rows) / ((after.at - before.at) / SECOND)
    return Capacity(rows_per_s, after.busy_since(before, shape.instances), mean_batch)


def classify(server: Server, models: Path, shown: Sequence[Sample]) -> list[Classified]:
    """Asks the router for single files, as a client would."""
    labels = filetype.read_labels(models / EXECUTOR / "labels.txt")
    answers = []
    with tritonclient.http.InferenceServerClient(server.http) as client:
        for sample in shown:
            content = tritonclient.http.InferInput(filetype.INPUT, list(sample.features.shape), "INT32")
            content.set_data_from_numpy(sample.features)
            traffic_class = tritonclient.http.InferInput(CLASS_TENSOR, [1, 1], "BYTES")
            traffic_class.set_data_from_numpy(np.array([[ONLINE]], np.object_))
            result = client.infer(ROUTER, [content, traffic_class])
            label, score = filetype.best_label(result.as_numpy(filetype.OUTPUT)[0], labels)
            queue_us, executor_us = (int(result.as_numpy(name)[0, 0]) for name in (QUEUE_OUTPUT, EXECUTOR_OUTPUT))
            answers.append(Classified(sample.path, label, score, queue_us, executor_us))
    return answers
