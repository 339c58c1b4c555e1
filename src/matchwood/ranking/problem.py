"""The arguments of `pagerank`, checked, and the arrays that engines read."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood import arguments, calls, engines
from matchwood.gate.graph import Graph, View
from matchwood.primitives.row_reduce import spmv

# Exponents of two, by the bytes of a score.  Where sums of rows lie beyond them, weights or their
# inverses times a score may be too large or too small for the type of the scores.
BORDERS = {4: 60, 8: 500}
TOL = {4: 1e-5, 8: 1e-6}  # by the bytes of a score, too


class Problem(NamedTuple):
    """The arrays of a call, where its engine reads them.  All jumps add up to 1."""

    incoming: View  # row j holds the vertices that have an arc to j; data: weights, or None
    share: Any  # 1 / (sum of the row) of each vertex; 0 where the row is empty
    start: Any
    jump: Any  # p, or None for 1/n everywhere
    dangling: Any  # q, or None for p
    damping: float
    tol: float
    most: int  # iterations
    dtype: Any


class Options(NamedTuple):
    """Checked arguments, but for what depends on the graph."""

    damping: float
    tol: float
    most: int
    personalization: Any
    dangling: Any
    start: Any
    weighted: bool
    dtype: Any

    def on(self, call: calls.Call, caller: str) -> Problem:
        """The problem on the graph of a call."""
        G, n = call.graph, call.graph.n
        incoming = incoming_arcs(G, self.weighted, caller)
        xp = engines.xp(incoming.indptr)
        given = [
            _distribution(call, caller, name, getattr(self, name), n, self.dtype)
            for name in ("personalization", "dangling", "start")
        ]
        start = given[2] if given[2] is not None else xp.full(n, 1 / max(n, 1), self.dtype)
        share, least, most = shares(G, self.weighted, caller)
        border = 2.0 ** BORDERS[self.dtype.itemsize]
        if least < 1 / border or most > border:
            incoming, share = chances(G, incoming, caller)
        return Problem(
            incoming, share.astype(self.dtype), start, given[0],
            given[1], self.damping, self.tol, self.most, self.dtype,
        )  # fmt: skip


def options(
    caller: str,
    damping: Any,
    tol: Any,
    most: Any,
    personalization: Any,
    dangling: Any,
    start: Any,
    weighted: Any,
    dtype: Any,
) -> Options:
    d = arguments.real(caller, "damping", damping, 0, 1)
    if d == 1:
        raise ValueError(f"{caller}: damping must be at least 0 and less than 1, got {damping}")
    kind = arguments.value_type(caller, dtype)
    return Options(
        d,
        TOL[kind.itemsize] if tol is None else arguments.real(caller, "tol", tol, 0),
        arguments.count(caller, "max_iterations", most, 1),
        personalization,
        dangling,
        start,
        arguments.flag(caller, "weighted", weighted),
        kind,
    )


def incoming_arcs(G: Graph, weighted: bool, caller: str) -> View:
    """The arcs into each vertex, with their weights where those count."""
    if not weighted or not G.weighted:
        return View(*G.transposed_pattern()[:2], None)
    G.refuse_negative(caller)
    return G.transposed_weights(caller)


def shares(G: Graph, weighted: bool, caller: str) -> tuple[Any, float, float]:
    """1 / (sum of the row), or 0; least and largest sum above 0; kept for the next call."""

    def make() -> tuple[Any, float, float]:
        if not weighted or not G.weighted:
            sums = (G.indptr[1:] - G.indptr[:-1]).astype(np.float64)
        else:
            sums = row_sums(G, caller)
        xp = engines.xp(sums)
        filled = xp.where(sums > 0, sums, 1.0)
        least, most = (float(filled.min()), float(filled.max())) if G.n else (1.0, 1.0)
        with np.errstate(over="ignore"):  # then `chances` are taken
            return xp.where(sums > 0, 1.0 / filled, 0.0), least, most

    return G.keep("surfer shares, weighted" if weighted else "surfer shares", make)


def row_sums(G: Graph, caller: str) -> Any:
    """The sum of each row, in float64."""
    view = G.finite_weights(caller)
    data = view.data.astype(np.float64, copy=False)
    sums = spmv(view.indptr, view.indices, data, engines.xp(data).ones(G.n, np.float64))
    if not bool(engines.xp(sums).isfinite(sums).all()):
        raise ValueError(f"{caller}: weights of a row must not add up to infinity")
    return sums


def chances(G: Graph, incoming: View, caller: str) -> tuple[View, Any]:
    """The arcs with a(i, j) / s(i) for weights, and shares of 1; kept for the next call."""

    def make() -> tuple[View, Any]:
        sums = row_sums(G, caller)
        filled = engines.xp(sums).where(sums > 0, sums, 1.0)
        data = incoming.data.astype(np.float64) / filled[incoming.indices]
        return incoming._replace(data=data), (sums > 0).astype(np.float64)

    return G.keep("surfer chances", make)


def _distribution(call: calls.Call, caller: str, name: str, value: Any, n: int, dtype: Any) -> Any:
    """The argument as probabilities where the engine reads them; None stays None."""
    if value is None:
        return None
    given = call.here(arguments.numbers(caller, name, value, size=n))
    return probabilities(caller, name, given, dtype)


def probabilities(caller: str, name: str, given: Any, dtype: Any) -> Any:
    """Finite numbers, divided by their sum."""
    weights = given.astype(np.float64)
    if weights.size and float(weights.min()) < 0:
        at = int((weights < 0).argmax())
        raise ValueError(f"{caller}: {name} must not be negative, got {weights[at]} at {at}")
    most = float(weights.max()) if weights.size else 1.0
    if most == 0:
        raise ValueError(f"{caller}: {name} must not be all zero")
    weights = weights / most  # so that the sum is finite
    return (weights / weights.sum()).astype(dtype)
