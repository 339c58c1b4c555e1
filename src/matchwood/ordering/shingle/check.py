"""Is this the order of shingles?  Keys must ascend; they are computed with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import answers
from matchwood.arguments import seed
from matchwood.gate import graph as csr
from matchwood.ordering.permutation.check import check_ascending, permutation
from matchwood.primitives import hashing


def check_shingle_order(A: Any, perm: Any, *, rng: Any = 0) -> None:
    """Raise `CheckFailed` unless `perm` is what `shingle_order` must return.

    Parameters
    ----------
    A, rng : as given to `shingle_order`
    perm : (n,) integer array

    Raises
    ------
    CheckFailed
        If it is no permutation, or the keys do not ascend; says where.
    TypeError, ValueError
        If `perm` does not hold integers, or `rng` is no seed.

    Examples
    --------
    >>> import matchwood
    >>> A = matchwood.generators.path(4)
    >>> matchwood.check.check_shingle_order(A, matchwood.shingle_order(A))
    >>> matchwood.check.check_shingle_order(A, [0, 1, 2, 2])
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: shingle order: vertex 3 is missing
    """
    caller, problem = "check_shingle_order", "shingle order"
    number = seed(caller, rng)
    view = csr.as_graph(A, caller).on("cpu").undirected_pattern()
    order = permutation(caller, problem, perm, view.n)
    vertices = np.arange(view.n)
    keys = []
    for which in (0, 1):
        hashed = hashing.hash2(vertices, np.full_like(vertices, which), number)
        least = np.full(view.n, np.iinfo(np.uint64).max, np.uint64)
        for _, u, v in answers.arcs(view):
            starts = np.flatnonzero(np.diff(u, prepend=-1))
            rows = u[starts]
            least[rows] = np.minimum(least[rows], np.minimum.reduceat(hashed[v], starts))
        keys.append(least)
    check_ascending(problem, order, *keys)
