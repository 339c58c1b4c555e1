"""How heavy can a matching be at most?  Read on in reference.py, check.py, cpu.py."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from matchwood import calls
from matchwood.arguments import count
from matchwood.gate import graph as csr
from matchwood.matching.methods import heavy_matching, mates_in
from matchwood.primitives.wide_sums import finite, total

SAFE_EXPONENT = 900  # exponent: weights between 2^-900 and 2^900 are not scaled
ROUNDED_BELOW = 2.0**-960  # 2^-40 of a larger number is many times 2^-1074, the smallest number
SWEEPS = 10  # sweeps from each start; more gained less than 1 % (bench/matching/weighted.py)


@dataclass(frozen=True, eq=False)
class Bound:
    """What `matching_bound` found; unpacks as ``value, dual``.

    Attributes
    ----------
    value : float
        No matching is heavier.
    dual : (n,) float64 array
        The proof: ``dual[u] + dual[v]`` is at least the weight of every edge, none is negative,
        and their sum is `value`.  The edges of a matching have different ends, so their weights
        together are at most that.
    """

    value: float
    dual: Any

    def __iter__(self) -> Any:
        return iter((self.value, self.dual))


def matching_bound(
    A: Any,
    matching: Any = None,
    *,
    sweeps: int = SWEEPS,
    engine: str | None = None,
    threads: int | None = None,
) -> Bound:
    """Bound the weight of all matchings of a graph from above, with a proof.

    The proof is a number y_v >= 0 for each vertex with y_u + y_v >= w_uv for each edge; then no
    matching weighs more than the sum of all y.  Two such solutions are made and improved by
    sweeps over the edges, and the smaller sum is returned::

        y_v = half the weight of v's heaviest edge
        y_v = the weight of v's own edge in `matching`, 0 for free vertices, plus half of the
              largest w_uv - y_u - y_v that is then positive

    A sweep computes what each vertex needs, given the others: need_v = max(0, max_u (w_uv - y_u)),
    without v's mate.  Two mates share what their own edge needs beyond that::

        new_v = need_v + max(0, w_v,mate - need_v - need_mate) / 2,    new_v = need_v if free

    Then y becomes the mean of y and new.  This is a solution again: for every other edge both
    y_u + new_v and new_u + y_v are at least w_uv.  The sum never grows.

    Parameters
    ----------
    A : (n, n) sparse matrix, or anything `graph` takes
        Weights as in `weighted_matching`.
    matching : Matching, mate or None
        A good matching gives a good bound; None finds one.
    sweeps : int
        Number of sweeps from each of the two starts.
    engine : {None, "reference", "cpu"}
        None takes the CPU; a graph on a GPU is copied there.
    threads : int or None
        CPU threads; None takes ``MATCHWOOD_NUM_THREADS`` or the CPUs at hand.

    Returns
    -------
    Bound
        With `value` and `dual`, on the CPU.

    Raises
    ------
    EngineUnavailable
        If `engine` is "gpu".
    TypeError, ValueError
        If `A` is no square matrix, a weight is not finite, or `matching` holds no mutual mates of
        its vertices; if the bound is more than double precision holds.

    Notes
    -----
    The least possible sum is the weight of the best fractional matching.  On a bipartite graph this
    is the weight of the best matching; on others it is a few per cent more.  Ten sweeps get within
    1 to 3 per cent of it on grids, meshes, triangulations and R-MAT graphs.

    Deterministic: all vertices read the y of the last sweep.  The result is rounded up by 2^-40,
    so that rounding errors do not make it false.  Weights above 2^900, or all below 2^-900, are
    scaled by a power of two first, in a copy.  Work O(m) a sweep; memory four arrays of n.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from matchwood.matching import matching_bound, weighted_matching
    >>> A = sp.csr_array([[0, 4, 0, 0], [4, 0, 5, 0], [0, 5, 0, 4], [0, 0, 4, 0]])
    >>> greedy = weighted_matching(A)
    >>> greedy.weight, round(greedy.bound, 2)
    (5.0, 8.0)
    >>> value, dual = matching_bound(A, greedy)
    >>> bool(dual[1] + dual[2] >= 5)
    True
    """
    caller = "matching_bound"
    sweeps = count(caller, "sweeps", sweeps)
    call = calls.enter(A, caller, "cpu" if engine is None else engine, threads)
    chosen = call.load(__name__)  # there is no GPU engine
    view = call.graph.undirected_weights(caller)
    mate = heavy_matching(view, "cpu", threads).mate if matching is None else matching
    mate = mates_in(caller, mate, view.n, "cpu", view.indices.dtype)
    view, shift = _scaled(view)
    solutions = [
        chosen.improve(view, mate, sweeps, from_matching, threads)
        for from_matching in (True, False)
    ]
    y = _rounded_up(min(solutions, key=total), view, sweeps, shift)
    return Bound(finite(caller, "the bound", total(y)), y)


def _scaled(view: csr.View) -> tuple[csr.View, int]:
    """The view with its weights times 2**-shift, so that no sum overflows or underflows.

    Where all weights are near the smallest number, half of one would be rounded.  Near the largest
    number sums would overflow; there the shift is as small as possible, so that light weights lose
    few bits.
    """
    most = float(view.data.max(initial=0))
    exponent = math.frexp(most)[1]
    if most == 0 or abs(exponent) <= SAFE_EXPONENT:
        return view, 0
    shift = exponent - SAFE_EXPONENT if exponent > 0 else exponent
    return view._replace(data=np.ldexp(view.data.astype(np.float64), -shift)), shift


def _rounded_up(y: Any, view: csr.View, sweeps: int, shift: int) -> Any:
    """The dual for the weights as given, made larger by more than all rounding errors.

    Large numbers are rounded in the last of their 53 bits, and 2^-40 of them is more than the
    sweeps can lose.  Numbers near 2^-1074 have fewer bits: there a sweep rounds four times, each
    time by at most 2^-1074.
    """
    y *= 1 + 2.0**-40
    _add_steps(y, view, 4 * sweeps + 8)
    if shift != 0:
        with np.errstate(over="ignore"):
            y = np.ldexp(y, shift)
        _add_steps(y, view, 1)
    return y


def _add_steps(y: Any, view: csr.View, steps: int) -> None:
    """Add `steps` units of 2^-1074 where y is below ROUNDED_BELOW and the vertex has edges."""
    small = np.flatnonzero(y < ROUNDED_BELOW)
    small = small[view.indptr[small + 1] > view.indptr[small]]
    y[small] += steps * math.ldexp(1.0, -1074)
