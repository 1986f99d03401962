# SPDX-License-Identifier: Apache-2.0
"""Prints the JSON body that asks the router for the type of one file, for curl and other plain HTTP clients.

usage: python -m priority_router.ops.demo.request FILE [--class NAME] [--top N] [--model-repository DIR]
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from priority_router.errors import SetupError
from priority_router.interface import CLASS_TENSOR, EXECUTOR_OUTPUT, QUEUE_OUTPUT
from priority_router.ops import command_line
from priority_router.ops.demo import filetype


def body(features: NDArray[np.int32], traffic_class: str | None, top: int) -> dict[str, object]:
    """An inference request of one row.

    Args:
        features: int32 [2048].
        traffic_class: class to ask for; None leaves the choice to the router's default.
        top: how many of the likeliest labels Triton shall answer, each as ``score:index:label``.
    """
    inputs = [_tensor(filetype.INPUT, "INT32", features.tolist())]
    if traffic_class is not None:
        inputs.append(_tensor(CLASS_TENSOR, "BYTES", [traffic_class]))
    return {
        "inputs": inputs,
        "outputs": [
            {"name": filetype.OUTPUT, "parameters": {"classification": top}},
            {"name": QUEUE_OUTPUT},
            {"name": EXECUTOR_OUTPUT},
        ],
    }


def _tensor(name: str, datatype: str, row: Sequence[object]) -> dict[str, object]:
    return {"name": name, "shape": [1, len(row)], "datatype": datatype, "data": list(row)}


def main(words: Sequence[str] | None = None) -> int:
    """Prints the body; returns the exit status."""
    parser = command_line.parser("request", "JSON body of a request for a file's type.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--class", dest="traffic_class", metavar="NAME", help="default: the router's default class")
    parser.add_argument(
        "--top",
        type=command_line.whole_number(1),
        default=1,
        metavar="N",
        help="likeliest labels to ask for (default %(default)s)",
    )
    parser.add_argument(
        "--model-repository", type=Path, default=Path("model_repository"), metavar="DIR", help="default %(default)s"
    )
    options = parser.parse_args(words)

    def run() -> int:
        features = _features(options.file, filetype.load_rule(options.model_repository))
        print(json.dumps(body(features, options.traffic_class, options.top), separators=(",", ":")))
        return 0

    return command_line.exit_status(parser.prog, run)


def _features(file: Path, rule: filetype.FeatureRule) -> NDArray[np.int32]:
    try:
        features = rule.features_of_file(file)
    except OSError as error:
        raise SetupError(f"{file}: {error.strerror}") from error
    if features is None:
        raise SetupError(f"{file} is too short: the model needs {rule.MINIMUM_BYTES} bytes")
    return features


if __name__ == "__main__":
    sys.exit(main())
