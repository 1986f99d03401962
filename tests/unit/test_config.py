# SPDX-License-Identifier: Apache-2.0
"""policy.toml: every default, every check, every remedy."""

from __future__ import annotations

from dataclasses import fields, replace
from enum import Enum

import pytest
from priority_router import policy_checks, policy_fields
from priority_router.config import (
    LATEST_VERSION,
    Above,
    ClassSource,
    Mode,
    RouterPolicy,
    SourceKind,
    TenantRule,
    parse_policy,
)
from priority_router.core.values import SECOND, FairBy, Order, SchedulingPolicy, TimeoutAction, TrafficClass
from priority_router.errors import PolicyError

TOP = 'policy_version = 1\nexecutor = "model"\n'
SHAPE = "[executor_shape]\ninstances = 2\nmax_batch_size = 8\n"
ONLINE = '[[class]]\nname = "online"\nlevel = 1\n'
BULK = '[[class]]\nname = "bulk"\nlevel = 2\n'
LEAST = TOP + SHAPE + ONLINE + BULK
WANTED_SOURCES = 'write a list of "tensor", "parameter" and "header:NAME", each at most once'
WANTED_TENANT_SOURCES = 'write a list of "parameter" and "header:NAME", each at most once'


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


ONLINE_OF_EVERY_KEY = TrafficClass(
    "online",
    1,
    max_queue_size=32,
    default_timeout=50_000_000,
    allow_timeout_override=False,
    timeout_action=TimeoutAction.DELAY,
    order=Order.DEADLINE,
    max_blocking=20_000_000,
    max_wait=90_000_000,
    min_share=1.0,
    max_queue_bytes=9,
    fair_by=FairBy.TENANT,
)


def test_every_key_is_read() -> None:
    policy = parse_policy(
        'policy_version = 1\nmode = "plain"\nexecutor = "other"\nexecutor_version = 3\ndefault_class = "online"\n'
        + 'unknown_class = "default"\nclass_sources = ["header:X-Class", "tensor"]\nguard_executor = false\n'
        + 'tenant_sources = ["header:X-Tenant", "parameter"]\n'
        + "executor_timeout_microseconds = 5000000\nmax_fill_slowdown = 0\nbatch_efficiency = 1\nmax_queue_bytes = 99\n"
        + "max_execution_microseconds = 2000000\n"
        + "[executor_shape]\ninstances = 3\nmax_batch_size = 0\n"
        + ONLINE
        + "max_queue_size = 32\ndefault_timeout_microseconds = 50000\nallow_timeout_override = false\n"
        + 'timeout_action = "DELAY"\norder = "deadline"\nmax_blocking_microseconds = 20000\n'
        + 'max_wait_microseconds = 90000\nmin_share = 1\nmax_queue_bytes = 9\nfair_by = "tenant"\n'
        + BULK
        + '[[tenant]]\nname = "acme"\nmost_urgent_class = "bulk"\nabove = "reject"\n'
        + '[[tenant]]\nname = "*"\nmost_urgent_class = "online"\n'
    )
    assert policy == RouterPolicy(
        scheduling=SchedulingPolicy(
            classes=(ONLINE_OF_EVERY_KEY, TrafficClass("bulk", 2)),
            instances=3,
            max_batch_size=0,
            levels=False,
            executor_timeout=5 * SECOND,
            max_fill_slowdown=0.0,
            batch_efficiency=1.0,
            max_queue_bytes=99,
            max_execution=2 * SECOND,
        ),
        mode=Mode.PLAIN,
        executor="other",
        executor_version=3,
        default_class="online",
        unknown_class_is_default=True,
        class_sources=(ClassSource(SourceKind.HEADER, "x-class"), ClassSource(SourceKind.TENSOR)),
        guard_executor=False,
        tenant_sources=(ClassSource(SourceKind.HEADER, "x-tenant"), ClassSource(SourceKind.PARAMETER)),
        tenants=(TenantRule("acme", "bulk", Above.REJECT), TenantRule("*", "online", Above.LOWER)),
    )


