# SPDX-License-Identifier: Apache-2.0
"""Each rule finds its samples, says what mends them, and is content with just that."""

import pytest
from priority_router.ops.rules import repository
from priority_router.ops.rules.catalogue import RULES
from priority_router.ops.rules.models import Repository
from support.lint_samples import CLEAN, FOUND_BY_READING, SAMPLES, Sample
from support.lint_samples.reading import repository as read


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_a_sample_breaks_its_rule_and_no_other(sample):
    (finding,) = repository.check(read(sample))
    assert finding.rule.code == sample.code
    assert finding.place.model in {path.partition("/")[0] for path in sample.files}
    for text in (finding.what, finding.fix):
        assert text
        assert text == text.strip()
        assert not text.endswith(".")
        assert "\n" not in text


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_the_printed_fix_is_all_that_it_takes(sample):
    (finding,) = repository.check(read(sample))
    for edit in sample.fix:
        assert edit.literal in finding.fix
    assert any(word in finding.fix for word in ("write", "remove", "put", "make", "start"))
    assert repository.check(read(sample.fixed())) == []


def test_every_rule_has_a_sample():
    by_reading = {sample.code for sample in FOUND_BY_READING}
    assert by_reading == {"PR001", "PR002", "PR003", "PR006", "PR007", "PR018"}
    in_folders = {"PR012", "PR013", "PR120"}
    assert {sample.code for sample in SAMPLES} == set(RULES) - by_reading - in_folders


def test_nothing_is_wrong_with_the_clean_repository():
    assert repository.check(read(Sample("", "", CLEAN, ()))) == []


def test_nothing_is_wrong_with_no_models():
    assert repository.check(Repository({})) == []
