"""Is this the greedy matching of a graph distributed over ranks?  No rank sees all of it.

The same tests in the same order as matching/check.py, with the same messages: of several faults
every rank names that of the smallest vertex.  Owners check their mates, and ask the owners of these
for theirs.  Then mates and the weights of their edges are sent to the ranks that have a vertex as
row or as column, which look through their blocks.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from matchwood import answers, engines
from matchwood.engines.ranks.agreement import raise_first, same
from matchwood.errors import CheckFailed
from matchwood.matching.cpu import Ties
from matchwood.matching.methods import check_bound, origin_of
from matchwood.matching.ranks.cpu import edge_weights, first_undominated
from matchwood.primitives.wide_sums import half_over_ranks

Array = np.ndarray[Any, Any]


class _Answer(NamedTuple):
    """What a rank knows of an answer that is a matching."""

    view: Any  # the block
    own: Array  # weights of the edges of own vertices, 0 for free ones
    mate: Array  # mates of own vertices
    row_mates: Array  # of the vertices of the row group


def check_matching(G: Any, answer: Any, weighted: bool, rounding: float) -> None:
    """See matching.check.check_matching; all ranks raise the same error."""
    caller, G = "check_matching", G.on("cpu")
    complete = hasattr(answer, "mate")
    same(G.comm, caller, weighted=weighted, answer_is_a_matching=complete)
    found = _matching(G, answer, weighted, caller)
    if not complete:
        return
    weight = half_over_ranks(G.comm, found.own)
    heaviest = float(found.view.data.max()) if found.view.nnz else 0.0
    heaviest = float(G.comm.allreduce(np.array([heaviest]), "max")[0])
    bound = vars(answer).get("bound", origin_of(answer).bound)

    def judge() -> None:
        said = answers.number(caller, "weight", answer.weight)
        if not math.isclose(said, weight, rel_tol=rounding):
            raise CheckFailed(f"matching: the edges weigh {weight}, not {answer.weight}")
        if bound is not None:
            check_bound(weight, heaviest, answers.number(caller, "bound", bound), rounding)

    _together(G.comm, judge)


def check_locally_dominant(G: Any, answer: Any, seed: int, ties: str) -> None:
    """See matching.check.check_locally_dominant; all ranks raise the same error."""
    caller, G = "check_locally_dominant", G.on("cpu")
    same(G.comm, caller, rng=seed, ties=ties)
    found = _matching(G, answer, True, caller)
    grid = G.grid
    own, mate = np.empty(grid.n_local), np.empty(grid.n_local, np.int64)
    columns = grid.columns_to_local
    mate[: grid.n_rows], own[: grid.n_rows] = found.row_mates, G.exchange.expand_rows(found.own)
    mate[columns], own[columns] = G.exchange.expand(found.mate), G.exchange.expand(found.own)
    rule = Ties(np.uint64(seed), ties == "hash")
    edge = first_undominated(found.view, G.original_local, mate, own, rule, G.threads)
    error = None
    if edge is not None:
        u, v, w = edge
        text = f"matching: edge ({u}, {v}) of weight {w} comes before those of its ends"
        error = CheckFailed(text)
    raise_first(G.comm, error, edge and edge[:2])


def _matching(G: Any, answer: Any, weighted: bool, caller: str) -> _Answer:
    """The mates and the weights of their edges; `CheckFailed` unless they are a matching of G."""
    mate = _together(G.comm, lambda: _mates(G, answer, caller))
    view = _view(G, weighted, caller)
    ids = G.ids
    _refuse(G, (mate < -1) | (mate >= G.n), lambda k: (
        f"mate[{ids[k]}] is {mate[k]}, no vertex of 0..{G.n - 1} and not -1"
    ))  # fmt: skip
    matched = np.flatnonzero(mate >= 0)
    theirs = np.full(mate.size, -1, np.int64)
    theirs[matched] = G.exchange.ask(mate[matched], mate)

    def not_mutual(k: int) -> str:
        if mate[k] == ids[k]:
            return f"mate[{ids[k]}] is {ids[k]} itself"
        return f"mate[{ids[k]}] is {mate[k]}, but mate[{mate[k]}] is {theirs[k]}"

    _refuse(G, (mate >= 0) & ((theirs != ids) | (mate == ids)), not_mutual)
    row_mates = G.exchange.expand_rows(mate)
    found = edge_weights(view, G.original_local, row_mates, G.threads)
    own = G.exchange.fold(found, "max")
    _refuse(G, (mate >= 0) & (own < 0), lambda k: (
        f"{ids[k]} and {mate[k]} are matched, but ({ids[k]}, {mate[k]}) is no edge"
    ))  # fmt: skip
    return _Answer(view, np.maximum(own, 0.0), mate, row_mates)


def _mates(G: Any, answer: Any, caller: str) -> Array:
    """The mates of own vertices, as int64: a vector of integers over the grid of G."""
    mate = getattr(answer, "mate", answer)
    if not (hasattr(mate, "local") and hasattr(mate, "grid")):
        got = type(mate).__name__
        raise TypeError(f"{caller}: mate must be a DistributedVector, as A is spread, got {got}")
    grid = mate.grid
    theirs = (grid.n, grid.name, grid.layout, mate.order is None)
    if theirs != (G.n, G.grid.name, G.grid.layout, G.order is None):
        raise ValueError(f"{caller}: mate must be spread over the ranks as A is, got {mate!r}")
    local = engines.moved(mate.local, "cpu")
    if getattr(local, "dtype", np.dtype(object)).kind not in "iu":
        got = getattr(local, "dtype", type(local).__name__)
        raise TypeError(f"{caller}: mate must hold integers, got {got}")
    if local.shape != (grid.owned,):
        raise CheckFailed(
            f"matching: mate must have {grid.owned} elements on rank {G.comm.rank}, "
            f"got shape {local.shape}"
        )
    if local.dtype == np.uint64:  # large ones would wrap around, even to -1
        local = np.minimum(local, np.uint64(np.iinfo(np.int64).max))
    return local.astype(np.int64)


def _view(G: Any, weighted: bool, caller: str) -> Any:
    if weighted:
        return G.undirected_weights(caller)
    view = G.undirected_pattern()
    return view._replace(data=np.ones(view.nnz))


def _refuse(G: Any, wrong: Array, text: Any) -> None:
    """Raise on all ranks for the smallest vertex that is wrong."""
    places = np.flatnonzero(wrong)
    if not places.size:
        raise_first(G.comm, None)
        return
    k = int(places[G.ids[places].argmin()])
    raise_first(G.comm, CheckFailed(f"matching: {text(k)}"), int(G.ids[k]))


def _together(comm: Any, work: Any) -> Any:
    """``work()``; if it fails on a rank, all ranks raise the error of the first that failed."""
    result, error = None, None
    try:
        result = work()
    except (CheckFailed, TypeError, ValueError) as wrong:
        error = wrong
    raise_first(comm, error)
    return result
