"""The order of shingles.  Read on in reference.py, check.py, cpu.py, gpu.py + gpu.cu."""

from __future__ import annotations

from typing import Any

from matchwood import calls
from matchwood.arguments import seed


def shingle_order(
    A: Any, *, rng: Any = 0, engine: str | None = None, threads: int | None = None
) -> Any:
    """Order the vertices so that those with common neighbours lie near each other.

    A shingle of v is the least hash among its neighbours [1]_.  Two vertices have the same one with
    a probability of common neighbours / all neighbours of both.  Vertices are placed by increasing

        key(v) = (min hash2(u, 0, seed), min hash2(u, 1, seed), v),   over neighbours u of v

    Parameters
    ----------
    A : (n, n) sparse matrix, or anything `graph` takes
        Only the pattern is read: i and j are neighbours when ``A[i, j]`` or ``A[j, i]`` is
        stored, zero or not, and i != j.
    rng : int, Generator or None
        Seed of the hashes; None is 0.
    engine : {None, "reference", "cpu", "gpu"}
        None takes the engine where `A` already lives.
    threads : int or None
        CPU threads.

    Returns
    -------
    perm : (n,) integer array, where `A` lives
        ``perm[new] = old``.  Vertices without neighbours come last.

    Raises
    ------
    TypeError, ValueError
        If `A` is no square matrix, or `rng` is no seed.

    See Also
    --------
    locality_ordering : the same order, with measures before and after.

    Notes
    -----
    Deterministic: every engine, at any number of threads, returns the same order for a seed.
    Work O(n + m), memory seven arrays of n.

    References
    ----------
    .. [1] F. Chierichetti, R. Kumar, S. Lattanzi, M. Mitzenmacher, A. Panconesi, P. Raghavan. On
       compressing social networks. KDD 2009. doi:10.1145/1557019.1557049

    Examples
    --------
    Two groups of vertices with the same neighbours each:

    >>> import matchwood
    >>> A = (7, [[0, 1], [0, 3], [0, 5], [2, 4], [2, 6]])
    >>> matchwood.shingle_order(A).tolist()
    [2, 1, 3, 5, 0, 4, 6]
    """
    number = seed("shingle_order", rng)
    call = calls.enter(A, "shingle_order", engine, threads)
    view = call.graph.undirected_pattern()
    return call.back(call.load(__name__).order(view, number, threads=threads))
