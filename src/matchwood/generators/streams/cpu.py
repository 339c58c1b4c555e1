"""The streams for kernels, and weights: each member takes rows and writes their values."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import crew, device, kernel, next_chunk
from matchwood.generators.streams import INTEGERS
from matchwood.primitives.hashing.cpu import mix64

Array = np.ndarray[Any, Any]

STEP = np.uint64(0x9E3779B97F4A7C15)  # GOLDEN; written here, where the cache sees a change
ROWS = 64  # rows that a member takes at a time
_ONE, _HALF = np.uint64(1), np.uint64(32)
_INTEGERS = 255  # INTEGERS; written here, where the cache sees a change


@device
def value(key: Any, k: Any) -> Any:
    """Number k of the stream that starts at `key`."""
    return mix64(key + np.uint64(k) * STEP)


def words(numbers: Any) -> tuple[Any, ...]:
    """Python integers as the uint64 that kernels take."""
    return tuple(np.uint64(number) for number in numbers)


@kernel
def _weigh_rows(
    team: Any,
    directed: bool,
    key: Any,
    fraction_bits: int,
    most: Any,
    unit: float,
    indptr: Array,
    indices: Array,
    data: Array,
) -> None:
    n = indptr.size - 1
    size = np.uint64(n)
    integers = fraction_bits == 0
    shift = _HALF if integers else np.uint64(64 - fraction_bits)
    factor = most if integers else _ONE
    shift_again = _HALF if integers else np.uint64(0)
    while True:
        start = next_chunk(team, n, ROWS)
        if start < 0:
            break
        for row in range(start, min(start + ROWS, n)):
            for k in range(indptr[row], indptr[row + 1]):
                u, v = np.uint64(row), np.uint64(indices[k])
                if v < u and not directed:
                    u, v = v, u
                number = ((value(key, u * size + v) >> shift) * factor) >> shift_again
                # below 2^53, so a signed conversion, which has a vector instruction, is exact
                data[k] = np.float64(np.int64(number + _ONE)) * unit


@kernel
def _weigh_block(
    team: Any,
    directed: bool,
    key: Any,
    fraction_bits: int,
    unit: float,
    n: Any,
    names: Array,
    indptr: Array,
    indices: Array,
    data: Array,
) -> None:
    """The same for a block of a distributed graph; names[v] is the user's id of local id v."""
    integers = fraction_bits == 0
    shift = _HALF if integers else np.uint64(64 - fraction_bits)
    factor = np.uint64(_INTEGERS) if integers else _ONE
    shift_again = _HALF if integers else np.uint64(0)
    rows = indptr.size - 1
    while True:
        start = next_chunk(team, rows, ROWS)
        if start < 0:
            break
        for row in range(start, min(start + ROWS, rows)):
            for k in range(indptr[row], indptr[row + 1]):
                u, v = np.uint64(names[row]), np.uint64(names[indices[k]])
                if v < u and not directed:
                    u, v = v, u
                number = ((value(key, u * n + v) >> shift) * factor) >> shift_again
                data[k] = np.float64(np.int64(number + _ONE)) * unit


def weigh_block(
    view: Any, names: Array, n: int, dtype: Any, directed: bool, key: int, fraction_bits: int,
    threads: int | None = None,
) -> Array:  # fmt: skip
    """The values of a block; `n` is the number of vertices of the whole graph."""
    data = np.empty(view.indices.size, dtype)
    crew(threads, work=view.indices.size + view.indptr.size).run(
        _weigh_block, directed, np.uint64(key), fraction_bits, 2.0**-fraction_bits, np.uint64(n),
        names, view.indptr, view.indices, data,
    )  # fmt: skip
    return data


def weigh(
    indptr: Array,
    indices: Array,
    dtype: Any,
    directed: bool,
    key: int,
    fraction_bits: int,
    threads: int | None = None,
) -> Array:
    data = np.empty(indices.size, dtype)
    crew(threads, work=indices.size + indptr.size).run(
        _weigh_rows, directed, np.uint64(key), fraction_bits, np.uint64(INTEGERS),
        2.0**-fraction_bits, indptr, indices, data,
    )  # fmt: skip
    return data
