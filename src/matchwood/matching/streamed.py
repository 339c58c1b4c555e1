"""Matching in one pass over the edges: the public function.  The method is in streaming/."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import numpy as np

from matchwood.arguments import count, index_type, plain, real
from matchwood.gate.resources import require_vertices
from matchwood.matching.methods import Origin, load
from matchwood.matching.result import Matching
from matchwood.matching.streaming import EPSILON
from matchwood.primitives.wide_sums import finite
from matchwood.stopwatch import Stopwatch

LARGEST_EXACT = 2**53  # larger integers are rounded in double precision
EDGES_PER_BLOCK = 1 << 16  # edges that are given to the kernel at a time, when they come one by one


def streaming_matching(
    edges: Iterable[Any], *, n: int | None = None, epsilon: float = EPSILON
) -> Matching:
    """Find a heavy matching among edges that come one after the other, each seen once.

    Every vertex has a potential, 0 at first.  An edge whose weight exceeds (1 + epsilon) times the
    sum of its ends' potentials is pushed onto a stack, and its weight minus that sum is added to
    both potentials; any other edge is dropped.  At the end the edges are popped from the stack, and
    each whose ends are both free is taken [1]_ [2]_.  The weight is at least 1 / (2 + 2 epsilon) of
    the best possible, for any order of the edges.

    Parameters
    ----------
    edges : iterable
        Either of edges ``(u, v, w)``, or of blocks ``(u, v, w)`` of three arrays of the same
        length, which is faster.  It is read once; it need not fit in memory.  Self loops and
        weights of 0 are left out; an edge that comes several times counts as several.
    n : int or None
        Number of vertices; None takes the largest vertex seen, plus one.
    epsilon : float
        Not negative.  Larger keeps fewer edges and loses more weight.

    Returns
    -------
    Matching
        `bound` is the sum of the potentials times (1 + epsilon), rounded up by 2^-40: no matching
        is heavier.

    Raises
    ------
    TypeError, ValueError
        If a vertex is no integer in 0 .. n - 1, or a weight is negative or not finite, or an
        integer beyond 2**53; if the weight or the bound is more than double precision holds.

    Notes
    -----
    Memory: O(n (1 / epsilon) log(W)) for the stack, W being the ratio of the largest to the
    smallest weight, and two arrays of n.  Work O(1) for each edge.  One thread: an edge depends
    on all before it.

    References
    ----------
    .. [1] A. Paz, G. Schwartzman. A (2 + epsilon)-approximation for maximum weight matching in
       the semi-streaming model. SODA 2017. doi:10.1137/1.9781611974782.140
    .. [2] M. Ghaffari, D. Wajc. Simplified and space-optimal semi-streaming (2 + epsilon)-
       approximate matching. SOSA 2019. doi:10.4230/OASIcs.SOSA.2019.13

    Examples
    --------
    >>> from matchwood.matching import streaming_matching
    >>> found = streaming_matching([(0, 1, 4.0), (1, 2, 5.0), (2, 3, 4.0)], epsilon=0.0)
    >>> found.edges().tolist(), found.weight, round(found.bound, 9)
    ([[0, 1], [2, 3]], 8.0, 16.0)
    """
    caller = "streaming_matching"
    epsilon = real(caller, "epsilon", epsilon, 0.0)
    most = None if n is None else count(caller, "n", n)
    require_vertices(caller, most or 0)
    clock = Stopwatch()
    stream = load("streaming", "cpu").Stream(most or 0, epsilon)
    seen = 0
    for u, v, w in _blocks(edges, caller):
        _check(u, v, w, most, seen, caller)
        stream.feed(u, v, w)
        seen += u.size
    clock.lap("read")
    found = stream.finish()
    clock.lap("unwind")
    kind = index_type(found.mate.size)
    return Matching(
        found.mate.astype(kind, copy=False),
        finite(caller, "the weight of the matching", found.weight),
        found.rounds,
        "streaming",
        clock.seconds,
        _origin=Origin(bound=finite(caller, "the bound", found.bound or 0.0), weighted=True),
    )


def _blocks(edges: Iterable[Any], caller: str) -> Iterator[tuple[Any, Any, Any]]:
    """Blocks of arrays from blocks or from single edges."""
    if not isinstance(edges, Iterable) or getattr(edges, "shape", None) == ():
        raise TypeError(f"{caller}: edges must be an iterable, got {type(edges).__name__}")
    items = iter(edges)
    first = next(items, None)
    if first is None:
        return
    items = itertools.chain((first,), items)
    if not isinstance(first, Collection):
        raise TypeError(f"{caller}: edges must be (u, v, w), got {type(first).__name__}")
    if len(first) != 3:
        raise ValueError(f"{caller}: edges must be (u, v, w), got {len(first)} items")
    if np.ndim(next(iter(first))) == 0:
        while block := list(itertools.islice(items, EDGES_PER_BLOCK)):
            u, v, w = zip(*block, strict=True)
            yield _same_length(_integers(u, caller), _integers(v, caller), _numbers(w, caller))
    else:
        for u, v, w in items:
            yield _same_length(_integers(u, caller), _integers(v, caller), _numbers(w, caller))


def _same_length(u: Any, v: Any, w: Any) -> tuple[Any, Any, Any]:
    if not u.ndim == 1 or not u.shape == v.shape == w.shape:
        raise ValueError(
            "streaming_matching: the arrays of a block must have the same length, got shapes "
            f"{u.shape}, {v.shape} and {w.shape}"
        )
    return u, v, w


def _integers(values: Any, caller: str) -> Any:
    array = plain(caller, "vertices", values)
    if array.dtype.kind not in "iu" and array.size:
        raise TypeError(f"{caller}: vertices must be integers, got {array.dtype}")
    if array.dtype == np.uint64 and array.size and int(array.max()) > np.iinfo(np.int64).max:
        raise ValueError(f"{caller}: vertices must be below 2**63, got {int(array.max())}")
    return np.ascontiguousarray(array, np.int64)


def _numbers(values: Any, caller: str) -> Any:
    array = plain(caller, "weights", values)
    if array.dtype.kind not in "iufb":
        raise TypeError(f"{caller}: weights must be real numbers, got {array.dtype}")
    if array.dtype.kind in "iu" and array.size and int(array.max()) > LARGEST_EXACT:
        raise ValueError(
            f"{caller}: integer weights must be at most 2**53, got {int(array.max())}; "
            "pass them as floats to have them rounded"
        )
    return np.ascontiguousarray(array, np.float64)


def _check(u: Any, v: Any, w: Any, n: int | None, seen: int, caller: str) -> None:
    """Raise for the first wrong edge of a block; `seen` edges came before the block."""
    if not u.size:
        return
    for ends in (u, v):
        wrong = ends < 0 if n is None else (ends < 0) | (ends >= n)
        if wrong.any():
            k = int(wrong.argmax())
            within = "at least 0" if n is None else f"within 0..{n - 1}"
            raise ValueError(
                f"{caller}: vertices must be {within}, got {ends[k]} at edge {seen + k}"
            )
    if n is None:
        require_vertices(caller, int(max(u.max(), v.max())) + 1)
    wrong = ~(np.isfinite(w) & (w >= 0))
    if wrong.any():
        k = int(wrong.argmax())
        raise ValueError(
            f"{caller}: weights must be finite and not negative, got {w[k]} at edge {seen + k}"
        )
