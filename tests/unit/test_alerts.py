# SPDX-License-Identifier: Apache-2.0
"""deploy/alerts.yaml: rules for Prometheus, an example for every metric and none for what is not exported."""

import re
import tomllib
from pathlib import Path

from priority_router.errors import Outcome
from priority_router.runtime import metrics
from priority_router.runtime.metrics import Family
from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parents[2]
GROUPS = YAML(typ="safe").load(ROOT / "deploy" / "alerts.yaml")["groups"]
RULES = [rule for group in GROUPS for rule in group["rules"]]
EXPORTED = {family.name for family in vars(metrics).values() if isinstance(family, Family)}
LABELS_OF_PROMETHEUS = {"instance"}


def named(expression):
    return set(re.findall(r"\b(?:priority_router|nv)_\w+", expression))


def base(name):
    return re.sub(r"_(bucket|count|sum)$", "", name)


def test_every_rule_is_one_of_prometheus():
    assert [set(group) for group in GROUPS] == [{"name", "rules"}]
    for rule in RULES:
        assert set(rule) - {"for"} == {"alert", "expr", "labels", "annotations"}, rule
        assert re.fullmatch(r"[1-9]\d*m", rule.get("for", "1m"))
        assert rule["labels"]["severity"] in {"page", "ticket"}
        assert rule["annotations"]["summary"].endswith(".")
        assert all(rule["expr"].count(a) == rule["expr"].count(b) for a, b in ("()", "[]", "{}"))
    assert len({rule["alert"] for rule in RULES}) == len(RULES)


def test_every_metric_named_is_exported():
    assert {name for rule in RULES for name in named(rule["expr"])} - EXPORTED == set()


def test_every_metric_exported_has_a_rule():
    covered = {base(name) for rule in RULES for name in named(rule["expr"])}
    assert {base(name) for name in EXPORTED} - covered == set()


def test_labels_and_their_values_are_those_of_the_router():
    with (ROOT / "model_repository" / "router" / "1" / "policy.toml").open("rb") as file:
        classes = {entry["name"] for entry in tomllib.load(file)["class"]}
    known = {"class": classes, "outcome": {outcome.value for outcome in Outcome}, "hook": {"priority", "dispatch"}}
    for rule in RULES:
        for label, value in re.findall(r'(\w+)!?="([^"]*)"', rule["expr"]):
            assert value in known[label], rule["alert"]
        for labels in re.findall(r"(?:by|on) \(([^)]*)\)", rule["expr"]):
            assert set(labels.split(", ")) <= LABELS_OF_PROMETHEUS | {"model", "class", "le"}, rule["alert"]
