#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes numbers from docs/results/bench-*.json, simulated.json and ensemble.json into the documents' marked sections.

A section stands between ``<!-- results: NAME -->`` and ``<!-- end of results -->`` in README.md or docs/*.md; NAME is a
scenario (its table), ``aims`` (all aims, reached or not), ``summary`` (one line per scenario and arm), ``modes`` (the
router's two modes, beside each other), ``simulated`` (the scheduling rules on a virtual clock) or ``ensemble`` (the
steps around the router).

usage: scripts/results.py [--check]   with --check nothing is written; exit status 1 when a section is not in step
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results"
SCENARIOS = ("overload", "linear", "fast", "shared", "overhead")
SCHEMA = "priority-router-bench/1"
SIMULATED_SCHEMA = "priority-router-simulated/1"
ENSEMBLE_SCHEMA = "priority-router-ensemble/1"
SECTION = re.compile(r"(<!-- results: (?P<name>[\w-]+) -->\n).*?(<!-- end of results -->)", re.DOTALL)
OPENING = re.compile(r"<!-- results: ")

Document = Mapping[str, Any]
Spread = Mapping[str, float] | None


class ResultsError(Exception):
    """A section or a result file cannot be used."""


def read(name: str, command: str, schema: str) -> Document:
    """A result file, which ``command`` writes."""
    path = RESULTS / name
    try:
        document: Document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ResultsError(f"{path.relative_to(ROOT)} is missing; run {command}") from None
    if document["schema"] != schema or document.get("interrupted"):
        raise ResultsError(f"{path.relative_to(ROOT)} is not a complete result of this version; run {command}")
    return document


def load(name: str) -> Document:
    """The result file of a scenario."""
    return read(f"bench-{name}.json", "scripts/bench", SCHEMA)


def number(spread: Spread, scale: float = 1.0) -> str:
    """Median and, where it differs, lowest and highest."""
    if spread is None:
        return "-"
    median, low, high = (short(spread[key] * scale) for key in ("median", "low", "high"))
    return median if low == high else f"{median} ({low}-{high})"


def short(value: float) -> str:
    """Three digits, and all of those before the point."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def table(head: list[str], rows: list[list[str]]) -> Iterator[str]:
    """A Markdown table."""
    yield f"| {' | '.join(head)} |"
    yield f"|{' --- |' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def scenario_section(document: Document) -> Iterator[str]:
    """Every arm and class of a scenario."""
    rows = []
    for arm, numbers in document["arms"].items():
        for position, (class_name, one) in enumerate(numbers["classes"].items()):
            outcomes = one["outcomes"]
            refused = sum(outcomes.values()) - outcomes["success"] - outcomes["unanswered"]
            rows.append(
                [
                    arm if position == 0 else "",
                    class_name,
                    f"{outcomes['success']} / {refused} / {outcomes['unanswered']}",
                    number(one["rows_per_s"]),
                    *(number(one["latency"][name]) for name in ("p50_ms", "p95_ms", "p99_ms", "max_ms")),
                    number(numbers["busy"], 100) if position == 0 else "",
                ]
            )
    head = ["arm", "class", "answered / refused / unanswered", "rows/s"]
    yield from table([*head, "p50 ms", "p95 ms", "p99 ms", "max ms", "busy %"], rows)
    yield ""
    yield conditions(document)


def conditions(document: Document) -> str:
    """What a table's numbers are, in one paragraph."""
    scenario = document["scenario"]
    each = "step, arm and round" if scenario["in_flight"] else "arm and round"
    versions = document["versions"]
    return (
        f"Medians of {len(document['rounds'])} rounds (lowest-highest), {scenario['seconds']:g} s per {each} after "
        f"{scenario['warmup_seconds']:g} s of warm-up, {document['cores']} cores, Triton {versions['triton']}, "
        f"seed {document['seed']}. `{' '.join(document['command'])}`"
    )


def aims_section() -> Iterator[str]:
    """All aims of all scenarios, in both modes."""
    rows = []
    for name in SCENARIOS:
        for aim in load(name)["aims"]:
            rows.append(
                [
                    name,
                    aim["text"],
                    aim["arm"],
                    f"at {'most' if aim['at_most'] else 'least'} {aim['limit']:g}",
                    number(aim["reached"]),
                    {True: "met", False: "**missed**", None: "not measured"}[aim["met"]],
                ]
            )
    yield from table(["scenario", "what", "arm", "aim", "reached", ""], rows)


def summary_section() -> Iterator[str]:
    """Online latency, rows/s and busy share of every open-loop scenario and arm."""
    rows = []
    for name in SCENARIOS:
        document = load(name)
        if document["scenario"]["in_flight"]:
            continue
        for position, (arm, numbers) in enumerate(document["arms"].items()):
            online, background = numbers["classes"]["online"], numbers["classes"]["background"]
            rows.append(
                [
                    name if position == 0 else "",
                    arm,
                    *(number(online["latency"][quantile]) for quantile in ("p50_ms", "p99_ms")),
                    number(background["rows_per_s"]),
                    number(numbers["busy"], 100),
                ]
            )
    yield from table(["scenario", "arm", "online p50 ms", "online p99 ms", "background rows/s", "busy %"], rows)


def modes_section() -> Iterator[str]:
    """The router in levels and in plain mode, for every open-loop scenario."""
    rows = []
    for name in SCENARIOS:
        document = load(name)
        if document["scenario"]["in_flight"]:
            continue
        modes = [document["arms"][arm]["classes"] for arm in ("router", "router-plain")]
        latencies = (number(mode["online"]["latency"][key]) for key in ("p50_ms", "p99_ms") for mode in modes)
        rows.append([name, *latencies, *(number(mode["background"]["rows_per_s"]) for mode in modes)])
    figures = ("online p50 ms", "online p99 ms", "background rows/s")
    yield from table(["scenario", *(f"{figure}, {mode}" for figure in figures for mode in ("levels", "plain"))], rows)


def simulated_section() -> Iterator[str]:
    """Every scenario and arm of the simulator."""
    document = read("simulated.json", "scripts/judge", SIMULATED_SCHEMA)
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
    document = read("ensemble.json", "scripts/measure_ensemble.py", ENSEMBLE_SCHEMA)
    measured, share = document["measured"], document["load"]
    rows = []
    for arm in ("router", "ensemble"):
        online, background = measured[arm]["classes"]["online"], measured[arm]["classes"]["background"]
        latencies = (number(online[quantile]) for quantile in ("p50_ms", "p95_ms", "p99_ms"))
        rows.append([arm, *latencies, number(background["rows_per_s"]), number(measured[arm]["busy"], 100)])
    yield from table(["", "online p50 ms", "p95 ms", "p99 ms", "background rows/s", "busy %"], rows)
    yield ""
    columns = ("queue_ms", "compute_ms", "rows_per_execution", "busy_percent")
    rows = [
        [f"`{step}`", *(number(use[column]) for column in columns), number(measured["alone_rows_per_s"][step])]
        for step, use in measured["steps"].items()
    ]
    yield from table(["step", "queue ms", "compute ms", "rows per execution", "busy %", "rows/s alone"], rows)
    yield ""
    sizes = ", ".join(f"{size} {number(time)}" for size, time in measured["whole_file_ms"].items())
    yield f"One request at a time, ms by the size of its file: {sizes}."
    yield ""
    yield (
        f"Medians of {document['rounds']} rounds (lowest-highest), {document['seconds']:g} s per arm and round, "
        f"{document['cores']} cores. Online {share['online']:g} and background {share['background']:g} times the "
        f"router's capacity of {number(measured['capacity_rows_per_s'])} rows/s. `scripts/measure_ensemble.py`"
    )


def section(name: str) -> str:
    """The text of one section."""
    made: dict[str, Callable[[], Iterator[str]]] = {
        "aims": aims_section,
        "summary": summary_section,
        "modes": modes_section,
        "simulated": simulated_section,
        "ensemble": ensemble_section,
    }
    if name in made:
        return "\n".join(made[name]()) + "\n"
    if name in SCENARIOS:
        return "\n".join(scenario_section(load(name))) + "\n"
    raise ResultsError(f"no section {name!r}; there are {', '.join((*SCENARIOS, *made))}")


def refreshed(text: str) -> str:
    """A document with its sections made anew."""
    if len(OPENING.findall(text)) != len(SECTION.findall(text)):
        raise ResultsError("a section has no end, or an odd name")
    return SECTION.sub(lambda found: found[1] + section(found["name"]) + found[3], text)


def main(words: list[str]) -> int:
    """Runs the script; returns the exit status."""
    if words not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    stale = []
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        if not path.is_file():
            continue
        before = path.read_text(encoding="utf-8")
        try:
            after = refreshed(before)
        except ResultsError as error:
            print(f"results: {path.relative_to(ROOT)}: {error}", file=sys.stderr)
            return 1
        if after != before:
            stale.append(str(path.relative_to(ROOT)))
            if not words:
                path.write_text(after, encoding="utf-8")
    if words and stale:
        print(
            f"results: numbers not those of docs/results: {', '.join(stale)}; run scripts/results.py", file=sys.stderr
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
