# SPDX-License-Identifier: Apache-2.0
"""The ensemble's last step against the magika package itself: which label a score is worth."""

from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path

import numpy as np
import pytest
from magika import Magika, PredictionMode
from magika.types import ContentTypeLabel
from support.shipped import MODELS, StepRequest, TritonModelException, module

MODES = {mode: str(mode).replace("_", "-") for mode in PredictionMode}
RULES = MODELS / "file_type_label" / "1" / "rules.json"


@pytest.fixture
def labels(monkeypatch):
    return module("file_type_label", "file_labels", monkeypatch)


@pytest.fixture
def step(monkeypatch):
    return module("file_type_label", "model", monkeypatch)


def scores_of(rules, label, score):
    scores = np.zeros(len(rules.labels), np.float32)
    scores[rules.labels.index(label)] = score
    return scores


@pytest.mark.parametrize("mode", MODES)
def test_every_label_at_every_score_is_called_as_magika_calls_it(labels, mode):
    magika = Magika(prediction_mode=mode)
    rules, ours = labels.Rules.read(RULES), labels.PredictionMode(MODES[mode])
    assert list(rules.labels) == [str(label) for label in magika._model_config.target_labels_space]
    limits = {0.5, 0.75, 0.9, 0.95}
    assert limits == {0.5, *magika._model_config.thresholds.values()}
    seen = set()
    for score in sorted({np.float32(limit) + step for limit in limits for step in (-1e-6, 0, 1e-6)} | {1.0, 0.1}):
        for label in rules.labels:
            got, value = rules.label(scores_of(rules, label, score), ours)
            expected, _ = magika._get_output_label_from_dl_label_and_score(ContentTypeLabel(label), value)
            assert (got, value) == (str(expected), pytest.approx(float(score), abs=1e-7)), (label, score)
            seen.add(got)
    assert {"txt", "unknown"} < seen


def config(mode="high-confidence", dims=214):
    return {
        "model_config": json.dumps(
            {
                "input": [{"name": "scores", "dims": [dims]}, {"name": "known", "dims": [1]}],
                "parameters": {"prediction_mode": {"string_value": mode}},
            }
        )
    }


def test_the_step_keeps_known_labels_and_gives_the_others_theirs(labels, step):
    model = step.TritonPythonModel()
    model.initialize(config())
    rules = labels.Rules.read(RULES)
    scores = np.stack([scores_of(rules, "python", 0.9), scores_of(rules, "sql", 1.0), scores_of(rules, "sql", 0.8)])
    known = np.array([[b""], [b"empty"], [b""]], object)
    first, second = model.execute(
        [StepRequest(scores=scores, known=known), StepRequest(scores=scores[:1], known=known[:1])]
    )
    answer = first.arrays()
    assert answer["label"].tolist() == [[b"python"], [b"empty"], [b"txt"]]
    assert answer["score"].dtype == np.float32
    assert answer["score"].tolist() == np.array([[0.9], [1], [0.8]], np.float32).tolist()
    assert second.arrays()["label"].tolist() == [[b"python"]]
    assert known.tolist() == [[b""], [b"empty"], [b""]]


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        (config(mode="sure"), "prediction_mode 'sure' in config.pbtxt: write best-guess, medium-confidence, high-conf"),
        (config(dims=3), r"has 214 labels, config.pbtxt gives scores the dims \[3\]"),
    ],
)
def test_a_configuration_that_does_not_fit_is_refused(step, args, reason):
    with pytest.raises(TritonModelException, match=reason):
        step.TritonPythonModel().initialize(args)


@pytest.mark.parametrize("text", [None, "{}", "[]", "not JSON", '{"labels": 1}'])
def test_without_usable_rules_the_model_says_who_makes_them(step, monkeypatch, tmp_path, text):
    if text is not None:
        (tmp_path / "rules.json").write_text(text)
    monkeypatch.setattr(step, "__file__", str(tmp_path / "model.py"))
    with pytest.raises(TritonModelException, match=r"run scripts/setup, which makes rules\.json"):
        step.TritonPythonModel().initialize(config())


def test_the_rules_are_those_of_the_package():
    package = importlib.metadata.distribution("magika")
    shipped = json.loads(Path(str(package.locate_file("magika/models/standard_v3_3/config.min.json"))).read_text())
    rules = json.loads(RULES.read_text())
    assert rules["thresholds"] == shipped["thresholds"]
    assert rules["medium_threshold"] == shipped["medium_confidence_threshold"]
    assert rules["overwrite"] == shipped["overwrite_map"]
    assert RULES.stat().st_size < 10_000
