"""Linear forests: disjoint paths of strong edges that hold every vertex.

    linear_forest         a heavy one, from a [0,2]-factor whose cycles are cut
    tridiagonal_of        the values of a matrix along the paths: three arrays

    check_linear_forest   is every vertex in one path, every step an edge, every cut the weakest?

In the order of the forest, its edges lie next to the diagonal.  So what `tridiagonal_of` takes
from a matrix is the strongest part of it that a tridiagonal solver can handle.

    method        files                      how paths are followed                  engines
    "splitters"   cpu/splitters.py, gpu.cu   many walks, from ends and samples       CPU, GPU
    "doubling"    doubling.py                scans along all paths, as the paper     CPU, GPU
    "walk"        cpu/__init__.py            one path after the other, sequential    CPU
    "auto"                                   the best of these

C. Klein, R. Strzodka. Highly parallel linear forest extraction from a weighted graph on GPUs.
ICPP 2022.

Shared by all methods: factor.py (the factor), reference.py (the definition), result.py, check.py.
"""

from __future__ import annotations

from typing import Any

from matchwood import answers, calls
from matchwood.arguments import one_of
from matchwood.errors import CheckFailed
from matchwood.factors import degree_factor
from matchwood.factors.plan import options_in_words
from matchwood.factors.result import unsealed
from matchwood.forests import doubling
from matchwood.forests.check import check_linear_forest, check_paths
from matchwood.forests.factor import as_factor, mean_weights, moved_to
from matchwood.forests.result import LinearForest, PathOrder, of_order, trusted
from matchwood.stopwatch import Stopwatch

__all__ = ["LinearForest", "check_linear_forest", "linear_forest", "tridiagonal_of"]

METHODS = ("auto", "splitters", "ranges", "doubling", "walk")
OPTIONS = ("rounds", "period", "uncharged", "charge_probability", "rng", "ties", "directed")


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
        A [0,2]-factor of `A`; None computes ``degree_factor(A, 2, **options)``.  A given one is
        checked first, unless `degree_factor` made it for this very `Graph`: each of its edges must
        be one of `A`.
    method : {"auto", "splitters", "ranges", "doubling", "walk"}
        How paths are followed.  ``"splitters"``: many walks at once, from the ends of paths and
        from sampled vertices; where walks meet, a short list of them is left to put in order.
        ``"doubling"``: scans along all paths with `path_scan`, as in the paper.  ``"walk"``: one
        path after the other, permuting on the way; sequential, on the CPU only.  ``"auto"`` takes
        splitters; on the CPU with one or two threads the walk, where most neighbours in the factor
        have numbers near by.  ``"ranges"`` is an older name for ``"auto"``, on the CPU only.
    engine : {None, "reference", "cpu", "gpu"}
        None takes the engine where `A` already lives.  Nothing is ever moved silently.
    threads : int or None
        CPU threads; None takes ``MATCHWOOD_NUM_THREADS`` or the CPUs at hand.
    **options
        For `degree_factor`: ``rounds``, ``period``, ``uncharged``, ``charge_probability``,
        ``rng``, ``ties``, ``directed``.

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
    one_of(caller, "method", method, METHODS)
    words = options_in_words(caller, options, OPTIONS)
    if factor is not None and options:
        raise TypeError(f"{caller}: {min(options)!r} is for the factor, which is given")
    call = calls.enter(A, caller, engine, threads)
    if call.engine == "gpu" and method in ("ranges", "walk"):
        raise ValueError(f"{caller}: method {method!r} runs on engine='cpu' only")
    watch = Stopwatch()
    if factor is None:
        made = degree_factor(call.graph, 2, engine=call.engine, threads=threads, **words)
        watch.lap("factor")
    else:
        made = as_factor(call.given, call.graph, factor, caller)
    neighbours, weights = (call.here(array) for array in unsealed(made) or tuple(made))
    if made.directed:
        weights = mean_weights(neighbours, weights)
    found = _follow(call, neighbours, weights, method, threads)
    perm, path, position, place = call.back(*found[:4])
    own = found._replace(
        perm=perm, path=path, position=position, place=place,
        seconds=lambda: {**watch.seconds, **found.seconds()},
    )  # fmt: skip
    return of_order(own, moved_to(made, call.given))


def _follow(
    call: calls.Call, neighbours: Any, weights: Any, method: str, threads: int | None
) -> PathOrder:
    """The paths of a [0,2]-factor, by a method; the reference has one only."""
    if method == "doubling" and call.engine != "reference":
        return doubling.forest(neighbours, weights, threads=threads)
    chosen = "auto" if method == "ranges" else method
    forest = call.load(__name__).forest
    return PathOrder(*forest(neighbours, weights, method=chosen, threads=threads))


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
        `forest` was made by hand and is none.

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
    call = calls.enter(A, caller, engine, threads)
    if not isinstance(forest, LinearForest):
        raise TypeError(f"{caller}: forest must be a LinearForest, got {type(forest).__name__}")
    own = trusted(forest)
    if own is None:
        _refuse_wrong_forest(forest, caller)
    if len(forest.perm) != call.graph.n:
        raise ValueError(
            f"{caller}: the forest has {len(forest.perm)} vertices, the matrix {call.graph.n} rows"
        )
    view = call.graph.directed_weights(caller)
    table = (unsealed(forest.factor) or (forest.factor.neighbours,))[0]
    source = forest if own is None else own
    order = [
        call.here(answers.array(caller, "forest", array)).astype(view.indices.dtype, copy=False)
        for array in (table, source.place, source.position)
    ]
    coefficients = call.load(__name__).coefficients
    dl, d, du = call.back(*coefficients(view, *order, threads=threads))
    return dl, d, du


def _refuse_wrong_forest(forest: LinearForest, caller: str) -> None:
    """Raise unless the arrays of a forest that the user made are consistent."""
    try:
        check_paths(forest, caller)
    except CheckFailed as wrong:
        raise ValueError(
            f"{caller}: forest must be a linear forest: {str(wrong).partition(': ')[2]}"
        ) from None
