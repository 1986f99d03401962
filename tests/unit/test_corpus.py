# SPDX-License-Identifier: Apache-2.0
"""tests/corpus: its table tells the truth, no two files are alike, every spelling occurs; and what is read in it."""

from __future__ import annotations

from collections import Counter

import pytest
from google.protobuf import text_format
from priority_router.interface import BACKEND, CLASS_TENSOR, TIMING_OUTPUTS
from priority_router.ops.pbtxt import document
from support import corpus, pbtxt_reading
from support.pbtxt_spellings import SPELLINGS, used
from tritonclient.grpc.model_config_pb2 import DataType, ModelInstanceGroup

LEAST_FILES = 45
LEAST_PUBLIC_SHAPES = 28
PLATFORMS = {
    "tensorrt_plan": "tensorrt",
    "onnxruntime_onnx": "onnxruntime",
    "pytorch_libtorch": "pytorch",
    "tensorflow_savedmodel": "tensorflow",
    "tensorflow_graphdef": "tensorflow",
}
UNREADABLE = {"encoding", "placeholder", "syntax", "unknown_field"}
"""Reasons that lie in the file and not in the model; a placeholder inside a string parses all the same."""

WRAPPED, REFUSED = corpus.wrapped(), corpus.refused()

each_wrapped = pytest.mark.parametrize("entry", WRAPPED, ids=lambda entry: entry.name)
each_refused = pytest.mark.parametrize("entry", REFUSED, ids=lambda entry: entry.name)


def on_gpus(config):
    return any(group.kind == ModelInstanceGroup.KIND_GPU for group in config.instance_group)


def tensors(config):
    return (*config.input, *config.output)


def parses(entry):
    try:
        entry.config()
    except text_format.ParseError:
        return False
    return True


TRUE_REASONS = {
    "sequence": lambda config: config.HasField("sequence_batching"),
    "decoupled": lambda config: config.model_transaction_policy.decoupled,
    "ensemble": lambda config: config.HasField("ensemble_scheduling"),
    "router": lambda config: config.backend == BACKEND,
    "tensors": lambda config: not config.input and not config.output,
    "names": lambda config: (
        config.backend != BACKEND and {CLASS_TENSOR, *TIMING_OUTPUTS} & {io.name for io in tensors(config)}
    ),
    "shape_tensor": lambda config: any(io.is_shape_tensor for io in tensors(config)),
    "format": lambda config: any(io.is_non_linear_format_io for io in tensors(config)),
    "type": lambda config: any(io.data_type == DataType.Value("TYPE_BF16") for io in tensors(config)),
    "order": lambda config: config.dynamic_batching.preserve_ordering,
    "size": lambda config: config.platform == "tensorrt_plan" and not config.max_batch_size,
    "placeholder": lambda config: "${" in str(config),
}


@pytest.mark.parametrize(("folder", "entries"), [(corpus.CONFIGS, WRAPPED), (corpus.REFUSED, REFUSED)])
def test_the_table_has_every_file_once(folder, entries):
    assert [entry.path for entry in entries] == sorted(folder.iterdir())


def test_there_are_enough_of_them():
    assert len(WRAPPED) + len(REFUSED) >= LEAST_FILES
    assert len({entry.shape for entry in WRAPPED if entry.shape}) >= LEAST_PUBLIC_SHAPES


@each_wrapped
def test_what_the_table_says_of_a_wrapped_file(entry):
    config = entry.config()
    assert config.name in ("", entry.name)
    assert (config.backend or PLATFORMS[config.platform]) == entry.backend
    assert on_gpus(config) == (entry.served == corpus.ON_THE_CPU)


@each_refused
def test_what_the_table_says_of_a_refused_file(entry):
    assert parses(entry) == (entry.reason not in UNREADABLE or entry.name == "placeholder_text")
    if parses(entry):
        true = {reason for reason, holds in TRUE_REASONS.items() if holds(entry.config())}
        assert true == {entry.reason}
    else:
        assert entry.reason in UNREADABLE


def test_no_two_files_have_the_same_structure():
    readable = [entry for entry in (*WRAPPED, *REFUSED) if parses(entry)]
    structures = Counter(corpus.structure(entry.config()) for entry in readable)
    assert [entry.name for entry in readable if structures[corpus.structure(entry.config())] > 1] == []


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_occurs_more_than_once(spelling):
    assert sum(spelling in used(pbtxt_reading.read(entry.text)) for entry in WRAPPED) > 1


@each_wrapped
def test_the_cpu_variant_differs_only_in_its_instances(entry):
    served, config = corpus.parsed(entry.cpu_text()), entry.config()
    assert not on_gpus(served)
    if config.instance_group:
        assert corpus.instances(served) == corpus.instances(config)
    for each in (served, config):
        del each.instance_group[:]
    assert served == config


@each_wrapped
def test_a_wrapped_file_is_read_as_protobuf_reads_it(entry):
    found = document.Document.parse(entry.text, entry.path.name)
    assert found.config == entry.config()
    assert found.encode() == entry.path.read_bytes()


@pytest.mark.parametrize("entry", [entry for entry in REFUSED if entry.reason in UNREADABLE], ids=lambda e: e.name)
def test_a_fault_is_named_and_placed(entry):
    first = document.faults(entry.text, entry.path.name)[0]
    assert first.kind == entry.reason
    assert (first.line, first.column)[: len(entry.where)] == entry.where


@pytest.mark.parametrize("entry", [entry for entry in REFUSED if entry.reason not in UNREADABLE], ids=lambda e: e.name)
def test_a_file_without_faults_is_read(entry):
    assert document.faults(entry.text, entry.path.name) == []
