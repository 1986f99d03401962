# SPDX-License-Identifier: Apache-2.0
"""Last step of the ensemble ``file_type``: the executor's scores to labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils
from file_labels import PredictionMode, Rules


class TritonPythonModel:
    """Answers each request by itself."""

    def initialize(self, args: dict[str, str]) -> None:
        """Reads ``rules.json`` and the parameter ``prediction_mode``.

        Raises:
            TritonModelException: one of them is missing or wrong, or does not fit the model.
        """
        config = json.loads(args["model_config"])
        path = Path(__file__).with_name("rules.json")
        try:
            self._rules = Rules.read(path)
        except (OSError, ValueError) as error:
            raise pb_utils.TritonModelException(f"{error}; run scripts/setup, which makes {path.name}") from error
        scores = next(entry for entry in config["input"] if entry["name"] == "scores")
        if scores["dims"] != [len(self._rules.labels)]:
            raise pb_utils.TritonModelException(
                f"{path} has {len(self._rules.labels)} labels, config.pbtxt gives scores the dims {scores['dims']}"
            )
        word = config["parameters"]["prediction_mode"]["string_value"]
        try:
            self._mode = PredictionMode(word)
        except ValueError:
            known = ", ".join(mode.value for mode in PredictionMode)
            raise pb_utils.TritonModelException(f"prediction_mode {word!r} in config.pbtxt: write {known}") from None

    def execute(self, requests: list[Any]) -> list[Any]:
        """One response per request.

        Args:
            requests: each with ``scores`` FP32 [rows, labels] and ``known`` BYTES [rows, 1], the label of a row whose
                scores mean nothing, else empty.

        Returns:
            ``label`` BYTES [rows, 1] and ``score`` FP32 [rows, 1], 1 where the label was known.
        """
        return [self._answer(request) for request in requests]

    def _answer(self, request: Any) -> Any:
        scores = pb_utils.get_input_tensor_by_name(request, "scores").as_numpy()
        known = pb_utils.get_input_tensor_by_name(request, "known").as_numpy()
        label = known.copy()
        score = np.ones(known.shape, np.float32)
        for index in np.flatnonzero(known == b""):
            name, score[index, 0] = self._rules.label(scores[index], self._mode)
            label[index, 0] = name.encode()
        return pb_utils.InferenceResponse([pb_utils.Tensor("label", label), pb_utils.Tensor("score", score)])
