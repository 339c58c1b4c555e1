"""Are these labels settled, on a grid of ranks?  propagation/check.py has the meaning.

Lists of labels go to the owners of vertices as in __init__.py, and smallest vertices of labels by
packets: nothing is gathered.  What one rank finds wrong, all raise; of several wrong vertices the
smallest is named.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import answers, arguments, engines
from matchwood.communities.answers import counted, stated
from matchwood.communities.propagation.ranks import BlockLevel, Labels, block_level, modularity_of
from matchwood.components.answers import NUMBERINGS
from matchwood.engines.ranks.agreement import raise_first, same, together
from matchwood.engines.ranks.exchanges import Routed
from matchwood.engines.ranks.vectors import own_part
from matchwood.errors import CheckFailed
from matchwood.primitives.hashing import mix64

PROBLEM = "label propagation"
PIECE = 1 << 18  # vertices of a row group whose lists are sent at a time


def check(G: Any, answer: Any, caller: str, settled: bool, numbering: str) -> None:
    """See `check_label_propagation`; all ranks call it, each with its own answer."""
    arguments.one_of(caller, "numbering", numbering, NUMBERINGS)
    same(G.comm, caller, settled=settled, numbering=numbering)
    level = block_level(G, caller)
    count, vector = _unpacked(answer)
    own = own_part(G, caller, "labels", vector)
    given = together(
        G.comm, lambda: answers.integers(caller, PROBLEM, "labels", own, (G.grid.owned,), G.engine)
    )
    labels = given if numbering == "exact" else smallest_vertices(G, given)
    found = _check_numbers(G, labels) if numbering == "exact" else _count_firsts(G, labels)
    together(G.comm, lambda: _check_counters(caller, answer, count, found))
    if G.n == 0:
        return
    state = _state_of(G, level, labels)
    if settled:
        _check_heaviest(state, given, numbering)
    if hasattr(answer, "modularity") and not callable(answer.modularity):
        right = modularity_of(state)
        together(G.comm, lambda: stated(PROBLEM, right, answer.modularity))


def _unpacked(answer: Any) -> tuple[Any, Any]:
    if hasattr(answer, "labels"):
        return getattr(answer, "count", None), answer.labels
    if isinstance(answer, tuple) and len(answer) == 2:
        return answer
    return None, answer


def _check_counters(caller: str, answer: Any, count: Any, found: int) -> None:
    if count is not None and answers.whole(caller, "count", count) != found:
        raise CheckFailed(f"{PROBLEM}: count is {count}, but there are {found} labels")
    counted(caller, PROBLEM, answer)


def _raise_at(G: Any, wrong: Any, ids: Any, text: Any) -> None:
    """Raise text(k) on all ranks, for the place k of the smallest of the ids that are wrong."""
    xp = engines.xp(wrong)
    places = xp.flatnonzero(wrong)
    if not places.shape[0]:
        raise_first(G.comm, None)
        return
    k = int(places[ids[places].argmin()])
    raise_first(G.comm, CheckFailed(f"{PROBLEM}: {text(k)}"), int(ids[k]))


# Numbers of labels


def _check_numbers(G: Any, labels: Any) -> int:
    """How many labels there are, if they are numbered by their smallest vertices without gaps.

    The owner of vertex k keeps the smallest vertex of label k, and asks the owner of k - 1 for its.
    """
    xp, ids = engines.xp(labels), xp_ids(G, labels)
    _raise_at(
        G, (labels < 0) | (labels >= G.n), ids,
        lambda k: f"labels must be 0, 1, ... without gaps, got {int(labels[k])} at vertex {ids[k]}",
    )  # fmt: skip
    largest = np.array([int(labels.max()) if labels.size else -1])
    count = int(G.comm.allreduce(largest, "max")[0]) + 1
    places, vertices = G.exchange.packets(labels, ids)
    first = xp.full(G.grid.owned, G.n, np.int64)
    least_at(first, places, vertices)
    _raise_at(
        G, (ids < count) & (first == G.n), ids,
        lambda k: f"labels must be 0..{count - 1} without gaps, but no vertex has {ids[k]}",
    )  # fmt: skip
    before = first.copy()
    later = (ids > 0) & (ids < count)
    before[later] = G.exchange.ask(ids[later] - 1, first)
    _raise_at(
        G, later & (first < before), ids,
        lambda k: f"label {ids[k]} (smallest vertex {first[k]}) must come before label "
        f"{ids[k] - 1} (smallest vertex {before[k]})",
    )  # fmt: skip
    return count


def xp_ids(G: Any, like: Any) -> Any:
    """The own vertices as the user numbers them, where `like` lies."""
    return engines.xp(like).asarray(G.ids)


def least_at(found: Any, places: Any, values: Any) -> None:
    """found[place] = the least of itself and of the values for it."""
    order = engines.xp(values).argsort(-values)  # of several values for one place the last stays
    places, values = places[order], values[order]
    smaller = values < found[places]
    if engines.location(found) == "gpu":
        engines.cupy().minimum.at(found, places, values)
    else:
        found[places[smaller]] = values[smaller]


def _count_firsts(G: Any, labels: Any) -> int:
    """How many labels there are, where each is the smallest vertex that has it."""
    mine = int((labels == xp_ids(G, labels)).sum())
    return int(G.comm.allreduce(np.array([mine]), "sum")[0])


def smallest_vertices(G: Any, labels: Any) -> Any:
    """For each own vertex the smallest vertex with its label; labels are any integers.

    A hash of the label names a rank, which sends its smallest vertex to all ranks that have it.
    """
    xp, ids = engines.xp(labels), xp_ids(G, labels)
    distinct, which = xp.unique(labels, return_inverse=True)
    first = xp.full(distinct.shape[0], G.n, np.int64)
    least_at(first, which.reshape(-1), ids)
    to = (mix64(distinct.view(np.uint64)) % np.uint64(G.comm.size)).astype(np.int64)
    letters = Routed(G.comm, to, G.threads)
    keys, vertices = letters.send(distinct, first)
    known, place = xp.unique(keys, return_inverse=True)
    best = xp.full(known.shape[0], G.n, np.int64)
    least_at(best, place.reshape(-1), vertices)
    (answer,) = letters.answer(best[place.reshape(-1)])
    return answer[which.reshape(-1)]


# Weights of labels


def _state_of(G: Any, level: BlockLevel, labels: Any) -> Labels:
    """The labels of an answer as a rank holds them."""
    state = Labels(G, level, G.threads)
    state.own = labels.astype(state.kind)
    state.labels[state.to_local] = state.exchange.expand(state.own)
    return state


def _check_heaviest(state: Labels, given: Any, numbering: str) -> None:
    """Raise unless no vertex has a heavier label around it than its own."""
    G, xp = state.G, state.xp
    inside = xp.zeros(state.grid.owned, np.int64)
    most = xp.zeros((2, state.grid.owned), np.int64)
    for begin, end in answers.pieces(state.grid.n_rows, PIECE):
        places, lists = state.lists(state.positions[begin:end])
        inside[places], most[:, places] = state.module.weighed(
            lists, state.own[places], state.threads
        )
    ids = xp_ids(G, given)
    named = "label" if numbering == "exact" else "the label of vertex"
    _raise_at(
        G, most[0] > inside, ids,
        lambda k: f"vertex {ids[k]} has label {given[k]} of weight {inside[k]}, but {named} "
        f"{most[1, k]} around it weighs {most[0, k]}",
    )  # fmt: skip
