# SPDX-License-Identifier: Apache-2.0
"""The client's side of the model: the rule out of a model repository, scores to the likeliest label."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from priority_router.errors import SetupError
from priority_router.ops.demo import filetype
from support.shipped import MODELS


def test_the_rule_is_that_of_the_named_repository(tmp_path):
    copy = tmp_path / "models"
    shutil.copytree(MODELS / "file_type_features", copy / "file_type_features")
    features = filetype.load_rule(copy).features_of_bytes(b"#!/bin/sh\n")
    assert features is not None
    assert features.shape == (2048,)
    source = copy / "file_type_features" / "1" / "file_features.py"
    source.write_text(source.read_text().replace("MINIMUM_BYTES: Final = 8", "MINIMUM_BYTES: Final = 20"))
    assert filetype.load_rule(copy).features_of_bytes(b"#!/bin/sh\n") is None


def test_a_repository_without_the_rule_is_told(tmp_path):
    with pytest.raises(SetupError, match=r"file_features\.py is missing; name this project's model_repository"):
        filetype.load_rule(tmp_path)


def test_the_likeliest_label_wins():
    assert filetype.best_label(np.array([0.25, 0.5, 0.25]), ("a", "b", "c")) == ("b", 0.5)


def test_labels_and_scores_must_fit():
    with pytest.raises(ValueError, match=r"2 labels do not fit scores of shape \(3,\)"):
        filetype.best_label(np.zeros(3), ("a", "b"))


def test_labels_are_read_in_order(tmp_path):
    (tmp_path / "labels.txt").write_text("b\na\n")
    assert filetype.read_labels(tmp_path / "labels.txt") == ("b", "a")
