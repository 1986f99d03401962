#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks for the types of files over HTTP with a plain client: all that a class needs is one more tensor.

usage: examples/http_client.py [--address HOST:PORT] [--class NAME] FILE...
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException


def main() -> int:
    """Prints a line for each file; returns the exit status."""
    parser = argparse.ArgumentParser(description="Ask for the types of files over HTTP.")
    parser.add_argument("--address", default="127.0.0.1:8000", metavar="HOST:PORT", help="default %(default)s")
    parser.add_argument("--class", dest="class_name", default="online", metavar="NAME", help="default %(default)s")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    options = parser.parse_args()
    with triton.InferenceServerClient(options.address) as client:
        for path in options.files:
            inputs = [text_tensor("content", both_ends(path)), text_tensor("CLASS", options.class_name.encode())]
            try:
                result = client.infer("file_type", inputs, timeout=500_000)
            except InferenceServerException as error:
                print(f"{path}: {error.message()}", file=sys.stderr)
                return 1
            label, score = result.as_numpy("label")[0, 0], result.as_numpy("score")[0, 0]
            print(f"{path}: {label.decode()} {score:.1%}")
    return 0


def text_tensor(name: str, value: bytes) -> triton.InferInput:
    """A BYTES tensor of one row."""
    tensor = triton.InferInput(name, [1, 1], "BYTES")
    tensor.set_data_from_numpy(np.array([[value]], np.object_))
    return tensor


def both_ends(path: Path) -> bytes:
    """The first and the last 4 KiB of a file, which is all that matters; shorter files whole."""
    with path.open("rb") as file:
        first = file.read(8192)
        size = file.seek(0, 2)
        if size <= len(first):
            return first
        file.seek(size - 4096)
        return first[:4096] + file.read()


if __name__ == "__main__":
    sys.exit(main())
