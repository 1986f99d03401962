# SPDX-License-Identifier: Apache-2.0
"""What is read from a config.pbtxt here is what the server reads from it; all else is refused here."""

from __future__ import annotations

import http.client
import json
import random
from typing import Any

import pytest
from google.protobuf import json_format, text_format
from priority_router.ops.pbtxt.document import Document, encode, faults
from priority_router.ops.pbtxt.edit import Batching, QueuePolicy, merge_batching
from support.config_texts import Writer
from tritonclient.grpc import model_config_pb2

_MODEL = "class TritonPythonModel:\n    def execute(self, requests):\n        return []\n"
_BASE = """\
backend: "python"
input { name: "X" data_type: TYPE_FP32 dims: [ 1 ] }
output { name: "Y" data_type: TYPE_FP32 dims: [ 1 ] }
instance_group { count: 1 kind: KIND_CPU }
"""
_RICH = f"""{_BASE}
max_batch_size: 16
dynamic_batching {{
  preferred_batch_size: [ 4, 8 ]
  priority_levels: 2
  default_priority_level: 2
  priority_queue_policy [
    {{ key: 1 value {{ timeout_action: DELAY default_timeout_microseconds: 50000 allow_timeout_override: true }} }},
    {{ key: 2 value {{ max_queue_size: 16 }} }}
  ]
}}
parameters {{ key: "odd" value {{ string_value: "# {{ }} < > ' \\" \\\\ ; , \\n\\r\\t\\001 \u00e9\ud55c\U0001f600" }} }}
parameters {{ key: "" value {{ }} }}
version_policy {{ specific {{ versions: 3 }} }}
"""
_COMPARED = ("max_batch_size", "input", "output", "dynamic_batching", "parameters", "version_policy")


def _parameter(literal: str) -> str:
    return f"{_BASE}parameters {{ key: 'p' value {{ string_value: {literal} }} }}\n"


def _numbers(spelled: str) -> str:
    return f"max_batch_size: {spelled}\n{_BASE}"


_ALIKE = {
    "octal": _numbers("010"),
    "hexadecimal": _numbers("0X1f"),
    "blanks": _numbers("4\v\f\t\r"),
    "carriage_returns": _BASE.replace("\n", "\r") + "# max_batch_size: 4\rmax_batch_size: 4",
    "bytes_in_a_comment": _BASE + "# \udcff \x01 \u00a0",
    "escapes": _parameter(
        r"""'\a\b\f\n\r\t\v\\\'\"\101\0612\7\x41\x4g\u0041\u00e9\U0001F600\\u0041\303\251' "\x1" 'b'"""
    ),
    "control_characters": _parameter("'\x01\r\t\x7f\u0085\u00a0'"),
    "map": _parameter("'1'") + _parameter("'2'").removeprefix(_BASE) + "parameters { } parameters { key: 'z' }",
    "lists": _BASE + "batch_input [ ] version_policy: < specific { versions: [ 1 # x\n, # ]\n 0x2 ] versions: 03 } >;",
    "booleans": _BASE.replace("dims", "optional: t dims", 1).replace("TYPE_FP32", "0xB"),
}
"""Loaded, with the meaning that it has here."""

_REFUSED = {
    "byte_order_mark": "\ufeff" + _BASE,
    "nul_in_a_comment": _BASE + "# \0 max_batch_size: 4\n",
    "nul_in_a_string": _parameter("'\0'"),
    "no_break_space": _BASE + "\u00a0",
    "separator_character": _BASE + "\x1c",
    **{
        f"number_{index}": _numbers(text) for index, text in enumerate(("+4", "1_0", "0b11", "0o10", "08", "4.0", "4x"))
    },
    "minus": _BASE + "dynamic_batching { priority_levels: -0 }",
    **{f"escape_{index}": _parameter(f"'{text}'") for index, text in enumerate((r"\q", r"\X41", r"\x", r"\8"))},
    "two_lines": _parameter("'a\nb'"),
    "list_of_one": _BASE + "dynamic_batching [ { } ]",
    "comma_at_the_end": _BASE + "version_policy { specific { versions: [ 1, ] } }",
    "list_without_a_colon": _BASE.replace("dims:", "dims"),
    "twice": _BASE + "dynamic_batching { } dynamic_batching { }",
    "key_twice": _BASE + "parameters { key: '' key: 'b' }",
    "schedulers": _BASE + "dynamic_batching { } sequence_batching { }",
    "extension": _BASE + "[a.b] { }",
    "any": _BASE + "[type.googleapis.com/a.b] { }",
    "field_number": _BASE + "4: 8",
    "camel_case": _BASE + "maxBatchSize: 4",
    "deep": _BASE + "foo {" * 200 + "}" * 200,
    "quoted_enum": _BASE.replace("TYPE_FP32", "'TYPE_FP32'"),
    "large_enum": _BASE.replace("TYPE_FP32", "99999999999"),
    "two_separators": _BASE + "max_batch_size: 4,;",
    "octal_float": _BASE + "sequence_batching { direct { minimum_slot_utilization: 010 } }",
}
"""Refused here and by the server."""

