"""Radix sort: what it must give, by NumPy's own stable sort, and the maps to unsigned keys."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.arguments import index_type


def order_bits(keys: Any) -> Any:
    """Unsigned numbers in the order of `keys`, one to one.

    Signed: flip the sign bit.  Float: flip the sign bit of those without sign, all bits of those
    with; so the order is IEEE 754's total order.  Unsigned: as they are.
    """
    unsigned = keys.view(f"u{keys.dtype.itemsize}")
    if keys.dtype.kind == "u":
        return unsigned
    sign = unsigned.dtype.type(1 << (8 * keys.dtype.itemsize - 1))
    if keys.dtype.kind == "i":
        return unsigned ^ sign
    return np.where(unsigned & sign, ~unsigned, unsigned ^ sign)


def sort_pairs(
    keys: Any, payload: Any = None, *, bits: int | None = None, threads: int | None = None
) -> tuple[Any, Any]:
    if payload is None:
        payload = np.arange(keys.size, dtype=index_type(keys.size))
    digits = order_bits(keys)
    if bits is not None and bits < 8 * keys.dtype.itemsize:
        digits = digits & digits.dtype.type((1 << bits) - 1)
    order = np.argsort(digits, kind="stable")
    return keys[order], payload[order]


def sort_keys(keys: Any, *, threads: int | None = None) -> Any:
    return np.sort(keys, kind="stable")
