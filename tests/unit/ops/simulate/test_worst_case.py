# SPDX-License-Identifier: Apache-2.0
"""``priority-router simulate --worst-case`` from its words to its table and file."""

import json

import pytest
from priority_router.errors import PriorityRouterError
from priority_router.ops.simulate import command, worst_case

POLICY = """policy_version = 1
executor = "executor"
max_execution_microseconds = 50000
[executor_shape]
instances = 1
max_batch_size = 4
[[class]]
name = "online"
level = 1
max_queue_size = 4
[[class]]
name = "background"
level = 2
max_queue_size = 10
"""
AGING = POLICY + "max_wait_microseconds = 300000\n"
ROUTER = 'backend: "priority_router"\nmax_batch_size: 8\n'


@pytest.fixture
def router(tmp_path):
    """A router's folder in a repository."""
    (tmp_path / "router" / "1").mkdir(parents=True)
    (tmp_path / "router" / "config.pbtxt").write_text(ROUTER)
    (tmp_path / "router" / "1" / "policy.toml").write_text(AGING)
    return tmp_path / "router"


def asked(policy, *words, tmp_path):
    target = tmp_path / "bounds.json"
    assert command.main(["--worst-case", "--policy", str(policy), *words, "--json", str(target)]) == 0
    return json.loads(target.read_text())


def test_a_table_of_the_classes_and_what_it_rests_on(router, capsys):
    assert command.main(["--policy", str(router / "1" / "policy.toml"), "--worst-case"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["class", "to", "its", "start", "to", "its", "answer"]
    assert lines[1].split() == ["online", "1,400.000", "ms", "1,500.000", "ms"], "2 in flight, 3 and 10 of 2 parts"
    assert lines[2].split() == ["background", "1,400.000", "ms", "1,500.000", "ms"]
    assert "while no dispatch takes longer than 50.000 ms or fails" in lines
    assert f"for requests of at most 8 rows (max_batch_size of {router / 'config.pbtxt'})" in lines
    assert not any("missing" in line for line in lines)


def test_the_same_as_json(router, tmp_path):
    found = asked(router / "1" / "policy.toml", tmp_path=tmp_path)
    assert found == {
        "schema": worst_case.SCHEMA,
        "max_execution_microseconds": 50_000,
        "largest_request_rows": 8,
        "classes": [
            {"class": name, "start_microseconds": 1_400_000, "answer_microseconds": 1_500_000, "missing": []}
            for name in ("online", "background")
        ],
    }


@pytest.mark.parametrize(("words", "rows"), [(["--largest-request", "4"], 4), (["--router-config"], 12)])
def test_the_largest_request_may_come_from_elsewhere(router, tmp_path, words, rows):
    other = tmp_path / "other.pbtxt"
    other.write_text('backend: "priority_router" max_batch_size: 12')
    words = [*words, str(other)] if words == ["--router-config"] else words
    found = asked(router / "1" / "policy.toml", *words, tmp_path=tmp_path)
    assert found["largest_request_rows"] == rows
    assert found["classes"][0]["start_microseconds"] == (2 + 13 * (rows // 4)) * 50_000


def test_a_router_without_a_batch_axis_takes_one_row(router, tmp_path):
    (router / "config.pbtxt").write_text('backend: "priority_router"\n')
    assert asked(router / "1" / "policy.toml", tmp_path=tmp_path)["largest_request_rows"] == 1


def test_what_is_missing_is_said_with_its_place(tmp_path, capsys):
    policy = tmp_path / "policy.toml"
    policy.write_text(POLICY.replace("max_execution_microseconds = 50000\n", ""))
    found = asked(policy, tmp_path=tmp_path)
    online, background = found["classes"]
    assert online["start_microseconds"] is None
    assert [(each["file"], each["key"], each["class"]) for each in background["missing"]] == [
        ("policy.toml", "max_execution_microseconds", None),
        ("config.pbtxt", "max_batch_size", None),
        ("policy.toml", "max_wait_microseconds", "background"),
    ]
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["online", "unbounded", "unbounded"]
    assert "background: missing: max_wait_microseconds of class background: " in "\n".join(lines)
    assert "online: missing: max_batch_size of the router's config.pbtxt (--router-config or --largest-request)" in (
        "\n".join(lines)
    )


def test_files_that_cannot_be_used_are_named(router, tmp_path):
    with pytest.raises(PriorityRouterError, match=r"gone\.pbtxt: cannot be read"):
        asked(router / "1" / "policy.toml", "--router-config", str(tmp_path / "gone.pbtxt"), tmp_path=tmp_path)
    (router / "config.pbtxt").write_text("max_batch_size: many")
    with pytest.raises(PriorityRouterError, match=r"config\.pbtxt:1:17"):
        asked(router / "1" / "policy.toml", tmp_path=tmp_path)
    with pytest.raises(PriorityRouterError, match="no such file"):
        asked(tmp_path / "none.toml", tmp_path=tmp_path)
    (router / "1" / "policy.toml").write_text(AGING.replace("level = 2", "level = 0"))
    with pytest.raises(PriorityRouterError, match=r"policy\.toml:13: class\[1\]\.level = 0"):
        asked(router / "1" / "policy.toml", tmp_path=tmp_path)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("config.pbtxt", 'backend: "python" max_batch_size: 8', "its backend is 'python', so it is no router"),
        ("config.pbtxt", "max_batch_size: 8", "its backend is '', so it is no router"),
        ("policy.toml", AGING, r"policy\.toml: that is TOML; name the router's config\.pbtxt"),
    ],
)
def test_the_configuration_of_anything_but_a_router_is_refused(router, tmp_path, name, text, said):
    other = tmp_path / name
    other.write_text(text)
    with pytest.raises(PriorityRouterError, match=said):
        asked(router / "1" / "policy.toml", "--router-config", str(other), tmp_path=tmp_path)


def test_it_needs_a_policy_and_takes_one_source_of_the_largest_request(router, capsys):
    for words in (
        ["--worst-case"],
        ["--worst-case", "--policy", "p", "--largest-request", "1", "--router-config", "c"],
        ["--worst-case", "--policy", "p", "--largest-request", "0"],
    ):
        with pytest.raises(SystemExit) as stopped:
            command.main(words)
        assert stopped.value.code == 2
    assert "--policy" in capsys.readouterr().err
