# SPDX-License-Identifier: Apache-2.0
"""The demonstration from beginning to end, cut short in time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from magika import Magika
from priority_router.ops.bench.wire import Outcome
from priority_router.ops.demo import experiment, files, filetype, report, verdict

ROOT = Path(__file__).parents[2]
MODELS = ROOT / "model_repository"


class Steps(list[str]):
    """Keeps what a run says."""

    def step(self, text, seconds):
        assert seconds > 0
        self.append(text)

    def say(self, text):
        self.append(text)


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
        yield experiment.run(MODELS, samples, samples[:3], seconds=3.0, seed=1, progress=steps)
    left = [child.cmdline() for child in psutil.Process().children(recursive=True) if "triton" in child.name()]
    assert left == []


def test_every_arm_saw_the_same_requests_and_answered_the_online_ones(results):
    assert list(results.arms) == ["no-levels", "levels", "levels+hooks", "router"]
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
    assert results.capacity.rows_per_s > 5
    assert 0.5 < results.capacity.busy < 1.05
    assert 1 <= results.capacity.mean_batch <= 4
    assert all(0.1 < summary.busy < 1.1 for summary in results.arms.values())


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
        while "capacity" not in process.stdout.readline():
            pass
        children: list[psutil.Process] = []
        while not any("triton" in child.name() for child in children):
            assert process.poll() is None
            time.sleep(0.05)
            children = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(number)
        _, said = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 128 + number
    assert said.endswith("demo: stopped\n")
    assert psutil.wait_procs(children, timeout=10)[1] == []
    assert list(tmp_path.iterdir()) == []
