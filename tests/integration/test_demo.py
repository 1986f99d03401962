# SPDX-License-Identifier: Apache-2.0
"""The demonstration from beginning to end, cut short in time."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from magika import Magika
from priority_router.ops.bench.wire import Outcome
from priority_router.ops.demo import experiment, files, filetype, report, verdict
from support.fleet import PATIENCE_SECONDS, eventually

ROOT = Path(__file__).parents[2]
MODELS = ROOT / "model_repository"


class Steps(list[str]):
    """Keeps what a run says."""

    def step(self, text, seconds):
        assert seconds > 0
        self.append(text)

    def say(self, text):
        self.append(text)


def servers(process):
    """What of Triton a process has started."""
    found = []
    for child in process.children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            found += [child] if "triton" in child.name() else []
    return found


@pytest.fixture(scope="module")
def samples():
    return files.collect([ROOT], 20, 1, filetype.load_rule(MODELS))


@pytest.fixture(scope="module")
def steps():
    return Steps()


@pytest.fixture(scope="module")
def results(samples, steps):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiment, "WARMUP_SECONDS", 1.0)
        patch.setattr(experiment, "CAPACITY_SECONDS", 2.0)
        # Of a machine that has other work by the time its capacity was measured, too.
        patch.setattr(experiment, "grace_seconds", lambda duration: 10 * PATIENCE_SECONDS)
        yield experiment.run(MODELS, samples, samples[:3], seconds=3.0, seed=1, progress=steps)
    eventually(lambda: servers(psutil.Process()) == [])


def test_every_arm_saw_the_same_requests_and_answered_the_online_ones(results):
    assert list(results.arms) == ["flat", "levels", "levels+hooks", "router"]
    totals = [
        {name: sum(one.outcomes.values()) for name, one in summary.classes.items()} for summary in results.arms.values()
    ]
    assert all(one == totals[0] for one in totals)
    assert totals[0]["background"] > totals[0]["online"] > 0
    for arm, summary in results.arms.items():
        assert summary.failures == []
        assert summary.classes["online"].outcomes[Outcome.SUCCESS.label] == totals[0]["online"]
        for name, one in summary.classes.items():
            requests = results.requests[arm][name]
            assert len(requests.at_s) == totals[0][name]
            assert len(requests.answered) == one.outcomes[Outcome.SUCCESS.label]
            assert len(requests.answered_s) == round(one.rows_per_s * summary.window_s)


def test_capacity_and_busy_share_are_plausible(results):
    assert results.capacity.rows_per_s > 1
    assert 1 <= results.capacity.mean_batch <= 4
    # Rows are counted by the server and time by the client, which a machine that stalls keeps apart.
    assert 0.05 < results.capacity.busy < 10
    assert all(0.01 < summary.busy < 10 for summary in results.arms.values())


def test_files_are_classified_as_magika_does(results, samples):
    magika = Magika()
    assert [one.path for one in results.classified] == [sample.path for sample in samples[:3]]
    for one in results.classified:
        prediction = magika.identify_path(one.path).prediction
        assert one.label == str(prediction.dl.label)
        assert one.score == pytest.approx(prediction.score, abs=1e-3)
        assert one.executor_us > 0


def test_progress_and_report_name_every_arm(results, steps):
    text = report.as_text(results, verdict.judge(results))
    rates = " and ".join(f"{one.name} {one.rate:.0f}" for one in results.capacity.offered)
    for arm in results.arms:
        assert any(step.startswith(f"{arm}: ") and step.endswith(f"; {rates} rows/s for 3 s") for step in steps)
        assert f"\n{arm}" in text


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_leaves_nothing_behind(number, tmp_path):
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "priority_router.ops.demo",
            "--model-repository",
            str(MODELS),
            "--output",
            str(tmp_path),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    try:
        while "capacity" not in (line := process.stdout.readline()):
            assert line, process.communicate()[1]
        running = psutil.Process(process.pid)
        eventually(lambda: process.poll() is not None or servers(running))
        assert process.poll() is None
        children = running.children(recursive=True)
        process.send_signal(number)
        _, said = process.communicate(timeout=PATIENCE_SECONDS)
    finally:
        process.kill()
    assert process.returncode == 128 + number
    assert said.endswith("demo: stopped\n")
    assert psutil.wait_procs(children, timeout=PATIENCE_SECONDS)[1] == []
    assert list(tmp_path.iterdir()) == []
