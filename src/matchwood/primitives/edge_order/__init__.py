"""The total order of weighted edges.  Read on in reference.py, check.py, cpu.py.

For every problem that prefers heavy edges, this rule says which of two edges comes first:

    1. the heavier one
    2. of equal weights, the one with the larger hash2(min(u, v), max(u, v), seed)
    3. of equal hashes, the one with the smaller min(u, v), then the smaller max(u, v)

With ``ties="index"`` the second line is left out.  Then the third decides: each vertex prefers its
neighbour with the smaller index, as in the column order of a matrix.  For a vertex v with
neighbours a < b, the edge {v, a} comes before {v, b}, whether v is below, between or above them.

No two edges are equal, so "the first edge", "heavier than all its neighbours" and the greedy
matching are the same on every engine.  The hash keeps equal weights from forming chains: by index
alone, a grid of equal weights has a chain of dependent decisions as long as the grid; by hash the
longest has O(log n) edges with high probability.

Kernels call `prefers` of cpu.py, or of the header matchwood/edge_order.cuh; `order_edges` below
sorts a list of edges.
"""

from __future__ import annotations

from typing import Any

from matchwood.arguments import INDEX, count, one_of, same_size, vector
from matchwood.engines import call
from matchwood.primitives.patterns import FLOATS

__all__ = ["order_edges"]

TIES = ("hash", "index")
MASK64 = (1 << 64) - 1


def order_edges(
    u: Any,
    v: Any,
    w: Any,
    *,
    seed: int = 0,
    ties: str = "hash",
    engine: str | None = None,
    threads: int | None = None,
) -> Any:
    """Sort edges from the first (heaviest) to the last, without ties.

    Parameters
    ----------
    u, v : (m,) arrays of int32 or int64, both of the same type
        Edge k joins ``u[k]`` and ``v[k]``; which end is which does not matter.
    w : (m,) array of float32 or float64
        Weights, not negative and not NaN.
    seed : int
        Of the hash, taken modulo 2^64.
    ties : {"hash", "index"}
        What decides between equal weights, before the ends do.
    engine : {None, "reference", "cpu"}
        None takes the engine where `u` already lives.
    threads : int or None
        CPU only.

    Returns
    -------
    perm : (m,) array of int32 or int64
        ``perm[k]`` is the edge at position k.  Edges between the same two vertices with the
        same weight keep their order.

    Raises
    ------
    TypeError, ValueError
        If an array is of another type, sizes differ, a weight is negative or NaN, or `ties` is
        unknown.

    Notes
    -----
    A radix sort by weight.  Only edges whose weight is not unique are hashed and sorted once
    more.  Edges given in the order of (min, max), as the upper triangle of a matrix with
    sorted rows does, need no third sort; that is checked first.  Memory: three times weights and
    positions.

    Examples
    --------
    >>> import numpy as np
    >>> from matchwood.primitives.edge_order import order_edges
    >>> u, v = np.array([0, 1, 0, 2]), np.array([1, 2, 3, 3])
    >>> order_edges(u, v, np.array([1.0, 2.0, 1.0, 3.0]), ties="index").tolist()
    [3, 1, 0, 2]
    """
    u = vector("order_edges", "u", u, INDEX)
    v = vector("order_edges", "v", v, INDEX)
    w = vector("order_edges", "w", w, FLOATS)
    same_size("order_edges", "v", v, "u", u)
    same_size("order_edges", "w", w, "u", u)
    if u.dtype != v.dtype:
        raise TypeError(f"order_edges: u and v must be of one type, got {u.dtype} and {v.dtype}")
    one_of("order_edges", "ties", ties, TIES)
    seed = count("order_edges", "seed", seed, -(1 << 63), MASK64) & MASK64
    if w.size and not bool((w >= 0).all()):
        raise ValueError("order_edges: w must not be negative or NaN")
    return call(
        __name__, "order_edges", (u, v, w), engine, seed=seed, by_hash=ties == "hash",
        threads=threads,
    )  # fmt: skip