_REFUSED_HERE = {
    "latin_1": _parameter("'\udce9'"),
    "question_mark": _parameter(r"'\?'"),
    "large_octal": _parameter(r"'\400'"),
    "backslash": _parameter(r"'\u005cn'"),
    "pair": _parameter(r"'\ud83d\ude00'"),
    "default_first": "max_batch_size: 0 max_batch_size: 4\n" + _BASE,
    "octal_enum": _BASE.replace("TYPE_FP32", "013"),
    "octal_boolean": _BASE.replace("dims", "optional: 01 dims", 1),
}
"""Loaded, with a meaning that protobuf in Python does not find: refused rather than changed."""

_SEEDS = range(6)


def _rich() -> Any:
    return text_format.Parse(_RICH, model_config_pb2.ModelConfig())


def _spelled() -> dict[str, str]:
    return {f"spelled_{seed}": Writer(random.Random(seed)).text(_rich()) for seed in _SEEDS}


def _merged() -> dict[str, str]:
    """With levels put into any spelling of the rest."""
    found = {}
    for seed in _SEEDS:
        bare = _rich()
        if seed % 2:
            bare.ClearField("dynamic_batching")
        document = Document.parse(Writer(random.Random(seed)).text(bare), "f")
        found[f"merged_{seed}"] = merge_batching(document, Batching(3, {1: QueuePolicy(8, 1000, True)})).text
    return found


_TEXTS = {**_ALIKE, **_REFUSED, **_REFUSED_HERE, **_spelled(), **_merged()}


@pytest.fixture(scope="module")
def loaded(start_server, tmp_path_factory):
    """What the server says of each model: its configuration, or None."""
    repository = tmp_path_factory.mktemp("pbtxt") / "repository"
    for name, text in _TEXTS.items():
        folder = repository / name
        for version in "123":
            (folder / version).mkdir(parents=True)
            (folder / version / "model.py").write_text(_MODEL)
        (folder / "config.pbtxt").write_bytes(encode(text))
    server = start_server(repository, hooks=False, extra_args=("--exit-on-error=false",))
    connection = http.client.HTTPConnection(server.http)

    def config(name: str) -> Any:
        connection.request("GET", f"/v2/models/{name}/config")
        answer = connection.getresponse()
        body = answer.read()
        return json.loads(body) if answer.status == 200 else None

    return {name: config(name) for name in _TEXTS}


def _compared(config: Any) -> dict[str, Any]:
    found = json_format.MessageToDict(config, preserving_proto_field_name=True)
    return {name: found.get(name) for name in _COMPARED}


@pytest.mark.parametrize("name", [name for name in _TEXTS if name not in _REFUSED and name not in _REFUSED_HERE])
def test_the_server_reads_what_is_read_here(loaded, name):
    ours = Document.parse(_TEXTS[name], "f").config
    assert loaded[name] is not None
    # What is left out the server fills in.
    theirs = json_format.ParseDict(loaded[name], model_config_pb2.ModelConfig(), ignore_unknown_fields=True)
    if not ours.HasField("version_policy"):
        theirs.ClearField("version_policy")
    if theirs.HasField("dynamic_batching") and not ours.dynamic_batching.preferred_batch_size:
        theirs.dynamic_batching.ClearField("preferred_batch_size")
    assert _compared(theirs) == _compared(ours)


@pytest.mark.parametrize("name", _REFUSED)
def test_what_is_refused_here_the_server_refuses(loaded, name):
    assert faults(_TEXTS[name], "f")
    assert loaded[name] is None


@pytest.mark.parametrize("name", _REFUSED_HERE)
def test_what_only_the_server_reads_is_refused_here(loaded, name):
    assert faults(_TEXTS[name], "f")
    assert loaded[name] is not None
