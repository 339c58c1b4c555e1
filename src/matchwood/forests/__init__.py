"""Linear forests: disjoint paths of strong edges that hold every vertex.

    linear_forest         a heavy one, from a [0,2]-factor whose cycles are cut
    tridiagonal_of        the values of a matrix along the paths: three arrays

    check_linear_forest   is every vertex in one path, every step an edge, every cut the weakest?

In the order of the forest, its edges lie next to the diagonal.  So what `tridiagonal_of` takes
from a matrix is the strongest part of it that a tridiagonal solver can handle.

Read on in result.py, reference.py, check.py, cpu.py, gpu.py + gpu.cu.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from matchwood import csr, engines
from matchwood.factors import Factor, check_factor
from matchwood.factors import factor as find_factor
from matchwood.forests.check import check_linear_forest
from matchwood.forests.found import Found
from matchwood.forests.result import LinearForest

__all__ = ["LinearForest", "check_linear_forest", "linear_forest", "tridiagonal_of"]

METHODS = ("auto", "splitters", "ranges", "doubling", "walk")


def linear_forest(
    A: Any,
    *,
    factor: Any = None,
    method: str = "auto",
    engine: str | None = None,
    threads: int | None = None,
    **options: Any,
) -> LinearForest:
    """Find disjoint paths of strong edges that hold every vertex, and an order along them.

    A [0,2]-factor consists of paths and cycles.  Each cycle is cut at its weakest edge, the least
    by (weight, smaller end, larger end).  A path is named by its smaller end, which is at
    position 1; the order is by (path, position) [1]_.

    Parameters
    ----------
    A : (N, N) sparse matrix, or anything `graph` takes
        Edge {i, j} weighs ``|a_ij|``, or ``|a_ij| + |a_ji|`` where the values are not symmetric.
    factor : Factor, (N, 2) array or None
        A [0,2]-factor of `A`; None computes ``factor(A, 2, **options)``.  An array of neighbours
        (-1 for none) is checked first.
    method : {"auto", "splitters", "ranges", "doubling", "walk"}
        How paths are followed.  ``"splitters"``: many walks at once, from the ends of paths and
        from sampled vertices; where walks meet, a short list of them is left to rank.
        ``"doubling"``: scans along all paths with `path_scan`, as in the paper.  ``"walk"``: one
        path after the other, permuting on the way; sequential, on the CPU only.  ``"ranges"``:
        such walks within ranges of vertices, one a thread, on the CPU only.  ``"auto"`` takes
        splitters; on the CPU with two threads ranges and with one the walk, where most neighbours
        in the factor have numbers near by.
    engine : {None, "reference", "cpu", "gpu"}
        None takes the engine where `A` already lives.  Nothing is ever moved silently.
    threads : int or None
        CPU threads; None takes ``MATCHWOOD_NUM_THREADS`` or the CPUs at hand.
    **options
        For `factor`: ``M``, ``m``, ``k_m``, ``p``, ``rng``, ``ties``, ``directed``.

    Returns
    -------
    LinearForest
        With `perm`, `path`, `position`, `place`, `offsets`, `coverage`, `weight`, `removed` and
        `seconds`; arrays live where `A` lives.

    Raises
    ------
    TypeError, ValueError
        If `A` is no square matrix, a weight is not finite, `factor` is no [0,2]-factor of `A`, or
        an argument is out of range.

    Notes
    -----
    Deterministic: everything is defined by the factor, so all methods and engines, at any number
    of threads, return the same arrays.  Of a factor found with ``directed=True`` an edge weighs
    the mean of its two entries.

    Work O(N), for doubling O(N log of the longest path).  Memory besides the result, for 4-byte
    indices: 28 bytes a vertex on the CPU, 16 on the GPU.

    References
    ----------
    .. [1] C. Klein, R. Strzodka. Highly parallel linear forest extraction from a weighted graph
       on GPUs. ICPP 2022. doi:10.1145/3545008.3545035

    Examples
    --------
    A triangle, whose weakest edge goes, and a path beside it:

    >>> import scipy.sparse as sp
    >>> import matchwood
    >>> A = sp.csr_array([[0, 3, 0, 5, 0], [3, 0, 0, 4, 0], [0, 0, 0, 0, 9],
    ...                   [5, 4, 0, 0, 0], [0, 0, 9, 0, 0]])
    >>> forest = matchwood.linear_forest(A)
    >>> forest.perm.tolist(), forest.offsets.tolist(), forest.removed.tolist()
    ([0, 3, 1, 2, 4], [0, 3, 5], [[0, 1]])
    >>> forest.weight, round(forest.coverage, 3)
    (18.0, 0.857)
    """
    caller = "linear_forest"
    if method not in METHODS:
        expected = ", ".join(repr(name) for name in METHODS)
        raise ValueError(f"{caller}: method must be one of {expected}, got {method!r}")
    unknown = options.keys() - {"M", "m", "k_m", "p", "rng", "ties", "directed"}
    if unknown:
        raise TypeError(f"{caller}: unknown argument {min(unknown)!r}")
    if factor is not None and options:
        raise TypeError(f"{caller}: {min(options)!r} is for the factor, which is given")
    G = csr.as_graph(A, caller)
    chosen = engines.resolve(G.engine, engine)
    if chosen == "gpu" and method in ("ranges", "walk"):
        raise ValueError(f"{caller}: method {method!r} runs on engine='cpu' only")
    H = G.on(chosen)
    taken = None
    if factor is None:
        start = time.perf_counter()
        found = find_factor(H, 2, engine=chosen, threads=threads, **options)
        taken = time.perf_counter() - start
    else:
        found = _as_factor(G, factor, caller)
    neighbours, weights = (engines.moved(array, engines.home(chosen)) for array in found)
    if found.directed:
        weights = _mean_weights(neighbours, weights)
    run = engines.load(__name__, chosen).forest
    traced: Found = run(neighbours, weights, method=method, threads=threads)
    perm, path, position, place = (engines.moved(array, G.engine) for array in traced[:4])
    return LinearForest(perm, path, position, place, _moved(found, G), traced, taken)


def tridiagonal_of(
    A: Any, forest: LinearForest, *, engine: str | None = None, threads: int | None = None
) -> tuple[Any, Any, Any]:
    """The values of a matrix along the paths of a forest: a tridiagonal matrix, as three arrays.

    With ``v = forest.perm[i]``, u before it and w after it in the same path,

        dl[i] = A[v, u],    d[i] = A[v, v],    du[i] = A[v, w],

    and 0 where there is no u or w, or nothing is stored.

    Parameters
    ----------
    A : (N, N) sparse matrix, or anything `graph` takes
        Signs and both directions count: it need not be symmetric.
    forest : LinearForest
    engine, threads : as in `linear_forest`

    Returns
    -------
    dl, d, du : (N,) arrays
        In the order of the forest, of the type of the values of `A`.  ``dl[0]`` and ``du[N - 1]``
        are 0.

    Raises
    ------
    TypeError, ValueError
        If `A` is no square matrix with real values, or has another size than the forest.

    Notes
    -----
    One pass over the entries of `A`, row by row; the three results are written where the row's
    vertex has its place.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> import matchwood
    >>> A = sp.csr_array([[4., 0., -1.], [0., 5., 0.], [-2., 0., 6.]])
    >>> forest = matchwood.linear_forest(A)
    >>> forest.perm.tolist()
    [0, 2, 1]
    >>> [array.tolist() for array in matchwood.tridiagonal_of(A, forest)]
    [[0.0, -2.0, 0.0], [4.0, 6.0, 5.0], [-1.0, 0.0, 0.0]]
    """
    caller = "tridiagonal_of"
    G = csr.as_graph(A, caller)
    if forest.perm.shape[0] != G.n:
        raise ValueError(
            f"{caller}: the forest has {forest.perm.shape[0]} vertices, the matrix {G.n} rows"
        )
    chosen = engines.resolve(G.engine, engine)
    H = G.on(chosen)
    view = H.directed_weights(caller)
    home, kind = engines.home(chosen), view.indices.dtype
    order = [
        engines.moved(array, home).astype(kind, copy=False)
        for array in (forest.factor.neighbours, forest.place, forest.position)
    ]
    module = engines.load(__name__, "cpu" if chosen == "reference" else chosen)
    arrays = module.coefficients(view, *order, threads=threads)
    return tuple(engines.moved(array, G.engine) for array in arrays)  # type: ignore[return-value]


def _as_factor(G: csr.Graph, factor: Any, caller: str) -> Factor:
    """What the user gave as a [0,2]-factor of G, with weights; checked unless `factor` made it."""
    table = factor.neighbours if isinstance(factor, Factor) else factor
    shape = getattr(table, "shape", None) or np.shape(table)
    if len(shape) != 2 or shape[0] != G.n or shape[1] not in (1, 2):
        raise ValueError(
            f"{caller}: the factor must have shape ({G.n}, 2), as factor(A, 2) gives, got {shape}"
        )
    if isinstance(factor, Factor) and factor.view is not None:
        return factor if shape[1] == 2 else _padded(factor)
    check_factor(G, factor)
    view = G.on("cpu").undirected_weights(caller)
    neighbours = np.asarray(engines.moved(table, "cpu"), view.indices.dtype)
    rows = np.repeat(np.arange(G.n), np.diff(view.indptr))
    keys, wanted = rows * G.n + view.indices, np.arange(G.n)[:, None] * G.n + neighbours
    at = np.searchsorted(keys, wanted).clip(max=max(keys.size - 1, 0))
    data = view.data if view.data.size else np.zeros(1, view.data.dtype)
    weights = np.where(neighbours >= 0, data[at], data.dtype.type(0))
    order = np.argsort(neighbours < 0, axis=1, kind="stable")  # -1 last, as in a Factor
    neighbours, weights = (np.take_along_axis(a, order, 1) for a in (neighbours, weights))
    here = [engines.moved(array, G.engine) for array in (neighbours, weights)]
    made = Factor(here[0], here[1], view=G.undirected_weights(caller))
    return made if shape[1] == 2 else _padded(made)


def _padded(factor: Factor) -> Factor:
    """A [0,1]-factor as a [0,2]-factor."""
    xp = engines.cupy() if engines.location(factor.neighbours) == "gpu" else np
    neighbours = xp.concatenate((factor.neighbours, xp.full_like(factor.neighbours, -1)), axis=1)
    weights = xp.concatenate((factor.weights, xp.zeros_like(factor.weights)), axis=1)
    return Factor(neighbours, weights, factor.rounds, factor.maximal, factor.directed, factor.view)


def _mean_weights(neighbours: Any, weights: Any) -> Any:
    """Of a directed factor: the mean of the two entries of each edge, the same at both ends."""
    xp = engines.cupy() if engines.location(neighbours) == "gpu" else np
    rows = xp.arange(neighbours.shape[0], dtype=neighbours.dtype)[:, None]
    back = xp.zeros_like(weights)
    for slot in (0, 1):
        mine = neighbours[neighbours, slot] == rows
        back += xp.where(mine & (neighbours >= 0), weights[neighbours, slot], 0)
    return (weights + back) / 2


def _moved(factor: Factor, G: csr.Graph) -> Factor:
    """The factor with its arrays where G lives."""
    if engines.location(factor.neighbours) == G.engine:
        return factor
    return Factor(
        engines.moved(factor.neighbours, G.engine),
        engines.moved(factor.weights, G.engine),
        factor.rounds,
        factor.maximal,
        factor.directed,
        factor.view,
    )
