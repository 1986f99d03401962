# SPDX-License-Identifier: Apache-2.0
"""Result files of the benchmark, and documents with a place for their numbers."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from priority_router.ops.bench import document as bench_document
from priority_router.ops.bench.scenarios import SCENARIOS


def spread(median: float, low: float | None = None, high: float | None = None) -> dict[str, float]:
    """A number of several rounds."""
    return {"median": median, "low": median if low is None else low, "high": median if high is None else high}


def write_result(
    root: Path, name: str, p50: float = 80.0, run: Mapping[str, Any] | None = None, **changes: Any
) -> None:
    """Writes what the benchmark might have said of a scenario."""
    one = {
        "outcomes": {"success": 90, "queue_full": 1, "timeout": 0, "cancelled": 0, "other": 2, "unanswered": 7},
        "rows_per_s": spread(16.0),
        "latency": {key: spread(p50, p50 - 1, p50 + 1) for key in ("p50_ms", "p95_ms", "p99_ms", "max_ms")},
    }
    document = {
        "schema": bench_document.SCHEMA,
        "interrupted": False,
        "command": ["priority-router", "bench", name],
        "versions": {"triton": "2.51.0"},
        "cores": 2,
        "seed": 1,
        "scenario": {**asdict(SCENARIOS[name]), **(run or {})},
        "rounds": [{}, {}, {}],
        "arms": {"router": {"classes": {"online": one, "background": one}, "busy": spread(0.98)}},
        "aims": [
            {"text": "busy", "arm": "router", "at_most": False, "limit": 0.96, "reached": spread(0.5), "met": False},
            {"text": "p50", "arm": "router", "at_most": True, "limit": 1.1, "reached": None, "met": None},
        ],
        "warnings": [],
        **changes,
    }
    (root / "docs" / "results" / f"bench-{name}.json").write_text(json.dumps(document))


def document_with(root: Path, name: str, inside: str = "old\n") -> Path:
    """Writes docs/performance.md with one section."""
    path = root / "docs" / "performance.md"
    path.write_text(f"before\n\n<!-- results: {name} -->\n{inside}<!-- end of results -->\n\nafter\n")
    return path
