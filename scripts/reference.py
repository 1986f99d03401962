# SPDX-License-Identifier: Apache-2.0
"""Writes what the code and deploy/alerts.yaml say into the documents' reference sections.

A section stands between ``<!-- reference: NAME -->`` and ``<!-- end of reference -->`` in docs/*.md; NAME is ``policy
top``, ``policy executor_shape``, ``policy class`` or ``policy tenant`` (the keys of a table of policy.toml),
``outcomes`` (how a request can end), ``metrics`` (what a router exports), ``alerts`` (one line per rule), ``lint
rules`` (what lint looks for) or ``lint json`` (what it prints for programs). Runs with the Python of .venv.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from priority_router import policy_fields
from priority_router.core.admission import PredictedWaits
from priority_router.errors import Outcome, PriorityRouterError, RequestError
from priority_router.hooks import HookCounts
from priority_router.ops import command_line
from priority_router.ops.rules.catalogue import RULES
from priority_router.policy_checks import REQUIRED, Field
from priority_router.policy_fields import LATEST_VERSION
from priority_router.runtime import metrics
from priority_router.runtime.driver import Observed
from priority_router.runtime.metrics import Family
from ruamel.yaml import YAML

ROOT: Final = Path(__file__).resolve().parents[1]
ALERTS: Final = ROOT / "deploy" / "alerts.yaml"
LINT_SCHEMA: Final = ROOT / "docs" / "lint.schema.json"
SECTION: Final = re.compile(r"(<!-- reference: (?P<name>[\w ]+) -->\n).*?(<!-- end of reference -->)", re.DOTALL)
OPENING: Final = re.compile(r"<!-- reference: ")
_PART: Final = re.compile(r"_(bucket|count|sum)$")


class SectionError(PriorityRouterError):
    """A section cannot be written."""


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


def policy(fields: Sequence[Field]) -> str:
    """The keys of one table of policy.toml."""
    head = ("key", "kind", "default", "allowed", "meaning")
    return table(
        head, [(f"`{field.key}`", field.kind, _default(field), _allowed(field), field.meaning) for field in fields]
    )


def _default(field: Field) -> str:
    if field.default is REQUIRED:
        return "required"
    if field.default in (None, LATEST_VERSION):
        return "-"
    return f"`{json.dumps(field.default)}`"


def _allowed(field: Field) -> str:
    if field.check is None:
        return "`true` or `false`" if field.kind == "boolean" else ""
    return re.sub(r'"[\w:]+"', lambda quoted: f"`{quoted[0]}`", field.check.allowed.removeprefix("a value "))


def outcomes() -> str:
    """How a request can end, and the error code that its caller then gets."""
    rows = [(f"`{Outcome.SUCCESS.value}`", "", "The executor's answer.")]
    for ending in RequestError.__subclasses__():
        code = f"`{ending.code}`" if hasattr(ending, "code") else "the executor's"
        rows.append((f"`{ending.outcome.value}`", code, (ending.__doc__ or "").partition("\n")[0].replace("``", "`")))
    order = [f"`{outcome.value}`" for outcome in Outcome]
    return table(("outcome", "error code", "when"), sorted(rows, key=lambda row: order.index(row[0])))


def families() -> list[Family]:
    """Everything that a router exports, in the order of the code."""
    return [family for family in vars(metrics).values() if isinstance(family, Family)]


def metric_table() -> str:
    """What a router exports; the families that make a histogram, or a sum and its count, in one line."""
    together: dict[str, list[Family]] = {}
    for family in families():
        together.setdefault(_PART.sub("", family.name), []).append(family)
    labels = _labels()
    rows = []
    for base, parts in together.items():
        names = [f"`{parts[0].name}`", *(f"`{part.name.removeprefix(base)}`" for part in parts[1:])]
        histogram = parts[0].name.endswith("_bucket")
        kind = "histogram" if histogram else "counter" if parts[0].counter else "gauge"
        further = ", ".join(f"`{label}`" for label in labels.get(parts[0].name, ()))
        rows.append((", ".join(names), kind, further, "; ".join(dict.fromkeys(part.help for part in parts))))
    return table(("metric", "kind", "further labels", "meaning"), rows)


def _labels() -> dict[str, list[str]]:
    """Labels by family, as the samples of a router with one class and one hook have them."""
    readings = metrics.Readings(
        tallies=[metrics.Tally(["online"])],
        observed=Observed(
            waiting={"online": 0},
            rows_in_flight=0,
            written_off=0,
            late_answers=0,
            worst_blocking={"online": 0},
            blocking_budget={"online": 1},
            over_budget={"online": 0},
            waiting_bytes={"online": 0},
            predicted_waits={"online": PredictedWaits()},
        ),
        counters={},
        hooks=HookCounts(0, 0, 0),
        hook_working={"priority": True},
        capped={("acme", "lowered"): 0},
    )
    return {sample.family.name: [label for label, _ in sample.labels] for sample in metrics.samples(readings)}


def rules() -> list[dict[str, Any]]:
    """The rules of deploy/alerts.yaml."""
    groups = YAML(typ="safe").load(ALERTS)["groups"]
    return [rule for group in groups for rule in group["rules"]]


def alert_table() -> str:
    """Every rule, in the order of the file."""
    rows = []
    for rule in rules():
        expression = " ".join(rule["expr"].split()).replace("|", r"\|")
        lasting = f"<br>for {rule['for']}" if "for" in rule else ""
        name = f"`{rule['alert']}`<br>{rule['labels']['severity']}"
        rows.append((name, f"`{expression}`{lasting}", " ".join(rule["annotations"]["summary"].split())))
    return table(("alert", "when", "what it means, what to do"), rows)


def lint_rules() -> str:
    """Every rule of lint: a table to look codes up in, then a heading for each, since reports lead there."""
    rows = [(f"[{code}](#{code.lower()})", rule.severity.value, rule.title) for code, rule in RULES.items()]
    parts = [
        f"### {code}\n\n**{rule.title}** ({rule.severity.value}). {rule.why}\n\nFix: {rule.remedy}\n"
        for code, rule in RULES.items()
    ]
    return "\n".join([table(("code", "severity", "what is wrong"), rows), *parts])


def lint_json() -> str:
    """Every key that ``priority-router lint --json`` prints."""
    schema = json.loads(LINT_SCHEMA.read_text(encoding="utf-8"))
    return table(("key", "kind", "meaning"), list(_keys(schema, "")))


def _keys(schema: Mapping[str, Any], above: str) -> Iterator[tuple[str, str, str]]:
    for name, value in schema["properties"].items():
        items = value.get("items", {})
        if "description" in value:
            yield f"`{above}{name}`", _kind(value), value["description"]
        if "properties" in value and "description" in next(iter(value["properties"].values())):
            yield from _keys(value, f"{above}{name}.")
        if "properties" in items:
            yield from _keys(items, f"{above}{name}[].")


def _kind(schema: Mapping[str, Any]) -> str:
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if "enum" in schema:
        return ", ".join(f"`{json.dumps(choice)}`" for choice in schema["enum"])
    kind = schema["type"]
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


MADE: Final[dict[str, Callable[[], str]]] = {
    "policy top": lambda: policy(policy_fields.TOP_LEVEL),
    "policy executor_shape": lambda: policy(policy_fields.EXECUTOR_SHAPE),
    "policy class": lambda: policy(policy_fields.CLASS),
    "policy tenant": lambda: policy(policy_fields.TENANT),
    "outcomes": outcomes,
    "metrics": metric_table,
    "alerts": alert_table,
    "lint rules": lint_rules,
    "lint json": lint_json,
}


def refreshed(text: str) -> str:
    """A document with its sections made anew."""
    if len(OPENING.findall(text)) != len(SECTION.findall(text)):
        raise SectionError("a section has no end, or an odd name")
    if unknown := {found["name"] for found in SECTION.finditer(text)} - set(MADE):
        raise SectionError(f"no section {', '.join(sorted(unknown))}; there are {', '.join(MADE)}")
    return SECTION.sub(lambda found: found[1] + MADE[found["name"]]() + found[3], text)


def run(documents: Sequence[Path], check: bool) -> int:
    """Writes every section anew, or looks whether that would change anything."""
    stale = []
    for path in documents:
        before = path.read_text(encoding="utf-8")
        try:
            after = refreshed(before)
        except SectionError as error:
            raise SectionError(f"{path.name}: {error}") from error
        if after != before:
            stale.append(path.name)
            if not check:
                path.write_text(after, encoding="utf-8")
    if check and stale:
        raise SectionError(
            f"not what the code and {ALERTS.name} say: {', '.join(stale)}; run .venv/bin/python scripts/reference.py"
        )
    return 0


def main(words: list[str] | None = None) -> int:
    """Runs the script; returns the exit status."""
    parser = command_line.parser("reference", "Writes what the code says into the documents.")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit status 1 when a section is not in step"
    )
    check = parser.parse_args(words).check
    documents = sorted((ROOT / "docs").glob("*.md"))
    return command_line.exit_status(parser.prog, lambda: run(documents, check))


if __name__ == "__main__":
    sys.exit(main())
