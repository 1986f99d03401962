# SPDX-License-Identifier: Apache-2.0
"""What the benchmark counts is what happened, also where Triton's own counters say something else (cases 8 and 34)."""

import json
from collections import Counter

import numpy as np
import pytest
from priority_router.ops.bench import arms, command, executor_stats
from priority_router.ops.bench.arrivals import poisson
from priority_router.ops.bench.load import Target
from priority_router.ops.bench.wire import Outcome
from priority_router.ops.loads import BACKGROUND, LEVELS, ONLINE, ClassLoad, ExecutorShape
from support import clients
from support.fleet import eventually
from support.load import replay

LIMIT = 2
LOAD = [ClassLoad(ONLINE, 5), ClassLoad(BACKGROUND, 120)]
PAYLOADS = [{"X": np.full((1, 4), value, np.float32)} for value in (1, np.nan)]  # the executor refuses the second


@pytest.mark.parametrize("name", ["levels+hooks", "router"])
def test_errors_and_refusals_are_counted_by_the_client(name, start_server, tmp_path):
    """Case 8: to Triton an error reply is a success; the benchmark and the router count it as what it is."""
    arm = arms.ARMS[name]
    repository = tmp_path / "models"
    repository.mkdir()
    shape = ExecutorShape(batch_us=20_000, row_us=0, max_batch_size=1)
    arms.write_repository(repository, arm, shape, LEVELS, class_keys={BACKGROUND: {"max_queue_size": LIMIT}})
    server = start_server(repository, hooks=arm.hooks)
    routes = arms.routes(arm, LEVELS)
    schedule = poisson(LOAD, 3, 7, payloads=len(PAYLOADS))
    ledger = replay(Target(server.http, routes, PAYLOADS), schedule)

    counted = Counter(
        (ledger.classes[index], Outcome(outcome))
        for index, outcome in zip(ledger.class_index.tolist(), ledger.outcome.tolist(), strict=True)
    )
    assert sum(counted.values()) == len(schedule)
    assert set(counted) == {
        (ONLINE, Outcome.SUCCESS),
        (ONLINE, Outcome.OTHER),
        (BACKGROUND, Outcome.SUCCESS),
        (BACKGROUND, Outcome.OTHER),
        (BACKGROUND, Outcome.QUEUE_FULL),
    }
    # Where the executor takes 50 a second, most of 120 find a queue of two full.
    assert counted[BACKGROUND, Outcome.QUEUE_FULL] > counted[BACKGROUND, Outcome.SUCCESS]

    model = routes[ONLINE].model
    stats = executor_stats.get_json(server.http, f"/v2/models/{model}/stats")["model_stats"][0]["inference_stats"]
    errors = sum(count for (_, outcome), count in counted.items() if outcome is Outcome.OTHER)
    successes = sum(count for (_, outcome), count in counted.items() if outcome is Outcome.SUCCESS)
    assert stats["success"]["count"] >= successes + errors, "Triton takes an error reply for a success"

    if arm.mode is not None:
        by_router = {Outcome.SUCCESS: "success", Outcome.OTHER: "executor_error", Outcome.QUEUE_FULL: "queue_full"}

        def agreed() -> bool:
            return all(
                clients.router_metric(
                    server.metrics, "requests_total", model, **{"class": of, "outcome": by_router[outcome]}
                )
                == count
                for (of, outcome), count in counted.items()
            )

        eventually(agreed)


def test_a_seed_asks_the_same_again_and_another_one_something_else(tmp_path):
    """Case 34: what differs between two runs is what was measured, not what was asked."""
    asked = []
    for place, seed in enumerate((3, 3, 4)):
        target = tmp_path / f"{place}.json"
        options = ["--rounds", "1", "--duration", "1.5", "--warmup", "0.5", "--seed", str(seed)]
        assert command.main(["below", "--json", str(target), "--arms", "levels+hooks,router", *options]) == 0
        [finished] = json.loads(target.read_text())["rounds"]
        asked.append(
            {
                arm: {name: sum(one["outcomes"].values()) for name, one in summary["classes"].items()}
                for arm, summary in finished.items()
            }
        )
    assert asked[0] == asked[1]
    assert asked[0]["router"] == asked[0]["levels+hooks"]
    assert asked[0] != asked[2]
