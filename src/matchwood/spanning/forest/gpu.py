"""Spanning forests on the GPU: a method (its folder) marks the edges; gpu.cu reads them."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines import gpu
from matchwood.primitives.patterns import not_symmetric
from matchwood.primitives.transpose.gpu import expand_rows, first_places
from matchwood.spanning.forest import METHODS
from matchwood.spanning.forest import order as orders

SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    ("count_marks<I>", "write_edges<I,B>"),
    types={"B": (np.uint32, np.uint64)},
)

CALLER = "minimum_spanning_forest"
RUNS = 1024  # blocks that collect the edges; each adds up the counts of all before it
RUN_BLOCK = 256  # threads


def forest_of(costs: Any, marks: Any) -> tuple[Any, Any]:
    """Edges and weights of what is marked."""
    cupy = engines.cupy()
    n, kind = costs.n, costs.indices.dtype
    bits = costs.data.view(f"u{costs.data.dtype.itemsize}")
    k = SOURCE.kernels(I=kind, B=bits.dtype)
    edges, weights = gpu.empty((n, 2), kind, CALLER), gpu.empty(n, bits.dtype, CALLER)
    blocks = min(RUNS, -(-marks.size // RUN_BLOCK))
    run = -(-marks.size // blocks)
    counts, total = cupy.empty(blocks, kind), cupy.empty(1, kind)
    k.count_marks(None, (marks.size, run, marks, counts), block=RUN_BLOCK, grid=blocks)
    arrays = (costs.indptr, costs.indices, bits, edges, weights, total)
    k.write_edges(None, (n, marks.size, run, marks, counts, *arrays), block=RUN_BLOCK, grid=blocks)
    count = int(total.item())
    if count > n:
        raise not_symmetric(CALLER)
    return edges[:count], weights[:count].view(costs.data.dtype)


def span(
    costs: Any, method: str, maximum: bool, *, threads: int | None = None
) -> tuple[Any, Any, int]:
    """Edges, weights and rounds."""
    if costs.nnz == 0:
        empty = engines.cupy().empty((0, 2), costs.indices.dtype)
        return empty, costs.data[:0].copy(), 0
    engine = engines.load(f"{__package__}.{METHODS[method]}", "gpu")
    marks, rounds = engine.mark_forest(costs, orders.make(costs, maximum), method, threads)
    return (*forest_of(costs, marks), rounds)


# Weights: a matrix and its mirror in one, by sorting entries, of which at most two are equal


KEY_BITS = 63  # bits of a sort key: row and column together


def _shift(n: int) -> int:
    shift = max(n - 1, 1).bit_length()
    if 2 * shift > KEY_BITS:
        raise ValueError(f"{CALLER}: {n} vertices are too many for the GPU")
    return shift


def _keys(indptr: Any, indices: Any, shift: int) -> Any:
    rows = expand_rows(indptr, indices.size).astype(np.uint64)
    return rows << np.uint64(shift) | indices.astype(np.uint64)


def _rows(keys: Any, n: int, shift: int, kind: Any) -> tuple[Any, Any]:
    mask = np.uint64((1 << shift) - 1)
    kind = kind if keys.size <= np.iinfo(kind).max else np.dtype(np.int64)
    return first_places(keys, n, kind, shift=shift), (keys & mask).astype(kind)


def merge(view: Any, mirror: Any, maximum: bool) -> tuple[Any, Any, Any]:
    """The union of both without the diagonal; of two values the lighter, or the heavier.

    Memory beside the result: about 40 bytes for each entry of both, most of it the sort's.
    """
    cupy = engines.cupy()
    n = view.indptr.size - 1
    shift = _shift(n)
    kind = view.indptr.dtype
    with gpu.guard(CALLER, 80 * view.indices.size):
        keys = _keys(view.indptr, view.indices, shift)
        keys = cupy.concatenate([keys, _keys(mirror[0], mirror[1], shift)])
        data = cupy.concatenate([view.data, mirror[2]])
        apart = (keys >> np.uint64(shift)) != (keys & np.uint64((1 << shift) - 1))
        keys, data = keys[apart], data[apart]
        if keys.size == 0:
            return cupy.zeros(n + 1, kind), cupy.empty(0, kind), data
        order = cupy.argsort(keys, kind="stable")
        keys, data = keys[order], data[order]
        first = cupy.ones(keys.size, np.bool_)
        first[1:] = keys[1:] != keys[:-1]
        other = cupy.concatenate([data[1:], data[-1:]])
        twice = cupy.concatenate([~first[1:], cupy.zeros(1, np.bool_)])
        wins = _comes_first(cupy, other, data, maximum)
        data = cupy.where(twice & wins, other, data)[first]
        return (*_rows(keys[first], n, shift, kind), data)


def _comes_first(cupy: Any, a: Any, b: Any, maximum: bool) -> Any:
    """Whether a counts rather than b; by the bits, since CuPy takes tiny float32 for zero."""
    if a.dtype.kind == "f":
        integer = np.dtype(f"i{a.itemsize}")
        x, y = a.view(integer), b.view(integer)
        low = integer.type(np.iinfo(integer).max)
        x, y = cupy.where(x < 0, x ^ low, x), cupy.where(y < 0, y ^ low, y)
    else:
        x, y = a, b
    return x > y if maximum else x < y


def join_duplicates(
    indptr: Any, indices: Any, data: Any, n: int, rule: str
) -> tuple[Any, Any, Any]:
    """Rows sorted, int64 values of equal entries joined.  Sums must fit (costs.py checks that)."""
    cupy = engines.cupy()
    shift = _shift(n)
    with gpu.guard(CALLER, 80 * indices.size):
        keys = _keys(indptr, indices, shift)
        if rule in ("min", "max"):  # the one that counts is first, or last
            order = cupy.argsort(data, kind="stable")
            keys, data = keys[order], data[order]
        order = cupy.argsort(keys, kind="stable")
        keys, data = keys[order], data[order]
        apart = keys[1:] != keys[:-1]
        one = cupy.ones(1, np.bool_)
        if rule in ("first", "min"):
            kept = cupy.concatenate([one, apart])
            return (*_rows(keys[kept], n, shift, indptr.dtype), data[kept])
        kept = cupy.concatenate([apart, one])
        if rule == "sum":  # modulo 2^64, so that differences of running sums are exact
            data = cupy.cumsum(data)
            ends = data[kept]
            ends[1:] -= ends[:-1].copy()
        else:
            ends = data[kept]
        return (*_rows(keys[kept], n, shift, indptr.dtype), ends)
