# SPDX-License-Identifier: Apache-2.0
"""scripts/soak and scripts/soak overload from end to end, in small: judged by the books, and memory with wide slack."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from priority_router.ops.soak import __main__ as soak
from priority_router.ops.soak import overload, resources
from priority_router.ops.soak.kinds import KINDS

GROWN_MIB = 160.0
"""What a server may hold more of at the end: a leak of a request's tensors would take more, even of so few."""

MORE = 80.0


def run(folder: Path, mode: str, *words: str) -> Any:
    result = folder / "soak.json"
    assert soak.main([*words, "--mode", mode, "--json", str(result)]) in (0, 1)
    found = json.loads(result.read_text())["modes"][mode]
    assert (found["books"]["differences"], found["books"]["unexpected"]) == ({}, {}), found["failures"]
    assert found["unaccounted"] == 0
    return found


def assert_flat(first: dict[str, float], last: dict[str, float], but: str = "") -> None:
    assert list(first) == list(last) == list(resources.FIGURES)
    for name, before in first.items():
        assert name == but or last[name] <= before + (GROWN_MIB if name.endswith("MiB") else MORE), (
            name,
            before,
            last[name],
        )


@pytest.mark.slow
def test_a_short_soak_balances(tmp_path: Path) -> None:
    found = run(tmp_path, "levels", "0.4")
    assert_flat(found["first"]["held"], found["last"]["held"])
    ended = found["books"]["ended"]
    assert set(ended) == {kind.name for kind in KINDS}
    assert {"timeout", "success"} & set(ended["hasty"])
    for kind, outcome in (("online", "success"), ("split", "success"), ("narrow", "queue_full"), ("failing", "other")):
        assert ended[kind][outcome] > 0
    assert ended["impatient"]["cancelled"] > 0
    assert found["last"]["rows_per_s"] > 0


@pytest.mark.slow
def test_a_short_overload_balances(tmp_path: Path) -> None:
    found = run(tmp_path, "plain", "overload", "0.4")
    _, background, both = (found["phases"][phase.name] for phase in overload.PHASES)
    online, other = (background["classes"][name] for name in ("online", "background"))
    assert online["answered"] / online["requests"] > other["answered"] / other["requests"]
    assert other["refused"] > 0
    assert both["classes"]["online"]["refused"] > 0
    for phase in (background, both):
        assert_flat(phase["first"], phase["last"], but=resources.SOCKETS)
    longest = overload.longest_batches() * both["batch_ms"]
    assert both["classes"]["online"]["longest_ms"] <= 10 * longest
