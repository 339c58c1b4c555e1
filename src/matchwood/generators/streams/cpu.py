"""The streams for kernels, and weights: each member takes rows and writes their values."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import crew, device, kernel, next_chunk
from matchwood.generators.streams import INTEGERS
from matchwood.primitives.hashing.cpu import mix64

Array = np.ndarray[Any, Any]

STEP = np.uint64(0x9E3779B97F4A7C15)  # GOLDEN; written here, where the cache sees a change
ROWS = 64  # rows that a member takes at a time
_ONE = np.uint64(1)


@device
def value(key: Any, k: Any) -> Any:
    """Number k of the stream that starts at `key`."""
    return mix64(key + np.uint64(k) * STEP)


def words(numbers: Any) -> tuple[Any, ...]:
    """Python integers as the uint64 that kernels take."""
    return tuple(np.uint64(number) for number in numbers)


class Weights(NamedTuple):
    """How values are made of the numbers of a stream."""

    directed: bool
    key: Any  # uint64: where the stream starts
    n: Any  # uint64: vertices of the whole graph
    shift: Any  # uint64: bits of a number that are dropped; then times `factor`,
    factor: Any  # uint64
    shift_again: Any  # uint64: and this many dropped of the product
    unit: float


@kernel
def _weigh(
    team: Any, how: Weights, names: Array, indptr: Array, indices: Array, data: Array
) -> None:  # fmt: skip
    """data[k] of every entry; names[v] is the user's id of local id v, v itself without names."""
    rows, named = indptr.size - 1, names.size > 0
    while True:
        start = next_chunk(team, rows, ROWS)
        if start < 0:
            break
        for row in range(start, min(start + ROWS, rows)):
            for k in range(indptr[row], indptr[row + 1]):
                u, v = np.uint64(row), np.uint64(indices[k])
                if named:
                    u, v = np.uint64(names[u]), np.uint64(names[v])
                if v < u and not how.directed:
                    u, v = v, u
                drawn = value(how.key, u * how.n + v) >> how.shift
                number = (drawn * how.factor) >> how.shift_again
                # below 2^53, so a signed conversion, which has a vector instruction, is exact
                data[k] = np.float64(np.int64(number + _ONE)) * how.unit


def weigh(
    indptr: Array, indices: Array, dtype: Any, directed: bool, key: int, fraction_bits: int,
    threads: int | None = None, names: Array | None = None, n: int | None = None,
) -> Array:  # fmt: skip
    """The values of a graph; of a block of one with n vertices, whose ids are `names`."""
    integers = fraction_bits == 0
    n = indptr.size - 1 if n is None else n
    start, size, shift, factor, again = words(
        (key, n, 32, INTEGERS, 32) if integers else (key, n, 64 - fraction_bits, 1, 0)
    )
    how = Weights(directed, start, size, shift, factor, again, 2.0**-fraction_bits)
    data = np.empty(indices.size, dtype)
    names = np.empty(0, indices.dtype) if names is None else names
    crew(threads, work=indices.size + indptr.size).run(_weigh, how, names, indptr, indices, data)
    return data
