# SPDX-License-Identifier: Apache-2.0
"""What stands in the documents of the benchmark's scenarios, and of where the time of a routed request goes.

Law: files of docs/results in, Markdown out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from priority_router.ops.bench.aims import ORACLE, limit_text
from priority_router.ops.bench.scenarios import SCENARIOS, shortened
from priority_router.ops.bench.stats import QUANTILES, errors_among
from priority_router.ops.bench.table import cell, short
from priority_router.ops.bench.wire import Outcome
from priority_router.ops.loads import BACKGROUND, ONLINE
from result_tables import (
    NEW_ARMS,
    OWN_MODEL,
    Document,
    is_old,
    load,
    measured,
    overhead_parts,
    own_model,
    table,
)

NOBODY: Final = {"rows_per_s": None}
"""In place of a class that a scenario does not have."""

PARTS: Final = {
    "rate": "requests/s",
    "of_direct": "of direct",
    "p50_ms": "p50 ms",
    "added_p50_ms": "added p50 ms",
    "server_us": "us of the server",
    "model_us": "us of the model",
    "switches": "thread switches",
}
"""Columns of where the time of a routed request goes."""


def scenario_section(document: Document) -> Iterator[str]:
    """Every arm and class of a scenario, and the oracle."""
    rows = []
    for arm, numbers in with_oracle(document).items():
        for position, (class_name, one) in enumerate(numbers["classes"].items()):
            outcomes = one["outcomes"]
            ended = (outcomes[Outcome.SUCCESS.label], errors_among(outcomes), outcomes[Outcome.UNANSWERED.label])
            rows.append(
                [
                    arm if position == 0 else "",
                    class_name,
                    " / ".join(map(str, ended)),
                    cell(one["rows_per_s"]),
                    *(cell(one["latency"][name]) for name in QUANTILES),
                    cell(numbers["busy"], 100) if position == 0 else "",
                ]
            )
    head = ["arm", "class", "answered / refused / unanswered", "rows/s"]
    yield from table([*head, *(name.replace("_", " ") for name in QUANTILES), "busy %"], rows)
    yield ""
    yield conditions(document)
    yield from notes([document])


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


def notes(documents: list[Document]) -> Iterator[str]:
    """What a reader must know before believing the numbers above, each once; nothing where there is nothing."""
    found = []
    for document in documents:
        doubts = dict.fromkeys(filter(None, (left_out(document), *document["warnings"])))
        found += [f"- `{document['scenario']['name']}`: {doubt}" for doubt in doubts]
    if found:
        yield from ("", "Beware:", "", *found)


def left_out(document: Document) -> str:
    """What of its scenario a run left out, in words; empty where nothing."""
    return shortened(document["scenario"], NEW_ARMS if is_old(document) else ())


def aims_section() -> Iterator[str]:
    """All aims of all scenarios, in both modes."""
    rows = []
    documents = {name: load(name) for name in measured()}
    for name, document in documents.items():
        for aim in document["aims"]:
            rows.append(
                [
                    name,
                    aim["text"],
                    aim["arm"],
                    limit_text(aim["at_most"], aim["limit"]),
                    cell(aim["reached"]),
                    {True: "met", False: "**missed**", None: "not measured"}[aim["met"]],
                ]
            )
    yield from table(["scenario", "what", "arm", "aim", "reached", ""], rows)
    yield from notes(list(documents.values()))


def summary_section() -> Iterator[str]:
    """Online latency, rows/s and busy share of every open-loop scenario and arm."""
    documents = {name: load(name) for name in measured() if not SCENARIOS[name].in_flight}
    yield from by_arm({name: (document, document["arms"]) for name, document in documents.items()}, ("p50", "p99"))


def by_arm(scenarios: Mapping[str, tuple[Document, Mapping[str, Any]]], quantiles: Sequence[str]) -> Iterator[str]:
    """Some arms of each scenario, one below the other, and what is to be known of them."""
    rows = []
    for name, (_, arms) in scenarios.items():
        for position, (arm, numbers) in enumerate(arms.items()):
            online, background = numbers["classes"][ONLINE], numbers["classes"].get(BACKGROUND, NOBODY)
            rows.append(
                [
                    name if position == 0 else "",
                    arm,
                    *(cell(online["latency"][f"{quantile}_ms"]) for quantile in quantiles),
                    cell(background["rows_per_s"]),
                    cell(numbers["busy"], 100),
                ]
            )
    latencies = (f"online {quantile} ms" for quantile in quantiles)
    yield from table(["scenario", "arm", *latencies, "background rows/s", "busy %"], rows)
    yield from notes([document for document, _ in scenarios.values()])


def beside_section() -> Iterator[str]:
    """Where online requests are faster through the router than at stock Triton with the hook, and where slower."""
    documents = {name: load(name) for name in measured() if not SCENARIOS[name].in_flight}
    faster: list[str] = []
    slower: list[str] = []
    for name, document in documents.items():
        online = [document["arms"][arm]["classes"][ONLINE] for arm in ("router", "levels+hooks")]
        router, hooked = (one["latency"]["p50_ms"]["median"] for one in online)
        compared = f"`{name}` ({short(router)} instead of {short(hooked)} ms)"
        (faster if router < hooked else slower).append(compared)
    parts = [f"{how} in {', '.join(found)}" for how, found in (("lower", faster), ("higher", slower)) if found]
    yield f"The router's online p50 beside that of `levels+hooks`: {'; '.join(parts)}."
    yield from notes(list(documents.values()))


def modes_section() -> Iterator[str]:
    """The router in levels and in plain mode, for every open-loop scenario."""
    rows = []
    documents = {name: load(name) for name in measured() if not SCENARIOS[name].in_flight}
    for name, document in documents.items():
        modes = [document["arms"][arm]["classes"] for arm in ("router", "router-plain")]
        latencies = (cell(mode[ONLINE]["latency"][key]) for key in ("p50_ms", "p99_ms") for mode in modes)
        rows.append([name, *latencies, *(cell(mode.get(BACKGROUND, NOBODY)["rows_per_s"]) for mode in modes)])
    figures = ("online p50 ms", "online p99 ms", "background rows/s")
    yield from table(["scenario", *(f"{figure}, {mode}" for figure in figures for mode in ("levels", "plain"))], rows)
    yield from notes(list(documents.values()))


def cost_section() -> Iterator[str]:
    """What the way through the router costs where the model costs nothing: the closed-loop scenario in two columns."""
    document = load("overhead")
    in_flight = document["scenario"]["in_flight"]
    least, most = (f"{count} in flight" for count in (min(in_flight), max(in_flight)))
    rows = []
    for arm, meaning in (("levels+hooks", "straight to a model that does nothing"), ("router", "through the router")):
        classes = document["arms"][arm]["classes"]
        rows.append([meaning, cell(classes[least]["latency"]["p50_ms"]), cell(classes[most]["rows_per_s"])])
    yield from table(["", f"p50 ms, {least}", f"requests/s, {most}"], rows)
    yield from notes([document])


def file_type_section() -> Iterator[str]:
    """The scenarios that were measured with a real model, with the oracle of each."""
    documents = {name: own_model(name) for name in measured(OWN_MODEL)}
    compared = {name: (document, with_oracle(document)) for name, document in documents.items()}
    yield from by_arm(compared, ("p50", "p95", "p99"))
    for document in documents.values():
        yield from ("", conditions(document))


def parts_section() -> Iterator[str]:
    """What a request costs on its way to an executor that does nothing: straight and through models."""
    document = overhead_parts()
    rows = [[name, *(cell(one[figure]) for figure in PARTS)] for name, one in document["ways"].items()]
    yield from table(["", *PARTS.values()], rows)
    yield ""
    few, many = document["in_flight"]
    yield (
        f"Medians of {document['rounds']} rounds (lowest-highest), {document['seconds']:g} s per step, way and round, "
        f"{document['cores']} cores: p50 with {few} in flight, all else with {many}, CPU and switches per request. "
        "`scripts/measure_overhead.py`"
    )
    profiles = document["profiles"]
    if profiles:
        yield ""
        yield "In whose code the model's process spends its CPU time, percent:"
        yield ""
        owners = list(next(iter(profiles.values())))
        shares = [[name, *(f"{one[owner]:.0f}" for owner in owners)] for name, one in profiles.items()]
        yield from table(["", *owners], shares)


def with_oracle(document: Document) -> dict[str, Mapping[str, Any]]:
    """The numbers of the arms, and behind them those of the oracle where there is one."""
    oracle = document.get("oracle")
    return {**document["arms"], **({ORACLE: oracle} if oracle else {})}


SECTIONS: Final[Mapping[str, Callable[[], Iterator[str]]]] = {
    "aims": aims_section,
    "summary": summary_section,
    "beside": beside_section,
    "modes": modes_section,
    "cost": cost_section,
    "file-type": file_type_section,
    "overhead-parts": parts_section,
}


def section(name: str) -> str | None:
    """The text of one section; None where it is not one of these."""
    if name in SCENARIOS:
        return "\n".join(scenario_section(load(name))) + "\n"
    return "\n".join(SECTIONS[name]()) + "\n" if name in SECTIONS else None
