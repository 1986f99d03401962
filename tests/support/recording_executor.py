# SPDX-License-Identifier: Apache-2.0
"""A stand-in for a GPU model that writes down what it ran: copied into a model repository as ``model.py``.

Takes ``X`` (FP32), optionally ``TAG`` (INT64, one number per row, which names the row in the record), ``TEXT`` (BYTES)
and ``EXTRA`` (FP32), as the config says; answers ``Y = 2 X``, ``TAG_OUT``, ``TEXT_OUT`` and ``EXTRA_OUT`` likewise.

Settings are config parameters (see ``support.models.Executor``). Record: one JSON object per executed batch with
``start`` and ``end`` (time.monotonic seconds, comparable across processes), ``instance``, ``rows`` (of each request),
``tags`` (of each row, in order) and ``inputs`` (names, per request). Door: see ``support.models.Record``.
"""

import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils

Array = np.ndarray[Any, Any]


class TritonPythonModel:
    def initialize(self, args: dict[str, str]) -> None:
        config = json.loads(args["model_config"])
        settings = {key: value["string_value"] for key, value in config.get("parameters", {}).items()}
        self.instance = args["model_instance_name"]
        self.record = Path(settings["record"])
        self.door, self.held = (Path(f"{self.record}.{end}") for end in ("shut", f"{self.instance}.held"))
        self.pass_the_door()
        if settings.get("initialize_error"):
            raise pb_utils.TritonModelException(settings["initialize_error"])
        self.batched = config["max_batch_size"] > 0
        self.batch_seconds = float(settings.get("batch_seconds", "0"))
        self.row_seconds = float(settings.get("row_seconds", "0"))
        self.error_tags = json.loads(settings.get("error_tags", "{}"))
        self.raise_tags = set(json.loads(settings.get("raise_tags", "[]")))
        self.exit_tags = set(json.loads(settings.get("exit_tags", "[]")))
        self.wrong_rows_tags = set(json.loads(settings.get("wrong_rows_tags", "[]")))
        self.outputs = [output["name"] for output in config["output"]]

    def execute(self, requests: list[Any]) -> list[Any]:
        start = time.monotonic()
        inputs = [{tensor.name(): tensor.as_numpy() for tensor in request.inputs()} for request in requests]
        tags = [[int(tag) for tag in tensors.get("TAG", np.zeros(0)).reshape(-1)] for tensors in inputs]
        rows = [self.rows_of(tensors) for tensors in inputs]
        every_tag = [tag for request_tags in tags for tag in request_tags]
        if self.exit_tags & set(every_tag):
            os._exit(9)
        if self.raise_tags & set(every_tag):
            raise RuntimeError("the device is lost")
        self.pass_the_door(sum(rows))
        time.sleep(self.batch_seconds + self.row_seconds * sum(rows))
        end = time.monotonic()
        entry = {"start": start, "end": end, "instance": self.instance, "rows": rows, "tags": every_tag}
        entry["inputs"] = [sorted(tensors) for tensors in inputs]
        with self.record.open("a") as record:
            record.write(json.dumps(entry) + "\n")
        return [self.answer(*pair) for pair in zip(inputs, tags, strict=True)]

    def pass_the_door(self, rows: int = 0) -> None:
        if self.door.exists():
            self.held.write_text(str(rows))
            while self.door.exists():
                time.sleep(0.002)
            self.held.unlink()

    def rows_of(self, tensors: dict[str, Array]) -> int:
        return len(next(iter(tensors.values()))) if self.batched and tensors else 1

    def answer(self, tensors: dict[str, Array], tags: list[int]) -> Any:
        for tag in tags:
            error = self.error_tags.get(str(tag))
            if error is not None:
                code = getattr(pb_utils.TritonError, error.get("code", "INTERNAL"))
                return pb_utils.InferenceResponse(error=pb_utils.TritonError(error["message"], code))
        made = []
        for name, source in (("Y", "X"), ("TAG_OUT", "TAG"), ("TEXT_OUT", "TEXT"), ("EXTRA_OUT", "EXTRA")):
            if name in self.outputs and source in tensors:
                value = tensors[source] * np.float32(2) if name == "Y" else tensors[source]
                made.append(pb_utils.Tensor(name, value[:-1] if self.wrong_rows_tags & set(tags) else value))
        return pb_utils.InferenceResponse(made)
