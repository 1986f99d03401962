# SPDX-License-Identifier: Apache-2.0
import re
from typing import Any

import pytest
from priority_router.config import parse_policy
from priority_router.ops.bench.aims import ALL, ORACLE, Metric, step_name
from priority_router.ops.bench.arms import (
    ARMS,
    EXECUTOR,
    batching_block,
    executor_batching,
    known,
    policy_text,
    routes,
    write_repository,
)
from priority_router.ops.bench.command import estimated_seconds
from priority_router.ops.bench.scenarios import SCENARIOS
from priority_router.ops.loads import BACKGROUND, LEVELS, ONLINE, OVERLOAD, ExecutorShape
from priority_router.ops.simulate.scenarios import SCENARIOS as SIMULATED

SHAPE = ExecutorShape(batch_us=50_000, row_us=100, max_batch_size=4)
every_scenario = pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)


@every_scenario
def test_a_scenario_is_one_kind_of_load_on_known_arms(scenario):
    assert bool(scenario.loads) != bool(scenario.in_flight)
    assert set(scenario.arms) <= set(ARMS)
    assert set(scenario.direct) <= set(LEVELS)
    assert {load.of for load in scenario.loads} <= set(LEVELS)


@every_scenario
def test_aims_speak_of_arms_and_classes_that_exist(scenario):
    names = {load.name for load in scenario.loads} | {step_name(number) for number in scenario.in_flight} | {ALL}
    for aim in scenario.aims:
        assert set(aim.arms) <= set(scenario.arms)
        metrics = [metric for metric in (aim.metric, aim.base) if isinstance(metric, Metric)]
        assert {metric.class_name for metric in metrics} <= names
        assert {metric.arm for metric in metrics} <= {"", ORACLE, *scenario.arms}
        assert not (scenario.in_flight and ORACLE in {metric.arm for metric in metrics})


def test_the_floor_is_half_a_batch_and_ones_own():
    assert OVERLOAD.executor.floor_ms == 75


@every_scenario
def test_open_loads_exceed_the_capacity(scenario):
    if scenario.loads and scenario.name not in ("below", "no-contention", "large"):
        assert sum(load.rate for load in scenario.loads) > scenario.executor.rows_per_s


def test_a_run_of_everything_is_bounded():
    assert sum(map(estimated_seconds, SCENARIOS.values())) < 130 * 60
    assert max(map(estimated_seconds, SCENARIOS.values())) < 13 * 60


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("arm", [arm for arm in ARMS.values() if arm.mode], ids=lambda arm: arm.name)
def test_the_policies_of_the_arms(arm, shared):
    policy = parse_policy(policy_text(arm.mode, EXECUTOR, SHAPE, known(arm, LEVELS), shared))
    names = [BACKGROUND] if arm.name == "router-one-class" else [ONLINE, BACKGROUND]
    assert [one.name for one in policy.scheduling.classes] == names
    assert policy.mode.value == arm.mode
    assert policy.default_class == BACKGROUND
    assert policy.guard_executor is not shared
    assert policy.scheduling.shared_executor is (shared and arm.mode == "levels")
    assert policy.scheduling.max_batch_size == 4
    for one in policy.scheduling.classes:
        assert (one.max_queue_size, one.default_timeout) == (0, 0)


@pytest.mark.parametrize("arm", ARMS.values(), ids=ARMS)
def test_all_arms_share_one_executor_but_for_its_levels(arm, tmp_path):
    write_repository(tmp_path, arm, SHAPE, LEVELS)
    config = (tmp_path / EXECUTOR / "config.pbtxt").read_text()
    batching = "dynamic_batching { }" if arm.name in ("flat", "router-plain") else batching_block(2)
    assert batching in config
    other = tmp_path / "other"
    other.mkdir()
    write_repository(other, ARMS["router-plain"], SHAPE, LEVELS)
    assert config.replace(batching, "dynamic_batching { }") == (other / EXECUTOR / "config.pbtxt").read_text()
    assert (tmp_path / "router").exists() is (arm.mode is not None)


def test_every_level_has_a_policy():
    assert batching_block(2) == (
        "dynamic_batching { priority_levels: 2 default_priority_level: 2 "
        "priority_queue_policy [ { key: 1 value { } }, { key: 2 value { } } ] }"
    )


