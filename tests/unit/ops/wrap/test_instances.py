# SPDX-License-Identifier: Apache-2.0
"""How many instances an executor has by its configuration, and what is said where it leaves that open."""

from __future__ import annotations

import pytest
from google.protobuf import text_format
from priority_router.errors import SetupError
from priority_router.ops.wrap import instances
from tritonclient.grpc.model_config_pb2 import ModelConfig


def of(text, backend="python", stated=None):
    return instances.of(text_format.Parse(text, ModelConfig()), backend, stated, "config.pbtxt:1:1")


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("instance_group { kind: KIND_CPU count: 3 }", 3),
        ("instance_group { kind: KIND_MODEL count: 2 }", 2),
        ("instance_group { kind: KIND_GPU count: 2 gpus: [ 0, 1, 3 ] }", 6),
        ("instance_group { count: 2 gpus: [ 0, 1 ] }", 4),
        ("instance_group [ { kind: KIND_GPU count: 1 gpus: 0 }, { kind: KIND_GPU count: 2 gpus: 1 } ]", 3),
        ("instance_group [ { kind: KIND_CPU count: 1 }, { kind: KIND_CPU count: 9 passive: true } ]", 1),
    ],
)
def test_a_configuration_that_says_it_is_taken_at_its_word(text, count):
    assert of(text) == instances.Instances(count)
    assert of(text, stated=count).count == count
    with pytest.raises(SetupError, match=f"--instances 5: config.pbtxt:1:1 says otherwise; write {count},"):
        of(text, stated=5)


@pytest.mark.parametrize(
    ("text", "backend", "count", "words"),
    [
        ("", "python", 1, "no instance_group, and Triton starts one on a machine without GPUs, otherwise one for each"),
        ("", "onnxruntime", 1, "no instance_group, and Triton starts two on a machine without GPUs"),
        ("instance_group { kind: KIND_CPU }", "onnxruntime", 1, "KIND_CPU has no count, and Triton starts two"),
        ("instance_group { kind: KIND_CPU }", "python", 1, "KIND_CPU has no count, and Triton starts one"),
        ("instance_group { kind: KIND_MODEL }", "onnxruntime", 1, "KIND_MODEL has no count, and Triton starts one"),
        (
            "instance_group { count: 3 }",
            "python",
            3,
            "no kind, and Triton starts 3 on a machine without GPUs, otherwise 3",
        ),
        ("instance_group { }", "onnxruntime", 1, "neither kind nor count, and Triton starts two"),
        (
            "instance_group { kind: KIND_GPU count: 2 }",
            "tensorrt",
            2,
            "lists no gpus, and Triton starts 2 for each GPU",
        ),
        ("instance_group { kind: KIND_GPU gpus: [ 0, 1 ] }", "tensorrt", 2, "no count, and Triton starts one for each"),
    ],
)
def test_what_a_configuration_leaves_open_is_said(text, backend, count, words):
    found = of(text, backend)
    assert (found.count, found.stated) == (count, False)
    assert words in found.open
    stated = of(text, backend, 4 * count)
    assert (stated.count, stated.stated, stated.open) == (4 * count, True, found.open)


def test_what_is_stated_must_be_possible():
    with pytest.raises(SetupError, match=r"--instances 3: .* write a multiple of its count, 2"):
        of("instance_group { kind: KIND_GPU count: 2 }", stated=3)
    assert of("instance_group [ { count: 2 }, { kind: KIND_CPU count: 1 } ]", stated=5).count == 5
