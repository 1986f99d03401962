# SPDX-License-Identifier: Apache-2.0
"""scripts/agreement.py from end to end, in small: the same arrivals on both, judged by the books, not by the times."""

import json
from pathlib import Path

import pytest
from support.modules import load_module

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "agreement.py"


@pytest.mark.slow
def test_server_and_simulator_get_the_same_requests(tmp_path):
    target = tmp_path / "agreement.json"
    words = ["overload", "--rounds", "1", "--seconds", "2", "--warmup", "1", "--record", "4", "--json", str(target)]
    agreement = load_module("agreement", SCRIPT)
    assert agreement.main(words) in (0, 1)
    document = json.loads(target.read_text())
    [(name, load)] = document["loads"].items()
    assert name == "overload"
    assert set(load["differences"]) == {"online", "background"}
    [arms] = load["rounds"]
    assert set(arms) == {"server", *(f"simulator {draw}" for draw in range(agreement.DRAWS))}
    for class_name in ("online", "background"):
        totals = {sum(summary["classes"][class_name]["outcomes"].values()) for summary in arms.values()}
        assert len(totals) == 1