def test_early_refusal_is_read() -> None:
    policy = parse_policy(TOP + SHAPE + ONLINE + "reject_predicted_late = true\n" + BULK)
    assert [each.reject_predicted_late for each in policy.scheduling.classes] == [True, False]


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
        ("executor_version = 0", "0", "write a value from 1 to 9223372036854775807"),
        ('default_class = "gold"', "'gold'", "write one of online, bulk"),
        ('unknown_class = "drop"', "'drop'", 'write "reject" or "default"'),
        ("class_sources = []", "[]", WANTED_SOURCES),
        ('class_sources = ["tensor", "tensor"]', "['tensor', 'tensor']", WANTED_SOURCES),
        ('class_sources = ["header:a", "header:A"]', "['header:a', 'header:A']", WANTED_SOURCES),
        ('class_sources = ["header:"]', "['header:']", WANTED_SOURCES),
        ('class_sources = ["header:a b"]', "['header:a b']", WANTED_SOURCES),
        ('class_sources = ["cookie"]', "['cookie']", WANTED_SOURCES),
        ('class_sources = "tensor"', "'tensor'", "write a list of texts"),
        ("tenant_sources = []", "[]", WANTED_TENANT_SOURCES),
        ('tenant_sources = ["tensor"]', "['tensor']", WANTED_TENANT_SOURCES),
        ('tenant_sources = ["parameter", "parameter"]', "['parameter', 'parameter']", WANTED_TENANT_SOURCES),
        ('tenant_sources = ["header:a b"]', "['header:a b']", WANTED_TENANT_SOURCES),
        ("tenant = 3", "3", "write tables [[tenant]] with name and most_urgent_class, or none"),
        ("executor_timeout_microseconds = 60", "60", "write a value from 1000 to 1000000000000000"),
        ("max_fill_slowdown = -0.1", "-0.1", "write a value from 0 to 1000000, such as 0.1"),
        ("max_fill_slowdown = inf", "inf", "write a value from 0 to 1000000, such as 0.1"),
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
        (
            "policy_version = 1\n",
            "",
            "policy_version is missing; add it at the top of the file, as an integer: Form of this file, at present 1.",
        ),
        ("policy_version = 1", "policy_version = 2", "policy_version = 2 cannot be used"),
        ('executor = "model"\n', "", "executor is missing"),
        ('"model"', '" "', "executor = ' ' cannot be used; write the name of the model to call"),
        ('"model"', "7", "executor = 7 cannot be used; write a text"),
        ("instances = 2\n", "", "executor_shape.instances is missing; add it in [executor_shape], as an integer: "),
        ("instances = 2", "instances = 0", "instances = 0 cannot be used; write a value from 1"),
        ("instances = 2", "instances = true", "instances = True cannot be used; write an integer"),
        ("max_batch_size = 8", "max_batch_size = 8.0", "max_batch_size = 8.0 cannot be used"),
        (SHAPE, "", "executor_shape missing cannot be used; write a table [executor_shape]"),
        (SHAPE + ONLINE + BULK, "class = 3\n" + SHAPE, "class = 3 cannot be used; write at least one table [[class]]"),
        (ONLINE + BULK, "", "class missing cannot be used; write at least one table [[class]]"),
        ("level = 2", "level = 0", "class[1].level = 0 cannot be used; write a value from 1"),
        ("level = 2", "", "class[1].level is missing; add it in [[class]], as an integer: 1 is the most urgent"),
        ('"bulk"', '"a b"', "class[1].name = 'a b' cannot be used; write 1 to 64 letters"),
        ('"bulk"', '"_x"', "class[1].name = '_x' cannot be used; write 1 to 64 letters"),
        ('"bulk"', '"online"', "name = 'online' cannot be used; write a name that no other"),
        (
            BULK,
            BULK + "max_queue_size = -1\n",
            "class[1].max_queue_size = -1 cannot be used; write a value from 0 to 4294967295",
        ),
        (
            BULK,
            BULK + "default_timeout_microseconds = 0.5\n",
            "class[1].default_timeout_microseconds = 0.5 cannot be used",
        ),
        (
            BULK,
            BULK + 'timeout_action = "DELAY"\nreject_predicted_late = true\n',
            'class.reject_predicted_late = True cannot be used; write false, or timeout_action = "REJECT"',
        ),
        (BULK, BULK + "min_share = 1.5\n", "class[1].min_share = 1.5 cannot be used; write a value from 0 to 1"),
        (
            ONLINE + BULK,
            ONLINE + "min_share = 0.6\n" + BULK + "min_share = 0.6\n",
            "class.min_share = 1.2 cannot be used; write values that are together at most 1",
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
        ("instances = 2", "", "unknown key instances = 2: it belongs in [executor_shape]"),
        ("max_queue_size = 2", "", "unknown key max_queue_size = 2: it belongs in [[class]]"),
        ("", "overtaking = true", "unknown key class[1].overtaking = True: it belongs at the top of the file"),
        ("zzz = 1", "", "unknown key zzz = 1: no such key; there are policy_version, mode, executor, "),
        ("", "zzz = 1", "unknown key class[1].zzz = 1: no such key; there are name, level, max_queue_size, "),
        (
            "default_timeout_seconds = 1",
            "",
            "did you mean default_timeout_microseconds, which belongs in [[class]]?",
        ),
        ("", "default_timeout_seconds = 1", "= 1: did you mean default_timeout_microseconds?"),
        ("priority_levels = 2", "", "unknown key priority_levels = 2: did you mean level, which belongs in [[class]]?"),
        ("instanses = 2", "", "did you mean instances, which belongs in [executor_shape]?"),
        ("", "executer = 1", "did you mean executor, which belongs at the top of the file?"),
        ("classes = []", "", "did you mean class?"),
        ('"a\\nb" = 1', "", "unknown key 'a\\nb' = 1: no such key"),
    ],
)
def test_an_unknown_key_is_an_error_with_the_nearest_one(above: str, below: str, said: str) -> None:
    assert said in fault(f"{above}\n{LEAST}{below}\n")


