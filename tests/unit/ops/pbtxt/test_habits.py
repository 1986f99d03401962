# SPDX-License-Identifier: Apache-2.0
"""Fields that do not exist: where the real one belongs, from the message that the wrong one is in."""

import pytest
from google.protobuf.descriptor import FieldDescriptor
from priority_router.ops.pbtxt.document import faults
from priority_router.ops.pbtxt.habits import HABITS
from tritonclient.grpc import model_config_pb2

_POLICY = "dynamic_batching { default_queue_policy { %s } }"


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("priority: 1", "write dynamic_batching { priority_levels } (1 is the most urgent level)"),
        ("priority_level: 2", "write dynamic_batching { priority_levels } (1 is the most urgent level)"),
        ("priority_levels: 2", "write dynamic_batching { priority_levels } (1 is the most urgent level)"),
        ("default_priority: 2", "write dynamic_batching { default_priority_level }"),
        ("dynamic_batching { priority: 2 }", "write priority_levels (1 is the most urgent level)"),
        ("max_queue_delay_ms: 5", "write dynamic_batching { max_queue_delay_microseconds: 5000 }"),
        ("dynamic_batching { max_queue_delay_ms: 5 }", "write max_queue_delay_microseconds: 5000"),
        ("dynamic_batching { max_queue_delay: 5 }", "write max_queue_delay_microseconds (in microseconds)"),
        ("dynamic_batching { max_delay_microseconds: 5 }", "write max_queue_delay_microseconds: 5"),
        ("timeout: 5", f"write {_POLICY} (in microseconds)" % "default_timeout_microseconds"),
        ("timeout_ms: 50", f"write {_POLICY}" % "default_timeout_microseconds: 50000"),
        ("timeout_seconds: 2", f"write {_POLICY}" % "default_timeout_microseconds: 2000000"),
        ("default_timeout_microseconds: 7", f"write {_POLICY}" % "default_timeout_microseconds: 7"),
        (
            "dynamic_batching { priority_queue_policy { key: 1 value { timeout_ms: 50 } } }",
            "write default_timeout_microseconds: 50000",
        ),
        (
            "dynamic_batching { default_queue_policy { timeout: '1' } }",
            "write default_timeout_microseconds (in microseconds)",
        ),
        ("max_queue_size: 8", f"write {_POLICY} (it counts waiting requests, not rows)" % "max_queue_size: 8"),
        (
            "dynamic_batching { max_queue_size: 8 }",
            "write default_queue_policy { max_queue_size: 8 } (it counts waiting requests, not rows)",
        ),
        ("batch_size: 8", "write max_batch_size: 8"),
        ("dynamic_batching { max_batch_size: 8 }", "write max_batch_size: 8 at the top of the file"),
        ("dynamic_batching { dynamic_batching { } }", "write dynamic_batching at the top of the file"),
        ("input { instances: 2 }", "write instance_group { count: 2 } at the top of the file"),
        ("instances: 2", "write instance_group { count: 2 }"),
        ("count: 2", "write instance_group { count: 2 }"),
        ("instance_groups { count: 2 }", "write instance_group"),
        ("gpus: [ 0 ]", "write instance_group { gpus: 0 }"),
        ("input { shape: [ 1, 2 ] }", "write dims"),
        ("input { dtype: TYPE_FP32 }", "write data_type"),
        ("inputs [ { } ]", "write input"),
        ("maxBatchSize: 8", "write max_batch_size"),
        ("dynamic_batcing { }", "write dynamic_batching"),
        ("dynamic_batching { prefered_batch_size: [ 4 ] }", "write preferred_batch_size"),
        ("parameters { key: 'a' string_value: 'b' }", "write value { string_value }"),
        (
            "response_cache { zzz: 1 }",
            "remove it (known here: enable); if your server knows it, upgrade tritonclient",
        ),
        ("zzz: 1", "remove it; if your server knows it, upgrade tritonclient"),
        ("4: 1", "remove it; if your server knows it, upgrade tritonclient"),
    ],
)
def test_an_unknown_field_is_answered_with_the_real_one(text, fix):
    (fault,) = faults(text, "f")
    assert (fault.kind, fault.fix) == ("unknown_field", fix)


def test_the_message_that_lacks_the_field_is_named():
    text = "zzz: 1 dynamic_batching { zzz: 1 priority_queue_policy { key: 1 value { zzz: 1 } zzz: 1 } }"
    assert [fault.what for fault in faults(text, "f")] == [
        "a model configuration has no field 'zzz'",
        "dynamic_batching has no field 'zzz'",
        "dynamic_batching.priority_queue_policy.value has no field 'zzz'",
        "dynamic_batching.priority_queue_policy has no field 'zzz'",
    ]


def test_nothing_in_an_unknown_field_is_told_and_a_number_of_any_length_is_taken():
    found = faults(f"zzz {{ yyy: 1 xxx {{ }} }} timeout_ms: {'9' * 5000} batch_size: {'9' * 5000}", "f")
    assert [(fault.what, fault.fix) for fault in found] == [
        ("a model configuration has no field 'zzz'", "remove it; if your server knows it, upgrade tritonclient"),
        (
            "a model configuration has no field 'timeout_ms'",
            f"write {_POLICY} (in microseconds)" % "default_timeout_microseconds",
        ),
        ("a model configuration has no field 'batch_size'", "write max_batch_size"),
    ]


@pytest.mark.parametrize("path", sorted(set(HABITS.values())))
def test_the_real_field_of_each_habit_exists(path):
    message = model_config_pb2.ModelConfig.DESCRIPTOR
    for name in path:
        field = message.fields_by_name[name]
        message = field.message_type
    assert isinstance(field, FieldDescriptor)


@pytest.mark.parametrize("name", sorted(HABITS))
def test_a_habit_at_the_top_is_no_real_field_there(name):
    assert name not in model_config_pb2.ModelConfig.DESCRIPTOR.fields_by_name
    assert faults(f"{name} {{ }}", "f")[0].kind == "unknown_field"
