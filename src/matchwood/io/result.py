"""What comes out of a file: entries of a matrix, and a matrix with the ids of its vertices."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

Array = np.ndarray[Any, Any]
Matrix = sp.csr_array


class Compacted(NamedTuple):
    """A matrix whose vertices are those that occur in the file, and their ids there.

    Attributes
    ----------
    matrix : (n, n) csr_array
    ids : (n,) array
        ``ids[v]`` is what the file calls vertex ``v``; increasing.
    """

    matrix: Matrix
    ids: Array


class Entries(NamedTuple):
    """What a file holds, or a rank's part of it: entry w at (u, v) of a matrix of that shape.

    `undirected` stores (v, u) too, a loop once.  Equal edges become one by `duplicates`; without
    weights "sum" counts them.
    """

    shape: tuple[int, int]
    u: Array
    v: Array
    w: Array | None  # None: ones
    undirected: bool = False
    duplicates: str = "sum"


def no_entries(shape: tuple[int, int]) -> Entries:
    return Entries(shape, np.empty(0, np.int32), np.empty(0, np.int32), None)
