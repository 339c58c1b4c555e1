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

from matchwood import answers, csr, engines
from matchwood.errors import CheckFailed
from matchwood.factors import Factor
from matchwood.factors import factor as find_factor
from matchwood.factors.check import factor_fault
from matchwood.factors.result import sealed, unsealed
from matchwood.factors.views import directed_magnitudes
from matchwood.forests.check import check_linear_forest, check_paths
from matchwood.forests.found import Found
from matchwood.forests.result import LinearForest
from matchwood.primitives.wide_sums import mean_of_two

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
        A [0,2]-factor of `A`; None computes ``factor(A, 2, **options)``.  It is checked first,
        unless `factor` made it for this very `Graph`: each of its edges must be one of `A`.
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
    chosen = engines.resolve(G.engine, engine, threads=threads)
    if chosen == "gpu" and method in ("ranges", "walk"):
        raise ValueError(f"{caller}: method {method!r} runs on engine='cpu' only")
    H = G.on(chosen)
    taken = None
    if factor is None:
        start = time.perf_counter()
        found = find_factor(H, 2, engine=chosen, threads=threads, **options)
        taken = time.perf_counter() - start
    else:
        found = _as_factor(G, H, factor, caller)
    arrays = unsealed(found) or tuple(found)
    neighbours, weights = (engines.moved(array, engines.home(chosen)) for array in arrays)
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
        If `A` is no square matrix with real values, or has another size than the forest; if
        `forest` was put together by hand and is none.

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
    if not isinstance(forest, LinearForest):
        raise TypeError(f"{caller}: forest must be a LinearForest, got {type(forest).__name__}")
    if not forest.untouched():
        _refuse_wrong_forest(forest, caller)
    if len(forest.perm) != G.n:
        raise ValueError(
            f"{caller}: the forest has {len(forest.perm)} vertices, the matrix {G.n} rows"
        )
    chosen = engines.resolve(G.engine, engine, threads=threads)
    H = G.on(chosen)
    view = H.directed_weights(caller)
    home, kind = engines.home(chosen), view.indices.dtype
    table = (unsealed(forest.factor) or (forest.factor.neighbours,))[0]
    order = [
        engines.moved(answers.array(caller, "forest", array), home).astype(kind, copy=False)
        for array in (table, forest.place, forest.position)
    ]
    module = engines.load(__name__, "cpu" if chosen == "reference" else chosen)
    arrays = module.coefficients(view, *order, threads=threads)
    return tuple(engines.moved(array, G.engine) for array in arrays)  # type: ignore[return-value]


def _refuse_wrong_forest(forest: LinearForest, caller: str) -> None:
    """Raise unless the arrays of a forest that was put together elsewhere belong together."""
    try:
        check_paths(forest, caller)
    except CheckFailed as wrong:
        raise ValueError(
            f"{caller}: forest must be a linear forest: {str(wrong).partition(': ')[2]}"
        ) from None


def _as_factor(G: csr.Graph, H: csr.Graph, factor: Any, caller: str) -> Factor:
    """What the user gave as a [0,2]-factor of G, with weights; looked at unless `factor` made it
    for this very graph.  H is G on the engine of the call."""
    table = factor.neighbours if isinstance(factor, Factor) else factor
    shape = getattr(table, "shape", None) or np.shape(table)
    if len(shape) != 2 or shape[0] != G.n or shape[1] not in (1, 2):
        raise ValueError(
            f"{caller}: the factor must have shape ({G.n}, 2), as factor(A, 2) gives, got {shape}"
        )
    directed = isinstance(factor, Factor) and bool(factor.directed)
    if isinstance(factor, Factor) and not directed:
        views = H.undirected_weights(caller), G.undirected_weights(caller)
        if unsealed(factor, *views) is not None:
            return factor if shape[1] == 2 else _padded(factor)
    K = G.on("cpu")
    view = directed_magnitudes(K, caller) if directed else K.undirected_weights(caller)
    try:
        factor_fault(view, factor)
    except CheckFailed as wrong:
        raise ValueError(
            f"{caller}: the factor must be one of A: {str(wrong).partition(': ')[2]}"
        ) from None
    neighbours, weights = _with_weights(view, np.asarray(engines.moved(table, "cpu")))
    here = [engines.moved(array, G.engine) for array in (neighbours, weights)]
    rounds, maximal, plan = 0, False, None
    if isinstance(factor, Factor):
        rounds, maximal, plan = factor.rounds, factor.maximal, factor.plan
    made = sealed(here, rounds, maximal, directed, view, plan)
    return made if shape[1] == 2 else _padded(made)


def _with_weights(view: csr.View, table: Any) -> tuple[Any, Any]:
    """The neighbours, preferred ones first and -1 last, and the weights of their edges."""
    n = view.n
    neighbours = table.astype(view.indices.dtype)
    rows = np.repeat(np.arange(n), np.diff(view.indptr))
    keys, wanted = rows * n + view.indices, np.arange(n)[:, None] * n + neighbours
    at = np.searchsorted(keys, wanted).clip(max=max(keys.size - 1, 0))
    data = view.data if view.data.size else np.zeros(1, view.data.dtype)
    weights = np.where(neighbours >= 0, data[at], data.dtype.type(0))
    order = np.argsort(-weights, axis=1, kind="stable")
    return tuple(np.take_along_axis(a, order, 1) for a in (neighbours, weights))  # type: ignore[return-value]


def _padded(factor: Factor) -> Factor:
    """A [0,1]-factor as a [0,2]-factor."""
    xp = engines.cupy() if engines.location(factor.neighbours) == "gpu" else np
    neighbours = xp.concatenate((factor.neighbours, xp.full_like(factor.neighbours, -1)), axis=1)
    weights = xp.concatenate((factor.weights, xp.zeros_like(factor.weights)), axis=1)
    view: Any = factor.view
    return sealed((neighbours, weights), factor.rounds, factor.maximal, factor.directed, view)


def _mean_weights(neighbours: Any, weights: Any) -> Any:
    """Of a directed factor: the mean of the two entries of each edge, the same at both ends."""
    xp = engines.cupy() if engines.location(neighbours) == "gpu" else np
    rows = xp.arange(neighbours.shape[0], dtype=neighbours.dtype)[:, None]
    back = xp.zeros_like(weights)
    for slot in (0, 1):
        mine = neighbours[neighbours, slot] == rows
        back += xp.where(mine & (neighbours >= 0), weights[neighbours, slot], 0)
    return mean_of_two(weights, back)


def _moved(factor: Factor, G: csr.Graph) -> Factor:
    """The factor with its arrays where G lives."""
    if engines.location(factor.neighbours) == G.engine:
        return factor
    arrays = (engines.moved(array, G.engine) for array in unsealed(factor) or tuple(factor))
    view: Any = factor.view
    return sealed(arrays, factor.rounds, factor.maximal, factor.directed, view, factor.plan)