@pytest.mark.parametrize(
    "name", ["", " ", " model", "model ", "a/b", "/", ".", "..", "a\\u0000b", "a\\nb", "\\u001b[0m"]
)
def test_a_name_that_no_model_folder_can_have_is_refused(name: str) -> None:
    said = fault(LEAST.replace('"model"', f'"{name}"'))
    assert "cannot be used; write the name of the model to call: that of its folder, without spaces around it" in said
    assert said.isprintable()


@pytest.mark.parametrize("name", ["a b", "größe", "a=b;c", "model.v2", "-"])
def test_any_other_name_is_taken(name: str) -> None:
    assert parse_policy(LEAST.replace('"model"', f'"{name}"')).executor == name


SOME_KEYS = [("", field) for field in policy_fields.TOP_LEVEL]
SOME_KEYS += [("executor_shape", field) for field in policy_fields.EXECUTOR_SHAPE]
SOME_KEYS += [("class", field) for field in policy_fields.CLASS]


def with_value(table: str, key: str, value: str) -> str:
    """The least policy with one key set; the class is the last one."""
    lines = [line for line in LEAST.splitlines() if table != "" or not line.startswith(f"{key} =")]
    if table == "":
        return "\n".join([f"{key} = {value}", *lines])
    head = "[executor_shape]" if table == "executor_shape" else "[[class]]"
    at = len(lines) - 1 - lines[::-1].index(head)
    kept = [line for index, line in enumerate(lines) if index < at or not line.startswith(f"{key} =")]
    return "\n".join([*kept[: at + 1], f"{key} = {value}", *kept[at + 1 :]])


@pytest.mark.parametrize(
    ("table", "field"),
    [(table, field) for table, field in SOME_KEYS if field.kind in ("integer", "number")],
    ids=lambda value: value if isinstance(value, str) else value.key,
)
@pytest.mark.parametrize("value", [str(2**63), "1" + "0" * 400, "0x" + "f" * 5000, "1" + "0" * 5000, "-1"])
def test_every_number_has_bounds(table: str, field: policy_checks.Field, value: str) -> None:
    said = fault(with_value(table, field.key, value))
    assert f"{field.key} = " in said or "a number in it is too long" in said
    assert len(said) < 400


@pytest.mark.parametrize(
    ("table", "key", "largest"),
    [
        ("", "executor_version", policy_fields.MAX_MODEL_VERSION),
        ("", "executor_timeout_microseconds", policy_fields.MAX_MICROSECONDS),
        ("", "max_execution_microseconds", policy_fields.MAX_MICROSECONDS),
        ("", "max_fill_slowdown", policy_checks.MAX_SLOWDOWN),
        ("executor_shape", "max_batch_size", policy_fields.MAX_ROWS),
        ("class", "level", policy_fields.MAX_LEVEL),
        ("class", "max_queue_size", policy_fields.MAX_QUEUE_SIZE),
        ("class", "max_queue_bytes", policy_fields.MAX_QUEUE_BYTES),
        ("", "max_queue_bytes", policy_fields.MAX_QUEUE_BYTES),
        ("class", "default_timeout_microseconds", policy_fields.MAX_MICROSECONDS),
        ("class", "max_blocking_microseconds", policy_fields.MAX_MICROSECONDS),
        ("class", "max_wait_microseconds", policy_fields.MAX_MICROSECONDS),
    ],
)
def test_the_largest_value_is_taken_and_no_larger_one(table: str, key: str, largest: int) -> None:
    parse_policy(with_value(table, key, str(largest)))
    assert f"{key} = {largest + 1} cannot be used" in fault(with_value(table, key, str(largest + 1)))


def test_the_largest_durations_stay_within_64_bits_of_ns() -> None:
    longest = policy_fields.MAX_MICROSECONDS
    text = f"executor_timeout_microseconds = {longest}\n{LEAST}default_timeout_microseconds = {longest}\n"
    scheduling = parse_policy(text).scheduling
    ten_years = 10 * 366 * 86_400 * SECOND
    for duration in (scheduling.executor_timeout, scheduling.classes[1].default_timeout):
        assert duration + ten_years < 2**63


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = " + "[" * 3000 + "]" * 3000, "nested too deep"),
        ("a = " + "{a = " * 3000 + "1" + "}" * 3000, "nested too deep"),
        ("a." * 3000 + "a = 1", "unknown key a = a value too long to show: no such key"),
        ("executor." * 3000 + "a = 1", "executor = a value too long to show cannot be used"),
        (f'executor = "{"x/" * 3000}"', "cannot be used; write the name of the model"),
    ],
)
def test_what_is_too_deep_or_too_long_is_an_error_like_any_other(text: str, said: str) -> None:
    message = fault(
        text + "\n" + LEAST.replace('executor = "model"\n', "" if "executor" in text else 'executor = "model"\n')
    )
    assert said in message
    assert len(message) < 400


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
        if field.default is not policy_checks.REQUIRED:
            default = of_class[field.key.removesuffix("_microseconds")]
            assert field.default == (default.value if isinstance(default, Enum) else default), field.key
