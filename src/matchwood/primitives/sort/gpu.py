"""Radix sort on the GPU: CuPy's, which is a stable radix sort for numbers of one array."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.arguments import index_type
from matchwood.engines import gpu


def sort_pairs(
    keys: Any, payload: Any = None, *, bits: int | None = None, threads: int | None = None
) -> tuple[Any, Any]:
    cupy = engines.cupy()
    # positions are 8 bytes, and the sort holds everything twice
    with gpu.guard("radix_sort", keys.size * (3 * keys.itemsize + 24)):
        keys = cupy.ascontiguousarray(keys)
        order = cupy.argsort(_order_bits(cupy, keys, bits), kind="stable")
        if payload is None:
            return keys[order], order.astype(index_type(keys.size))
        return keys[order], payload[order]


def _order_bits(cupy: Any, keys: Any, bits: int | None) -> Any:
    """Unsigned numbers in the order of `keys`, as narrow as `bits` allows."""
    width = 8 * keys.itemsize
    if keys.dtype.kind == "i":
        return keys
    unsigned = keys.view(f"u{keys.itemsize}")
    if keys.dtype.kind == "f":
        sign = unsigned.dtype.type(1 << (width - 1))
        return cupy.where(unsigned & sign, ~unsigned, unsigned ^ sign)
    if bits is None or bits == width:
        return unsigned
    masked = unsigned & unsigned.dtype.type((1 << bits) - 1)
    return masked.astype(np.uint32) if bits <= 32 else masked


def sort_keys(keys: Any, *, threads: int | None = None) -> Any:
    cupy = engines.cupy()
    with gpu.guard("sort_keys", 3 * keys.nbytes):  # the result, and what the sort works in
        found = cupy.array(keys, order="C")
        found.sort()
        return found
