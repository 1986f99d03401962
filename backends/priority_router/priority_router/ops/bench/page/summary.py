# SPDX-License-Identifier: Apache-2.0
"""What a run says in a few words and numbers, and how it was made."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any, Final

from priority_router.ops.bench.aims import ORACLE, limit_text
from priority_router.ops.bench.page.run import NOTHING, ORACLE_MEANS, Class, Run, milliseconds, section, share
from priority_router.ops.bench.table import cell, short
from priority_router.ops.pages import html

_BETTER_WHEN: Final = {
    "p50_ms": "lower",
    "p95_ms": "lower",
    "p99_ms": "lower",
    "rows_per_s": "higher",
    "in_time": "higher",
}


def verdict(run: Run) -> str:
    """What the run says, in words."""
    first, *others = run.document["verdict"]["sentences"]
    second, rest = _listed(others[:1]), _listed(others[1:])
    more = f"<details><summary>{len(others) - 1} more</summary>{rest}</details>\n" if rest else ""
    return f'<section class="verdict" aria-label="Verdict">\n<p>{escape(first)}</p>\n{second}{more}</section>\n'


def _listed(sentences: Sequence[str]) -> str:
    items = "".join(f"<li>{escape(one)}</li>" for one in sentences)
    return f"<ul>{items}</ul>\n" if items else ""


def glance(run: Run) -> str:
    """The table that stands for the whole run: a row for each arm."""
    urgent, others = run.classes[0], run.classes[1:] or run.classes
    columns = [f"{urgent.name} p50", "p99", *(["in time"] if urgent.target_ms is not None else [])]
    columns += [*(f"{one.name} rows/s" for one in others), "busy"]
    rows = []
    for arm, told in run.arms.items():
        head = f"{escape(arm)}<small>{escape(told['meaning'])}</small>"
        rows.append(html.row(head, map(escape, _cells(told, urgent, others))))
    if run.oracle is not None:
        head = f"{ORACLE}<small>{ORACLE_MEANS}</small>"
        rows.append(html.row(head, map(escape, _oracle(run.oracle, urgent, others))))
    table = html.table("Each arm at a glance", "arm", columns, [html.rows(rows)])
    return f'<section aria-label="Arms" class="glance">\n{table}\n</section>\n'


def _cells(told: Mapping[str, Any], urgent: Class, others: Sequence[Class]) -> Iterator[str]:
    own = told["classes"][urgent.name]
    yield from (milliseconds(own["pooled"][key]["value"]) for key in ("p50_ms", "p99_ms"))
    if urgent.target_ms is not None:
        yield share(own["goodput"]["share"])
    yield from _work(told, others)


def _oracle(told: Mapping[str, Any], urgent: Class, others: Sequence[Class]) -> Iterator[str]:
    latency = told["classes"][urgent.name]["latency"]
    yield from (milliseconds(_median(latency[key])) for key in ("p50_ms", "p99_ms"))
    if urgent.target_ms is not None:
        yield NOTHING
    yield from _work(told, others)


def _work(told: Mapping[str, Any], classes: Sequence[Class]) -> Iterator[str]:
    """Rows per second of the classes, and the executor's busy share."""
    for one in classes:
        rate = _median(told["classes"][one.name]["rows_per_s"])
        yield NOTHING if rate is None else short(rate)
    yield share(_median(told["busy"]))


def _median(spread: Mapping[str, float] | None) -> float | None:
    return None if spread is None else spread["median"]


def compared(run: Run) -> str:
    """The numbers behind the verdict; nothing where there is none."""
    found = run.document["verdict"]["compared"]
    if not found:
        return ""
    groups = []
    for pair in dict.fromkeys((one["arm"], one["against"]) for one in found):
        own = [one for one in found if (one["arm"], one["against"]) == pair]
        head = f"{escape(pair[0])} against {escape(pair[1])}"
        groups.append(html.group(head, 4, [_compared(one) for one in own]))
    table = html.table(
        "An interval of 99 % decides whether a difference is more than chance",
        "",
        ("without", "with", "finding"),
        groups,
    )
    words = "The same arrivals on both arms; for latencies, requests without an answer count as the slowest."
    return (
        f"<details><summary>The numbers behind the verdict</summary>\n"
        f'<div><p class="how">{escape(words)}</p>\n{table}</div>\n</details>\n'
    )


def _compared(one: Mapping[str, Any]) -> str:
    finding = one["finding"]
    mark = {"lower": "▼ lower", "higher": "▲ higher"}.get(finding, finding)
    good = _BETTER_WHEN.get(one["what"])
    style = "" if finding not in ("lower", "higher") else "good" if finding == good else "bad"
    write = {"rows_per_s": _rate, "in_time": share}.get(one["what"], _time)
    name = {"rows_per_s": "rows/s", "in_time": "in time"}.get(one["what"], one["what"].removesuffix("_ms"))
    texts = [escape(write(one[key])) for key in ("before", "after")]
    return html.row(escape(f"{one['class']} {name}"), [*texts, f'<span class="{style}">{escape(mark)}</span>'])


