# SPDX-License-Identifier: Apache-2.0
"""Arrays of several requests joined into one dispatch, and its outputs split again.

Law: numpy only; knows rows and names, not requests. Nothing is converted, padded or invented; a dispatch that is one
request's rows is never copied.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Sequence

import numpy as np

from priority_router.runtime.work import Array, Tensors


def signature(tensors: Tensors, batched: bool) -> Hashable:
    """Equal for requests whose rows may be joined: same names, dtypes and shapes without the batch axis."""
    if batched:
        return tuple((name, array.dtype.char, array.shape[1:]) for name, array in tensors)
    return tuple((name, array.dtype.char, array.shape) for name, array in tensors)


def size(tensors: Tensors) -> int:
    """Bytes of memory that the tensors hold, those of their texts included."""
    total = 0
    for _, array in tensors:
        total += array.nbytes
        if array.dtype.hasobject:
            total += sum(map(sys.getsizeof, array.flat))
    return total


def private(array: Array) -> Array:
    """The array itself where Python owns its memory, otherwise a copy.

    Request tensors are Triton's once ``execute`` returns. Every release so far hands out arrays with memory of their
    own; this holds should one stop doing so.
    """
    owner: object = array
    while isinstance(owner, np.ndarray):
        if owner.flags.owndata:
            return array
        owner = owner.base
    return array.copy()


def rows_of(tensors: Tensors, first: int, rows: int) -> Tensors:
    """Rows ``first .. first + rows`` of every tensor: views, or the tensors themselves where that is all of them."""
    if first == 0 and all(array.shape[0] == rows for _, array in tensors):
        return tensors
    return [(name, array[first : first + rows]) for name, array in tensors]


def join(requests: Sequence[Tensors]) -> Tensors:
    """The tensors of one dispatch: rows of every request in order, under the names that all of them share."""
    if len(requests) == 1:
        return requests[0]
    columns = zip(*requests, strict=True)
    return [(column[0][0], np.concatenate([array for _, array in column])) for column in columns]


def split(outputs: Tensors, counts: Sequence[int]) -> list[Tensors]:
    """The outputs of each part of a dispatch: views.

    Args:
        outputs: tensors whose first axis is the sum of ``counts``.
        counts: rows of each part, in order.

    Raises:
        ValueError: an output has another number of rows; the text names it.
    """
    total = sum(counts)
    for name, array in outputs:
        if array.ndim == 0 or array.shape[0] != total:
            found = f"{array.shape[0]} rows" if array.ndim else "no batch axis"
            raise ValueError(f"output {name!r} has {found}, the batch had {total}")
    if len(counts) == 1:
        return [outputs]
    parts: list[Tensors] = []
    first = 0
    for count in counts:
        parts.append([(name, array[first : first + count]) for name, array in outputs])
        first += count
    return parts
