"""Which vertices can be taken together, no two of them neighbours.

maximal_independent_set       one to which no vertex can be added
is_maximal_independent_set    is it one?

Read on in order.py, reference.py, check.py, cpu.py, gpu.py + gpu.cu.
"""

from __future__ import annotations

from typing import Any

from matchwood import calls
from matchwood.arguments import one_of, seed
from matchwood.independent.check import is_maximal_independent_set
from matchwood.independent.order import BEST, METHODS

__all__ = ["is_maximal_independent_set", "maximal_independent_set"]


@calls.of_first_rank
def maximal_independent_set(
    A: Any,
    *,
    method: str = "auto",
    rng: Any = 0,
    engine: str | None = None,
    threads: int | None = None,
) -> Any:
    """Find a set of vertices, no two of them neighbours, to which none can be added.

    The greedy set over an order of the vertices: one after the other, each joins unless a
    neighbour has.

    Parameters
    ----------
    A : (n, n) sparse matrix, or anything `graph` takes
        Only the pattern is read: i and j are neighbours when ``A[i, j]`` or ``A[j, i]`` is
        stored, zero or not, and i != j.
        Of a `DistributedGraph` the first rank finds the answer, with the whole graph.
    method : {"auto", "luby", "lexicographic", "luby_sampling"}
        ``"auto"`` is ``"luby"``.  ``"luby"`` takes vertices of small degree first, and those of
        about the same degree in random order; a star gives its leaves.  ``"lexicographic"`` takes
        them by index.
        ``"luby_sampling"`` is Luby's first algorithm [1]_: in each round every vertex that is
        left is drawn with probability 1 / (2 d), d being its neighbours that are left; of two
        neighbours that are both drawn, the one with the smaller (d, index) is dropped; the
        others join, and their neighbours leave.
    rng : int, Generator or None
        Seed of the random order and of the draws; None is 0.  ``"lexicographic"`` needs none.
    engine : {None, "reference", "cpu", "gpu"}
        None takes the engine where `A` already lives.  Nothing is ever moved silently.
    threads : int or None
        CPU threads; None takes ``MATCHWOOD_NUM_THREADS`` or the CPUs at hand.

    Returns
    -------
    members : (n,) boolean array
        True for the vertices of the set; it lives where `A` lives.

    Raises
    ------
    TypeError, ValueError
        If `A` is no square matrix, the method is unknown, or `rng` is no seed.

    Notes
    -----
    Deterministic: every engine, at any number of threads, returns the same set for a seed.  The
    order of ``"luby"`` is

        (class of the degree, hash of the vertex, seed),   the smaller first,

    with two classes for each doubling of the degree: 1, 2, 3, 4, 5-6, 7-8, 9-12, 13-16, ...
    (matchwood/independent/order.py).  A vertex can be decided at any time, and always in
    the same way: it joins when all neighbours before it are out, is out when one of them has
    joined, and waits otherwise.  So no rounds are needed [2]_ [3]_, and a random order makes long
    waits unlikely [2]_.

    In ``"luby_sampling"`` vertex v is drawn in round k when
    ``x = (hash2(k, v, seed) >> 32) * 2 * d`` is less than 2^32.  Where no vertex is drawn, as is
    usual for dense graphs, the one with the least (x, v) is.  So each round takes at least one
    vertex, there are at most n, and nothing can stall.

    Work O(n + m), each row read once, up to where its vertex is decided, and again by members.
    Memory besides the graph and the result: almost none on the CPU, two index arrays of n on
    the GPU (three for ``"lexicographic"``); for ``"luby_sampling"`` two on both.

    References
    ----------
    .. [1] M. Luby. A simple parallel algorithm for the maximal independent set problem.
       SIAM J. Comput. 15 (1986). doi:10.1137/0215074
    .. [2] G. E. Blelloch, J. T. Fineman, J. Shun. Greedy sequential maximal independent set and
       matching are parallel on average. SPAA 2012. doi:10.1145/2312005.2312058
    .. [3] M. Burtscher, S. Devale, S. Azimi, J. Jaiganesh, E. Powers. A high-quality and fast
       maximal independent set implementation for GPUs. ACM Trans. Parallel Comput. 5 (2018).
       doi:10.1145/3291525

    Examples
    --------
    >>> import matchwood
    >>> star = matchwood.generators.star(5)  # vertex 0 in the centre
    >>> matchwood.maximal_independent_set(star).tolist()
    [False, True, True, True, True]
    >>> matchwood.maximal_independent_set(star, method="lexicographic").tolist()
    [True, False, False, False, False]
    """
    caller = "maximal_independent_set"
    one_of(caller, "method", method, METHODS)
    method = BEST if method == "auto" else method
    number = seed(caller, rng)
    call = calls.enter(A, caller, engine, threads)
    view = call.graph.undirected_pattern()
    members, _ = call.load(__name__).choose(view, method, number, threads=threads)
    return call.back(members)
