# SPDX-License-Identifier: Apache-2.0
"""What a file says, and where each part of it stands."""

from pathlib import Path

import pytest
from priority_router.ops.pbtxt.document import Document, Octal, Position, Repeat

_TEXT = """\
name: "m"  # comment { "
max_batch_size: 0
input [
  { name: "a" dims: [ 1, 2 ] },
  < name: "b" dims: 3 dims: [ 010 ] >
]
instance_group { count: 1 } instance_group { count: 0x02 }
dynamic_batching {
  priority_levels: 3
  priority_queue_policy [ { key: 1 value { max_queue_size: 8 } }, { key: 0x2 } ]
  priority_queue_policy { value: { max_queue_size: 07 default_timeout_microseconds: 0100 } key: 1 }
}
parameters { key: 'p' 'q' value { string_value: "1" } }
metric_tags { key: "t" value: "v" } metric_tags { key: "\\164" value: "w" } metric_tags { key: "t" }
"""


@pytest.fixture
def document():
    return Document.parse(_TEXT, "m/config.pbtxt")


@pytest.mark.parametrize(
    ("path", "place"),
    [
        (("name",), (1, 1)),
        (("max_batch_size",), (2, 1)),
        (("input",), (3, 1)),
        (("input", 0), (4, 3)),
        (("input", 0, "dims"), (4, 15)),
        (("input", 0, "dims", 1), (4, 26)),
        (("input", 1), (5, 3)),
        (("input", 1, "dims", 0), (5, 15)),
        (("input", 1, "dims", 1), (5, 31)),
        (("instance_group", 1), (7, 29)),
        (("instance_group", 1, "count"), (7, 46)),
        (("dynamic_batching", "priority_levels"), (9, 3)),
        (("dynamic_batching", "priority_queue_policy"), (10, 3)),
        (("dynamic_batching", "priority_queue_policy", "2"), (10, 67)),
        (("dynamic_batching", "priority_queue_policy", "1"), (11, 3)),
        (("dynamic_batching", "priority_queue_policy", "1", "max_queue_size"), (11, 36)),
        (("parameters", "pq", "string_value"), (13, 35)),
        (("metric_tags", "t"), (14, 76)),
    ],
)
def test_the_place_of_what_is_written(document, path, place):
    assert document.written(path)
    assert document.position(path) == Position(*place)


@pytest.mark.parametrize(
    ("path", "place"),
    [
        (("output",), (1, 1)),
        (("input", 2), (3, 1)),
        (("input", 0, "reshape"), (4, 3)),
        (("name", "further"), (1, 1)),
        (("dynamic_batching", "default_queue_policy", "max_queue_size"), (8, 1)),
        (("dynamic_batching", "priority_queue_policy", "3"), (10, 3)),
        (("dynamic_batching", "priority_queue_policy", "2", "max_queue_size"), (10, 67)),
        (("dynamic_batching", "priority_queue_policy", "1", "timeout_action"), (11, 3)),
        (("parameters", "pq", "value"), (13, 1)),
    ],
)
def test_what_is_not_written_is_at_the_deepest_part_above_it(document, path, place):
    assert not document.written(path)
    assert document.position(path) == Position(*place)


def test_the_whole_file_is_its_beginning(document):
    assert document.written(())
    assert document.position(()) == Position(1, 1)


def test_columns_are_characters():
    document = Document.parse('name: "\u00e9\ud55c\U0001f600" max_batch_size: 1 # \udcff\r\n\tplatform: "x"', "f")
    assert document.position(("max_batch_size",)) == Position(1, 13)
    assert document.position(("platform",)) == Position(2, 2)


def test_keys_written_again_with_all_their_places(document):
    assert document.repeats() == [
        Repeat(("dynamic_batching", "priority_queue_policy", "1"), (Position(10, 27), Position(11, 3))),
        Repeat(("metric_tags", "t"), (Position(14, 1), Position(14, 37), Position(14, 76))),
    ]


def test_octal_numbers_that_would_be_others(document):
    assert document.octals() == [
        Octal(("input", 1, "dims", 1), "010", 8, Position(5, 31)),
        Octal(
            ("dynamic_batching", "priority_queue_policy", "1", "default_timeout_microseconds"),
            "0100",
            64,
            Position(11, 85),
        ),
    ]


def test_the_key_of_a_map_may_be_octal():
    text = "dynamic_batching { priority_queue_policy { key: 012 value { } } }"
    path = ("dynamic_batching", "priority_queue_policy", "10")
    document = Document.parse(text, "f")
    assert document.written(path)
    assert document.octals() == [Octal(path, "012", 10, Position(1, 49))]


def test_its_meaning_as_json(document):
    found = document.as_json()
    assert "max_batch_size" not in found
    assert found["instance_group"] == [{"count": 1}, {"count": 2}]
    assert found["dynamic_batching"] == {
        "priority_levels": "3",
        "priority_queue_policy": {
            "1": {"max_queue_size": 7, "default_timeout_microseconds": "64"},
            "2": {},
        },
    }
    assert found["metric_tags"] == {"t": ""}


def test_its_file_and_its_bytes(tmp_path):
    file = tmp_path / "config.pbtxt"
    file.write_bytes(b"name: 'x'\r\n# \xff\n\n\n")
    document = Document.read(file)
    assert document.path == str(file)
    assert document.encode() == file.read_bytes()


@pytest.mark.parametrize("path", sorted(Path(__file__).parents[4].glob("model_repository/*/config.pbtxt")), ids=str)
def test_the_models_of_this_repository_can_be_read(path):
    document = Document.read(path)
    assert document.config.name == path.parent.name
    assert not document.repeats()
    assert not document.octals()


@pytest.mark.parametrize("text", ["", "\n", "# comment", " \t\v\f\r\n"])
def test_a_file_without_fields(text):
    document = Document.parse(text, "f")
    assert document.as_json() == {}
    assert document.position(("name",)) == Position(1, 1)
