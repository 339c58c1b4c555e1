"""Are these the connected components?  Decided by all ranks, without gathering.

As on one machine: no edge joins two labels, and a search from the smallest vertex of each label
reaches all vertices.  The smallest vertex of a label is found by the rank that the label's number
chooses.  What one rank finds wrong, all raise.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import answers, engines
from matchwood.arguments import one_of
from matchwood.components.answers import NUMBERINGS
from matchwood.engines.ranks.agreement import raise_first, same, together
from matchwood.engines.ranks.exchanges import Routed
from matchwood.engines.ranks.exchanges.cpu import distinct, keep_least
from matchwood.engines.ranks.vectors import first_of, own_integers
from matchwood.errors import CheckFailed
from matchwood.gate.graph import View
from matchwood.primitives.number.ranks import number_labels
from matchwood.traversal.breadth_first import bfs

Array = np.ndarray[Any, Any]


def check_components(G: Any, answer: Any, numbering: str) -> None:
    """See matchwood.check.check_connected_components."""
    caller = "check_connected_components"
    same(G.comm, caller, numbering=numbering)
    one_of(caller, "numbering", numbering, NUMBERINGS)
    count, given = together(G.comm, lambda: _unpacked(G, caller, answer))
    least = _smallest_members(G, given)
    found, numbers = number_labels(G, least)
    _check_numbers(G, count, given, found, numbers if numbering == "exact" else None)
    _check_edges(G, given)
    reached = bfs(G, G.vector(least == G.ids), directed=False).level.local >= 0
    at = first_of(~reached, G.ids)
    error = None
    if at is not None:
        v, place = at
        error = CheckFailed(
            f"components: no path joins vertex {v} to vertex {least[place]}, "
            f"though both have label {given[place]}"
        )
    raise_first(G.comm, error, at)


def _unpacked(G: Any, caller: str, answer: Any) -> tuple[int | None, Array]:
    """Count or None, and the labels of own vertices."""
    count = None
    if hasattr(answer, "labels"):
        count, answer = getattr(answer, "count", None), answer.labels
    elif isinstance(answer, tuple):
        if len(answer) != 2:
            raise TypeError(
                f"{caller}: answer must be Components, (count, labels) or labels, "
                f"got a tuple of {len(answer)}"
            )
        count, answer = answer
    if count is not None:
        count = answers.whole(caller, "count", count)
    return count, own_integers(G, caller, "components", "labels", answer)


def _smallest_members(G: Any, labels: Array) -> Array:
    """For each own vertex the smallest vertex with the same label, as the user numbers them."""
    comm, ids = G.comm, G.ids
    firsts, back = distinct(labels)
    used, least = labels[firsts], ids[firsts].astype(np.int64)
    keep_least(least, back, ids)
    letters = Routed(comm, used % comm.size, G.threads)
    received, offers = letters.send(used, least)
    firsts, where = distinct(received)
    best = offers[firsts]
    keep_least(best, where, offers)
    (least,) = letters.answer(best[where])
    return least[back]


def _check_numbers(
    G: Any, count: int | None, given: Array, found: int, numbers: Array | None
) -> None:
    error: Exception | None = None
    at = None if numbers is None else first_of(given != numbers, G.ids)
    if at is not None and numbers is not None:
        v, place = at
        error = CheckFailed(
            "components: labels must be 0, 1, ... in the order of their smallest vertices, "
            f"so vertex {v} must have {numbers[place]}, got {given[place]}"
        )
    raise_first(G.comm, error, at)
    error = None
    if count is not None and count != found:
        error = CheckFailed(f"components: count is {count}, but there are {found} labels")
    raise_first(G.comm, error)


def _check_edges(G: Any, given: Array) -> None:
    """Raise unless the ends of every entry have the same label."""
    names, grid = G.original_local, G.grid
    labels = np.empty(grid.n_local, np.int64)
    labels[grid.columns_to_local] = G.exchange.expand(given)
    labels[: grid.n_rows] = G.exchange.expand_rows(given)
    error, key = None, None
    view = View(*(engines.moved(array, "cpu") for array in G.directed_pattern()[:2]))
    for _, u, v in answers.arcs(view):
        wrong = np.flatnonzero(labels[u] != labels[v])
        if wrong.size:
            ends = np.sort(np.stack([names[u[wrong]], names[v[wrong]]], 1), 1)
            k = int(np.lexsort((ends[:, 1], ends[:, 0]))[0])
            i, j = (int(end) for end in ends[k])
            if key is None or (i, j) < key:
                here = {int(names[x]): int(labels[x]) for x in (u[wrong[k]], v[wrong[k]])}
                key = (i, j)
                error = CheckFailed(
                    f"components: edge ({i}, {j}) joins labels {here[i]} and {here[j]}"
                )
    raise_first(G.comm, error, key)
