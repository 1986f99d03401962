# SPDX-License-Identifier: Apache-2.0
"""Models of one's own: what a server offers, how a scenario is fitted, and what is copied for an arm."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from priority_router.config import parse_policy
from priority_router.errors import SetupError
from priority_router.ops.bench import own_model, own_repository, remote
from priority_router.ops.bench.arms import ARMS
from priority_router.ops.bench.own_model import Facts
from priority_router.ops.bench.remote import Offer, Remote
from priority_router.ops.bench.scenarios import SCENARIOS
from priority_router.ops.loads import BACKGROUND, ONLINE

ROUTER = Path(__file__).resolve().parents[4] / "model_repository" / "router"
KNOWN = Facts("router", "executor", (), True, max_batch_size=8, instances=2, levels=2)
OVERLOAD = SCENARIOS["overload"]


def offer(router="router", levels=2, refusal=""):
    return Offer(replace(KNOWN, router=router, levels=levels), "2.51.0", refusal)


@pytest.mark.parametrize(
    ("made", "arms"),
    [
        (offer(), {"levels+hooks", "router", "router-one-class"}),
        (offer(refusal="call model 'router' instead"), {"router", "router-one-class"}),
        (offer(levels=0), {"flat", "router-plain"}),
        (offer(levels=0, refusal="no"), {"router-plain"}),
        (offer(router=""), {"flat-levels", "levels"}),
        (offer(router="", levels=0), {"flat"}),
    ],
)
def test_a_server_offers_the_arms_of_its_executor(made, arms):
    assert set(made.arms()) == arms
    venue = Remote("http://localhost:1", made, OVERLOAD, lambda rows: [{}])
    refused = venue.refused(ARMS)
    assert set(refused) == set(ARMS) - arms
    for name, reason in refused.items():
        if made.refusal and ARMS[name].mode is None:
            assert "closed to direct calls" in reason
        elif not made.known.router and ARMS[name].mode is not None:
            assert reason == "the server has no router"
        else:
            assert "which offers" in reason


def test_how_classes_are_sent_to_a_server_that_is_there():
    direct = remote.routes(KNOWN, ARMS["levels+hooks"], OVERLOAD)
    assert [(one.model, one.parameters) for one in direct.values()] == [
        ("executor", {"priority": 1}),
        ("executor", None),
    ]
    routed = remote.routes(KNOWN, ARMS["router"], OVERLOAD)
    assert [(one.model, one.class_name) for one in routed.values()] == [("router", ONLINE), ("router", BACKGROUND)]
    alike = remote.routes(KNOWN, ARMS["router-one-class"], OVERLOAD)
    assert {one.class_name for one in alike.values()} == {BACKGROUND}
    shared = remote.routes(KNOWN, ARMS["router"], SCENARIOS["shared"])
    assert shared[BACKGROUND].model == "executor"
    assert not remote.routes(replace(KNOWN, batched=False), ARMS["router"], OVERLOAD)[ONLINE].batched


@pytest.mark.parametrize(
    ("url", "address"),
    [("http://localhost:8000", "localhost:8000"), ("grpc://10.0.0.1:8001/", "grpc://10.0.0.1:8001")],
)
def test_urls(url, address):
    assert remote.address(url) == address


@pytest.mark.parametrize(
    "url", ["localhost:8000", "https://x:1", "http://x", "http://x:y", "http://x:1/v2", "grpc://:1"]
)
def test_other_urls_are_refused(url):
    with pytest.raises(SetupError, match=r"write http://HOST:PORT or grpc://HOST:PORT"):
        remote.address(url)


def test_facts_of_a_configuration():
    config = {
        "max_batch_size": "8",
        "input": [],
        "dynamic_batching": {"priority_levels": "3"},
        "instance_group": [{"count": "2", "gpus": [0, 1]}, {"count": 1}],
    }
    made = own_model.facts("r", "e", config)
    assert (made.max_batch_size, made.instances, made.levels, made.batched, made.takes) == (8, 5, 3, True, 40)
    bare = own_model.facts("r", "e", {"max_batch_size": 0})
    assert (bare.max_batch_size, bare.instances, bare.levels, bare.batched) == (1, 1, 0, False)


def test_a_scenario_asks_the_same_share_of_another_executor():
    made = own_model.fitted(OVERLOAD, KNOWN, capacity=800.0)
    assert [load.rate for load in made.loads] == pytest.approx([160, 1100])
    assert made.executor.rows_per_s == pytest.approx(800)
    # 16 rows at 800 rows/s take 20 ms and not 50.
    assert made.loads[0].target_ms == pytest.approx(150 * 20 / 50)
    assert made.aims == ()
    assert "1.57 times its capacity" in made.meaning


def test_requests_of_more_rows_than_a_batch_become_more_requests():
    small = replace(KNOWN, max_batch_size=4, instances=1)
    before = SCENARIOS["large"].loads[1]
    after = own_model.fitted(SCENARIOS["large"], small, SCENARIOS["large"].executor.rows_per_s).loads[1]
    assert after.rows == 4
    assert after.rate == pytest.approx(2 * before.rate)


def test_classes_get_the_names_of_the_routers():
    made = own_model.renamed(SCENARIOS["shared"], ["chat", "mail", "batch"])
    assert [load.name for load in made.loads] == ["chat", "batch"]
    assert made.levels == {"chat": 1, "batch": 2}
    assert made.direct == ("batch",)
    with pytest.raises(SetupError, match="name as many"):
        own_model.renamed(OVERLOAD, ["chat"])


def test_a_folder_that_is_no_router_is_said(tmp_path):
    with pytest.raises(SetupError, match=r"no policy.toml in a version folder"):
        own_repository.read(tmp_path)


OWN = own_repository.read(ROUTER)


def test_the_shipped_router_is_read_with_its_executor():
    assert OWN.classes == (ONLINE, BACKGROUND)
    assert (OWN.facts.max_batch_size, OWN.facts.instances, OWN.facts.levels, OWN.facts.batched) == (4, 1, 2, True)
    assert [(one.name, one.dims) for one in OWN.facts.inputs] == [("bytes", (2048,))]


@pytest.mark.parametrize("limits", [False, True])
@pytest.mark.parametrize("scenario", ["overload", "shared"])
@pytest.mark.parametrize("arm", ["router", "router-plain", "router-one-class"])
def test_policies_of_copies_are_the_owners_in_another_mode(arm, scenario, limits):
    made = parse_policy(own_repository.policy_text(OWN.policy, ARMS[arm], SCENARIOS[scenario], limits=limits))
    assert made.mode.value == ARMS[arm].mode
    assert [one.name for one in made.scheduling.classes] == [ONLINE, BACKGROUND][arm == "router-one-class" :]
    assert {one.max_queue_size for one in made.scheduling.classes} == (
        {0} if not limits else {256, 10_000} if arm != "router-one-class" else {10_000}
    )
    assert made.guard_executor is (scenario != "shared")


@pytest.mark.parametrize("arm", ARMS)
def test_copies_differ_from_the_owners_models_in_their_order_alone(arm, tmp_path):
    own_repository.write(tmp_path, OWN, ARMS[arm], OVERLOAD, limits=False)
    before, after = own_repository.read_config(OWN.executor), own_repository.read_config(tmp_path / "executor")
    if arm in ("flat", "router-plain"):
        assert not after.dynamic_batching.priority_levels
    else:
        assert after.dynamic_batching.priority_levels == 2
        assert len(after.dynamic_batching.priority_queue_policy) == 2
    for config in (before, after):
        config.ClearField("dynamic_batching")
    assert before == after
    assert (tmp_path / "executor" / "labels.txt").resolve() == (OWN.executor / "labels.txt").resolve()
    assert (tmp_path / "router").exists() is (ARMS[arm].mode is not None)
    assert (ROUTER / "1" / "policy.toml").read_text().startswith("# Written by"), "the owner's file was changed"


def test_limits_that_are_kept_hold_on_executors_without_a_router(tmp_path):
    own_repository.write(tmp_path, OWN, ARMS["levels"], OVERLOAD, limits=True)
    policies = own_repository.read_config(tmp_path / "executor").dynamic_batching.priority_queue_policy
    assert (policies[1].max_queue_size, policies[1].default_timeout_microseconds) == (256, 2_000_000)
    assert policies[2].max_queue_size == 10_000