def _rate(value: float | None) -> str:
    return NOTHING if value is None else f"{short(value)}/s"


def _time(value: float | None) -> str:
    return "no answer" if value is None else milliseconds(value)


def aims(run: Run) -> str:
    """What the scenario was expected to show; nothing where it is not."""
    rows = []
    for one in run.document["aims"]:
        word, style = {True: ("met", "good"), False: ("missed", "bad"), None: ("not measured", "")}[one["met"]]
        limit = escape(limit_text(one["at_most"], one["limit"]))
        cells = [escape(cell(one["reached"])), limit, f'<span class="{style}">{word}</span>']
        rows.append(html.row(f"{escape(one['arm'])}<small>{escape(one['text'])}</small>", cells))
    if not rows:
        return ""
    table = html.table("Median of the rounds (lowest–highest)", "arm", ("reached", "aim", ""), [html.rows(rows)])
    return section("Aims", "What the router is expected to reach in this scenario.", table)


def how(run: Run) -> str:
    """How it was measured: what was sent, by what client, on which versions, and how to do it again."""
    document, scenario = run.document, run.document["scenario"]
    versions = ", ".join(f"{_name(name)} {version or 'unknown'}" for name, version in document["versions"].items())
    server = document["server"]
    facts = {
        "load": "; ".join(_loads(scenario)),
        "executor": _executor(scenario["executor"]),
        "measured": f"{scenario['rounds']} rounds planned, {scenario['seconds']:g} s each after "
        f"{scenario['warmup_seconds']:g} s of warm-up, seed {document['seed']}",
        "server": server["url"] or "one of its own for each arm and round",
        "client": _reach(document.get("client")),
        "machine": f"{document['cores']} cores for the client{'' if server['url'] else ' and the server'}",
        "versions": versions,
        "trace": scenario["trace"],
        "made": document["created"],
    }
    lines = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(text)}</dd></div>\n" for name, text in facts.items() if text
    )
    command = escape(shlex.join(document["command"]))
    client = f"{_client(run)}\n" if run.arms else ""
    return (
        f'<section class="made">\n<h2>How it was measured</h2>\n<dl class="facts">{lines}</dl>\n{client}'
        f"<p>The same again:</p>\n<pre><code>{command}</code></pre>\n</section>\n"
    )


def _name(package: str) -> str:
    return package.replace("_", " ").capitalize()


def _loads(scenario: Mapping[str, Any]) -> Iterator[str]:
    for load in scenario["loads"]:
        words = [f"{load['name']} {load['rate']:g} requests/s"]
        words.append(
            f"bursts of {load['burst_size']}" if load["arrivals"] == "burst" else f"{load['arrivals']} arrivals"
        )
        if load["rows"] > 1:
            words.append(f"{load['rows']} rows each")
        if load["tenants"]:
            words.append(f"{len(load['tenants'])} tenants")
        if load["target_ms"] is not None:
            words.append(f"target {milliseconds(load['target_ms'])}")
        yield ", ".join(words)
    if scenario["in_flight"]:
        yield f"closed loop, {' and '.join(map(str, scenario['in_flight']))} requests in flight"


def _executor(executor: Mapping[str, Any]) -> str:
    costs = ((executor["batch_us"], "batch"), (executor["row_us"], "row"))
    times = " and ".join(f"{cost / 1e3:g} ms per {unit}" for cost, unit in costs if cost)
    instances = f", {executor['instances']} at a time" if executor["instances"] > 1 else ""
    return f"{times or 'no time of its own'}, batches of up to {executor['max_batch_size']} rows{instances}"


def _reach(client: Mapping[str, Any] | None) -> str:
    """What the client can send and what is asked of it; empty where that is not known."""
    if client is None:
        return ""
    words = [f"by {client['protocol']} it can send {client['reach_rate']:.0f} requests/s in time"]
    if client["asked_rate"] is not None and client["peak_rate"] is not None:
        words.append(f"asked for {client['asked_rate']:.0f}, up to {client['peak_rate']:.0f} in a second")
    return ", ".join(words)


def _client(run: Run) -> str:
    rows = []
    for arm, told in run.arms.items():
        processes = max(finished["processes"] for finished in run.in_rounds(arm))
        cells = [
            cell(told["client_cpu"], 100, "%"),
            str(processes),
            cell(told["late_p99_ms"]),
            cell(told["late_max_ms"]),
        ]
        rows.append(html.row(escape(arm), map(escape, cells)))
    caption = "The load generator: CPU in shares of a core, how late it sent in ms; median (lowest–highest)"
    return html.table(caption, "arm", ("CPU", "processes", "late p99", "late max"), [html.rows(rows)])
