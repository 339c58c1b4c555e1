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

from matchwood import answers
from matchwood.engines.ranks.agreement import raise_first, same, together
from matchwood.engines.ranks.vectors import first_of, own_part
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

    together(G.comm, judge, named=False)


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
    local, owned = own_part(G, caller, "mate", getattr(answer, "mate", answer)), (G.grid.owned,)
    mate = together(
        G.comm, lambda: answers.integers(caller, "matching", "mate", local, owned, "cpu")
    )
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


def _view(G: Any, weighted: bool, caller: str) -> Any:
    if weighted:
        return G.undirected_weights(caller)
    view = G.undirected_pattern()
    return view._replace(data=np.ones(view.nnz))


def _refuse(G: Any, wrong: Array, text: Any) -> None:
    """Raise on all ranks for the smallest vertex that is wrong."""
    at = first_of(wrong, G.ids)
    raise_first(G.comm, None if at is None else CheckFailed(f"matching: {text(at[1])}"), at)
