# SPDX-License-Identifier: Apache-2.0
"""A profile of a real server: what is recorded is what its executor does, and the simulator takes it."""

import json

import numpy as np
import pytest
from priority_router.errors import PriorityRouterError
from priority_router.ops.bench import arms, load
from priority_router.ops.bench.arrivals import poisson
from priority_router.ops.bench.load import Target
from priority_router.ops.loads import BACKGROUND, LEVELS, ONLINE, ClassLoad, ExecutorShape
from priority_router.ops.simulate import command, profile, record

SHAPE = ExecutorShape(batch_us=10_000, row_us=5_000, max_batch_size=4)
PAYLOADS = [{"X": np.ones((1, 4), np.float32)}]


@pytest.fixture(scope="module")
def server(start_server, tmp_path_factory):
    repository = tmp_path_factory.mktemp("recorded") / "repository"
    repository.mkdir()
    arms.write_repository(repository, arms.ARMS["router"], SHAPE, LEVELS)
    return start_server(repository)


@pytest.mark.parametrize("wire", ["http", "grpc"])
def test_a_profile_is_recorded_and_simulated(server, wire, tmp_path, capsys):
    target, numbers = tmp_path / "profile.json", tmp_path / "numbers.json"
    url = f"{wire}://{getattr(server, wire)}"
    words = ["--url", url, "--metrics-url", f"http://{server.metrics}/metrics", "--class", ONLINE, "--seconds", "6"]
    assert command.main(["--record-profile", str(target), *words]) == 0
    assert "--profile" in capsys.readouterr().out
    read = profile.parse(target.read_text(), "recorded")
    assert (read.shape.instances, read.shape.max_batch_size, read.shape.levels) == (1, 4, True)
    assert set(read.times.samples) == {1, 2, 4}
    for rows, times in read.times.samples.items():
        # A sleep is never shorter than asked for, and half of them are not much longer.
        assert 10_000_000 + rows * 5_000_000 <= times.samples[0]
        assert times.at(0.5) < 10 * times.samples[0]
    document = json.loads(target.read_text())
    assert set(document["delays_us"]) == set(profile.WAYS)
    assert document["recorded"]["executor"] == "executor"

    policy = tmp_path / "policy.toml"
    policy.write_text(arms.policy_text("levels", "executor", SHAPE, LEVELS, shared=False))
    asked = ["--rate", "online=20", "--rate", "background=100", "--seconds", "10", "--json", str(numbers)]
    assert command.main(["--policy", str(policy), "--profile", str(target), *asked]) == 0
    router = json.loads(numbers.read_text())["arms"]["router"]["classes"]
    assert router[ONLINE]["latency"]["p50_ms"]["median"] > 15
    assert router[ONLINE]["latency"]["p95_ms"]["median"] < router[BACKGROUND]["latency"]["p50_ms"]["median"]


def test_beside_other_traffic_it_refuses_and_watches(server, tmp_path):
    target = tmp_path / "profile.json"
    url = ["--url", f"http://{server.http}"]
    schedule = poisson([ClassLoad(ONLINE, 10), ClassLoad(BACKGROUND, 100)], 120, 3)
    sent = Target(server.http, arms.routes(arms.ARMS["router"], LEVELS), PAYLOADS)
    with load.begin(sent, schedule):
        assert command.main(["--record-profile", str(target), *url, "--watch", "--seconds", "5"]) == 0
        watched = profile.parse(target.read_text(), "watched")
        assert max(len(times.samples) for times in watched.times.samples.values()) <= record.CYCLES
        assert max(watched.times.samples) <= 4
        with pytest.raises(PriorityRouterError, match="--watch"):
            command.main(["--record-profile", str(target), *url, "--class", ONLINE, "--seconds", "4"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--url", "http://127.0.0.1:1"], "HTTP port"),
        (["--url", "tcp://127.0.0.1:1"], "http://HOST:PORT"),
        (["--model", "nobody"], "nobody"),
        (["--executor", "nobody"], "nobody"),
        (["--class", "nobody"], "nobody"),
        (["--metrics-url", "http://127.0.0.1:1/metrics"], "--metrics-url"),
        (["--input-data", "/nowhere.json"], "--input-data"),
        (["--rows", "5"], "--rows 5"),
    ],
)
def test_what_cannot_be_recorded_is_said(server, words, said, tmp_path):
    given = words if "--url" in words else ["--url", f"http://{server.http}", *words]
    with pytest.raises(PriorityRouterError) as caught:
        command.main(["--record-profile", str(tmp_path / "p.json"), *given, "--seconds", "1"])
    assert said in str(caught.value)
