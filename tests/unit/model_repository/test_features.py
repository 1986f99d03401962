# SPDX-License-Identifier: Apache-2.0
"""The ensemble's first step against the magika package itself, on real files of many types and on odd bytes."""

from __future__ import annotations

import io
import itertools
import sysconfig
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from magika import Magika
from magika.types import Seekable
from priority_router.ops.demo import filetype
from support.shipped import MODELS, ROOT, StepRequest, module

PER_SUFFIX = 4
FOLDERS = [Path(sysconfig.get_paths()["stdlib"]), Path(sysconfig.get_paths()["purelib"]), ROOT]
RULE: Any = filetype.load_rule(MODELS)


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


def magikas_decision(magika, content):
    """The label where magika decides without the model, else None; and the model's input, else None."""
    result, features = magika._get_result_or_features_from_seekable(Seekable(io.BytesIO(content)))
    if result is not None:
        return str(result.prediction.output.label), None
    return None, [*features.beg, *features.end]


def our_decision(features, content):
    if features is None:
        return RULE.label_without_model(content), None
    return None, features.tolist()


def test_real_files_are_decided_as_by_magika(magika, real_files):
    for path in real_files:
        content = path.read_bytes()
        assert our_decision(RULE.features_of_file(path), content) == magikas_decision(magika, content), path


@given(
    st.binary(max_size=64),
    st.integers(0, 9000),
    st.sampled_from([b" ", b"\n", b"\0", b"x", b"\x1f"]),
    st.binary(max_size=64),
)
@example(b"", 0, b"x", b"")
@example(b"1234567", 0, b"x", b"")
@example(b"12345678", 0, b"x", b"")
@example(b"\xff234567", 0, b"x", b"")
@example(b"", 4088, b" ", b"12345678")
@example(b"", 4089, b" ", b"12345678")
@example(b"", 4095, b" ", "ä".encode())
@example(b"x" * 20, 5000, b" ", b"")
@example(b"x" * 20, 4096 - 20, b"\n", b"")
def test_any_bytes_are_decided_as_by_magika_whole_or_as_their_two_ends(magika, first, count, fill, last):
    content = first + count * fill + last
    expected = magikas_decision(magika, content)
    assert our_decision(RULE.features_of_bytes(content), content) == expected
    if len(content) > 2 * RULE.BLOCK_SIZE:
        ends = content[: RULE.BLOCK_SIZE] + content[-RULE.BLOCK_SIZE :]
        assert our_decision(RULE.features_of_bytes(ends), ends) == expected


def test_features_have_the_shape_and_type_that_the_model_wants():
    features = RULE.features_of_bytes(b"#!/bin/sh\n")
    assert features.dtype == np.int32
    assert features.shape == (2048,)
    assert features[:9].tobytes() == np.frombuffer(b"#!/bin/sh", np.uint8).astype(np.int32).tobytes()
    assert set(features[10:2039].tolist()) == {RULE.PADDING}


def test_the_step_answers_rows_in_their_order(monkeypatch):
    model = module("file_type_features", "model", monkeypatch).TritonPythonModel()
    files = [b"", b"#!/bin/sh\necho\n", b" \n", b"\xff\xfe", b"x = 1\ny = 2\n"]
    first, second = model.execute(
        [
            StepRequest(content=np.array([[content] for content in files], object)),
            StepRequest(content=np.array([[files[1]]], object)),
        ]
    )
    answer = first.arrays()
    assert answer["known"].tolist() == [[b"empty"], [b""], [b"txt"], [b"unknown"], [b""]]
    assert (answer["bytes"].dtype, answer["bytes"].shape) == (np.int32, (5, 2048))
    for row in (0, 2, 3):
        assert set(answer["bytes"][row].tolist()) == {RULE.PADDING}
    for row in (1, 4):
        assert answer["bytes"][row].tolist() == RULE.features_of_bytes(files[row]).tolist()
    assert second.arrays()["bytes"].tolist() == [answer["bytes"][1].tolist()]
