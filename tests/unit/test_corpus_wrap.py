# SPDX-License-Identifier: Apache-2.0
"""Every model of tests/corpus through the merge of the batching block, `wrap` and `lint`.

What a merge must mean is worked out with protobuf's messages, and what it may touch with the tests' own reading.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from priority_router.errors import PriorityRouterError
from priority_router.interface import BACKEND, CLASS_TENSOR, EXECUTOR_OUTPUT, QUEUE_OUTPUT
from priority_router.ops.lint.check import check
from priority_router.ops.pbtxt.document import Document
from priority_router.ops.pbtxt.edit import Batching, QueuePolicy, merge_batching
from priority_router.ops.rules.finding import Severity
from priority_router.ops.wrap import command, source
from support import corpus, pbtxt_reading, stand_in_backends
from tritonclient.grpc.model_config_pb2 import ModelQueuePolicy

LIMITS = {1: QueuePolicy(8, 50_000, True), 2: QueuePolicy(delay=True, default_timeout_microseconds=90_000)}
WANTED = {
    "two levels": Batching(2),
    "one level": Batching(1),
    "six levels": Batching(6),
    "limits": Batching(2, LIMITS, ("First line.", "Second line.")),
    "plain": Batching(None),
}
TEACHING = {
    "levels": Batching(2),
    "plain": Batching(None),
    "executor-policies": Batching(2, {1: QueuePolicy(32, 50_000, True), 2: QueuePolicy(128, 200_000)}),
}
"""What `wrap` without classes merges, by its mode."""

PHRASES = {
    "sequence": "sequence_batching",
    "decoupled": "decoupled",
    "ensemble": "ensemble",
    "router": "router already",
    "tensors": "leaves input and output to the server",
    "size": "max_batch_size",
    "names": "a name that the router adds itself",
    "shape_tensor": "shape tensor",
    "type": "BF16",
    "format": "non-linear format",
    "order": "preserve_ordering",
}
"""Of the message, where the reason lies in the model; the file's own faults are test_corpus's."""

CONFIG = Path("config.pbtxt")
WRAPPED, REFUSED = corpus.wrapped(), corpus.refused()

each_wrapped = pytest.mark.parametrize("entry", WRAPPED, ids=lambda entry: entry.name)
each_wanted = pytest.mark.parametrize("wanted", WANTED.values(), ids=WANTED)


def merged(entry: corpus.Entry, wanted: Batching) -> Any:
    """The configuration with the block, in protobuf's terms."""
    config = entry.config()
    block = config.dynamic_batching
    block.SetInParent()
    old = dict(block.priority_queue_policy.items())
    levels = max(wanted.priority_levels, block.priority_levels) if wanted.priority_levels else 0
    block.priority_queue_policy.clear()
    block.priority_levels = block.default_priority_level = levels
    for level in range(1, levels + 1):
        stays = level > (wanted.priority_levels or 0)
        policy = old.get(level, ModelQueuePolicy()) if stays else message(wanted.policies.get(level, QueuePolicy()))
        block.priority_queue_policy[level].CopyFrom(policy)
    return config


def message(policy: QueuePolicy) -> Any:
    return ModelQueuePolicy(
        max_queue_size=policy.max_queue_size,
        default_timeout_microseconds=policy.default_timeout_microseconds,
        allow_timeout_override=policy.allow_timeout_override,
        timeout_action="DELAY" if policy.delay else "REJECT",
    )


def around_block(text: str) -> tuple[str, str] | None:
    """What stands in front of the block and behind it; nothing where there is no block."""
    found = next((f for f in pbtxt_reading.read(text).fields if f.name == "dynamic_batching"), None)
    return (text[: found.start], text[found.end :]) if found is not None else None


def comments(text: str, without: str = "") -> list[str]:
    """All comments, but for those inside of a field of the block."""
    reading = pbtxt_reading.read(text)
    inside = [(field.start, field.end) for field in reading.walk() if field.name == without]
    return [
        token.text
        for token in reading.tokens
        if token.kind == "comment" and not any(start < token.start < end for start, end in inside)
    ]


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture
def folder(entry, tmp_path):
    """The model's folder."""
    made = tmp_path / entry.name
    stand_in_backends.write_model(made, entry.path.read_bytes(), entry.config(), entry.backend)
    return made


@each_wrapped
@each_wanted
def test_a_merge_means_what_it_should_and_touches_nothing_else(entry, wanted):
    text = merge_batching(Document.parse(entry.text, entry.name), wanted).text
    assert corpus.parsed(text) == merged(entry, wanted)
    around = around_block(entry.text)
    if around is None:
        assert text.startswith(entry.text)
    else:
        assert around_block(text) == around
        left, removed = iter(comments(text)), "" if wanted.priority_levels else "priority_queue_policy"
        assert all(comment in left for comment in comments(entry.text, removed)), "a comment is lost"


