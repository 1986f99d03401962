# SPDX-License-Identifier: Apache-2.0
"""Instances are counted over all GPUs, as far as a configuration says them."""

import pytest

from .written import codes, found, router, scorer

CPU = "instance_group {{ kind: KIND_CPU count: {} }}"
NAMED = "instance_group {{ kind: KIND_GPU count: {} gpus: [ {} ] }}"
EVERY_GPU = "instance_group {{ kind: KIND_GPU count: {} }}"
AUTO = "instance_group {{ count: {} }}"
AUTO_NAMED = "instance_group {{ count: {} gpus: [ {} ] }}"
MODEL = "instance_group {{ kind: KIND_MODEL count: {} }}"
PASSIVE = "instance_group {{ kind: KIND_CPU count: {} passive: true }}"


def about_the_number(*models):
    """Findings but the one that the number depends on the machine."""
    return [finding for finding in found(*models) if finding.rule.code != "PR124"]


@pytest.mark.parametrize(
    ("groups", "fitting", "not_fitting", "written"),
    [
        (CPU.format(3), [3], [1, 2, 4], 3),
        (CPU.format(1) + CPU.format(2), [3], [1, 2], 3),
        (NAMED.format(2, "0, 1"), [4], [2, 3], 4),
        (NAMED.format(2, "0, 1") + NAMED.format(1, "3"), [5], [3, 4], 5),
        (MODEL.format(2), [2], [1, 4], 2),
        (CPU.format(1) + PASSIVE.format(3), [1], [4], 1),
        (EVERY_GPU.format(2), [2, 4, 8], [3], 2),
        (EVERY_GPU.format(2), [], [1], 2),
        (EVERY_GPU.format(1), [1, 2, 3], [], 0),
        (AUTO.format(3), [3, 6], [4, 5], 3),
        (AUTO_NAMED.format(2, "0, 1"), [2, 4], [3], 4),
        (AUTO_NAMED.format(2, "0"), [2], [4], 2),
        (CPU.format(1) + EVERY_GPU.format(2), [3, 5], [1, 4], 3),
        (NAMED.format(1, "0") + EVERY_GPU.format(3), [4, 7], [6], 4),
        ("instance_group { kind: KIND_CPU }", [1], [2], 1),
        ("instance_group { kind: KIND_MODEL }", [1], [2], 1),
        ("instance_group { kind: KIND_GPU gpus: [ 0, 1 ] }", [2], [1, 4], 2),
        ("instance_group { gpus: [ 0, 1 ] }", [1, 2], [3], 2),
        (CPU.format(2) + "instance_group { }", [3, 4], [2], 3),
    ],
)
def test_the_policy_must_say_a_number_that_there_may_be(groups, fitting, not_fitting, written):
    for instances in fitting:
        assert about_the_number(router(instances=instances), scorer(groups=groups)) == []
    for instances in not_fitting:
        (finding,) = about_the_number(router(instances=instances), scorer(groups=groups))
        assert finding.rule.code == "PR306"
        assert finding.place.path == ("executor_shape", "instances")
        assert ("waits in Triton" if instances > written else "stay idle") in finding.what
        assert f"write instances = {written} in lane/1/policy.toml" in finding.fix
        assert about_the_number(router(instances=written), scorer(groups=groups)) == []


@pytest.mark.parametrize(
    ("backend", "groups", "instances"),
    [
        ("onnxruntime", "instance_group { kind: KIND_CPU }", 2),
        ("onnxruntime", "instance_group { kind: KIND_GPU gpus: [ 0 ] }", 1),
        ("onnxruntime", "instance_group { kind: KIND_MODEL }", 1),
        ("tensorflow", "instance_group { kind: KIND_CPU }", 2),
        ("pytorch", "instance_group { kind: KIND_CPU }", 1),
        ("openvino", "instance_group { kind: KIND_CPU }", 1),
    ],
)
def test_a_count_that_triton_is_known_to_pick_is_compared(backend, groups, instances):
    executor = scorer(groups=groups, backend=backend)
    assert codes(router(instances=instances), executor) == []
    assert codes(router(instances=3 - instances), executor) == ["PR306 lane"]


@pytest.mark.parametrize(
    ("backend", "groups", "instances", "count"),
    [
        ("own_one", "instance_group { kind: KIND_CPU }", 1, 1),
        ("own_one", "instance_group { kind: KIND_GPU gpus: [ 0, 1 ] }", 4, 2),
        ("own_one", CPU.format(1) + "instance_group { kind: KIND_GPU gpus: [ 0 ] }", 4, 3),
        ("own_one", "instance_group { kind: KIND_GPU gpus: [ 0, 1 ] }", 1, 1),
        ("onnxruntime", "instance_group { }", 2, 2),
        ("onnxruntime", "instance_group { kind: KIND_CPU } instance_group { }", 5, 3),
    ],
)
def test_a_count_that_is_left_open_is_asked_for_and_compared_with_nothing(backend, groups, instances, count):
    (finding,) = found(router(instances=instances), scorer(groups=groups, backend=backend))
    assert finding.rule.code == "PR118"
    assert f"write count: {count} in" in finding.fix


def test_without_a_group_the_policy_s_number_is_proposed():
    (finding,) = found(router(instances=3), scorer(groups=""))
    assert finding.rule.code == "PR118"
    assert "write instance_group [ { kind: KIND_CPU count: 3 } ] in scorer/config.pbtxt" in finding.fix


def test_passive_groups_alone_are_called_that():
    (finding,) = found(router(), scorer(groups=PASSIVE.format(1)))
    assert finding.rule.code == "PR118"
    assert finding.place.path == ("instance_group",)
    assert "scorer/config.pbtxt has passive instance_groups only: none takes calls" in finding.what


def test_a_group_on_every_gpu_is_told_of_where_a_router_calls_the_model():
    assert codes(router(), scorer(groups=EVERY_GPU.format(1))) == ["PR124 scorer"]
    assert codes(router(), scorer(groups=NAMED.format(1, "0"))) == []
    assert codes(router(), scorer(), scorer("other", groups=EVERY_GPU.format(1))) == []
