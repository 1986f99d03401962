# SPDX-License-Identifier: Apache-2.0
"""Whatever a file says, it is read or refused with a place and a reason, in time that grows with its size alone."""

from __future__ import annotations

import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from priority_router.ops.pbtxt.document import Document, faults
from priority_router.ops.pbtxt.edit import MOST_LEVELS, Batching, QueuePolicy, merge_batching
from priority_router.ops.pbtxt.error import PbtxtError
from support.config_texts import configs, written

# What protobuf only warns of would be read in another way by a server.
pytestmark = pytest.mark.filterwarnings("error")

_ANY = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
_WORDS = (
    *"{}<>[]:,;#\"'\\\n\r\t /-+.$@0129\0\ufeff\u00a0\x85\udcff\ud800\u00e9",
    *(
        "dynamic_batching",
        "priority_levels",
        "priority_queue_policy",
        "key",
        "value",
        "max_queue_size",
        "input",
        "dims",
    ),
    *("name", "parameters", "string_value", "model_metrics", "data_type", "TYPE_FP32", "true", "zzz", "timeout_ms"),
    *("${x}", "{{ x }}", "${", "1e400", "-inf", "nan", "0x", "010", "4294967296", "99999999999999999999", "9" * 5000),
    *(
        '"a"',
        "'b'",
        '"\\',
        '"\\x"',
        '"\\u12"',
        "[a.b/c]",
        "# comment",
        "\r\n",
        "'\\q'",
        "{ }",
        "[ ]",
        ": {",
        "{{",
        "]]",
    ),
)


def check(text):
    """The law."""
    found = faults(text, "f")
    lines = text.split("\n")
    for fault in found:
        assert isinstance(fault, PbtxtError)
        assert 1 <= fault.line <= len(lines)
        assert 1 <= fault.column <= len(lines[fault.line - 1]) + 1
        assert str(fault).isprintable()
        assert len(str(fault)) < 1000
    assert [(fault.line, fault.column) for fault in found] == sorted((fault.line, fault.column) for fault in found)
    if found:
        with pytest.raises(PbtxtError):
            Document.parse(text, "f")
        return
    document = Document.parse(text, "f")
    document.encode()
    document.as_json()
    document.repeats()
    document.octals()
    merge(document, Batching(2, {1: QueuePolicy(1)}))
    merge(document, Batching(None))


def merge(document, wanted):
    """Refused only for what is in its docstring."""
    block = document.as_json().get("dynamic_batching", {})
    others = {"sequence_batching", "ensemble_scheduling"} & set(document.as_json())
    if others or (wanted.priority_levels and int(block.get("priority_levels", 0)) > MOST_LEVELS):
        with pytest.raises(PbtxtError):
            merge_batching(document, wanted)
    else:
        assert merge_batching(document, wanted).text


@_ANY
@given(st.lists(st.one_of(st.sampled_from(_WORDS), st.just(" ")), max_size=30).map("".join))
def test_words_in_any_order(text):
    check(text)


@_ANY
@given(st.text(max_size=40))
def test_any_characters(text):
    check(text)


@_ANY
@given(st.binary(max_size=40).map(lambda data: data.decode("utf-8", "surrogateescape")))
def test_any_bytes(text):
    check(text)


@_ANY
@given(configs().flatmap(written), st.data())
def test_a_configuration_with_something_taken_out_doubled_or_put_in(text, data):
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 12)))
        middle = data.draw(st.sampled_from(("", text[start:end] * 2, *_WORDS)))
        text = text[:start] + middle + text[end:]
    check(text)


_SIZE = 150_000
_LONG = {
    "fields": "input { name: 'x' data_type: TYPE_FP32 dims: [ 1, 2 ] }\n",
    "one line": "parameters { key: 'x' value { string_value: 'y' } } ",
    "other keys": "",
    "comments": "# comment { \" '\n",
    "comment": "#",
    "blank": " ",
    "lines": "\n",
    "strings": "name: 'a' ",
    "adjacent": "'a' ",
    "escapes": '\\"',
    "quotes": '"\\',
    "opening": "{",
    "closing": "}",
    "lists": "[",
    "nested": "dynamic_batching {",
    "nested unknown": "zzz {",
    "unknown": "zzz: 1 ",
    "misspelt": "priority_level: 1 ",
    "placeholders": "${x} ",
    "values": "max_batch_size: ${x} ",
    "half placeholders": "${",
    "quoted half placeholders": "${a",
    "jinja": "{{",
    "separators": ",",
    "digits": "9",
    "letters": "a",
    "minus": "-",
    "other": "\u00a0",
    "undecodable": "\udcff",
    "colons": "a:",
    "list": "1, ",
    "levels": "priority_queue_policy { key: 1 value { max_queue_size: 1 } } ",
}


@pytest.mark.parametrize("sort", _LONG)
def test_the_time_grows_with_the_size(sort):
    piece = _LONG[sort]
    text = piece * (_SIZE // max(len(piece), 1))
    if sort == "other keys":
        text = "".join(f"parameters {{ key: 'k{index}' }}\n" for index in range(_SIZE // 30))
    elif sort == "adjacent":
        text = f"name: {text}"
    elif sort in ("escapes", "quotes", "quoted half placeholders"):
        text = f'name: "{text}'
    elif sort == "list":
        text = f"version_policy {{ specific {{ versions: [ {text} 1 ] }} }}"
    elif sort == "levels":
        text = f"dynamic_batching {{ {text} }}"
    begin = time.process_time()
    check(text)
    # Four readings; each takes under a second where nothing else runs, and a square one minutes.
    assert time.process_time() - begin < 15