LIMITS: dict[str, dict[str, Any]] = {
    ONLINE: {"max_queue_size": 7},
    BACKGROUND: {"default_timeout_microseconds": 9000, "timeout_action": "DELAY"},
}


@pytest.mark.parametrize(
    ("arm", "levels", "shared"),
    [
        ("levels", ["max_queue_size: 7", "default_timeout_microseconds: 9000 timeout_action: DELAY"], None),
        ("flat-levels", ["max_queue_size: 7", "default_timeout_microseconds: 9000 timeout_action: DELAY"], None),
        ("flat", [], "default_timeout_microseconds: 9000 timeout_action: DELAY"),
        ("router", ["", ""], None),
        ("router-plain", [], None),
    ],
)
def test_limits_hold_on_every_arm_and_are_the_routers_where_there_is_one(arm, levels, shared):
    block = executor_batching(ARMS[arm], LEVELS, LIMITS)
    assert re.findall(r"value {( | [^}]* )}", block) == [f" {words} " if words else " " for words in levels]
    assert ("default_queue_policy" in block) is (shared is not None)
    assert f"default_queue_policy {{ {shared} }}" in block or shared is None
    if mode := ARMS[arm].mode:
        policy = parse_policy(policy_text(mode, EXECUTOR, SHAPE, LEVELS, False, LIMITS))
        online, background = policy.scheduling.classes
        assert (online.max_queue_size, background.default_timeout) == (7, 9_000_000)


def test_an_empty_limit_of_a_flat_executor_is_none():
    assert executor_batching(ARMS["flat"], LEVELS, {ONLINE: {"max_queue_size": 7}}) == "dynamic_batching { }"


def test_who_calls_whom():
    direct = routes(ARMS["levels"], LEVELS)
    assert (direct[ONLINE].model, direct[ONLINE].parameters) == (EXECUTOR, {"priority": 1})
    assert (direct[BACKGROUND].model, direct[BACKGROUND].parameters) == (EXECUTOR, None)
    alike = routes(ARMS["flat"], LEVELS)
    assert {(route.model, route.parameters, route.class_name) for route in alike.values()} == {(EXECUTOR, None, None)}
    routed = routes(ARMS["router"], LEVELS)
    assert {(name, route.model, route.class_name) for name, route in routed.items()} == {
        (ONLINE, "router", ONLINE),
        (BACKGROUND, "router", BACKGROUND),
    }
    lowest = routes(ARMS["flat-levels"], LEVELS)
    assert {(route.model, route.parameters, route.class_name) for route in lowest.values()} == {(EXECUTOR, None, None)}
    one = routes(ARMS["router-one-class"], LEVELS)
    assert {(route.model, route.parameters, route.class_name) for route in one.values()} == {("router", None, None)}
    shared = routes(ARMS["router-plain"], LEVELS, [BACKGROUND])
    assert shared[ONLINE].model == "router"
    assert (shared[BACKGROUND].model, shared[BACKGROUND].parameters) == (EXECUTOR, None)


@pytest.mark.parametrize("name", [name for name in SCENARIOS if name in SIMULATED])
def test_the_simulator_has_the_same_load(name):
    measured, simulated = SCENARIOS[name], SIMULATED[name]
    executor = measured.executor
    for rows in (1, executor.max_batch_size):
        assert simulated.times.expected(rows, now=0) == (executor.batch_us + rows * executor.row_us) * 1_000
    assert (simulated.max_batch_size, simulated.instances) == (executor.max_batch_size, executor.instances)
    assert {load.name: load.rate for load in measured.loads} == {
        ONLINE: simulated.online,
        BACKGROUND: simulated.background,
    }
    assert simulated.shared is (measured.direct == (BACKGROUND,))


def test_many_tenants_share_the_background_and_online_is_as_ever():
    scenario = SCENARIOS["tenants"]
    assert [(load.name, load.of, len(load.tenants)) for load in scenario.loads] == [
        ("online", ONLINE, 0),
        ("light tenants", BACKGROUND, 20),
        ("heavy tenant", BACKGROUND, 1),
    ]
    assert scenario.urgent == "online"
    for mode in ("levels", "plain"):
        text = policy_text(mode, EXECUTOR, scenario.executor, scenario.levels, False, scenario.class_keys)
        assert [one.fair_by.value for one in parse_policy(text).scheduling.classes] == ["none", "tenant"]
