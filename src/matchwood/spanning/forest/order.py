"""The total order on edges as numbers, for all engines.

The code of a weight is an unsigned number of 64 bits that grows with the weight (falls with it
for a maximum forest): the bits of a float with the sign bit flipped, or with all bits flipped
where it is negative; an integer with the sign bit flipped; less the code of the lightest edge.
-0.0 is 0.0.  Integers are never turned into floats.

The prefix of a code is what 32 bits have room for, or fewer where there are more than 2^32
entries: the code without its `drop` lowest bits.  With the place of an edge below it, it makes a
word of 64 bits that an atomic minimum compares at once.  Where no bits are dropped (always for
float32) words alone decide; else of two equal prefixes the codes decide.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

PREFIX_BITS = 32
SAMPLE = 4096  # weights of the sample that decides which edges are light
EVERYTHING = 1 << 63  # no prefix is as large: all edges are light


class Order(NamedTuple):
    """What turns weights into codes and prefixes; the same fields in kernels and on the GPU."""

    floating: bool
    sign: Any  # uint64, the sign bit of the weights' type
    flip: Any  # uint64, all bits of the type for a maximum forest, else 0
    base: Any  # uint64, taken off every code
    drop: Any  # uint64, bits that a prefix lacks
    places: Any  # uint64, bits of a word below the prefix
    exact: bool  # no bits are dropped


def order_of(dtype: Any, maximum: bool, places: int = 64 - PREFIX_BITS) -> Order:
    """The order of weights of that type by whole codes."""
    kind = np.dtype(dtype)
    width, none = 8 * kind.itemsize, np.uint64(0)
    sign, flip = np.uint64(1 << (width - 1)), np.uint64((1 << width) - 1 if maximum else 0)
    return Order(kind.kind == "f", sign, flip, none, none, np.uint64(places), True)


def make(costs: Any, maximum: bool) -> Order:
    """The order for weights of `costs` (see costs.py)."""
    dtype = np.dtype(costs.data.dtype)
    width = 8 * dtype.itemsize
    places = max(64 - PREFIX_BITS, max(costs.nnz, 1).bit_length())
    raw = order_of(dtype, maximum, places)
    if width == PREFIX_BITS:  # they fit as they are
        base, most = 0, (1 << width) - 1
    else:
        base, most = sorted(codes(np.array([costs.least, costs.most], dtype), raw).tolist())
    drop = max(0, (most - base).bit_length() - (64 - places))
    return raw._replace(base=np.uint64(base), drop=np.uint64(drop), exact=drop == 0)


def codes(weights: Any, order: Order, xp: Any = np) -> Any:
    """Codes of an array of weights, NumPy's or CuPy's; what kernels do one by one."""
    weights = xp.ascontiguousarray(weights)
    words = weights.view(f"u{weights.dtype.itemsize}").astype(np.uint64)
    if order.floating:
        words[words == order.sign] = 0
        ones = np.uint64(2 * int(order.sign) - 1)
        words ^= xp.where(words & order.sign, ones, order.sign)
    else:
        words ^= order.sign
    return (words ^ order.flip) - order.base


def light_prefix(sample: Any, order: Order, share: float) -> int:
    """A prefix such that about `share` of the edges have a smaller one, judged by a sample."""
    prefixes = np.sort(codes(sample, order) >> order.drop)
    return int(prefixes[min(int(share * prefixes.size), prefixes.size - 1)]) + 1


class CostRows(NamedTuple):
    """Costs as kernels read them."""

    indptr: Any
    indices: Any  # unsigned: Numba tests every signed index for its sign
    bits: Any  # the weights as unsigned words of their size


def rows_of(costs: Any) -> CostRows:
    """Costs as kernels read them, in the same memory."""
    unsigned = np.uint32 if costs.indices.dtype == np.int32 else np.uint64
    bits = costs.data.view(f"u{costs.data.dtype.itemsize}")
    return CostRows(costs.indptr, costs.indices.view(unsigned), bits)
