"""The order of edges in kernels of a team: codes of weights, entries of edges.  See order.py.

An edge {u, v}, u < v, is known by its entry: the place k of column v in row u.  Entries of the
upper triangle ascend as (u, v) do, so of two edges of equal weight the one with the smaller entry
comes first.  Methods mark the entries of the forest in a bitmap (marks/).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import device
from matchwood.primitives.patterns import not_symmetric

Array = np.ndarray[Any, Any]

ONE = np.uint64(1)
NOTHING = np.uint64(0xFFFF_FFFF_FFFF_FFFF)  # no edge: behind all words
BROKEN = 1  # the failure of kernels that find an edge in one of its two rows only
ERRORS = {BROKEN: lambda detail: not_symmetric("minimum_spanning_forest")}


class Rows(NamedTuple):
    """Costs as kernels read them."""

    indptr: Array
    indices: Array  # unsigned: Numba tests every signed index for its sign
    bits: Array  # the weights as unsigned words of their size


def rows_of(costs: Any) -> Rows:
    """Views of the same memory."""
    unsigned = np.uint32 if costs.indices.dtype == np.int32 else np.uint64
    bits = costs.data.view(f"u{costs.data.dtype.itemsize}")
    return Rows(costs.indptr, costs.indices.view(unsigned), bits)


@device
def code_of(order: Any, word: Any) -> Any:
    """The code of a weight given by its bits; see order.py."""
    x = np.uint64(word)
    if order.floating:
        if x == order.sign:  # -0.0
            x = np.uint64(0)
        x ^= ((order.sign << ONE) - ONE) if x & order.sign else order.sign
    else:
        x ^= order.sign
    return (x ^ order.flip) - order.base


@device
def upper_entry(indptr: Array, indices: Array, u: Any, v: Any) -> Any:
    """The entry of the edge {u, v}: where max(u, v) stands in the row of min(u, v).

    NOTHING where it does not stand there: the pattern is not symmetric.
    """
    row, column = min(u, v), max(u, v)
    low, high = np.uint64(indptr[row]), np.uint64(indptr[np.uint64(row) + ONE])
    while low < high:
        middle = (low + high) >> ONE
        if indices[middle] < column:
            low = middle + ONE
        else:
            high = middle
    if low == np.uint64(indptr[np.uint64(row) + ONE]) or indices[low] != column:
        return NOTHING
    return low
