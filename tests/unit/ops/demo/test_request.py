# SPDX-License-Identifier: Apache-2.0
"""The JSON body for plain HTTP clients."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from priority_router.ops.demo import filetype, request

MODELS = Path(__file__).parents[4] / "model_repository"


@pytest.fixture(autouse=True)
def in_the_clone(monkeypatch):
    monkeypatch.chdir(MODELS.parent)


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script"
    path.write_bytes(b"#!/bin/sh\necho\n")
    return path


def test_the_body_carries_the_file_and_its_class(script, capsys):
    assert request.main([str(script), "--class", "online", "--top", "3"]) == 0
    body = json.loads(capsys.readouterr().out)
    content, traffic_class = body["inputs"]
    assert (content["name"], content["shape"], content["datatype"]) == ("bytes", [1, 2048], "INT32")
    features = filetype.load_rule(MODELS).features_of_file(script)
    assert features is not None
    assert content["data"] == features.tolist()
    assert traffic_class == {"name": "CLASS", "shape": [1, 1], "datatype": "BYTES", "data": ["online"]}
    assert body["outputs"][0] == {"name": "target_label", "parameters": {"classification": 3}}


def test_without_a_class_none_is_sent(script, capsys):
    request.main([str(script)])
    assert [entry["name"] for entry in json.loads(capsys.readouterr().out)["inputs"]] == ["bytes"]


@pytest.mark.parametrize(("content", "reason"), [(None, "No such file"), (b"x", "too short: the model needs 8 bytes")])
def test_a_file_that_cannot_be_asked_about_is_named(tmp_path, capsys, content, reason):
    path = tmp_path / "file"
    if content is not None:
        path.write_bytes(content)
    assert request.main([str(path)]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert f"{path}" in said.err
    assert reason in said.err


def test_elsewhere_the_model_repository_is_named(script, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert request.main([str(script)]) == 1
    assert capsys.readouterr().err.startswith(
        "request: error: model_repository/file_type_features/1/file_features.py is missing"
    )
    assert request.main([str(script), "--model-repository", str(MODELS)]) == 0
