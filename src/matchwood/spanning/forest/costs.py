"""Weights as spanning forests read them: signed, zeros included, integers exact.

The gate's `undirected_weights` takes magnitudes and leaves zeros out.  Here every stored entry off
the diagonal is an edge and keeps its value; where (i, j) and (j, i) hold different values the
lighter one counts (the heavier one for a maximum forest).  So it is with parallel edges of an edge
list or a NetworkX graph; duplicates of a matrix are added up before, as everywhere.  Made once for
a `Graph`; where the matrix is symmetric it is the input's own memory.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.gate import graph as csr
from matchwood.gate import refusals
from matchwood.primitives.extremes import extremes
from matchwood.primitives.inspect import trusted_values as values
from matchwood.primitives.transpose import trusted_transpose as transpose


class Costs(NamedTuple):
    """Symmetric CSR without diagonal, rows ascending, and the range of its values."""

    indptr: Any
    indices: Any
    data: Any  # float32, float64 or int64
    least: Any  # a lower bound of the values, of the type of `data`
    most: Any  # an upper bound

    @property
    def n(self) -> int:
        """Number of vertices."""
        return int(self.indptr.shape[0]) - 1

    @property
    def nnz(self) -> int:
        """Stored entries; twice the edges."""
        return int(self.indices.shape[0])


def undirected_costs(G: csr.Graph, caller: str, maximum: bool) -> Costs:
    """The weights of `G`, kept in it."""
    if not G.weighted:
        return G.keep("costs", lambda: _ones(G.undirected_pattern()))
    # of parallel edges another one may count for each kind of forest
    side = ("_heavy" if maximum else "_light") if G.has_parallel_edges else ""
    view = G.keep(f"arcs{side}", lambda: arcs(G, caller, maximum, _exact_integers))
    symmetric = (
        G.has_symmetric_pattern
        and G.keep(f"costs_symmetric{side}", lambda: (_symmetric(G, view, caller),))[0]
    )
    if symmetric and not G.loops:
        return G.keep(f"costs{side}", lambda: _with_range(*view))
    if not symmetric:
        side = "_heavy" if maximum else "_light"

    def make() -> Costs:
        mirror = view if symmetric else transpose(*view, G.n)
        return _with_range(*_merged(view, mirror, maximum))

    return G.keep(f"costs{side}", make)


def _merged(view: Any, mirror: Any, maximum: bool) -> tuple[Any, Any, Any]:
    """The union of both without the diagonal; of two values the lighter, or the heavier."""
    if engines.location(view.indices) == "gpu":
        found: tuple[Any, Any, Any] = engines.load(__package__, "gpu").merge(view, mirror, maximum)
        return found
    from matchwood.primitives.symmetrize import cpu as symmetrize

    how = symmetrize.GREATEST if maximum else symmetrize.LEAST
    return symmetrize.merge(view, mirror, how)


def arcs(G: Any, caller: str, maximum: bool, exact_integers: Any) -> csr.View:
    """The directed values: finite floats, or int64; of parallel edges the one that counts.

    `exact_integers(G, caller, rule)` makes int64 of integers, duplicates joined by the rule.
    """
    rule = ("max" if maximum else "min") if G.has_parallel_edges else None
    if np.dtype(G.given_values(caller).dtype).kind in "iu":
        return exact_integers(G, caller, rule or G.rule("sum"))
    if rule is not None:
        return G.joined(rule, caller)
    return G.finite_weights(caller)


def _symmetric(G: csr.Graph, view: csr.View, caller: str) -> bool:
    """Are the values symmetric, where the pattern is?"""
    if view.data.dtype.kind == "i":
        return _symmetric_integers(view)
    if G.has_parallel_edges:
        return values(*view).symmetric
    return G.has_symmetric_values


def _ones(view: Any) -> Costs:
    xp = engines.cupy() if engines.location(view.indices) == "gpu" else np
    one = np.float32(1)
    return Costs(view.indptr, view.indices, xp.ones(view.nnz, np.float32), one, one)


def _with_range(indptr: Any, indices: Any, data: Any) -> Costs:
    kind = data.dtype.type
    if data.size == 0:
        return Costs(indptr, indices, data, kind(0), kind(0))
    return Costs(indptr, indices, data, *extremes(data))


def _exact_integers(G: csr.Graph, caller: str, rule: str) -> csr.View:
    """The directed values in int64, duplicates joined by `rule`."""
    data = G.given_values(caller)
    most = int(data.max()) if data.size and data.dtype.kind == "u" else 0
    if most > np.iinfo(np.int64).max:
        raise ValueError(f"{caller}: integer weights must fit int64, got {most}; scale them")
    xp = engines.cupy() if G.engine == "gpu" else np
    data = xp.ascontiguousarray(data, dtype=np.int64)
    if G.ascending:
        return G.entries()._replace(data=data)
    if rule == "sum":
        _refuse_overflow(G, data, caller)
    if G.engine == "cpu":
        return G.canonical(data, rule)
    join = engines.load(__package__, "gpu").join_duplicates
    return csr.View(*join(*G.entries()[:2], data, G.n, rule))


def _refuse_overflow(G: csr.Graph, data: Any, caller: str) -> None:
    """Raise unless sums of duplicates fit int64.  Halves of 32 bits are added up in float64.

    A sum of fewer than 2^21 halves is exact; of more, one just below the limit may be refused.
    """
    largest = max(-int(data.min()), int(data.max())) if data.size else 0
    if largest * G.longest_row <= np.iinfo(np.int64).max:
        return
    high = G.canonical((data >> 32).astype(np.float64)).data
    low = G.canonical((data & 0xFFFF_FFFF).astype(np.float64)).data
    carry = np.floor(low / 2.0**32)
    wrong = (high + carry < -(2.0**31)) | (high + carry >= 2.0**31)
    if bool(wrong.any()):
        row, column = refusals.place(G.directed_pattern(), int(wrong.argmax()))
        raise ValueError(
            f"{caller}: sums of integer duplicates must fit int64, got overflow at row {row}, "
            f"column {column}; scale them"
        )


def _symmetric_integers(view: csr.View) -> bool:
    """Are the values symmetric, where the pattern is?  Halves of 32 bits are exact in float64."""
    high = (view.data >> 32).astype(np.float64)
    if not values(view.indptr, view.indices, high).symmetric:
        return False
    low = (view.data & 0xFFFF_FFFF).astype(np.float64)
    return values(view.indptr, view.indices, low).symmetric
