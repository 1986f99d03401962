# SPDX-License-Identifier: Apache-2.0
import pytest
from unit.ops.lint.repositories import clean_pair, found

POLICY = """policy_version = 1
executor = "executor"

[executor_shape]
instances = 1
max_batch_size = 4

[[class]]
name = "interactive"
level = 1
max_queue_size = 64

[[class]]
name = "bulk"
level = 2
max_queue_size = 64
"""


@pytest.fixture
def repository(tmp_path):
    return clean_pair(tmp_path / "models", policy_text=POLICY)


def policy_place(repository, old, new):
    path = repository / "router" / "1" / "policy.toml"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))
    ((place, code),) = found(repository)
    file, _, position = place.partition(":")
    assert (file, code) == ("router/1/policy.toml", "PR005")
    return position


@pytest.mark.parametrize(
    ("old", "new", "position"),
    [
        ('executor = "executor"', "executor = 1", "2:1"),
        ('executor = "executor"', 'exekutor = "executor"', "2:1"),
        ('executor = "executor"', "", "1:1"),
        ("instances = 1", "  instances = 0", "5:3"),
        ("instances = 1", "'instances' = 0", "5:1"),
        ("max_batch_size = 4", "", "4:1"),
        ('name = "bulk"', 'name = "bulk"\npriority = 1', "15:1"),
        ('name = "bulk"', 'name = "bulk"\n"a key" = 1', "15:1"),
        ('executor = "executor"', 'executor = "executor"\n"a key" = 1', "3:1"),
        ("level = 2", 'level = "2"', "15:1"),
        ("level = 2", "", "13:1"),
        ('name = "bulk"', 'name = "interactive"', "8:1"),
        ("[[class]]", "[class]", "13:8"),
        ("instances = 1", "instances = = 1", "5:13"),
        ('name = "bulk"', 'name = "bulk', "14:13"),
        ("max_queue_size = 64\n\n", 'max_queue_size = """64\n\n', "16:20"),
    ],
)
def test_what_is_wrong_with_a_policy_has_its_place(repository, old, new, position):
    assert policy_place(repository, old, new) == position


def test_a_policy_that_is_no_text_has_its_beginning(repository):
    (repository / "router" / "1" / "policy.toml").write_bytes(b"# \xff\n" + POLICY.encode())
    assert found(repository) == [("router/1/policy.toml:1:1", "PR005")]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_ends_and_a_byte_order_mark_move_nothing(repository, end, mark):
    text = f"{mark}# The lane's policy\n" + POLICY.replace("level = 2\nmax_queue_size = 64", "level = 2").replace(
        "\n", end
    )
    (repository / "router" / "1" / "policy.toml").write_bytes(text.encode())
    assert found(repository) == [("router/1/policy.toml:14:1", "PR307")]


def test_a_key_that_is_not_written_has_the_place_of_what_it_belongs_into(repository):
    path = repository / "executor" / "config.pbtxt"
    path.write_text("# owner: Ümit\n" + path.read_text().replace("  default_priority_level: 2\n", ""))
    ((place, code),) = found(repository)
    line = path.read_text().splitlines()[int(place.split(":")[1]) - 1]
    assert (code, line) == ("PR103", "dynamic_batching {")


def test_columns_count_letters(repository):
    path = repository / "executor" / "config.pbtxt"
    key = 'parameters { key: "ümlaut" value { string_value: "1" } } '
    path.write_text(path.read_text().replace("max_batch_size: 4", f"{key}max_batch_size: 010"))
    places = {code: place for place, code in found(repository)}
    assert places["PR007"] == f"executor/config.pbtxt:3:{len(key) + 17}"
