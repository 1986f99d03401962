# SPDX-License-Identifier: Apache-2.0
"""The router's two files, and the levels that its executor gets, for any model that a router can serve."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
from google.protobuf import text_format
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from priority_router.config import parse_policy
from priority_router.ops.pbtxt.document import Document
from priority_router.ops.pbtxt.edit import QueuePolicy, merge_batching
from priority_router.ops.wrap import options, router_files, source, tensors
from priority_router.ops.wrap.instances import Instances
from priority_router.ops.wrap.options import Options, WantedClass
from priority_router.ops.wrap.router_files import batching
from priority_router.ops.wrap.texts import is_sealed
from support.bare_models import IDENTITY, model
from tritonclient.grpc.model_config_pb2 import DataType, ModelConfig, ModelInput

ANY = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12).filter(
    lambda name: name not in ("CLASS", "ROUTER_QUEUE_US", "ROUTER_EXECUTOR_US") and "\0" not in name
)
TYPES = st.sampled_from([number for name, number in DataType.items() if name not in ("TYPE_BF16", "TYPE_INVALID")])
DIMS = st.lists(st.sampled_from([-1, 1, 3, 2048]), min_size=1, max_size=4)


@st.composite
def executors(draw):
    """A configuration that a router can be put in front of."""
    config = ModelConfig(name="executor", backend="python", max_batch_size=draw(st.sampled_from([0, 1, 4, 8192])))
    for name in draw(st.lists(NAMES, min_size=1, max_size=4, unique=True)):
        config.input.add(name=name, data_type=draw(TYPES), dims=draw(DIMS), optional=draw(st.booleans()))
    for name in draw(st.lists(NAMES, min_size=1, max_size=4, unique=True)):
        label = draw(st.one_of(st.just(""), NAMES.filter(lambda name: not set(name) & set("./\0"))))
        config.output.add(name=name, data_type=draw(TYPES), dims=draw(DIMS), label_filename=label)
    if draw(st.booleans()):
        config.input[0].format = ModelInput.FORMAT_NCHW
    if draw(st.booleans()):
        config.input[0].reshape.shape.extend([1, *config.input[0].dims])
    config.instance_group.add(kind=2, count=draw(st.integers(1, 4096)))
    return config


@st.composite
def class_lists(draw):
    names = draw(st.lists(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,8}", fullmatch=True), min_size=1, unique=True))
    return tuple(
        WantedClass(
            name,
            draw(st.integers(1, 9)),
            draw(st.sampled_from([0, 1, 2**32 - 1])),
            draw(st.sampled_from([0, 1, 50_000, 10**15])),
            draw(st.booleans()),
        )
        for name in names
    )


@st.composite
def wishes(draw):
    classes = draw(class_lists())
    plain = draw(st.booleans())
    return Options(
        model=Path("m"),
        repository=Path("r"),
        router_name=None,
        classes=classes,
        teaching=draw(st.booleans()),
        default_class=draw(st.sampled_from([one.name for one in classes])),
        plain=plain,
        executor_policies=not plain and draw(st.booleans()),
        instances=None,
        dry_run=False,
        force=False,
    )


TEACHING = options.parse(["m", "--into", "r"])


def known(config):
    """What source makes of a configuration, without a file."""
    with_name = text_format.MessageToString(config, as_utf8=True)
    document = Document.parse(with_name, "config.pbtxt")
    found = {
        kind: tuple(tensors.read(document.config, kind, lambda index, field: f"{index}.{field}"))
        for kind in ("input", "output")
    }
    return source.Source(
        "executor",
        Path("m"),
        True,
        (),
        document,
        found["input"],
        found["output"],
        config.max_batch_size,
        Instances(config.instance_group[0].count),
    )


@ANY
@given(executors(), wishes())
def test_a_router_takes_and_gives_what_its_executor_does(config, wanted):
    made = router_files.router_files("router", known(config), wanted)
    assert is_sealed(made.config)
    router = Document.parse(made.config, "router").config
    assert (router.name, router.backend, router.max_batch_size) == (
        "router",
        "priority_router",
        config.max_batch_size * 16,
    )
    assert [(group.kind, group.count) for group in router.instance_group] == [(2, 1)]
    assert router.dynamic_batching == type(router.dynamic_batching)()
    assert router.HasField("dynamic_batching")
    *inputs, own = router.input
    assert (own.name, own.data_type, list(own.dims), own.optional) == ("CLASS", 13, [1], True)
    *outputs, queue, executor = router.output
    assert [(time.name, time.data_type, list(time.dims)) for time in (queue, executor)] == [
        ("ROUTER_QUEUE_US", 9, [1]),
        ("ROUTER_EXECUTOR_US", 9, [1]),
    ]
    for entry in config.input:
        entry.ClearField("reshape")
    assert inputs == list(config.input)
    assert outputs == list(config.output)


@ANY
@given(executors(), wishes())
def test_a_policy_says_what_was_asked_for(config, wanted):
    text = router_files.router_files("router", known(config), wanted).policy
    assert is_sealed(text)
    policy = parse_policy(text)
    assert (policy.executor, policy.mode.value) == ("executor", "plain" if wanted.plain else "levels")
    assert policy.default_class == wanted.default_class
    assert not policy.unknown_class_is_default
    assert policy.scheduling.shared_executor is wanted.executor_policies
    assert policy.guard_executor is not wanted.executor_policies
    assert policy.scheduling.instances == config.instance_group[0].count
    assert policy.scheduling.max_batch_size == config.max_batch_size
    assert wanted.classes == tuple(
        WantedClass(one.name, one.level, one.max_queue_size, one.default_timeout // 1000, one.allow_timeout_override)
        for one in policy.scheduling.classes
    )


@ANY
@given(executors(), wishes())
def test_an_executor_gets_a_policy_for_every_level(config, wanted):
    merged = Document.parse(merge_batching(known(config).document, batching(wanted)).text, "x").config.dynamic_batching
    levels = 0 if wanted.plain else max(one.level for one in wanted.classes)
    assert (merged.priority_levels, merged.default_priority_level) == (levels, levels)
    assert sorted(merged.priority_queue_policy) == list(range(1, levels + 1))
    if not wanted.executor_policies:
        assert all(not policy.ByteSize() for policy in merged.priority_queue_policy.values())


def test_limits_on_the_executor_are_never_stricter_than_a_class_that_shares_the_level_was_promised():
    classes = (
        WantedClass("a", 1, max_queue=3, timeout_us=50, override=False),
        WantedClass("b", 1, max_queue=4, timeout_us=70, override=True),
        WantedClass("c", 2, max_queue=5, timeout_us=9),
        WantedClass("d", 2, max_queue=0, timeout_us=8),
        WantedClass("h", 3, max_queue=1, timeout_us=9),
        WantedClass("i", 3, max_queue=1),
        WantedClass("e", 4, max_queue=6, override=True),
        WantedClass("f", 5, max_queue=2**32 - 1),
        WantedClass("g", 5, max_queue=2**32 - 1),
    )
    wanted = dataclasses.replace(TEACHING, classes=classes, executor_policies=True)
    assert dict(batching(wanted).policies) == {
        1: QueuePolicy(max_queue_size=7, default_timeout_microseconds=70, allow_timeout_override=True),
        2: QueuePolicy(default_timeout_microseconds=9),
        3: QueuePolicy(max_queue_size=2),
        4: QueuePolicy(max_queue_size=6),
        5: QueuePolicy(max_queue_size=2**32 - 1),
    }
    assert batching(dataclasses.replace(wanted, executor_policies=False)).policies == {}
    assert batching(wanted).priority_levels == 5


def test_teaching_values_are_called_so(tmp_path):
    made = source.read(model(tmp_path / "model"))
    assert "teaching values" in router_files.router_files("r", made, TEACHING).policy
    chosen = dataclasses.replace(TEACHING, teaching=False)
    assert "teaching values" not in router_files.router_files("r", made, chosen).policy


@pytest.fixture
def left_open(tmp_path):
    return model(tmp_path / "model", IDENTITY.replace("kind: KIND_CPU ", ""))


def test_an_open_number_of_instances_is_said_in_the_file(left_open):
    loud = router_files.router_files("r", source.read(left_open), TEACHING).policy
    assert "# WRITE THE TRUE NUMBER HERE." in loud
    assert "otherwise 1 for each GPU" in " ".join(loud.replace("\n#", "").split())
    assert "over all groups here, or run wrap with --instances N" in " ".join(loud.replace("\n#", "").split())
    stated = router_files.router_files("r", source.read(left_open, 4), TEACHING).policy
    assert "WRITE" not in stated
    assert "As stated to wrap" in stated
    assert "instances = 4\n" in stated


def test_lines_of_the_files_are_no_longer_than_need_be(left_open):
    made = router_files.router_files("r", source.read(left_open), TEACHING)
    comments = re.findall(r"^ *#.*$", made.config + made.policy, re.MULTILINE)
    assert max(map(len, comments)) <= 120