@each_wrapped
@each_wanted
def test_a_second_merge_changes_nothing(entry, wanted):
    first = merge_batching(Document.parse(entry.text, entry.name), wanted)
    second = merge_batching(Document.parse(first.text, entry.name), wanted)
    assert second.text == first.text
    assert second.changes == ()
    assert second.kept == first.kept


@each_wrapped
@each_wanted
def test_a_merge_says_what_it_overrides(entry, wanted):
    """Whatever of the owner's meaning is lost stands in ``changes``; where nothing is, they are empty."""
    old, new = entry.config().dynamic_batching, merged(entry, wanted).dynamic_batching
    lost = {
        name
        for name in ("priority_levels", "default_priority_level")
        if getattr(old, name) not in (0, getattr(new, name))
    } | {
        f"priority_queue_policy {level}"
        for level, policy in old.priority_queue_policy.items()
        if level not in new.priority_queue_policy
        or policy not in (ModelQueuePolicy(), new.priority_queue_policy[level])
    }
    changes = merge_batching(Document.parse(entry.text, entry.name), wanted).changes
    assert {change.partition(":")[0] for change in changes} >= lost


def test_a_file_that_says_everything_already_stays_as_it_is():
    (entry,) = (entry for entry in WRAPPED if entry.name == "ready_made")
    assert merge_batching(Document.parse(entry.text, entry.name), Batching(2)).text == entry.text


@each_wrapped
@pytest.mark.parametrize("mode", ["levels", "plain", "executor-policies"])
def test_wrap_writes_a_router_that_lint_likes(entry, folder, mode, tmp_path):
    repository, before = tmp_path / "repository", contents(folder)
    assert command.main([str(folder), "--into", str(repository), *([] if mode == "levels" else [f"--{mode}"])]) == 0
    assert contents(folder) == before
    after = contents(repository / entry.name)
    merge = merge_batching(Document.parse(entry.text, entry.name), TEACHING[mode])
    without_comments = corpus.parsed(corpus.decoded(after.pop(CONFIG)))
    assert without_comments == corpus.parsed(merge.text)
    assert after == {path: content for path, content in before.items() if path != CONFIG}
    router = corpus.parsed((repository / f"{entry.name}_router" / "config.pbtxt").read_text())
    assert_router_fits(router, entry.config())
    assert [located.finding.sentence() for located in check([repository]).of(Severity.ERROR)] == []


@each_wrapped
def test_wrap_asks_for_the_number_of_instances_where_the_machine_has_the_choice(entry, folder):
    """Where nothing names the devices; counts alone have Triton's own default where they are left out."""
    groups = entry.config().instance_group
    chooses = not groups or any(
        not group.gpus and group.kind in (group.KIND_AUTO, group.KIND_GPU) for group in groups if not group.passive
    )
    uncertain = any(group.count == 0 for group in groups) and entry.backend not in stand_in_backends.TRITONS_OWN
    assert bool(source.read(folder).instances.open) == (chooses or uncertain)


def assert_router_fits(router, executor):
    def seen(tensors):
        return [(tensor.name, tensor.data_type, list(tensor.dims)) for tensor in tensors]

    assert router.backend == BACKEND
    assert router.max_batch_size == 16 * executor.max_batch_size
    assert seen(router.input)[:-1] == seen(executor.input)
    assert [tensor.optional for tensor in router.input] == [*(tensor.optional for tensor in executor.input), True]
    assert router.input[-1].name == CLASS_TENSOR
    assert seen(router.output)[:-2] == seen(executor.output)
    assert [tensor.name for tensor in router.output[-2:]] == [QUEUE_OUTPUT, EXECUTOR_OUTPUT]


def test_lint_finds_no_error_in_models_that_a_server_loads(tmp_path):
    for entry in WRAPPED:
        stand_in_backends.write_model(tmp_path / entry.name, entry.path.read_bytes(), entry.config(), entry.backend)
    report = check([tmp_path])
    assert report.models == len(WRAPPED)
    assert [located.finding.sentence() for located in report.of(Severity.ERROR)] == []


@each_wrapped
def test_wrapping_once_more_changes_nothing(entry, folder, tmp_path):
    words = [str(folder), "--into", str(tmp_path / "repository")]
    command.main(words)
    once = contents(tmp_path / "repository")
    command.main(words)
    command.main([str(tmp_path / "repository" / entry.name), *words[1:]])
    assert contents(tmp_path / "repository") == once


@pytest.mark.parametrize("entry", REFUSED, ids=lambda entry: entry.name)
def test_wrap_refuses_with_reason_and_place_and_writes_nothing(entry, tmp_path):
    folder = tmp_path / (entry.name)
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").write_bytes(entry.path.read_bytes())
    with pytest.raises(PriorityRouterError) as refusal:
        command.main([str(folder), "--into", str(tmp_path / "repository")])
    assert PHRASES.get(entry.reason, "") in str(refusal.value)
    assert ":".join([str(folder / "config.pbtxt"), *map(str, entry.where)]) in str(refusal.value)
    assert not (tmp_path / "repository").exists()
