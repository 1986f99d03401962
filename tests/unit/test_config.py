# SPDX-License-Identifier: Apache-2.0
"""policy.toml: every default, every check, every remedy."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import pytest
from priority_router import policy_fields
from priority_router.config import (
    LATEST_VERSION,
    ClassSource,
    Mode,
    RouterPolicy,
    SourceKind,
    load_policy,
    parse_policy,
)
from priority_router.core.values import SECOND, SchedulingPolicy, TimeoutAction, TrafficClass
from priority_router.errors import PolicyError

TOP = 'policy_version = 1\nexecutor = "model"\n'
SHAPE = "[executor_shape]\ninstances = 2\nmax_batch_size = 8\n"
ONLINE = '[[class]]\nname = "online"\nlevel = 1\n'
BULK = '[[class]]\nname = "bulk"\nlevel = 2\n'
LEAST = TOP + SHAPE + ONLINE + BULK
WANTED_SOURCES = 'write a list of "tensor", "parameter" and "header:NAME", each at most once'


def fault(text: str) -> str:
    with pytest.raises(PolicyError) as caught:
        parse_policy(text, "some/policy.toml")
    message = str(caught.value)
    assert message.startswith("some/policy.toml: ")
    return message


LEAST_POLICY = RouterPolicy(
    scheduling=SchedulingPolicy(
        classes=(TrafficClass("online", 1), TrafficClass("bulk", 2)),
        instances=2,
        max_batch_size=8,
        levels=True,
        executor_timeout=60 * SECOND,
        max_fill_slowdown=0.1,
        batch_efficiency=0.95,
        overtaking=False,
        shared_executor=False,
    ),
    mode=Mode.LEVELS,
    executor="model",
    executor_version=LATEST_VERSION,
    default_class="bulk",
    unknown_class_is_default=False,
    class_sources=(ClassSource(SourceKind.TENSOR), ClassSource(SourceKind.PARAMETER)),
    guard_executor=True,
)


def test_the_least_policy_gets_every_default() -> None:
    assert parse_policy(LEAST) == LEAST_POLICY


def test_every_key_is_read() -> None:
    policy = parse_policy(
        'policy_version = 1\nmode = "plain"\nexecutor = "other"\nexecutor_version = 3\ndefault_class = "online"\n'
        + 'unknown_class = "default"\nclass_sources = ["header:X-Class", "tensor"]\nguard_executor = false\n'
        + "executor_timeout_microseconds = 5000000\nmax_fill_slowdown = 0\nbatch_efficiency = 1\n"
        + "[executor_shape]\ninstances = 3\nmax_batch_size = 0\n"
        + ONLINE
        + "max_queue_size = 32\ndefault_timeout_microseconds = 50000\nallow_timeout_override = false\n"
        + 'timeout_action = "DELAY"\n'
        + BULK
    )
    assert policy == RouterPolicy(
        scheduling=SchedulingPolicy(
            classes=(TrafficClass("online", 1, 32, 50_000_000, False, TimeoutAction.DELAY), TrafficClass("bulk", 2)),
            instances=3,
            max_batch_size=0,
            levels=False,
            executor_timeout=5 * SECOND,
            max_fill_slowdown=0.0,
            batch_efficiency=1.0,
        ),
        mode=Mode.PLAIN,
        executor="other",
        executor_version=3,
        default_class="online",
        unknown_class_is_default=True,
        class_sources=(ClassSource(SourceKind.HEADER, "x-class"), ClassSource(SourceKind.TENSOR)),
        guard_executor=False,
    )


def test_keys_that_only_levels_mode_has_are_read() -> None:
    scheduling = replace(LEAST_POLICY.scheduling, overtaking=True, shared_executor=True)
    policy = parse_policy("overtaking = true\nshared_executor = true\nguard_executor = true\n" + LEAST)
    assert policy == replace(LEAST_POLICY, scheduling=scheduling)


@pytest.mark.parametrize(
    ("line", "guarded"),
    [
        ("", True),
        ("shared_executor = true\n", False),
        ("shared_executor = true\nguard_executor = true\n", True),
        ("guard_executor = false\n", False),
    ],
)
def test_the_guard_follows_shared_executor_unless_it_is_written(line: str, guarded: bool) -> None:
    assert parse_policy(line + LEAST).guard_executor is guarded


def test_the_default_class_is_the_last_of_the_least_urgent() -> None:
    equal = BULK + BULK.replace("bulk", "batch") + ONLINE
    assert parse_policy(TOP + SHAPE + equal).default_class == "batch"


@pytest.mark.parametrize(
    ("line", "shown", "remedy"),
    [
        ('mode = "fast"', "'fast'", 'write "levels" or "plain"'),
        ("executor_version = 0", "0", "write a value of at least 1"),
        ('default_class = "gold"', "'gold'", "write one of online, bulk"),
        ('unknown_class = "drop"', "'drop'", 'write "reject" or "default"'),
        ("class_sources = []", "[]", WANTED_SOURCES),
        ('class_sources = ["tensor", "tensor"]', "['tensor', 'tensor']", WANTED_SOURCES),
        ('class_sources = ["header:a", "header:A"]', "['header:a', 'header:A']", WANTED_SOURCES),
        ('class_sources = ["header:"]', "['header:']", WANTED_SOURCES),
        ('class_sources = ["header:a b"]', "['header:a b']", WANTED_SOURCES),
        ('class_sources = ["cookie"]', "['cookie']", WANTED_SOURCES),
        ('class_sources = "tensor"', "'tensor'", "write a list of texts"),
        ("executor_timeout_microseconds = 60", "60", "write a value of at least"),
        ("max_fill_slowdown = -0.1", "-0.1", "write a value of at least 0"),
        ("max_fill_slowdown = inf", "inf", "write a value of at least 0"),
        ("batch_efficiency = 0", "0", "write a value above 0 and at most 1"),
        ("batch_efficiency = nan", "nan", "write a value above 0 and at most 1"),
        ("overtaking = 1", "1", "write a boolean"),
        ('overtaking = true\nmode = "plain"', "True", 'write overtaking = false, or mode = "levels"'),
        ('shared_executor = true\nmode = "plain"', "True", 'write shared_executor = false, or mode = "levels"'),
    ],
)
def test_a_wrong_value_at_the_top_is_named_with_what_to_write(line: str, shown: str, remedy: str) -> None:
    key = line.partition(" ")[0]
    assert f"{key} = {shown} cannot be used; {remedy}" in fault(f"{line}\n{LEAST}")


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("policy_version = 1\n", "", "policy_version is missing; write it: Form of this file."),
        ("policy_version = 1", "policy_version = 2", "policy_version = 2 cannot be used"),
        ('executor = "model"\n', "", "executor is missing"),
        ('"model"', '" "', "executor = ' ' cannot be used; write the name of the model to call"),
        ('"model"', "7", "executor = 7 cannot be used; write a text"),
        ("instances = 2\n", "", "executor_shape.instances is missing"),
        ("instances = 2", "instances = 0", "instances = 0 cannot be used; write a value from 1"),
        ("instances = 2", "instances = true", "instances = True cannot be used; write an integer"),
        ("max_batch_size = 8", "max_batch_size = 8.0", "max_batch_size = 8.0 cannot be used"),
        (SHAPE, "", "executor_shape missing cannot be used; write a table [executor_shape]"),
        (SHAPE + ONLINE + BULK, "class = 3\n" + SHAPE, "class = 3 cannot be used; write at least one table [[class]]"),
        (ONLINE + BULK, "", "class missing cannot be used; write at least one table [[class]]"),
        ("level = 2", "level = 0", "class[1].level = 0 cannot be used; write a value from 1"),
        ("level = 2", "", "class[1].level is missing; write it: 1 is the most urgent"),
        ('"bulk"', '"a b"', "class[1].name = 'a b' cannot be used; write 1 to 64 letters"),
        ('"bulk"', '"_x"', "class[1].name = '_x' cannot be used; write 1 to 64 letters"),
        ('"bulk"', '"online"', "name = 'online' cannot be used; write a name that no other"),
        (
            BULK,
            BULK + "max_queue_size = -1\n",
            "class[1].max_queue_size = -1 cannot be used; write a value of at least 0",
        ),
        (
            BULK,
            BULK + "default_timeout_microseconds = 0.5\n",
            "class[1].default_timeout_microseconds = 0.5 cannot be used",
        ),
        (BULK, BULK + 'timeout_action = "reject"\n', "timeout_action = 'reject' cannot be used; write"),
        ('"model"', "model", "not valid TOML:"),
    ],
)
def test_what_is_missing_or_wrong_is_named_with_what_to_write(right: str, wrong: str, said: str) -> None:
    assert right in LEAST
    assert said in fault(LEAST.replace(right, wrong))


@pytest.mark.parametrize(
    ("above", "below", "said"),
    [
        ("shared_exector = true", "", "unknown key shared_exector = True: did you mean shared_executor?"),
        ("", "max_queue_sise = 3", "unknown key class[1].max_queue_sise = 3: did you mean max_queue_size?"),
        ("", "priority = 1", "unknown key class[1].priority = 1: did you mean level?"),
        ("", "timeout_microseconds = 5", "did you mean default_timeout_microseconds?"),
        ("instances = 2", "", "unknown key instances = 2: instances belongs in [executor_shape]"),
        ("max_queue_size = 2", "", "unknown key max_queue_size = 2: max_queue_size belongs in [[class]]"),
        ("", "overtaking = true", "overtaking belongs in the top of the file"),
        ("zzz = 1", "", "unknown key zzz = 1: no such key; the nearest is"),
    ],
)
def test_an_unknown_key_is_an_error_with_the_nearest_one(above: str, below: str, said: str) -> None:
    assert said in fault(f"{above}\n{LEAST}{below}\n")


def test_a_file_is_read_as_utf8(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text("# größer\n" + LEAST, encoding="utf-8")
    assert load_policy(path).executor == "model"
    path.write_bytes(b"# \xff\n")
    with pytest.raises(PolicyError, match="cannot be read"):
        load_policy(path)
    with pytest.raises(PolicyError, match=r"no such file; a router's version folder must hold policy\.toml"):
        load_policy(tmp_path / "none.toml")


def test_the_defaults_of_the_file_are_those_of_the_core() -> None:
    """Two places know them; a core that is used without a file must behave as one with an empty one."""
    core = {field.name: field.default for field in fields(SchedulingPolicy)}
    for field in policy_fields.TOP_LEVEL:
        name = field.key.removesuffix("_microseconds")
        if name in core:
            factor = 1000 if field.key.endswith("_microseconds") else 1
            assert field.default * factor == core[name], field.key
    of_class = {field.name: field.default for field in fields(TrafficClass)}
    for field in policy_fields.CLASS:
        if field.default is not policy_fields.REQUIRED:
            default = of_class[field.key.removesuffix("_microseconds")]
            assert field.default == (default.value if isinstance(default, TimeoutAction) else default), field.key
