# SPDX-License-Identifier: Apache-2.0
"""Queues in front of any model: rules that hold whoever calls it, and those that an executor alone has."""

import pytest

from .written import codes, found, model, router, scorer

LEVELS = "priority_levels: 2 default_priority_level: 2"


def queue(text, size=4, groups=""):
    return codes(model("other", f'backend: "python" max_batch_size: {size} {groups} dynamic_batching {{ {text} }}'))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (LEVELS, []),
        ("priority_levels: 1 default_priority_level: 1", []),
        ("default_priority_level: 7", []),
        ("priority_queue_policy { key: 9 value { } }", []),
        ("priority_levels: 2", ["PR103"]),
        ("priority_levels: 2 default_priority_level: 3", ["PR103"]),
        ("priority_levels: 2 default_priority_level: 1", ["PR011"]),
        (LEVELS + " priority_queue_policy { key: 0 value { } }", ["PR104"]),
        (
            LEVELS + " priority_queue_policy { key: 3 value { } } priority_queue_policy { key: 4 value { } }",
            ["PR104"] * 2,
        ),
        (LEVELS + " preserve_ordering: true", ["PR106"]),
        ("priority_levels: 1 default_priority_level: 1 preserve_ordering: true", []),
        ("preserve_ordering: true", []),
        ("preserve_ordering: true default_queue_policy { timeout_action: DELAY }", []),
        (
            "preserve_ordering: true default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 5000 }",
            ["PR106", "PR111"],
        ),
        ("max_queue_delay_microseconds: 100", []),
        ("preferred_batch_size: [ 1, 4 ]", []),
        ("preferred_batch_size: [ 5 ]", ["PR114"]),
        ("preferred_batch_size: [ 0 ]", ["PR114"]),
        ("default_queue_policy { allow_timeout_override: true }", ["PR121"]),
        ("default_queue_policy { allow_timeout_override: true default_timeout_microseconds: 1000 }", []),
        ("default_queue_policy { default_timeout_microseconds: 999 }", ["PR010"]),
        ("default_queue_policy { default_timeout_microseconds: 1 }", ["PR010"]),
        ("default_queue_policy { timeout_action: DELAY }", []),
        ("default_queue_policy { max_queue_size: 3 }", ["PR112"]),
        ("default_queue_policy { max_queue_size: 1 }", ["PR112"]),
        ("default_queue_policy { max_queue_size: 4 }", []),
        (LEVELS + " priority_queue_policy { key: 2 value { max_queue_size: 3 } }", ["PR112"]),
    ],
)
def test_rules_about_any_model(text, expected):
    assert [code.split()[0] for code in queue(text)] == expected


def test_a_finding_has_the_place_of_its_queue_policy():
    text = f"""backend: "python" dynamic_batching {{ {LEVELS}
        default_queue_policy {{ default_timeout_microseconds: 7 }}
        priority_queue_policy {{ key: 2 value {{ default_timeout_microseconds: 8 }} }}
        priority_queue_policy {{ key: 1 value {{ default_timeout_microseconds: 9 }} }} }}"""
    field, block = "default_timeout_microseconds", "dynamic_batching"
    assert [finding.place.path for finding in found(model("other", text))] == [
        (block, "default_queue_policy", field),
        (block, "priority_queue_policy", "1", field),
        (block, "priority_queue_policy", "2", field),
    ]


def test_without_batches_a_whole_block_is_right():
    full = (
        LEVELS
        + """ default_queue_policy { max_queue_size: 1 }
        priority_queue_policy { key: 1 value { max_queue_size: 1 default_timeout_microseconds: 1000 } }"""
    )
    assert queue(full, size=0) == []


@pytest.mark.parametrize(
    ("text", "groups", "decays"),
    [
        ("default_queue_policy { max_queue_size: 9 }", "instance_group { kind: KIND_CPU count: 4 }", True),
        (
            "default_queue_policy { default_timeout_microseconds: 9000 }",
            "instance_group { gpus: [ 0, 1 ] count: 1 }",
            True,
        ),
        (LEVELS, "instance_group { count: 1 } instance_group { count: 1 }", True),
        (LEVELS, "instance_group { count: 1 } instance_group { count: 3 passive: true }", False),
        (LEVELS, "instance_group { count: 1 }", False),
        ("priority_levels: 1 default_priority_level: 1", "instance_group { count: 4 }", True),
        ("priority_queue_policy { key: 1 value { max_queue_size: 9 } }", "instance_group { count: 4 }", False),
        ("", "instance_group { count: 4 }", False),
    ],
)
def test_a_queue_delay_matters_on_other_models_where_throughput_decays(text, groups, decays):
    assert queue(f"max_queue_delay_microseconds: 2000 {text}", groups=groups) == (["PR108 other"] if decays else [])


