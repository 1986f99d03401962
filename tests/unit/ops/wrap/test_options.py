# SPDX-License-Identifier: Apache-2.0
"""The command line of wrap: what the words mean, and wrong use."""

from __future__ import annotations

import argparse

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from priority_router.config import parse_policy
from priority_router.ops.wrap import options
from priority_router.ops.wrap.options import WantedClass, traffic_class

ANY = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def parse(*words):
    return options.parse(["model", "--into", "repository", *words])


def test_without_options_the_classes_are_the_teaching_ones():
    made = parse()
    assert made.classes == (
        WantedClass("online", 1, max_queue=32, timeout_us=50_000, override=True),
        WantedClass("background", 2, max_queue=128, timeout_us=200_000, override=False),
    )
    assert (made.teaching, made.default_class, made.levels) == (True, "background", 2)
    assert (made.router_name, made.instances) == (None, None)
    assert [made.plain, made.executor_policies, made.dry_run, made.force] == [False] * 4


@pytest.mark.parametrize(
    ("word", "wanted"),
    [
        ("a:1", WantedClass("a", 1)),
        ("a:1,override", WantedClass("a", 1, override=True)),
        ("a:7,max_queue=0", WantedClass("a", 7)),
        ("a:1,timeout=50ms,max_queue=3", WantedClass("a", 1, max_queue=3, timeout_us=50_000)),
        ("a:1,timeout=250us", WantedClass("a", 1, timeout_us=250)),
        ("a:1,timeout=2s", WantedClass("a", 1, timeout_us=2_000_000)),
        ("a:1,timeout=10m", WantedClass("a", 1, timeout_us=600_000_000)),
        ("a:1,timeout=1.5ms", WantedClass("a", 1, timeout_us=1_500)),
        ("team:a.b-c_d:2", WantedClass("team:a.b-c_d", 2)),
    ],
)
def test_a_class(word, wanted):
    assert traffic_class(word) == wanted


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("a", "LEVEL is 'a'; write a whole number"),
        ("a:", "LEVEL is ''; write a whole number"),
        ("a:x", "LEVEL is 'x'"),
        ("a:0", "LEVEL is 0; write 1 to 100, which wrap takes"),
        ("a:-1", "LEVEL is '-1'"),
        ("a:²", "LEVEL is '²'"),
        ("a:101", "LEVEL is 101; write 1 to 100, which wrap takes"),
        ("a:4294967296", "LEVEL is 4294967296; write 1 to 100,"),
        ("a:99999999999999999999", "LEVEL is '99999999999999999999'"),
        (":1", "NAME is ''; write 1 to 64 letters"),
        ("a b:1", "NAME is 'a b'"),
        ('a":1', "NAME is 'a\"'"),
        ("a:1,max_queue", "max_queue is ''; write a whole number"),
        ("a:1,max_queue=4294967296", "max_queue is 4294967296; write a value from 0 to 4294967295"),
        ("a:1,timeout=50", "with its unit, one of us, ms, s, m, such as 50ms"),
        ("a:1,timeout=0ms", "a time above 0"),
        ("a:1,timeout=0.5us", "whole microseconds"),
        ("a:1,timeout=1h", "one of us, ms, s, m"),
        ("a:1,timeout=16666667m", "timeout is 1000000020000000; write a value from 0 to"),
        ("a:1,override=yes", "'override=yes' is no setting of a class"),
        ("a:1,", "'' is no setting"),
        ("a:1,max_queue=1,max_queue=2", "max_queue is given twice"),
        ("a:1,override,override", "override is given twice"),
        ("a:1,name=b", "'name=b' is no setting"),
    ],
)
def test_what_is_no_class_is_refused_with_what_to_write(word, text):
    with pytest.raises(argparse.ArgumentTypeError) as refusal:
        traffic_class(word)
    assert text in str(refusal.value)
    assert repr(word) in str(refusal.value)


@ANY
@given(st.text(alphabet="a:1,=.ms-x0override_quetimeout \n", max_size=30))
def test_any_word_is_a_class_of_a_policy_or_refused(word):
    try:
        made = traffic_class(word)
    except argparse.ArgumentTypeError:
        return
    parse_policy(
        f'policy_version = 1\nexecutor = "e"\n[executor_shape]\ninstances = 1\nmax_batch_size = 1\n'
        f'[[class]]\nname = "{made.name}"\nlevel = {made.level}\nmax_queue_size = {made.max_queue}\n'
        f"default_timeout_microseconds = {made.timeout_us}\n"
    )


def test_the_default_class_is_the_least_urgent_one_or_the_one_named():
    classes = ("--class", "a:3", "--class", "b:9", "--class", "c:9", "--class", "d:1")
    assert parse(*classes).default_class == "c"
    assert parse(*classes, "--default-class", "d").default_class == "d"
    assert parse(*classes).levels == 9
    assert not parse(*classes).teaching
    assert parse("--default-class", "online").default_class == "online"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--class", "a:1", "--class", "a:2"), "a is given 2 times"),
        (("--default-class", "vip"), "'vip' is none of the classes: online, background"),
        (("--plain", "--executor-policies"), "--executor-policies: not allowed with --plain"),
        (("--instances", "0"), "write a value from 1 to 4096"),
        (("--instances", "4097"), "write a value from 1 to 4096"),
        (("--instances", "two"), "write a whole number"),
        (("--class", "a:1,timeout=3"), "such as 50ms"),
        (("--router-name", ""), "argument --router-name: it is empty"),
        (("--router", "r"), "unrecognized arguments"),
    ],
)
def test_wrong_use_ends_with_status_2_and_says_why(words, text, capsys):
    with pytest.raises(SystemExit) as end:
        parse(*words)
    assert end.value.code == 2
    assert text in capsys.readouterr().err


@pytest.mark.parametrize(("words", "what"), [(("", "--into", "r"), "MODEL"), (("model", "--into", ""), "--into")])
def test_an_empty_path_is_not_the_folder_that_one_is_in(words, what, capsys):
    with pytest.raises(SystemExit) as end:
        options.parse(words)
    assert end.value.code == 2
    assert f"argument {what}: it is empty; write it" in capsys.readouterr().err


def test_the_repository_must_be_named(capsys):
    with pytest.raises(SystemExit) as end:
        options.parse(["model"])
    assert end.value.code == 2
    assert "--into" in capsys.readouterr().err
