# SPDX-License-Identifier: Apache-2.0
"""The samples of all rules, written to a disk and checked as a user's repository is."""

import re
from dataclasses import replace
from typing import Any

import pytest
from onnx import helper
from priority_router.ops.lint.check import check
from support import onnx_models
from support.lint_samples import CLEAN, FOUND_BY_READING, SAMPLES, Sample

FREE: Any = {"X": (None, 4), "Y": (None, 2)}


def write(folder, sample):
    for path, text in sample.files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.name == "model.onnx":
            node = helper.make_node("Identity", ["X"], ["Y"])
            shapes = [onnx_models.value(name, shape) for name, shape in (sample.onnx or FREE).items()]
            onnx_models.write(file, [node], shapes[:1], shapes[1:])
        else:
            file.write_text(text)
    return folder


def looked_at(folder, sample):
    report = check([write(folder, sample)], sample.pool, sample.profile)
    assert report.remarks == ()
    return report.found


@pytest.mark.parametrize("sample", [*SAMPLES, *FOUND_BY_READING], ids=str)
def test_a_sample_has_one_finding_with_a_place_and_its_fix(tmp_path, sample):
    (located,) = looked_at(tmp_path, sample)
    assert located.finding.rule.code == sample.code
    assert [edit.literal for edit in sample.fix if edit.literal not in located.finding.fix] == []
    assert located.file.is_relative_to(tmp_path)
    if located.file.is_file():
        line = located.file.read_text().splitlines()[located.position.line - 1]
        before, column = line[: located.position.column - 1], located.position.column
        assert line[column - 1 :] == line[column - 1 :].lstrip()
        assert re.fullmatch(r".*[\s{\[<,;\"']|", before), "it does not stand at the beginning of a word"
    else:
        assert located.position is None


@pytest.mark.parametrize("sample", [*SAMPLES, *FOUND_BY_READING], ids=str)
def test_nothing_is_left_to_find_after_the_fix(tmp_path, sample):
    shapes = getattr(sample, "fixed_onnx", None) or sample.onnx
    assert looked_at(tmp_path, replace(sample.fixed(), onnx=shapes)) == ()


def test_a_clean_repository_has_no_findings(tmp_path):
    assert looked_at(tmp_path, Sample("", "", CLEAN, ())) == ()
