# SPDX-License-Identifier: Apache-2.0
"""The result file: everything about a run as plain values of JSON, in the form of docs/bench.schema.json.

Law: results in, values out.
"""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

import numpy as np

from priority_router import __version__
from priority_router.ops.bench import details, doubts, findings, oracle, paired, table
from priority_router.ops.bench.arms import ARMS
from priority_router.ops.bench.experiment import Results
from priority_router.ops.bench.stats import RoundSummary
from priority_router.ops.bench.wire import Outcome

SCHEMA: Final = "priority-router-bench/2"
"""Changes with every change that a reader of the old form would stumble over."""


def as_json(results: Results, command: Sequence[str]) -> dict[str, Any]:
    """Everything about a run, for a file.

    Args:
        results: the run.
        command: the words that started it.
    """
    scenario, found = results.scenario, findings.judge(results)
    return {
        "schema": SCHEMA,
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": list(command),
        "versions": {
            "priority_router": __version__,
            "triton": results.triton,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "linux": os.uname().release,
        },
        "cores": len(os.sched_getaffinity(0)),
        "server": {"kind": "url" if results.url else "embedded", "url": results.url or None},
        "seed": results.seed,
        "interrupted": results.interrupted,
        "scenario": {**asdict(scenario), "floor_ms": scenario.executor.floor_ms},
        "outcomes": [outcome.label for outcome in Outcome],
        "edges_ms": list(details.EDGES_MS),
        "rounds": [
            {name: _round(summary, told[name]) for name, summary in finished.items()}
            for finished, told in zip(results.rounds, results.details, strict=True)
        ],
        "arms": {name: _arm(results, name) for name in results.arms()},
        "client": None if results.client is None else results.client.as_json(_client_cpu(results)),
        "oracle": oracle.as_json(results.rounds, results.ideals),
        "dropped": dict(results.dropped),
        "aims": [asdict(verdict) for verdict in results.verdicts()],
        "verdict": {"sentences": list(found.sentences), "compared": [one.as_json() for one in found.compared]},
        "warnings": doubts.warnings(results),
    }


def _client_cpu(results: Results) -> float | None:
    """Cores that the client used at most."""
    return max((one.client_cpu for arm in results.arms() for one in results.summaries(arm)), default=None)


def _round(summary: RoundSummary, told: Mapping[str, Any]) -> dict[str, Any]:
    """One round on one arm: its summary, and in each class what `details` tells of it."""
    values = asdict(summary)
    classes = {name: {**one, **told["classes"][name]} for name, one in values["classes"].items()}
    return {**values, **told, "classes": classes}


def _arm(results: Results, arm: str) -> dict[str, Any]:
    """One arm over its rounds: spreads of the rounds' numbers, and numbers of all rounds' requests together."""
    summary = table.over_rounds(results.summaries(arm))
    for name, one in summary["classes"].items():
        rounds = [finished[arm][name] for finished in results.requests if arm in finished]
        one["goodput"] = details.goodput(rounds, results.scenario.targets.get(name))
        one["rows_per_s_interval"] = details.ends(paired.rows_per_s(rounds))
        one["pooled"] = {
            f"{key}_ms": {"value": details.rounded(found.value), **details.ends(found)}
            for key, found in paired.latency(rounds).items()
        }
    return {"meaning": ARMS[arm].meaning, **summary}
