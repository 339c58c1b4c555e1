"""Random weights for the edges of any graph.  Read on in reference.py, cpu.py, gpu.py + gpu.cu."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from matchwood import arguments, engines
from matchwood.gate import graph as csr
from matchwood.generators import matrices, streams
from matchwood.generators.matrices import Array, Matrix

KINDS = (None, "uniform", "integers")
INTEGERS = 255  # largest of the integer weights, as in the GAP benchmark suite


def random_weights(
    A: Any,
    kind: str = "uniform",
    *,
    directed: bool = False,
    dtype: Any = np.float32,
    rng: Any = 0,
    threads: int | None = None,
) -> Matrix:
    """Copy of a graph in which every edge has a random positive weight.

    The weight is a hash of the edge's two ends, so it depends neither on the other edges nor on
    the order in which they are stored.  "uniform" gives k / 2^24, k = 1 .. 2^24, in float32 and
    k / 2^53, k = 1 .. 2^53, in float64; "integers" gives 1 .. 255, as the GAP benchmarks use.

    Parameters
    ----------
    A : (n, n) sparse matrix of SciPy or CuPy
        Only the pattern is read; entries on the diagonal get a weight too.
    kind : {"uniform", "integers"}
    directed : bool
        False gives (u, v) and (v, u) the same weight.
    dtype : float32 or float64
        Of the stored values.
    rng : int, numpy.random.Generator or None
        The seed; None is 0.
    threads : int or None
        CPU only.

    Returns
    -------
    B : scipy.sparse.csr_array, or cupyx.scipy.sparse.csr_matrix where `A` is on the GPU
        Has the pattern of `A`, and shares its index arrays if `A` is in CSR format.

    Raises
    ------
    TypeError, ValueError
        If `A` is not sparse or not square, or another argument of the wrong kind.

    Notes
    -----
    The same on every engine at any number of threads.  The weight of (u, v) comes from number
    u n + v of a counter-based stream, with u < v unless directed.  Work O(nnz).

    Examples
    --------
    >>> from matchwood.generators import path, random_weights
    >>> random_weights(path(4), "integers").toarray().astype(int).tolist()
    [[0, 71, 0, 0], [71, 0, 207, 0], [0, 207, 0, 170], [0, 0, 170, 0]]
    """
    caller = "random_weights"
    kind = arguments.one_of(caller, "kind", kind, KINDS[1:])
    dtype = arguments.value_type(caller, dtype)
    directed = arguments.flag(caller, "directed", directed)
    engines.check_threads(threads)
    seed = arguments.seed(caller, rng)
    if not (hasattr(A, "tocsr") and hasattr(A, "shape")):
        raise TypeError(f"{caller}: A must be a sparse matrix, got {type(A).__name__}")
    if len(A.shape) != 2 or A.shape[0] != A.shape[1]:
        raise ValueError(f"{caller}: A must be square, got shape {A.shape}")
    indptr, indices = _pattern(A, caller)
    engine = engines.location(indices)
    data = drawn(
        indptr, indices, kind, seed, dtype, directed=directed, engine=engine, threads=threads
    )
    return matrices.matrix(A.shape[0], indptr, indices, data, canonical=False)


def _pattern(A: Any, caller: str) -> tuple[Array, Array]:
    """The index arrays of a sparse matrix, checked before they are used."""
    kind = getattr(getattr(A, "indices", None), "dtype", None)
    own = kind if kind in (np.dtype(np.int32), np.dtype(np.int64)) else None
    view = csr.as_graph(A, caller, index_dtype=own).entries()
    if A.format == "csr":
        return view.indptr, view.indices
    A = A.tocsr()
    return A.indptr, A.indices


def drawn(
    indptr: Array,
    indices: Array,
    kind: str | None,
    seed: int,
    dtype: np.dtype[Any],
    *,
    directed: bool,
    engine: str,
    threads: int | None,
) -> Array:
    """The values of a graph with this pattern; ones where `kind` is None."""
    if kind is None:
        return matrices.ones(indices, dtype)
    fraction_bits = 0 if kind == "integers" else 24 if dtype == np.float32 else 53
    key = streams.key(seed, streams.WEIGHTS)
    weigh = engines.load(__name__, engine).weigh
    return weigh(indptr, indices, dtype, directed, key, fraction_bits, threads)


def drawn_on_ranks(
    kind: str | None, seed: int, dtype: np.dtype[Any], *, directed: bool
) -> Callable[[Any, Any], Array]:
    """A function that makes the values of a block of a distributed graph, as `drawn` does."""
    fraction_bits = 0 if kind == "integers" else 24 if dtype == np.float32 else 53
    key = streams.key(seed, streams.WEIGHTS)

    def values(places: Any, view: Any) -> Array:
        if kind is None:
            return matrices.ones(view.indices, dtype)
        weigh = engines.load(__name__, "cpu").weigh_block
        names, n = places.names, places.grid.n
        return weigh(view, names, n, dtype, directed, key, fraction_bits, places.threads)

    return values