@pytest.mark.parametrize(
    ("size", "preferred", "what", "fix"),
    [
        (4, "0, 1, 4, 5", "max_batch_size: 4:", "write preferred_batch_size: [ 1, 4 ] in other/config.pbtxt"),
        (4, "8", "max_batch_size: 4:", "remove preferred_batch_size: [ 8 ] from other/config.pbtxt"),
        (0, "2", "no max_batch_size:", "remove preferred_batch_size: [ 2 ] from other/config.pbtxt"),
    ],
)
def test_preferred_sizes_that_fit_are_kept(size, preferred, what, fix):
    text = f'backend: "onnxruntime" max_batch_size: {size} dynamic_batching {{ preferred_batch_size: [ {preferred} ] }}'
    (finding,) = found(model("other", text))
    assert what in finding.what
    assert finding.fix == fix


@pytest.mark.parametrize(
    ("default", "said"), [("", "no default_priority_level"), ("default_priority_level: 9", ": 9:")]
)
def test_a_default_level_is_said_as_it_is_written(default, said):
    (finding,) = found(model("other", f'backend: "python" dynamic_batching {{ priority_levels: 2 {default} }}'))
    assert said in finding.what


def test_levels_in_plain_mode_are_to_go_and_need_no_policies():
    assert codes(router(mode="plain"), scorer(text=f"dynamic_batching {{ {LEVELS} }}")) == ["PR304 scorer"]


def test_a_queue_delay_is_told_once_and_stronger_with_several_instances():
    delayed = "dynamic_batching { max_queue_delay_microseconds: 2000 default_queue_policy { max_queue_size: 9 } }"
    for count, stronger in ((1, False), (4, True)):
        groups = f"instance_group {{ kind: KIND_CPU count: {count} }}"
        plain = router(mode="plain", top="", instances=count)
        delay, limit = found(plain, scorer(text=delayed, groups=groups))
        assert [delay.rule.code, limit.rule.code] == ["PR108", "PR109"]
        assert ("decays" in delay.what) is stronger


def test_every_level_needs_its_policy_and_of_very_many_those_that_are_used():
    block = "dynamic_batching {{ priority_levels: {0} default_priority_level: {0} {1} }}"
    used = "".join(f"priority_queue_policy {{ key: {level} value {{ }} }}" for level in (1, 2))
    (finding,) = found(router(), scorer(text=block.format(4, used)))
    assert finding.rule.code == "PR105"
    assert "levels 3 and 4" in finding.what
    many = used + "priority_queue_policy { key: 1000 value { } }"
    assert codes(router(), scorer(text=block.format(1000, many))) == []
    assert codes(router(), scorer(text=block.format(1000, used))) == ["PR105 scorer"]


@pytest.mark.parametrize(
    ("default", "keys", "expected"),
    [
        (1, (1,), {"PR102": "priority_levels: 2"}),
        (2, (1, 2), {"PR102": "priority_levels: 2"}),
        (3, (1, 2), {"PR102": "default_priority_level: 2", "PR103": "default_priority_level: 2"}),
        (0, (1, 3), {"PR102": "default_priority_level: 2", "PR103": "default_priority_level: 2", "PR104": "key: 3"}),
    ],
)
def test_where_levels_are_missing_every_fix_is_for_those_that_are_asked_for(default, keys, expected):
    policies = " ".join(f"priority_queue_policy {{ key: {key} value {{ }} }}" for key in keys)
    block = f"dynamic_batching {{ priority_levels: 1 default_priority_level: {default} {policies} }}"
    fixes = {finding.rule.code: finding.fix for finding in found(router(), scorer(text=block))}
    assert set(fixes) == set(expected)
    for code, text in expected.items():
        assert text in fixes[code]
