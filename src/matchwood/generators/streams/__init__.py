"""Random numbers that depend on a seed, a stream and a counter, and on nothing else.

A generator that computes each number from the one before gives a graph that depends on how threads
share the work.  Here number k of a stream is computed from k alone, so any thread of any engine can
compute any of them, and all make the same graph:

    key(seed, stream) = mix64(mix64(seed) + stream * GOLDEN)
    value(key, k)     = mix64(key + k * GOLDEN)                   all modulo 2^64

which makes value(key, 1), value(key, 2), ... the output of SplitMix64 [1]_ started at `key`.
`mix64` and GOLDEN are those of `matchwood.primitives.hashing`.  Values are compared with whole
numbers (`threshold`) and turned into fractions that a float holds exactly, never rounded ones:
so the engines agree in every bit.

Random weights are such numbers: that of the edge (u, v) is number u n + v of a stream.

Read on in reference.py, cpu.py (for kernels), gpu.py + gpu.cu; in CUDA a stream is a line of each
`.cu` file.

References
----------
.. [1] G. L. Steele, D. Lea, C. H. Flood. Fast splittable pseudorandom number generators.
   OOPSLA 2014. doi:10.1145/2660193.2660195
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from matchwood import arguments, engines
from matchwood.gate import graph as csr
from matchwood.generators import result
from matchwood.generators.result import Array, Matrix
from matchwood.primitives.hashing import GOLDEN
from matchwood.primitives.hashing.reference import mix64_array, mix64_number

# The streams; a new one gets the next number, so that old graphs stay as they are.
QUADRANTS, LABELS, EDGES, PAIRS, POINTS, WEIGHTS, PACKETS = range(7)
KINDS = (None, "uniform", "integers")
INTEGERS = 255  # largest of the integer weights, as in the GAP benchmark suite


def key(seed: int, stream: int) -> int:
    """The number at which a stream starts."""
    return mix64_number(mix64_number(seed) + stream * GOLDEN)


def value(key: int, k: int) -> int:
    """Number k of the stream that starts at `key`."""
    return mix64_number(key + k * GOLDEN)


def values(key: int, k: Array) -> Array:
    """Numbers k (uint64 array) of the stream that starts at `key`."""
    return np.asarray(mix64_array(np.uint64(key) + k * np.uint64(GOLDEN)))


def threshold(probability: float | Fraction, bits: int) -> int:
    """A random integer of `bits` bits is less than this with the given probability."""
    return round(Fraction(probability) * 2**bits)


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
    The same on every engine at any number of threads.  The weight of (u, v) is made of number
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
    return result.matrix(A.shape[0], indptr, indices, data, canonical=False)


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
        return result.ones(indices, dtype)
    weigh = engines.load(__name__, engine).weigh
    return weigh(indptr, indices, dtype, directed, *_source(kind, seed, dtype), threads)


def _source(kind: str | None, seed: int, dtype: np.dtype[Any]) -> tuple[int, int]:
    """(where the stream of the weights starts, bits of a fraction or 0 for integers)."""
    return key(seed, WEIGHTS), 0 if kind == "integers" else 24 if dtype == np.float32 else 53


def drawn_on_ranks(
    kind: str | None, seed: int, dtype: np.dtype[Any], *, directed: bool
) -> Callable[[Any, Any], Array]:
    """A function that makes the values of a block of a distributed graph, as `drawn` does."""
    start, bits = _source(kind, seed, dtype)

    def values(places: Any, view: Any) -> Array:
        if kind is None:
            return result.ones(view.indices, dtype)
        weigh = engines.load(__name__, "cpu").weigh
        return weigh(view.indptr, view.indices, dtype, directed, start, bits, places.threads,
                     places.names, places.grid.n)  # fmt: skip

    return values
