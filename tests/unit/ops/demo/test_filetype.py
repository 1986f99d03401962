# SPDX-License-Identifier: Apache-2.0
"""Features and labels against the magika package itself, on real files of many types."""

from __future__ import annotations

import io
import itertools
import sysconfig
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from magika import Magika
from magika.types import ContentTypeLabel, Seekable
from priority_router.ops.demo import filetype

PER_SUFFIX = 4
FOLDERS = [Path(sysconfig.get_paths()["stdlib"]), Path(sysconfig.get_paths()["purelib"]), Path(__file__).parents[4]]


@pytest.fixture(scope="module")
def magika():
    return Magika()


@pytest.fixture(scope="module")
def real_files():
    """Some files of every suffix that the standard library, the installed packages and this repository have."""
    found: defaultdict[str, list[Path]] = defaultdict(list)
    for path in itertools.chain.from_iterable(folder.rglob("*.*") for folder in FOLDERS):
        if len(found[path.suffix]) < PER_SUFFIX and path.is_file():
            found[path.suffix].append(path)
    files = [path for paths in found.values() for path in paths]
    assert len(found) > 15, sorted(found)
    return files


def magikas_features(magika, content):
    """The model's input as magika makes it; None where magika decides without the model."""
    result, features = magika._get_result_or_features_from_seekable(Seekable(io.BytesIO(content)))
    return None if result is not None else [*features.beg, *features.end]


def test_real_files_give_the_features_that_magika_gives(magika, real_files):
    for path in real_files:
        expected = magikas_features(magika, path.read_bytes())
        features = filetype.features_of_file(path)
        assert (features if features is None else features.tolist()) == expected, path


@given(
    st.binary(max_size=64),
    st.integers(0, 9000),
    st.sampled_from([b" ", b"\n", b"\0", b"x", b"\x1f"]),
    st.binary(max_size=64),
)
@example(b"", 0, b"x", b"")
@example(b"1234567", 0, b"x", b"")
@example(b"12345678", 0, b"x", b"")
@example(b"", 4088, b" ", b"12345678")
@example(b"", 4089, b" ", b"12345678")
@example(b"x" * 20, 5000, b" ", b"")
@example(b"x" * 20, 4096 - 20, b"\n", b"")
def test_any_bytes_give_the_features_that_magika_gives(magika, first, count, fill, last):
    content = first + count * fill + last
    features = filetype.features_of_bytes(content)
    assert (features if features is None else features.tolist()) == magikas_features(magika, content)


def test_features_have_the_shape_and_type_that_the_model_wants():
    features = filetype.features_of_bytes(b"#!/bin/sh\n")
    assert features is not None
    assert features.dtype == np.int32
    assert features.shape == (2048,)
    assert features[:9].tobytes() == np.frombuffer(b"#!/bin/sh", np.uint8).astype(np.int32).tobytes()
    assert set(features[10:2039].tolist()) == {filetype.PADDING}


def test_labels_are_those_of_magika(magika, real_files):
    labels = [str(label) for label in magika._model_config.target_labels_space]
    sample = real_files[:: max(1, len(real_files) // 40)]
    for path in sample:
        features = filetype.features_of_file(path)
        if features is None:
            continue
        scores = magika._onnx_session.run(None, {filetype.INPUT: features[None]})[0][0]
        prediction = magika.identify_path(path).prediction
        label, score = filetype.best_label(scores, labels)
        assert ContentTypeLabel(label) == prediction.dl.label, path
        assert score == pytest.approx(prediction.score)


def test_labels_and_scores_must_fit():
    with pytest.raises(ValueError, match=r"2 labels do not fit scores of shape \(3,\)"):
        filetype.best_label(np.zeros(3), ("a", "b"))


def test_labels_are_read_in_order(tmp_path):
    (tmp_path / "labels.txt").write_text("b\na\n")
    assert filetype.read_labels(tmp_path / "labels.txt") == ("b", "a")
