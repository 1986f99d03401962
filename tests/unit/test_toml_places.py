# SPDX-License-Identifier: Apache-2.0
import json
import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from priority_router.toml_places import places

ROOT = Path(__file__).parents[2]


def lines(text):
    """Path to ``line:column`` and what stands there."""
    return {
        path: (text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at), text[at:].split("\n")[0])
        for path, at in places(text).items()
    }


def test_keys_tables_and_elements():
    text = """# mode = "in a comment"
mode = "levels" # executor = 1
class_sources = [ "tensor", # "x"
  "parameter",
]

[executor_shape]
  instances=1

[[class]]
name = "online"
[[ class ]]
"name" = 'x = 1 # no'
level = 2
"""
    assert lines(text) == {
        ("mode",): (2, 1, 'mode = "levels" # executor = 1'),
        ("class_sources",): (3, 1, 'class_sources = [ "tensor", # "x"'),
        ("class_sources", 0): (3, 19, '"tensor", # "x"'),
        ("class_sources", 1): (4, 3, '"parameter",'),
        ("executor_shape",): (7, 1, "[executor_shape]"),
        ("executor_shape", "instances"): (8, 3, "instances=1"),
        ("class",): (10, 1, "[[class]]"),
        ("class", 0): (10, 1, "[[class]]"),
        ("class", 0, "name"): (11, 1, 'name = "online"'),
        ("class", 1): (12, 1, "[[ class ]]"),
        ("class", 1, "name"): (13, 1, "\"name\" = 'x = 1 # no'"),
        ("class", 1, "level"): (14, 1, "level = 2"),
    }


def test_other_spellings_of_the_same():
    text = 'executor_shape.instances = 1\nclass = [ { name = "a", level = 1 }, { name = "b" } ]\n'
    found = lines(text)
    assert found["executor_shape", "instances"][:2] == (1, 16)
    assert found["class", 0, "level"][2].startswith("level = 1 }")
    assert found["class", 1, "name"][2] == 'name = "b" } ]'


@pytest.mark.parametrize(
    "value",
    [
        '"""\nmode = 1\n[x]\n"""',
        "'''\nmode = 1\n'''",
        '"""a\\"""\nmode = 1\n"""""',
        '"\\" mode = 1"',
        "'\\'",
        "[ [ 1, 2 ], [ '''\nmode = 1''' ] ]",
        "1979-05-27 07:32:00",
    ],
)
def test_what_stands_inside_a_value_is_no_key(value):
    text = f"before = {value}\nmode = 2\n"
    tomllib.loads(text)
    assert text[places(text)["mode",] :] == "mode = 2\n"


@pytest.mark.parametrize(
    "text", ["mode", "mode = ", "mode = [1", "[x", "[[x]", "= 1", 'a = "', "a = '''", "a = {b", "}"]
)
def test_what_is_broken_is_no_reason_to_fail(text):
    assert places(f"first = 1\n{text}")["first",] == 0


@given(st.text(alphabet="ab=.[]{}\"'#\\, \n1"))
@example("[" * 5000)
def test_nothing_makes_it_fail_or_go_on_for_ever(text):
    assert all(0 <= at < len(text) for at in places(text).values())


NAMES = st.text(alphabet="abc-_1", min_size=1, max_size=3)
VALUES = st.recursive(
    st.one_of(st.integers(), st.booleans(), st.text(alphabet="a\"'#=[\n \\", max_size=6)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=8,
)


def written(value):
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {written(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list):
        return "[ " + ", ".join(map(written, value)) + " ]"
    return json.dumps(value)


def paths(value, path=()):
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        yield (*path, key)
        if isinstance(inner, dict | list):
            yield from paths(inner, (*path, key))


@given(
    st.dictionaries(NAMES, VALUES), st.lists(st.tuples(NAMES, st.dictionaries(NAMES, VALUES, max_size=3)), max_size=4)
)
def test_every_key_that_tomllib_reads_has_its_place(top, tables):
    text = "".join(f"{key} = {written(value)} # x = 1\n" for key, value in top.items())
    for name, table in tables:
        text += f"\n[[{name}]]\n" + "".join(f"  {key}={written(value)}\n" for key, value in table.items())
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return  # a table of a name that the top has as well
    found = places(text)
    assert set(found) == set(paths(document))
    for path, at in found.items():
        if isinstance(path[-1], str):
            assert re.match(rf"(\[\[)?{re.escape(path[-1])}", text[at:])


def test_the_shipped_policy():
    text = (ROOT / "model_repository/router/1/policy.toml").read_text()
    assert set(places(text)) == set(paths(tomllib.loads(text)))
