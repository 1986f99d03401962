# SPDX-License-Identifier: Apache-2.0
"""Triton's data types."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

ITEM_BYTES: Final[Mapping[str, int]] = MappingProxyType(
    {
        "BOOL": 1,
        "UINT8": 1,
        "UINT16": 2,
        "UINT32": 4,
        "UINT64": 8,
        "INT8": 1,
        "INT16": 2,
        "INT32": 4,
        "INT64": 8,
        "FP16": 2,
        "BF16": 2,
        "FP32": 4,
        "FP64": 8,
        "BYTES": 4,  # a text's length, before it
    }
)
"""Bytes of one element in a request, by the protocol's name of the type; a configuration has TYPE_ before it."""
