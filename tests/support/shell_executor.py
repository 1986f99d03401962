# SPDX-License-Identifier: Apache-2.0
"""Stands in for the shipped executor, behind the door of the recording one: to it every file is a shell script.

Copied as ``model.py`` into the version folder of the shipped executor, beside ``recording_executor.py``.
"""

from pathlib import Path
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils
from recording_executor import TritonPythonModel as Recording  # type: ignore[import-not-found] # beside it then


class TritonPythonModel(Recording):  # type: ignore[misc]
    def initialize(self, args: dict[str, str]) -> None:
        self.labels = Path(args["model_repository"], "labels.txt").read_text().splitlines()
        super().initialize(args)

    def answer(self, tensors: dict[str, Any], tags: list[int]) -> Any:
        scores = np.zeros((len(tensors["bytes"]), len(self.labels)), np.float32)
        scores[:, self.labels.index("shell")] = 1
        return pb_utils.InferenceResponse([pb_utils.Tensor("target_label", scores)])
