"""Weights as spanning forests read them: signed, zeros included, integers exact.

The gate's `undirected_weights` takes magnitudes and leaves zeros out.  Here every stored entry off
the diagonal is an edge and keeps its value; where (i, j) and (j, i) hold different values the
lighter one counts (the heavier one for a maximum forest).  Duplicates are added up before, as
everywhere.  Made once for a `Graph`; where the matrix is symmetric it is the input's own memory.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood import csr, engines
from matchwood.primitives.assemble import trusted_canonical as canonical
from matchwood.primitives.inspect import values
from matchwood.primitives.transpose import transpose


class Costs(NamedTuple):
    """Symmetric CSR without diagonal, rows ascending, and the range of its values."""

    indptr: Any
    indices: Any
    data: Any  # float32, float64 or int64
    least: Any  # a bound from below, and
    most: Any  # from above; of the type of `data`

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
    if G._data is None:
        return G._keep("costs", lambda: _ones(G.undirected_pattern()))
    integers = np.dtype(G._data.dtype).kind in "iu"
    view = _exact_integers(G, caller) if integers else G.directed_weights(caller)
    if not integers:
        G._checked_values(view, caller)  # finite
    symmetric = (
        G.has_symmetric_pattern
        and G._keep(
            "costs_symmetric",
            lambda: (_symmetric_integers(view) if integers else G._values().symmetric,),
        )[0]
    )
    if symmetric and not G.loops:
        return G._keep("costs", lambda: _with_range(*view))
    key = "costs" if symmetric else ("costs_heavy" if maximum else "costs_light")

    def make() -> Costs:
        engine = engines.load(__package__, f"{engines.location(view.indices)}_costs")
        mirror = view if symmetric else transpose(*view, G.n)
        return _with_range(*engine.merge(view, mirror, maximum))

    return G._keep(key, make)


def _ones(view: Any) -> Costs:
    xp = engines.cupy() if engines.location(view.indices) == "gpu" else np
    one = np.float32(1)
    return Costs(view.indptr, view.indices, xp.ones(view.nnz, np.float32), one, one)


def _with_range(indptr: Any, indices: Any, data: Any) -> Costs:
    kind = data.dtype.type
    if data.size == 0:
        return Costs(indptr, indices, data, kind(0), kind(0))
    return Costs(indptr, indices, data, kind(data.min().item()), kind(data.max().item()))


def _exact_integers(G: csr.Graph, caller: str) -> csr.View:
    """`Graph.directed_weights` in int64."""

    def make() -> csr.View:
        data = G._data
        if data.dtype == np.uint64 and data.size and int(data.max()) > np.iinfo(np.int64).max:
            raise ValueError(
                f"{caller}: integer weights must fit int64, got {int(data.max())}; scale them"
            )
        xp = engines.cupy() if G.engine == "gpu" else np
        data = xp.ascontiguousarray(data, dtype=np.int64)
        if G._structure.ascending:
            return csr.View(G._indptr, G._indices, data)
        if G.engine == "cpu":
            return csr.View(*canonical(G._indptr, G._indices, data, G.n))
        from matchwood.spanning.forest import gpu_costs

        return csr.View(*gpu_costs.add_duplicates(G._indptr, G._indices, data, G.n))

    return G._keep("directed_integers", make)


def _symmetric_integers(view: csr.View) -> bool:
    """Are the values symmetric, where the pattern is?  Halves of 32 bits are exact in float64."""
    high = (view.data >> 32).astype(np.float64)
    if not values(view.indptr, view.indices, high).symmetric:
        return False
    low = (view.data & 0xFFFF_FFFF).astype(np.float64)
    return values(view.indptr, view.indices, low).symmetric
