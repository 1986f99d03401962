# SPDX-License-Identifier: Apache-2.0
"""What stands in the documents' marked sections, made from the files in docs/results. Law: files in, Markdown out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from priority_router.errors import PriorityRouterError
from priority_router.ops import result_file
from priority_router.ops.bench import document as bench_document
from priority_router.ops.bench.scenarios import SCENARIOS
from priority_router.ops.bench.table import cell, short
from priority_router.ops.demo import record
from priority_router.ops.loads import BACKGROUND, ONLINE
from priority_router.ops.simulate import comparison

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results"
DEFINITION = ("executor", "loads", "in_flight", "direct")
"""What a measured scenario must have in common with the scenario as it is now; aims are those of the measurement."""

OLD_SCHEMA: Final = "priority-router-bench/1"
"""Of results that the benchmark wrote in a form with fewer numbers."""

NEW_ARMS: Final = ("flat", "router-one-class")
"""Arms that those results could not have."""

OWN_MODEL: Final = "file-type-"
"""What scripts/bench calls the scenarios in which the executor is that of model_repository."""

HOOK_COLUMNS: Final = {
    "idle_cpu_percent": "idle",
    "backlog_of_1_cpu_percent": "backlog, one model",
    "backlog_of_3_cpu_percent": "backlog, three models",
    "overload_cpu_percent": "overload",
    "overload_waits_cut_per_second": "waits cut per second in overload",
}

Document = Mapping[str, Any]


class ResultsError(PriorityRouterError):
    """A section, a sentence or a result file cannot be used."""


def read(name: str, command: str, *schemas: str) -> Document:
    """A result file, which ``command`` writes, in one of the forms that can be read."""
    path = RESULTS / name
    try:
        document: Document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ResultsError(f"{path.relative_to(ROOT)} is missing; run {command}") from None
    except ValueError as error:
        raise ResultsError(f"{path.relative_to(ROOT)} is not JSON ({error}); run {command}") from error
    if document.get("schema") not in schemas or document.get("interrupted"):
        raise ResultsError(f"{path.relative_to(ROOT)} is not a complete result of this version; run {command}")
    return document


def load(name: str) -> Document:
    """The result file of a scenario."""
    file, command = f"bench-{name}.json", "scripts/bench"
    found = read(file, command, bench_document.SCHEMA, OLD_SCHEMA)
    now = json.loads(json.dumps(asdict(SCENARIOS[name])))
    changed = [key for key in DEFINITION if not _same(found["scenario"][key], now[key], is_old(found))]
    if changed:
        raise ResultsError(f"{file} was measured when the scenario had other {', '.join(changed)}; run {command}")
    return found


def measured(executor: str = "") -> list[str]:
    """The scenarios that have a result file, with their own executor or with one named so in scripts/bench."""
    return [name for name in SCENARIOS if (RESULTS / f"bench-{executor}{name}.json").is_file()]


def is_old(found: Document) -> bool:
    """Whether a result file has the form of before."""
    return bool(found["schema"] == OLD_SCHEMA)


def _same(then: Any, now: Any, old: bool) -> bool:
    """Whether a part of a scenario is as it was; what the old form did not have is no difference."""
    if old and isinstance(then, list) and len(then) == len(now):
        return all(_same(*both, old) for both in zip(then, now, strict=True))
    if old and isinstance(then, dict):
        return all(key in now and _same(value, now[key], old) for key, value in then.items())
    return bool(then == now)


def own_model(name: str) -> Document:
    """What the benchmark said of a scenario with the file-type model for its executor."""
    return read(f"bench-{OWN_MODEL}{name}.json", "scripts/bench", bench_document.SCHEMA)


def overhead_parts() -> Document:
    """What scripts/measure_overhead.py wrote."""
    return read("overhead-parts.json", "scripts/measure_overhead.py", result_file.OVERHEAD_SCHEMA)


def ensemble() -> Document:
    """What scripts/measure_ensemble.py wrote."""
    return read("ensemble.json", "scripts/measure_ensemble.py", result_file.ENSEMBLE_SCHEMA)


def hooks() -> Document:
    """What scripts/measure_hooks.py wrote."""
    return read("hooks.json", "scripts/measure_hooks.py", result_file.HOOKS_SCHEMA)


def lateness() -> Document:
    """What scripts/measure_lateness.py wrote."""
    return read("lateness.json", "scripts/measure_lateness.py", result_file.LATENESS_SCHEMA)


def simulated() -> Document:
    """What scripts/judge wrote."""
    return read("simulated.json", "scripts/judge", comparison.SCHEMA)


def demo() -> Document:
    """What scripts/demo wrote."""
    return read("demo.json", "scripts/demo --json docs/results/demo.json", record.SCHEMA)


def table(head: list[str], rows: list[list[str]]) -> Iterator[str]:
    """A Markdown table."""
    yield f"| {' | '.join(head)} |"
    yield f"|{' --- |' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def simulated_section() -> Iterator[str]:
    """Every scenario and arm of the simulator."""
    document = simulated()
    rows = []
    for name, arms in document["scenarios"].items():
        for position, (arm, numbers) in enumerate(arms.items()):
            latencies = (short(numbers[key]) for key in ("online_p50", "online_p95", "online_p99"))
            busy, rows_per_s = f"{numbers['busy'] * 100:.1f}", short(numbers["rows_per_s"])
            rows.append([name if position == 0 else "", arm, *latencies, rows_per_s, busy])
    yield from table(["scenario", "arm", "online p50 ms", "p95 ms", "p99 ms", "rows/s", "busy %"], rows)
    yield ""
    yield (
        f"Means of {len(document['seeds'])} seeds, {document['seconds']:g} virtual seconds each, the first "
        f"{document['warmup_seconds']:g} not counted. `scripts/judge`"
    )


def ensemble_section() -> Iterator[str]:
    """The ensemble beside the router alone, its outer steps, and what whole files cost."""
    document = ensemble()
    measured, share = document["measured"], document["load"]
    rows = []
    for arm in ("router", "ensemble"):
        online, background = measured[arm]["classes"][ONLINE], measured[arm]["classes"][BACKGROUND]
        latencies = (cell(online[quantile]) for quantile in ("p50_ms", "p95_ms", "p99_ms"))
        rows.append([arm, *latencies, cell(background["rows_per_s"]), cell(measured[arm]["busy"], 100)])
    yield from table(["", "online p50 ms", "p95 ms", "p99 ms", "background rows/s", "busy %"], rows)
    yield ""
    columns = ("queue_ms", "compute_ms", "rows_per_execution", "busy_percent")
    rows = [
        [f"`{step}`", *(cell(use[column]) for column in columns), cell(measured["alone_rows_per_s"][step])]
        for step, use in measured["steps"].items()
    ]
    yield from table(["step", "queue ms", "compute ms", "rows per execution", "busy %", "rows/s alone"], rows)
    yield ""
    sizes = ", ".join(f"{size} {cell(time)}" for size, time in measured["whole_file_ms"].items())
    yield f"One request at a time, ms by the size of its file: {sizes}."
    yield ""
    yield (
        f"Medians of {document['rounds']} rounds (lowest-highest), {document['seconds']:g} s per arm and round, "
        f"{document['cores']} cores. Online {share['online']:g} and background {share['background']:g} times the "
        f"router's capacity of {cell(measured['capacity_rows_per_s'])} rows/s. `scripts/measure_ensemble.py`"
    )


def hooks_section() -> Iterator[str]:
    """What prompt dispatch costs, by setting; the router's has no figures at rest."""
    document = hooks()
    rows = [
        [name, *(f"{figures[key]['median']:g}" if key in figures else "" for key in HOOK_COLUMNS)]
        for name, figures in document["settings"].items()
    ]
    yield from table(["", *HOOK_COLUMNS.values()], rows)
    yield ""
    yield (
        f"CPU of the server process in percent of one core, medians of {document['rounds']} runs of "
        f"{document['seconds']:g} s, {document['cores']} cores ([with the spread](results/hooks.json)). "
        "`scripts/measure_hooks.py`"
    )


def demo_section() -> Iterator[str]:
    """What a run of the demonstration prints."""
    yield from ("```console", "$ scripts/demo", record.from_json(demo()).printed(), "```")


SECTIONS: Final[Mapping[str, Callable[[], Iterator[str]]]] = {
    "simulated": simulated_section,
    "ensemble": ensemble_section,
    "hooks": hooks_section,
    "demo": demo_section,
}


def section(name: str) -> str:
    """The text of one section."""
    if name in SECTIONS:
        return "\n".join(SECTIONS[name]()) + "\n"
    raise ResultsError(f"there is no section {name!r}")
