# SPDX-License-Identifier: Apache-2.0
"""What Triton's core knows of its backends."""

import pytest
from priority_router.ops.rules import backends


@pytest.mark.parametrize(
    ("backend", "platform", "file", "present", "found"),
    [
        ("own", "tensorrt_plan", "model.onnx", {"model.py"}, "own"),
        ("", "tensorflow_savedmodel", "", {"model.onnx"}, "tensorflow"),
        ("", "tensorflow_graphdef", "", (), "tensorflow"),
        ("", "libtorch", "", (), "pytorch"),
        ("", "torch_aoti", "", (), "pytorch"),
        ("", "", "model.xml", {"model.py"}, "openvino"),
        ("", "", "", {"model.py", "model.onnx"}, "onnxruntime"),
        ("", "", "", {"model.py", "helper.py"}, "python"),
        ("", "", "weights.bin", {"model.onnx"}, ""),
        ("", "onnxruntime", "", {"model.onnx"}, ""),
        ("", "onnxruntime", "model.onnx", (), "onnxruntime"),
        ("", "", "", (), ""),
    ],
)
def test_a_backend_is_found_as_triton_finds_it(backend, platform, file, present, found):
    assert backends.find(backend, platform, file, present) == found


@pytest.mark.parametrize(
    ("backend", "platform", "file"),
    [
        ("onnxruntime", "", "model.onnx"),
        ("onnxruntime", "anything", "model.onnx"),
        ("pytorch", "", "model.pt"),
        ("pytorch", "torch_aoti", "model.pt2"),
        ("tensorflow", "tensorflow_graphdef", "model.graphdef"),
        ("tensorflow", "", ""),
        ("own", "", ""),
        ("own", "tensorrt_plan", ""),
    ],
)
def test_the_file_that_a_backend_looks_for(backend, platform, file):
    assert backends.file_of(backend, platform) == file


@pytest.mark.parametrize(
    ("platform", "words"),
    [
        ("onnxruntime", 'platform: "onnxruntime_onnx" or backend: "onnxruntime"'),
        ("onnxruntime_onx", 'platform: "onnxruntime_onnx" or backend: "onnxruntime"'),
        ("TensorRT", 'platform: "tensorrt_plan" or backend: "tensorrt"'),
        ("tensorflow", 'backend: "tensorflow"'),
        ("tensorflow_savemodel", 'platform: "tensorflow_savedmodel" or backend: "tensorflow"'),
        ("python", 'backend: "python"'),
        ("custom", 'backend: "custom", if that is the name of a backend,'),
    ],
)
def test_what_is_meant_by_a_platform_that_does_not_exist(platform, words):
    assert backends.in_place_of(platform) == words
