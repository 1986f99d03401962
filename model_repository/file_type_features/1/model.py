# SPDX-License-Identifier: Apache-2.0
"""First step of the ensemble ``file_type``: files to the executor's input."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils
from file_features import FEATURES, PADDING, features_of_bytes, label_without_model


class TritonPythonModel:
    """Answers each request by itself."""

    def execute(self, requests: list[Any]) -> list[Any]:
        """One response per request.

        Args:
            requests: each with ``content`` BYTES [rows, 1], one file per row.

        Returns:
            ``bytes`` INT32 [rows, 2048] and ``known`` BYTES [rows, 1]: the label where the model is not needed, else
            empty. Such a row is all padding; an ensemble has no way around its later steps.
        """
        return [self._answer(request) for request in requests]

    def _answer(self, request: Any) -> Any:
        files = pb_utils.get_input_tensor_by_name(request, "content").as_numpy().ravel().tolist()
        rows = np.full((len(files), FEATURES), PADDING, np.int32)
        known = np.full((len(files), 1), b"", object)
        for index, content in enumerate(files):
            features = features_of_bytes(content)
            if features is None:
                known[index, 0] = label_without_model(content).encode()
            else:
                rows[index] = features
        return pb_utils.InferenceResponse([pb_utils.Tensor("bytes", rows), pb_utils.Tensor("known", known)])
