# SPDX-License-Identifier: Apache-2.0
"""Results for people: a table and a verdict on each aim. Law: results in, text out; nothing is measured or printed."""

from __future__ import annotations

import textwrap
from typing import Final

from priority_router.ops.bench import doubts, findings, table
from priority_router.ops.bench.aims import Verdict, limit_text
from priority_router.ops.bench.arms import ARMS
from priority_router.ops.bench.experiment import Results

WIDTH: Final = 110


def as_text(results: Results) -> str:
    """A table of all arms and classes, the aims, and the warnings, for a terminal."""
    scenario = results.scenario
    lines = [f"{scenario.name}: {scenario.meaning}", ""]
    lines += table.lines({name: table.over_rounds(results.summaries(name)) for name in results.arms()})
    lines += ["", f"median (lowest-highest) of {_round_count(results)}; latency from the scheduled time"]
    lines += [f"  {name}: {ARMS[name].meaning}" for name in results.arms()]
    verdicts = results.verdicts()
    if verdicts:
        lines += ["", "aims:", *(f"  {verdict_text(verdict)}" for verdict in verdicts)]
    lines += ["", *(line for text in findings.judge(results).sentences for line in textwrap.wrap(text, WIDTH))]
    lines += [f"warning: {text}" for text in doubts.warnings(results)]
    return "\n".join(lines)


def _round_count(results: Results) -> str:
    count = sum(bool(finished) for finished in results.rounds)
    return f"{count} round{'' if count == 1 else 's'} of {results.scenario.seconds:g} s"


def verdict_text(verdict: Verdict) -> str:
    """One aim in one line."""
    limit = limit_text(verdict.at_most, verdict.limit)
    if verdict.reached is None:
        return f"not measured  {verdict.arm}: {verdict.text}, {limit}"
    word = "met   " if verdict.met else "missed"
    reached = verdict.reached
    spread = "" if reached.low == reached.high else f" ({reached.low:.3g}-{reached.high:.3g})"
    return f"{word}  {verdict.arm}: {verdict.text}: {reached.median:.3g}{spread}, {limit}"
