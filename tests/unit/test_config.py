# SPDX-License-Identifier: Apache-2.0
"""policy.toml: every default, every check, every remedy."""

from __future__ import annotations

from dataclasses import fields
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


def fault(text: str) -> str:
    with pytest.raises(PolicyError) as caught:
        parse_policy(text, "some/policy.toml")
    message = str(caught.value)
    assert message.startswith("some/policy.toml: ")
    return message


def test_the_least_policy_gets_every_default() -> None:
    policy = parse_policy(LEAST)
    assert policy == RouterPolicy(
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


def test_every_key_is_read() -> None:
    policy = parse_policy(
        TOP
        + 'mode = "levels"\nexecutor_version = 3\ndefault_class = "online"\nunknown_class = "default"\n'
        + 'class_sources = ["header:X-Class", "tensor"]\nexecutor_timeout_microseconds = 5000000\n'
        + "max_fill_slowdown = 0\nbatch_efficiency = 1\novertaking = true\nshared_executor = true\n"
        + "guard_executor = true\n"
        + SHAPE
        + ONLINE
        + "max_queue_size = 32\ndefault_timeout_microseconds = 50000\nallow_timeout_override = false\n"
        + 'timeout_action = "DELAY"\n'
    )
    assert policy.executor_version == 3
    assert policy.default_class == "online"
    assert policy.unknown_class_is_default
    assert policy.class_sources == (ClassSource(SourceKind.HEADER, "x-class"), ClassSource(SourceKind.TENSOR))
    assert policy.guard_executor
    assert policy.scheduling == SchedulingPolicy(
        classes=(TrafficClass("online", 1, 32, 50_000_000, False, TimeoutAction.DELAY),),
        instances=2,
        max_batch_size=8,
        levels=True,
        executor_timeout=5 * SECOND,
        max_fill_slowdown=0.0,
        batch_efficiency=1.0,
        overtaking=True,
        shared_executor=True,
    )


def test_plain_mode_sends_no_levels() -> None:
    policy = parse_policy('mode = "plain"\n' + LEAST)
    assert policy.mode is Mode.PLAIN
    assert not policy.scheduling.levels


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
    ("text", "said"),
    [
        (LEAST.replace("policy_version = 1\n", ""), "policy_version is missing; write it: Form of this file."),
        (LEAST.replace("policy_version = 1", "policy_version = 2"), "policy_version = 2 cannot be used"),
        (LEAST.replace('executor = "model"\n', ""), "executor is missing"),
        (LEAST.replace('"model"', '" "'), "executor = ' ' cannot be used; write the name of the model to call"),
        (LEAST.replace('"model"', "7"), "executor = 7 cannot be used; write a text"),
        (LEAST.replace("instances = 2\n", ""), "executor_shape.instances is missing"),
        (LEAST.replace("instances = 2", "instances = 0"), "instances = 0 cannot be used; write a value from 1"),
        (LEAST.replace("instances = 2", "instances = true"), "instances = True cannot be used; write an integer"),
        (LEAST.replace("max_batch_size = 8", "max_batch_size = 8.0"), "max_batch_size = 8.0 cannot be used"),
        (TOP + ONLINE, "executor_shape missing cannot be used; write a table [executor_shape]"),
        (TOP + SHAPE, "class missing cannot be used; write at least one table [[class]]"),
        ("class = 3\n" + TOP + SHAPE, "class = 3 cannot be used; write at least one table [[class]]"),
        ('mode = "fast"\n' + LEAST, 'mode = \'fast\' cannot be used; write "levels" or "plain"'),
        ("executor_version = 0\n" + LEAST, "executor_version = 0 cannot be used; write a value of at least 1"),
        ('default_class = "gold"\n' + LEAST, "default_class = 'gold' cannot be used; write one of online, bulk"),
        ('unknown_class = "drop"\n' + LEAST, 'unknown_class = \'drop\' cannot be used; write "reject" or "default"'),
        ("class_sources = []\n" + LEAST, "class_sources = [] cannot be used; write a list of"),
        ('class_sources = ["tensor", "tensor"]\n' + LEAST, "each at most once"),
        ('class_sources = ["header:a", "header:A"]\n' + LEAST, "each at most once"),
        ('class_sources = ["header:"]\n' + LEAST, "class_sources = ['header:'] cannot be used"),
        ('class_sources = ["header:a b"]\n' + LEAST, "class_sources = ['header:a b'] cannot be used"),
        ('class_sources = ["cookie"]\n' + LEAST, "class_sources = ['cookie'] cannot be used"),
        ('class_sources = "tensor"\n' + LEAST, "class_sources = 'tensor' cannot be used; write a list of texts"),
        ("executor_timeout_microseconds = 60\n" + LEAST, "executor_timeout_microseconds = 60 cannot be used"),
        ("max_fill_slowdown = -0.1\n" + LEAST, "max_fill_slowdown = -0.1 cannot be used; write a value of at least 0"),
        ("max_fill_slowdown = inf\n" + LEAST, "max_fill_slowdown = inf cannot be used"),
        ("batch_efficiency = 0\n" + LEAST, "batch_efficiency = 0 cannot be used; write a value above 0 and at most 1"),
        ("batch_efficiency = nan\n" + LEAST, "batch_efficiency = nan cannot be used"),
        ("overtaking = 1\n" + LEAST, "overtaking = 1 cannot be used; write a boolean"),
        ('mode = "plain"\novertaking = true\n' + LEAST, "overtaking = True cannot be used; write"),
        ('mode = "plain"\nshared_executor = true\n' + LEAST, "shared_executor = True cannot be used; write"),
        (LEAST.replace("level = 2", "level = 0"), "class[1].level = 0 cannot be used; write a value from 1"),
        (LEAST.replace("level = 2", ""), "class[1].level is missing; write it: 1 is the most urgent"),
        (LEAST.replace('"bulk"', '"a b"'), "class[1].name = 'a b' cannot be used; write 1 to 64 letters"),
        (LEAST.replace('"bulk"', '"_x"'), "class[1].name = '_x' cannot be used; write 1 to 64 letters"),
        (LEAST.replace('"bulk"', '"online"'), "name = 'online' cannot be used; write a name that no other"),
        (LEAST + "max_queue_size = -1\n", "class[1].max_queue_size = -1 cannot be used; write a value of at least 0"),
        (LEAST + "default_timeout_microseconds = 0.5\n", "class[1].default_timeout_microseconds = 0.5 cannot be used"),
        (LEAST + 'timeout_action = "reject"\n', "timeout_action = 'reject' cannot be used; write"),
        ("mode = levels\n" + LEAST, "not valid TOML:"),
    ],
)
def test_a_wrong_value_is_named_with_what_to_write(text: str, said: str) -> None:
    assert said in fault(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("shared_exector = true\n" + LEAST, "unknown key shared_exector = True: did you mean shared_executor?"),
        (LEAST + "max_queue_sise = 3\n", "unknown key class[1].max_queue_sise = 3: did you mean max_queue_size?"),
        (LEAST + "priority = 1\n", "unknown key class[1].priority = 1: did you mean level?"),
        (LEAST + "timeout_microseconds = 5\n", "did you mean default_timeout_microseconds?"),
        ("instances = 2\n" + LEAST, "unknown key instances = 2: instances belongs in [executor_shape]"),
        ("max_queue_size = 2\n" + LEAST, "unknown key max_queue_size = 2: max_queue_size belongs in [[class]]"),
        (LEAST + "overtaking = true\n", "overtaking belongs in the top of the file"),
        ("zzz = 1\n" + LEAST, "unknown key zzz = 1: no such key; the nearest is"),
    ],
)
def test_an_unknown_key_is_an_error_with_the_nearest_one(text: str, said: str) -> None:
    assert said in fault(text)


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
