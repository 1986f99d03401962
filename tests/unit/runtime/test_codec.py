# SPDX-License-Identifier: Apache-2.0
"""Joining and splitting: nothing is lost, changed, invented, or copied without need."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from priority_router.runtime import codec
from priority_router.runtime.work import Tensors

DTYPES = [np.bool_, np.uint8, np.int32, np.int64, np.float16, np.float32, np.float64, object]


@st.composite
def requests(draw: st.DrawFn) -> list[Tensors]:
    """Requests of one signature: any dtypes, ranks up to 3 beside the batch axis, axes of length 0 included."""
    specs = draw(
        st.lists(
            st.tuples(st.sampled_from(DTYPES), st.lists(st.integers(0, 3), max_size=3).map(tuple)),
            min_size=1,
            max_size=3,
        )
    )
    counts = draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    made: list[Tensors] = []
    for count in counts:
        tensors = []
        for index, (dtype, shape) in enumerate(specs):
            numbers = generator.integers(0, 100, (count, *shape))
            if dtype is object:
                values = np.array([b"%d" % n for n in numbers.reshape(-1)], dtype=object).reshape(numbers.shape)
            else:
                values = numbers.astype(dtype)
            tensors.append((f"T{index}", values))
        made.append(tensors)
    return made


def same(left: Tensors, right: Tensors) -> bool:
    return len(left) == len(right) and all(
        ours[0] == theirs[0]
        and ours[1].dtype == theirs[1].dtype
        and ours[1].shape == theirs[1].shape
        and np.array_equal(ours[1], theirs[1])
        for ours, theirs in zip(left, right, strict=True)
    )


@given(requests())
@settings(max_examples=300, deadline=None)
def test_what_is_joined_is_split_into_the_same(made: list[Tensors]) -> None:
    counts = [len(tensors[0][1]) for tensors in made]
    joined = codec.join(made)
    assert all(len(array) == sum(counts) for _, array in joined)
    parts = codec.split(joined, counts)
    assert len(parts) == len(made)
    assert all(same(part, tensors) for part, tensors in zip(parts, made, strict=True))


@given(requests(), st.data())
@settings(max_examples=200, deadline=None)
def test_the_parts_of_a_split_request_make_it_whole(made: list[Tensors], data: st.DataObject) -> None:
    tensors = made[0]
    rows = len(tensors[0][1])
    cut = data.draw(st.integers(0, rows))
    parts = [codec.rows_of(tensors, 0, cut), codec.rows_of(tensors, cut, rows - cut)]
    assert same(codec.join(parts), tensors)


def test_a_dispatch_of_one_whole_request_is_not_copied() -> None:
    tensors = [("A", np.zeros((3, 2))), ("B", np.zeros((3,)))]
    assert codec.rows_of(tensors, 0, 3) is tensors
    assert codec.join([tensors]) is tensors
    assert codec.split(tensors, [3])[0] is tensors


def test_parts_are_views() -> None:
    array = np.arange(8).reshape(4, 2)
    assert np.shares_memory(codec.rows_of([("A", array)], 1, 2)[0][1], array)
    assert all(np.shares_memory(part[0][1], array) for part in codec.split([("A", array)], [1, 3]))


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (np.zeros((2, 1)), "output 'Y' has 2 rows, the batch had 3"),
        (np.zeros((4,)), "output 'Y' has 4 rows, the batch had 3"),
        (np.zeros(()), "output 'Y' has no batch axis, the batch had 3"),
    ],
)
def test_an_output_with_other_rows_is_named(output: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        codec.split([("X", np.zeros((3,))), ("Y", output)], [1, 2])


def test_signatures_differ_where_rows_cannot_be_joined() -> None:
    def signature(batched: bool = True, **tensors: Any) -> Any:
        return codec.signature(list(tensors.items()), batched)

    base = signature(A=np.zeros((1, 7), np.float32))
    assert base == signature(A=np.zeros((5, 7), np.float32))
    assert base != signature(A=np.zeros((1, 9), np.float32))
    assert base != signature(A=np.zeros((1, 7), np.float64))
    assert base != signature(B=np.zeros((1, 7), np.float32))
    assert base != signature(A=np.zeros((1, 7), np.float32), B=np.zeros((1, 7), np.float32))
    assert base != signature(A=np.zeros((1, 7, 1), np.float32))
    assert base != signature(A=np.full((1, 7), b"", object))
    assert signature(batched=False, A=np.zeros((1, 7))) != signature(batched=False, A=np.zeros((2, 7)))


def test_memory_that_is_not_pythons_is_copied() -> None:
    own = np.arange(4)
    assert codec.private(own) is own
    assert codec.private(own.view(np.uint64)).base is own
    foreign = np.frombuffer(bytearray(own.tobytes()), dtype=own.dtype)
    copied = codec.private(foreign)
    assert not np.shares_memory(copied, foreign)
    assert np.array_equal(copied, own)


def test_size_counts_texts_and_not_only_the_references_to_them() -> None:
    texts = np.array([[b"x" * 1000], [b"y" * 3000]], object)
    assert codec.size([("X", np.zeros((2, 4), np.float32))]) == 32
    assert 4000 < codec.size([("T", texts)]) < 4200
