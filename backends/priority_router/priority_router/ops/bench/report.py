# SPDX-License-Identifier: Apache-2.0
"""Results for people: a table and a verdict on each aim. Law: results in, text out; nothing is measured or printed."""

from __future__ import annotations

import textwrap
from typing import Final

import numpy as np

from priority_router.ops.bench import doubts, findings, oracle, table
from priority_router.ops.bench.aims import Verdict, limit_text
from priority_router.ops.bench.arms import ARMS
from priority_router.ops.bench.client_rate import processes_text
from priority_router.ops.bench.experiment import Results

WIDTH: Final = 110


def as_text(results: Results) -> str:
    """A table of all arms and classes, the aims, and the warnings, for a terminal."""
    scenario = results.scenario
    lines = [f"{scenario.name}: {scenario.meaning}", ""]
    ideal = oracle.table_rows(results.ideals)
    lines += table.lines({name: table.over_rounds(results.summaries(name)) for name in results.arms()} | ideal)
    lines += ["", f"median (lowest-highest) of {_round_count(results)}; latency from the scheduled time"]
    lines += [f"  {name}: {ARMS[name].meaning}" for name in results.arms()]
    lines += [f"  {name}: {oracle.MEANING}" for name in ideal]
    lines += _goodput(results)
    lines += [_client(results)] if results.arms() else []
    verdicts = results.verdicts()
    if verdicts:
        lines += ["", "aims:", *(f"  {verdict_text(verdict)}" for verdict in verdicts)]
    lines += ["", *(line for text in findings.judge(results).sentences for line in textwrap.wrap(text, WIDTH))]
    lines += [f"warning: {text}" for text in doubts.warnings(results)]
    return "\n".join(lines)


def _goodput(results: Results) -> list[str]:
    """Of each load with a target the share that was answered in time, by arm."""
    lines = []
    for name, target in results.scenario.targets.items():
        if target is None or results.scenario.in_flight:
            continue
        shares = []
        for arm in results.arms():
            requests = [finished[arm][name] for finished in results.requests if arm in finished]
            latencies = np.concatenate([one.latency_ms for one in requests])
            shares.append(f"{arm} {np.mean(latencies <= target):.0%}" if len(latencies) else f"{arm} -")
        lines.append(f"{name} within {target:g} ms: {', '.join(shares)}")
    return ["", *lines] if lines else []


def _client(results: Results) -> str:
    """What the load generator used, at most on any arm."""
    summaries = [one for arm in results.arms() for one in results.summaries(arm)]
    processes = max(one.processes for one in summaries)
    cpu = max(one.client_cpu for one in summaries)
    late = max(one.late_p99_ms for one in summaries)
    used = f"client: {processes_text(processes)}, {cpu:.0%} of a core at most, late by {late:.1f} ms at most (p99)"
    return f"{used}\n  {results.client.words()}" if results.client else used


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
