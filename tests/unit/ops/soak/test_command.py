# SPDX-License-Identifier: Apache-2.0
"""The command line of scripts/soak, and the sections that its results become."""

import sys
from pathlib import Path
from typing import Any

import pytest
from priority_router.ops.soak import __main__ as soak
from priority_router.ops.soak import kinds, mixed, overload, resources
from priority_router.ops.soak.checks import Check
from support.modules import load_module

SCRIPTS = Path(__file__).resolve().parents[4] / "scripts"


@pytest.mark.parametrize("words", [["x"], ["overload", "0"], ["0"], ["1", "2"], ["nan"], ["--mode", "other"]])
def test_wrong_use_is_refused(words, capsys):
    with pytest.raises(SystemExit) as refused:
        soak.main(words)
    assert refused.value.code == 2
    assert "scripts/soak: error: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "minutes", "form"),
    [([], 60, mixed), (["2.5"], 2.5, mixed), (["overload"], 10, overload), (["overload", "1"], 1, overload)],
)
def test_a_run_is_judged_and_written(words, minutes, form, tmp_path, monkeypatch, capsys):
    ran = []

    def run(mode: str, minutes: float, seed: int) -> tuple[dict[str, Any], list[Check]]:
        ran.append((mode, minutes))
        return MEASURED[form], [Check("what is judged", 1.0, 1.0 if mode == "levels" else 0.0)]

    monkeypatch.setattr(
        soak, "_FORMS", {name: soak._Form(run, one.schema, one.minutes) for name, one in soak._FORMS.items()}
    )
    result = tmp_path / "docs" / "results" / f"{NAMES[form]}.json"
    result.parent.mkdir(parents=True)
    assert soak.main([*words, "--json", str(result)]) == 1
    assert ran == [("levels", minutes), ("plain", minutes)]
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["levels:", "ok", "plain:", "FAILED"]
    monkeypatch.syspath_prepend(SCRIPTS)
    for name in ("result_tables", "result_soak"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    sections = load_module("result_soak", SCRIPTS / "result_soak.py")
    monkeypatch.setattr(sys.modules["result_tables"], "RESULTS", result.parent)
    text = sections.section(NAMES[form])
    assert "- levels: 7 requests" in text
    assert "1 of 1 limits kept to" in text
    assert "**missed:** what is judged: 1, at most 0" in text
    assert f"{minutes:g} minutes in each mode" in text
    assert ("| requests/s | 3 | 3 | 3 | 3 |" if form is mixed else "| both ten times | online | 800 | 5 |") in text


NAMES = {mixed: "soak", overload: "soak-overload"}
HELD = dict.fromkeys(resources.FIGURES, 1.0)
BOOKS = {"requests": 7, "ended": {}, "unexpected": {}, "differences": {}, "router": {}}
WINDOW = {
    "requests_per_s": 3.0,
    "rows_per_s": 4.0,
    "classes": {kind.name: {"p50_ms": 1.0, "p99_ms": 2.0} for kind in kinds.KINDS},
    "held": HELD,
}
SEEN = {"refused": 5, "p50_ms": 1.0, "p99_ms": None, "longest_ms": 1.0, "refused_p99_ms": 1.0}
PHASE = {"classes": {"online": SEEN, "background": SEEN}, "first": HELD, "last": HELD}
MEASURED: dict[Any, dict[str, Any]] = {
    mixed: {"triton": "2", "books": BOOKS, "first": WINDOW, "last": WINDOW},
    overload: {
        "triton": "2",
        "books": BOOKS,
        "phases": {
            phase.name: {**PHASE, "online": phase.online, "background": phase.background} for phase in overload.PHASES
        },
    },
}
