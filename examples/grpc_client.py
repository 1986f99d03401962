#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks for the types of several files in one gRPC request; ``as_class`` adds the class and a request id.

usage: examples/grpc_client.py [--address HOST:PORT] [--class NAME] FILE...
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import tritonclient.grpc as triton
from priority_router.client import as_class
from tritonclient.utils import InferenceServerException


def main() -> int:
    """Prints a line for each file; returns the exit status."""
    parser = argparse.ArgumentParser(description="Ask for the types of up to 64 files, each sent whole, over gRPC.")
    parser.add_argument("--address", default="127.0.0.1:8001", metavar="HOST:PORT", help="default %(default)s")
    parser.add_argument("--class", dest="class_name", default="online", metavar="NAME", help="default %(default)s")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    options = parser.parse_args()
    content = triton.InferInput("content", [len(options.files), 1], "BYTES")
    content.set_data_from_numpy(np.array([[path.read_bytes()] for path in options.files], np.object_))
    call = as_class(options.class_name)
    with triton.InferenceServerClient(options.address) as client:
        try:
            result = client.infer("file_type", [content], timeout=500_000, **call)
        except InferenceServerException as error:
            print(f"request {call['request_id']}: {error.message()}", file=sys.stderr)
            return 1
    for path, label, score in zip(options.files, result.as_numpy("label"), result.as_numpy("score"), strict=True):
        print(f"{path}: {label[0].decode()} {score[0]:.1%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
