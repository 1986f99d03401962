# SPDX-License-Identifier: Apache-2.0
import argparse

import pytest
from priority_router.ops import command_line


@pytest.mark.parametrize(("word", "value"), [("0.5", 0.5), ("1e3", 1000.0), ("86400", 86400.0)])
def test_seconds(word, value):
    assert command_line.seconds(word) == value


@pytest.mark.parametrize("word", ["0", "-1", "nan", "inf", "86401", "1s", ""])
def test_what_is_no_time_is_said_with_the_limits(word):
    with pytest.raises(argparse.ArgumentTypeError) as caught:
        command_line.seconds(word)
    assert str(caught.value) == f"{word!r} is not a number of seconds above 0 and up to 86400"


@pytest.mark.parametrize(("least", "most", "word"), [(0, None, "0"), (1, None, "1"), (0, 65535, "65535")])
def test_whole_numbers_from_limit_to_limit(least, most, word):
    assert command_line.whole_number(least, most)(word) == int(word)


@pytest.mark.parametrize(
    ("least", "most", "word", "limits"),
    [
        (1, None, "0", "of at least 1"),
        (0, None, "-1", "of at least 0"),
        (0, None, "1.0", "of at least 0"),
        (0, None, "٣", "of at least 0"),
        (0, 65535, "65536", "from 0 to 65535"),
    ],
)
def test_what_is_no_whole_number_within_the_limits_is_said(least, most, word, limits):
    with pytest.raises(argparse.ArgumentTypeError) as caught:
        command_line.whole_number(least, most)(word)
    assert str(caught.value) == f"{word!r} is not a whole number {limits}"


def test_options_are_not_abbreviated():
    parser = command_line.parser("program", "What it does.")
    parser.add_argument("--number")
    with pytest.raises(SystemExit):
        parser.parse_args(["--num", "1"])


@pytest.mark.parametrize(
    ("name", "package"),
    [
        ("google", "protobuf"),
        ("google.protobuf", "protobuf"),
        ("grpc", "grpcio"),
        ("onnx", "onnx"),
        ("tritonclient.grpc", "tritonclient"),
        ("matplotlib", "matplotlib"),
    ],
)
def test_a_missing_package_of_the_tools_is_told_with_what_brings_it(name, package):
    told = command_line.remedy(ModuleNotFoundError("No module", name=name))
    assert told.startswith(f"it needs the package {package}; run: ")
    assert told.endswith(" -m pip install 'triton-priority-router[tools]'")
