"""A matrix and its mirror in one, on the GPU: sorted entries, of which at most two are equal."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines import gpu
from matchwood.primitives.transpose.gpu import expand_rows, first_places

KEY_BITS = 63  # of a sort key: row and column together


def _shift(n: int) -> int:
    shift = max(n - 1, 1).bit_length()
    if 2 * shift > KEY_BITS:
        raise ValueError(f"minimum_spanning_forest: {n} vertices are too many for the GPU")
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
    with gpu.guard("minimum_spanning_forest", 80 * view.indices.size):
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
    """Rows sorted, int64 values of equal entries joined.

    Sums must fit (__init__.py checks that).
    """
    cupy = engines.cupy()
    shift = _shift(n)
    with gpu.guard("minimum_spanning_forest", 80 * indices.size):
        keys = _keys(indptr, indices, shift)
        if rule in ("min", "max"):  # the one that counts comes first, or last
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
