# SPDX-License-Identifier: Apache-2.0
"""Quoting that every legal name survives, comments, and the seal."""

from __future__ import annotations

import tomllib

import pytest
from google.protobuf import text_format
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from priority_router.ops.wrap import texts
from tritonclient.grpc.model_config_pb2 import ModelConfig

ANY = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
# Protobuf has no surrogates in its texts, TOML neither.
TEXTS = st.text(st.characters(codec="utf-8"))


@ANY
@given(TEXTS)
def test_a_string_of_protobuf_text_means_the_text(text):
    assert text_format.Parse(f"name: {texts.pbtxt_string(text)}", ModelConfig()).name == text


@ANY
@given(TEXTS, TEXTS)
def test_a_string_ends_where_it_ends(text, after):
    """What follows an escape must not be taken for its part."""
    line = f"name: {texts.pbtxt_string(text + '7f')} backend: {texts.pbtxt_string(after)}"
    parsed = text_format.Parse(line, ModelConfig())
    assert (parsed.name, parsed.backend) == (text + "7f", after)


@ANY
@given(TEXTS)
@example('\x7f\x00\\"é')
def test_a_string_of_toml_means_the_text(text):
    assert tomllib.loads(f"executor = {texts.toml_string(text)}")["executor"] == text


@ANY
@given(TEXTS)
def test_no_text_gets_out_of_its_comment(text):
    for line in texts.comment(text):
        assert line.startswith("#")
        assert "\n" not in line
        assert text_format.Parse(line, ModelConfig()) == ModelConfig()


def test_comments_are_filled_up_to_the_width():
    lines = texts.comment("word " * 60)
    assert len(lines) == 3
    assert max(map(len, lines)) <= texts.COMMENT_WIDTH
    assert " ".join(line.removeprefix("# ") for line in lines).split() == ["word"] * 60


def test_an_unedited_file_keeps_its_seal():
    assert texts.is_sealed(texts.sealed(["a: 1", "", "b: 2"]))


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: text + "\n",
        lambda text: text.replace("a: 1", "a: 2"),
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\n" + text,
        lambda text: text.partition("\n")[2],
        lambda text: "",
    ],
)
def test_any_edit_breaks_the_seal(edit):
    assert not texts.is_sealed(edit(texts.sealed(["a: 1", "b: 2"])))


def test_the_seal_is_a_comment_and_the_same_each_time():
    text = texts.sealed(["max_batch_size: 3"])
    assert text_format.Parse(text, ModelConfig()).max_batch_size == 3
    assert text == texts.sealed(["max_batch_size: 3"])
