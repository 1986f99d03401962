# SPDX-License-Identifier: Apache-2.0
"""A report as SARIF 2.1.0, for services that show findings beside the lines of a change."""

from __future__ import annotations

import importlib.metadata
import json
import os
import urllib.parse
from pathlib import Path
from typing import Any, Final

from priority_router import __version__
from priority_router.ops.lint.check import Located, Report
from priority_router.ops.lint.report import encodable
from priority_router.ops.rules.catalogue import RULES
from priority_router.ops.rules.finding import Rule

_SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_PACKAGE: Final = "triton-priority-router"
_PAGE: Final = "docs/lint.md"


def as_sarif(report: Report, folder: Path) -> str:
    """One run with all rules and all findings.

    Args:
        report: what was found.
        folder: files below it are named relative to it, as services want it of the folder that was checked out;
            others by their whole path.
    """
    numbers = {code: index for index, code in enumerate(RULES)}
    run = {
        "tool": {"driver": _driver()},
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {
                "executionSuccessful": True,
                "toolExecutionNotifications": [
                    {"level": "note", "message": {"text": encodable(f"not looked at: {remark}")}}
                    for remark in report.remarks
                ],
            }
        ],
        "results": [_result(located, numbers, folder) for located in report.found],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _driver() -> dict[str, Any]:
    home = _home()
    driver: dict[str, Any] = {
        "name": "priority-router lint",
        "version": __version__,
        "rules": [_described(rule, home) for rule in RULES.values()],
    }
    return {**driver, "informationUri": f"{home}/{_PAGE}"} if home else driver


def _described(rule: Rule, home: str | None) -> dict[str, Any]:
    described: dict[str, Any] = {
        "id": rule.code,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.why},
        "help": {"text": f"{rule.why} {rule.remedy}", "markdown": f"{rule.why}\n\n{rule.remedy}"},
        "defaultConfiguration": {"level": rule.severity.value},
    }
    return {**described, "helpUri": f"{home}/{_PAGE}#{rule.code.lower()}"} if home else described


def _home() -> str | None:
    """Where the product's files can be read, as its package says it; SARIF takes whole addresses only."""
    try:
        urls = importlib.metadata.metadata(_PACKAGE).get_all("Project-URL") or []
    except importlib.metadata.PackageNotFoundError:
        return None
    named = dict(url.split(", ", 1) for url in urls)
    address = named.get("Repository")
    return f"{address.rstrip('/')}/blob/main" if address else None


def _result(located: Located, numbers: dict[str, int], folder: Path) -> dict[str, Any]:
    finding, position = located.finding, located.position
    physical: dict[str, Any] = {"artifactLocation": {"uri": _uri(located.file, folder)}}
    if position is not None:
        physical["region"] = {"startLine": position.line, "startColumn": position.column}
    return {
        "ruleId": finding.rule.code,
        "ruleIndex": numbers[finding.rule.code],
        "level": finding.rule.severity.value,
        "message": {"text": encodable(f"{finding.what}. Fix: {finding.fix}.")},
        "locations": [{"physicalLocation": physical}],
    }


def _uri(file: Path, folder: Path) -> str:
    whole, base = Path(os.path.abspath(file)), Path(os.path.abspath(folder))
    if whole.is_relative_to(base):
        return urllib.parse.quote(os.fsencode(whole.relative_to(base)))
    return f"file://{urllib.parse.quote(os.fsencode(whole))}"
