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
from matchwood.primitives.transpose import trusted_transpose as transpose

HALF = np.int64(0xFFFF_FFFF)  # the lower half of an integer of 64 bits
EXACT = 1 << 53  # integers up to this have a float64 each


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
    view = G.keep(f"arcs{side}", lambda: arcs(G, caller, maximum))
    symmetric = G.keep(f"costs_symmetric{side}", lambda: (_symmetric(G, view),))[0]
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


def _raise(error: Exception | None, key: Any) -> None:
    if error is not None:
        raise error


def _refuse_overflow(G: csr.Graph, data: Any, caller: str) -> None:
    """Raise unless sums of duplicates fit int64."""
    largest = max(-int(data.min()), int(data.max())) if data.size else 0
    if largest * G.longest_row <= np.iinfo(np.int64).max:
        return
    wrong = overflowing(G, data)
    if bool(wrong.any()):
        row, column = refusals.place(G.directed_pattern(), int(wrong.argmax()))
        raise ValueError(
            f"{caller}: sums of integer duplicates must fit int64, got overflow at row {row}, "
            f"column {column}; scale them"
        )


def overflowing(G: Any, data: Any) -> Any:
    """Which sums of duplicates do not fit int64.  Halves of 32 bits are added up in float64.

    A sum of fewer than 2^21 halves is exact; of more, one just below the limit may be refused.
    """
    high = G.canonical((data >> 32).astype(np.float64)).data
    low = G.canonical((data & HALF).astype(np.float64)).data
    high = high + np.floor(low / 2.0**32)
    return (high < -(2.0**31)) | (high >= 2.0**31)


def arcs(
    G: Any, caller: str, maximum: bool, refuse: Any = _raise,
    refuse_overflow: Any = _refuse_overflow,
) -> csr.View:  # fmt: skip
    """The directed values: finite floats, or int64; of parallel edges the one that counts.

    Ranks agree on errors: their `refuse` takes an error or None, and a key.
    """
    rule = ("max" if maximum else "min") if G.has_parallel_edges else None
    data = G.given_values(caller)
    if np.dtype(data.dtype).kind not in "iu":
        return G.finite_weights(caller) if rule is None else G.joined(rule, caller)
    rule = rule or G.rule("sum")
    most = int(data.max()) if data.size and data.dtype.kind == "u" else 0
    error = None
    if most > np.iinfo(np.int64).max:
        error = ValueError(f"{caller}: integer weights must fit int64, got {most}; scale them")
    refuse(error, -most)
    data = engines.xp(data).ascontiguousarray(data, dtype=np.int64)
    if G.ascending:
        return G.entries()._replace(data=data)
    if rule == "sum":
        refuse_overflow(G, data, caller)
    if G.engine == "cpu":
        return G.canonical(data, rule)
    join = engines.load(__package__, "gpu").join_duplicates
    return csr.View(*join(*G.entries()[:2], data, G.n, rule))


def _symmetric(G: csr.Graph, view: csr.View) -> bool:
    """Are pattern and values symmetric?  Integers as float64, large ones by halves."""
    data = view.data
    if data.dtype.kind != "i":
        return G.inspected(view).symmetric if G.has_parallel_edges else G.value_facts().symmetric
    least, most = extremes(data) if data.size else (0, 0)
    parts = (data,) if -EXACT <= least and most <= EXACT else (data >> 32, data & HALF)
    return all(G.inspected(view._replace(data=part.astype(np.float64))).symmetric for part in parts)


def _ones(view: Any) -> Costs:
    xp = engines.cupy() if engines.location(view.indices) == "gpu" else np
    one = np.float32(1)
    return Costs(view.indptr, view.indices, xp.ones(view.nnz, np.float32), one, one)


def _with_range(indptr: Any, indices: Any, data: Any) -> Costs:
    kind = data.dtype.type
    if data.size == 0:
        return Costs(indptr, indices, data, kind(0), kind(0))
    return Costs(indptr, indices, data, *extremes(data))
