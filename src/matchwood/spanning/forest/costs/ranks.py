"""Weights of a graph that is spread over ranks, as spanning forests read them; see __init__.py.

The same rules for a block: what is true of the whole matrix decides, and all ranks agree on it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines import moved
from matchwood.engines.ranks.agreement import any_of, raise_first
from matchwood.gate.views import View, ones
from matchwood.spanning.forest.costs import Costs

HALF = np.int64(0xFFFF_FFFF)  # the lower half of an integer of 64 bits


def undirected_costs(G: Any, caller: str, maximum: bool) -> Costs:
    """The block of the weights of `G`, kept in it.  All ranks call this.

    That of a graph whose views lie on GPUs is made on the CPU, as these are.
    """
    if G.engine == "gpu":
        there = undirected_costs(G.on("cpu"), caller, maximum)

        def make() -> Costs:
            indptr, indices, data = (moved(each, "gpu") for each in there[:3])
            return Costs(indptr, indices, data, there.least, there.most)

        return G.keep(f"costs {maximum}", make)
    if not G.weighted:
        pattern = G.undirected_pattern()
        return G.keep("costs", lambda: _block(pattern._replace(data=ones(pattern.indices))))
    side = ("_heavy" if maximum else "_light") if G.has_parallel_edges else ""
    view = G.keep(f"arcs{side}", lambda: _arcs(G, caller, maximum))
    symmetric = (
        G.has_symmetric_pattern
        and G.keep(f"costs_symmetric{side}", lambda: (_symmetric(G, view),))[0]
    )
    if symmetric:
        return G.keep(f"costs{side}", lambda: _block(_without_loops(G, view)))
    side = "_heavy" if maximum else "_light"
    rule = "greatest" if maximum else "least"
    return G.keep(f"costs{side}", lambda: _block(G.places.union(view, rule)))


def _block(view: View) -> Costs:
    """The range is that of the block."""
    data, kind = view.data, view.data.dtype.type
    least, most = (data.min(), data.max()) if data.size else (0, 0)
    return Costs(view.indptr, view.indices, data, kind(least), kind(most))


def _without_loops(G: Any, view: View) -> View:
    found: View = G.places.without_loops(view) if G.loops else view
    return found


def _arcs(G: Any, caller: str, maximum: bool) -> View:
    """The directed values: finite floats, or int64; of parallel edges the one that counts."""
    rule = ("max" if maximum else "min") if G.has_parallel_edges else None
    if np.dtype(G.given_values(caller).dtype).kind in "iu":
        return _exact_integers(G, caller, rule or G.rule("sum"))
    if rule is not None:
        found: View = G.joined(rule, caller)
        return found
    finite: View = G.finite_weights(caller)
    return finite


def _symmetric(G: Any, view: View) -> bool:
    """Are the values symmetric, where the pattern is?  Halves of 32 bits are exact in float64."""
    if view.data.dtype.kind == "f":
        return bool(G.places.values(view).symmetric)
    halves = ((view.data >> 32).astype(np.float64), (view.data & HALF).astype(np.float64))
    return all(bool(G.places.values(view._replace(data=half)).symmetric) for half in halves)


def _exact_integers(G: Any, caller: str, rule: str) -> View:
    """The directed values in int64, duplicates joined by `rule`."""
    data = G.given_values(caller)
    error = None
    if data.dtype.kind == "u" and data.size and int(data.max()) > np.iinfo(np.int64).max:
        text = f"integer weights must fit int64, got {int(data.max())}; scale them"
        error = ValueError(f"{caller}: {text}")
    raise_first(G.comm, error, 0 if error is None else -int(data.max()))
    data = np.ascontiguousarray(data, dtype=np.int64)
    if G.ascending:
        found: View = G.entries()._replace(data=data)
        return found
    if rule == "sum":
        _refuse_overflow(G, data, caller)
    joined: View = G.canonical(data, rule)
    return joined


def _refuse_overflow(G: Any, data: Any, caller: str) -> None:
    """Sums of duplicates must fit int64.  Halves of 32 bits are added up apart, in float64."""
    largest = max(-int(data.min()), int(data.max())) if data.size else 0
    longest = int(np.diff(G.entries().indptr).max(initial=0))
    if not any_of(G.comm, largest * longest > np.iinfo(np.int64).max):
        return
    high = G.canonical((data >> 32).astype(np.float64)).data
    low = G.canonical((data & HALF).astype(np.float64)).data
    high = high + np.floor(low / 2.0**32)
    wrong = np.flatnonzero((high < -(2.0**31)) | (high >= 2.0**31))
    error, key = None, None
    if wrong.size:
        view = G.directed_pattern()
        rows = G.original_local[np.searchsorted(view.indptr, wrong, "right") - 1]
        at = wrong[np.lexsort((wrong, rows))[0]]
        key = (int(rows.min()), int(G.original_local[view.indices[at]]))
        error = ValueError(
            f"{caller}: sums of integer duplicates must fit int64, got overflow at row {key[0]}, "
            f"column {key[1]}; scale them"
        )
    raise_first(G.comm, error, key)
