# SPDX-License-Identifier: Apache-2.0
"""scripts/reference.py: what the documents say of keys, outcomes, metrics, alerts and rules is what the code says."""

import json
import re
from pathlib import Path

import pytest
from priority_router import policy_fields
from priority_router.errors import Outcome
from priority_router.ops.rules.catalogue import RULES
from priority_router.runtime import metrics
from priority_router.runtime.metrics import Family
from support.modules import load_module

ROOT = Path(__file__).resolve().parents[2]
reference = load_module("reference_script", ROOT / "scripts" / "reference.py")


@pytest.fixture
def document(tmp_path):
    def write(name, inside="old\n"):
        path = tmp_path / "some.md"
        path.write_text(f"before\n\n<!-- reference: {name} -->\n{inside}<!-- end of reference -->\n\nafter\n")
        return path

    return write


def test_the_documents_are_in_step():
    assert reference.main(["--check"]) == 0


def test_every_section_is_in_some_document():
    text = "".join(path.read_text() for path in (ROOT / "docs").glob("*.md"))
    assert sorted(found["name"] for found in reference.SECTION.finditer(text)) == sorted(reference.MADE)


def test_a_section_is_written_and_nothing_else_changes(document):
    path = document("policy executor_shape")
    assert reference.run([path], check=False) == 0
    text = path.read_text()
    row = "| `max_batch_size` | integer | required | from 0 to 8192 | The executor's own, in rows; 0: no batch axis. |"
    assert row in text
    assert text.startswith("before\n\n<!-- reference: policy executor_shape -->\n| key |")
    assert text.endswith("<!-- end of reference -->\n\nafter\n")
    assert "old" not in text
    assert reference.run([path], check=True) == 0


def test_check_finds_what_is_not_in_step_and_writes_nothing(document):
    path = document("policy class")
    before = path.read_text()
    with pytest.raises(reference.SectionError, match=r"some\.md; run \.venv/bin/python scripts/reference\.py"):
        reference.run([path], check=True)
    assert path.read_text() == before


@pytest.mark.parametrize("name", ["nonsense", "policy  top", "odd-name"])
def test_what_cannot_be_written_is_an_error(document, name):
    path = document(name)
    with pytest.raises(reference.SectionError, match=r"some\.md: "):
        reference.run([path], check=False)


def test_a_section_without_an_end_is_an_error(tmp_path):
    path = tmp_path / "some.md"
    path.write_text("<!-- reference: policy top -->\nold\n")
    with pytest.raises(reference.SectionError, match="has no end"):
        reference.run([path], check=True)


@pytest.mark.parametrize(
    "fields", [policy_fields.TOP_LEVEL, policy_fields.EXECUTOR_SHAPE, policy_fields.CLASS, policy_fields.TENANT]
)
def test_every_key_has_a_row(fields):
    rows = reference.policy(fields).splitlines()[2:]
    assert [row.split("`")[1] for row in rows] == [field.key for field in fields]
    for row, field in zip(rows, fields, strict=True):
        assert row.endswith(f" {field.meaning} |")
        if isinstance(field.default, str | bool | int | float) and field.default != policy_fields.LATEST_VERSION:
            assert f"| `{json.dumps(field.default)}` |" in row


def test_every_outcome_has_a_row():
    rows = reference.outcomes().splitlines()[2:]
    assert {row.split("`")[1] for row in rows} == {outcome.value for outcome in Outcome}
    assert "| `queue_full` | `UNAVAILABLE` | As many requests wait as" in reference.outcomes()


def test_every_metric_has_a_row_with_kind_labels_and_meaning():
    text = reference.metric_table()
    for family in vars(metrics).values():
        if isinstance(family, Family):
            base = re.sub(r"_(bucket|count|sum)$", "", family.name)
            row = next(row for row in text.splitlines() if f"`{base}`" in row or f"`{base}_" in row)
            assert family.help in row
            assert f"| {'histogram' if f'{base}_bucket' in row else 'counter' if family.counter else 'gauge'} |" in row
    assert "| `priority_router_requests_total` | counter | `class`, `outcome` | Requests answered" in text
    assert "`priority_router_queue_seconds_bucket`, `_count`, `_sum` | histogram | `class`, `le` |" in text


def test_every_rule_of_lint_has_a_row_and_a_heading_with_all_of_it():
    text = reference.lint_rules()
    for code, rule in RULES.items():
        assert f"| [{code}](#{code.lower()}) | {rule.severity.value} | {rule.title} |\n" in text
        heading = f"### {code}\n\n**{rule.title}** ({rule.severity.value}). {rule.why}\n\nFix: {rule.remedy}\n"
        assert heading in text
    assert len(re.findall("^### ", text, re.MULTILINE)) == len(RULES)


def test_every_key_of_lints_json_has_a_row():
    schema = json.loads((ROOT / "docs" / "lint.schema.json").read_text())
    text = reference.lint_json()
    for key, value in schema["properties"].items():
        assert f"| `{key}` | " in text
        assert value["description"] in text
    for key, value in schema["properties"]["findings"]["items"]["properties"].items():
        assert f"| `findings[].{key}` | " in text
        assert value["description"] in text
    assert '| `findings[].severity` | `"error"`, `"warning"`, `"note"` |' in text
    assert "| `findings[].line` | integer or null |" in text
