"""Weights as integers: then sums are exact in any order, and every engine decides alike.

    a  ->  rint(a 2^s),   s the largest integer for which all strengths together are at most 2^52

The strength of a vertex is the sum of its weights; a loop counts twice.  The sum of all strengths
is 2 m.  Unit weights stay 1: a power of two does not change what is compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from matchwood import engines

LARGEST_SUM = 1 << 52  # integers up to 2^53 are exact in double precision

Joined = Callable[[Any, str], Any]


def _alone(value: Any, op: str) -> Any:
    """The sum, minimum or maximum over one rank."""
    return value


class Level(NamedTuple):
    """A graph with integer weights: the given one, or one that was made by contracting it.

    `data` is None where all weights are 1.  `inner` is the diagonal that the rows leave out: twice
    the weight of loops and of edges inside a contracted vertex; None where there is none.
    """

    indptr: Any
    indices: Any
    data: Any
    inner: Any
    strength: Any
    total: int
    longest: int  # entries of the longest row
    tied: int  # vertices that have neighbours

    @property
    def n(self) -> int:
        return int(self.indptr.shape[0]) - 1


def level_of(graph: Any, caller: str) -> Level:
    """The undirected weights of a graph as integers; kept by the graph.

    Memory: 8 bytes for each entry where weights are not all 1, and 8 for each vertex.
    """
    if graph.weighted:  # at each call, since it may be another caller that is to be named
        graph.undirected_weights(caller, negative="error")
    found: Level = graph.keep("whole_weights", lambda: _make(graph, caller))
    return found


def _make(graph: Any, caller: str) -> Level:
    view, data, doubled = whole_weights(graph, caller)
    return finished(view.indptr, view.indices, data, doubled)


def whole_weights(graph: Any, caller: str, joined: Joined = _alone) -> tuple[Any, Any, Any]:
    """The undirected graph; its weights as integers, None where all are 1; and twice its loops.

    ``joined(value, op)`` is the sum, minimum or maximum over all ranks of a distributed graph.
    """
    if graph.weighted:
        view = graph.undirected_weights(caller, negative="error")
    else:
        view = graph.undirected_pattern()
    loops = graph.diagonal(caller) if graph.loops else None
    unit = not graph.weighted
    if not unit and graph.weight_range == (1.0, 1.0):
        ones = loops is None or bool(((loops == 0) | (loops == 1)).all())
        unit = bool(joined(int(ones), "min"))
    if unit:
        return view, None, None if loops is None else 2 * loops.astype(np.int64)
    return view, *scaled(view.data, loops, joined)


def finished(indptr: Any, indices: Any, data: Any, inner: Any, strength: Any = None) -> Level:
    """A level of these arrays; its strengths are added up where they are not known."""
    xp = engines.xp(indices)
    lengths = xp.diff(indptr)
    if strength is None:
        strength = strengths(indptr, data)
        strength = strength if inner is None else strength + inner
    n = int(strength.shape[0])
    longest = int(lengths.max()) if n else 0
    tied = int(xp.count_nonzero(lengths))
    return Level(indptr, indices, data, inner, strength, int(strength.sum()), longest, tied)


def strengths(indptr: Any, data: Any) -> Any:
    """The sum of each row."""
    xp = engines.xp(indptr)
    if data is None:
        return xp.diff(indptr).astype(np.int64)
    before = xp.zeros(data.shape[0] + 1, np.int64)
    before[1:] = xp.cumsum(data, dtype=np.int64)
    return xp.diff(before[indptr])


def scaled(data: Any, loops: Any, joined: Joined) -> tuple[Any, Any]:
    """The weights and twice the loops as integers, by the largest power of two that fits."""
    values = data.astype(np.float64)
    diagonal = None if loops is None else loops.astype(np.float64)
    parts = [part for part in (values, diagonal) if part is not None and part.size]
    most = joined(max((float(part.max()) for part in parts), default=0.0), "max")
    if most == 0.0:
        return values.astype(np.int64), None
    # below 1 each, so that the sum does not overflow
    exponent = math.frexp(most)[1]
    near = _sum(values, -exponent) + 2 * (0.0 if diagonal is None else _sum(diagonal, -exponent))
    # one or two too many; the sums decide
    shift = 54 - math.frexp(joined(near, "sum"))[1] - exponent
    while True:
        whole = _rounded(values, shift)
        doubled = None if diagonal is None else 2 * _rounded(diagonal, shift)
        total = int(whole.sum()) + (0 if doubled is None else int(doubled.sum()))
        if joined(total, "sum") <= LARGEST_SUM:
            return whole, doubled
        shift -= 1


def _sum(values: Any, shift: int) -> float:
    return float(_times_power(values, shift).sum())


def _rounded(values: Any, shift: int) -> Any:
    return engines.xp(values).rint(_times_power(values, shift)).astype(np.int64)


def _times_power(values: Any, shift: int) -> Any:
    """values 2^shift, in two steps: one power may be too large for a float."""
    half = shift // 2
    return values * math.ldexp(1.0, half) * math.ldexp(1.0, shift - half)
