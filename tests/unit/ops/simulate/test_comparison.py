# SPDX-License-Identifier: Apache-2.0
import json

import pytest
from priority_router.core.scheduler import Scheduler
from priority_router.core.values import SECOND
from priority_router.ops.simulate.__main__ import main
from priority_router.ops.simulate.comparison import ORACLE, SCHEDULERS, compare, ideal, simulate
from priority_router.ops.simulate.scenarios import SCENARIOS


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_asks_for_more_than_the_executor_can_do(name):
    scenario = SCENARIOS[name]
    rows = scenario.max_batch_size
    capacity = scenario.instances * rows * SECOND / scenario.times.expected(rows, scenario.times.period // 4)
    assert scenario.online + scenario.background > capacity
    assert scenario.online < capacity / 2


def test_nobody_beats_the_oracle_for_the_urgent():
    arms = compare(SCENARIOS["overload"], seeds=[1], duration=30 * SECOND)
    assert set(arms) == {ORACLE, *SCHEDULERS}
    for numbers in arms.values():
        assert numbers.online_p50 > 0.98 * arms[ORACLE].online_p50  # the same executor, other draws of its jitter
        assert numbers.online_p50 <= numbers.online_p95 <= numbers.online_p99
        assert 0.9 < numbers.busy <= 1
        assert numbers.rows_per_s <= 4 * 20.2


def test_work_that_others_send_takes_the_executor_too():
    scenario = SCENARIOS["shared"]
    numbers = simulate(scenario, Scheduler, seed=1, duration=30 * SECOND)
    assert numbers.rows_per_s > 70
    assert numbers.background_p50 == 0
    assert ideal(scenario, seed=1, duration=30 * SECOND).background_p50 > 0


def test_the_command_prints_a_table_and_writes_the_numbers(tmp_path, capsys):
    path = tmp_path / "simulated.json"
    assert main(["overload", "--seconds", "15", "--seeds", "2", "--json", str(path)]) == 0
    document = json.loads(path.read_text())
    assert document["seeds"] == [1, 2]
    assert document["seconds"] == 15
    assert list(document["scenarios"]) == ["overload"]
    router = document["scenarios"]["overload"]["router"]
    assert 70 < router["online_p50"] < 90
    printed = capsys.readouterr().out
    assert f"{router['online_p50']:.1f}" in printed
    assert all(arm in printed for arm in (ORACLE, *SCHEDULERS))


@pytest.mark.parametrize(
    ("words", "reason"), [(["nonsense"], "no scenario 'nonsense'"), (["--seconds", "9"], "of at least 10")]
)
def test_wrong_use_is_told(words, reason, capsys):
    with pytest.raises(SystemExit) as stop:
        main(words)
    assert stop.value.code == 2
    assert reason in capsys.readouterr().err
