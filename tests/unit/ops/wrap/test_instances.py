# SPDX-License-Identifier: Apache-2.0
"""How many instances an executor has by its configuration, and what is said where it leaves that open."""

from __future__ import annotations

import pytest
from google.protobuf import text_format
from google.protobuf.json_format import MessageToDict
from priority_router.errors import SetupError
from priority_router.ops.rules.models import Model
from priority_router.ops.wrap import instances
from tritonclient.grpc.model_config_pb2 import ModelConfig


def of(text, backend="python", stated=None):
    config = text_format.Parse(f'backend: "{backend}" {text}', ModelConfig())
    model = Model("m", MessageToDict(config, preserving_proto_field_name=True))
    return instances.of(model, stated, "config.pbtxt:1:1")


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("instance_group { kind: KIND_CPU count: 3 }", 3),
        ("instance_group { kind: KIND_MODEL count: 2 }", 2),
        ("instance_group { kind: KIND_GPU count: 2 gpus: [ 0, 1, 3 ] }", 6),
        ("instance_group { count: 2 gpus: [ 0, 1 ] }", 4),
        ("instance_group [ { kind: KIND_GPU count: 1 gpus: 0 }, { kind: KIND_GPU count: 2 gpus: 1 } ]", 3),
        ("instance_group [ { kind: KIND_CPU count: 1 }, { kind: KIND_CPU count: 9 passive: true } ]", 1),
        ("instance_group { kind: KIND_CPU }", 1),
        ("instance_group { kind: KIND_MODEL }", 1),
        ("instance_group { kind: KIND_GPU gpus: [ 0, 1 ] }", 2),
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
        ("instance_group { kind: KIND_CPU }", "own", 1, "KIND_CPU has no count, and Triton starts one (its backend"),
        ("instance_group { kind: KIND_GPU gpus: 0 }", "own", 1, "may ask for more) for each GPU in gpus"),
        ("instance_group { gpus: [ 0, 1 ] }", "onnxruntime", 2, "starts two on a machine without GPUs, otherwise one"),
        ("instance_group { }", "python", 1, "neither kind nor count, and Triton starts one on a machine without"),
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
    ],
)
def test_what_a_configuration_leaves_open_is_said(text, backend, count, words):
    found = of(text, backend)
    assert (found.count, found.stated) == (count, False)
    assert words in found.open
    stated = of(text, backend, 4 * count)
    assert (stated.count, stated.stated, stated.open) == (4 * count, True, found.open)


def test_what_is_stated_must_be_possible():
    with pytest.raises(SetupError, match=r"--instances 3: .* write 2 and 2 more for each further GPU,"):
        of("instance_group { kind: KIND_GPU count: 2 }", stated=3)
    assert of("instance_group [ { count: 2 }, { kind: KIND_CPU count: 1 } ]", stated=5).count == 5


def test_two_on_the_cpu_are_known_of_the_backends_that_get_them():
    assert of("instance_group { kind: KIND_CPU }", "onnxruntime") == instances.Instances(2)
    with pytest.raises(SetupError, match=r"--instances 1: .* write 2,"):
        of("instance_group { kind: KIND_CPU }", "onnxruntime", stated=1)
