"""Where a search of several ranks starts, and whether its answer is right, without gathering.

The four rules of the check on one machine.  Levels go to the rows and the columns of the blocks, so
each arc is looked at where it is kept.  The smallest vertex of the level before that leads to v is
found in each block and folded to the owner of v: it must be the parent.  What one rank finds wrong,
all raise.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import answers, engines
from matchwood.engines.ranks.agreement import raise_first, same, together
from matchwood.engines.ranks.exchanges.routing import ask
from matchwood.engines.ranks.vectors import DistributedVector, first_of, layout_of, own_integers
from matchwood.errors import CheckFailed
from matchwood.gate.graph import View
from matchwood.traversal.breadth_first import distinct_sources, levels

# What the ranks must agree on, and which sources are own


def agree(G: Any, caller: str, sources: Any, depth_limit: Any, directed: Any) -> None:
    """Raise on all ranks unless they ask for the same search."""
    spoken = "a DistributedVector" if isinstance(sources, DistributedVector) else sources
    same(G.comm, caller, sources=spoken, depth_limit=depth_limit, directed=directed)


def starting_places(G: Any, caller: str, sources: Any) -> Any:
    """The places of own sources, ascending; `sources` as `bfs` takes them."""
    if isinstance(sources, DistributedVector):
        marks = together(G.comm, lambda: _marks(G, caller, sources))
        return np.flatnonzero(engines.moved(marks, "cpu"))
    listed = distinct_sources(sources, G.n, caller)
    inside = listed if G.order is None else G.order.inside(listed)
    return np.sort(G.grid.places(inside)[G.grid.owner(inside) == G.grid.rank])


def _marks(G: Any, caller: str, sources: Any) -> Any:
    mine, theirs = layout_of(G), layout_of(sources)
    if mine != theirs:
        raise ValueError(f"{caller}: sources must be spread over {mine}, got {theirs}")
    if sources.dtype != np.bool_ or sources.local.shape != (G.grid.owned,):
        raise TypeError(
            f"{caller}: sources must hold a truth value for each of {G.grid.owned} own vertices, "
            f"got {sources.dtype} of shape {sources.local.shape}"
        )
    return sources.local


# The answer


Array = np.ndarray[Any, Any]


def check_search(
    G: Any, sources: Any, result: Any, unpacked: Any, depth_limit: Any, directed: bool
) -> None:
    """See matchwood.check.check_bfs; `unpacked(result)` is (level, parent)."""
    caller = "check_bfs"
    agree(G, caller, sources, depth_limit, directed)
    limit = levels(caller, depth_limit, G.n)
    start = np.zeros(G.grid.owned, bool)
    start[starting_places(G, caller, sources)] = True

    def given() -> tuple[Array, Array, int | None]:
        parts = zip(("level", "parent"), unpacked(result), strict=True)
        level, parent = (own_integers(G, caller, "bfs", *part) for part in parts)
        has_rounds = hasattr(result, "rounds")
        rounds = answers.whole(caller, "rounds", result.rounds) if has_rounds else None
        return level, parent, rounds

    level, parent, rounds = together(G.comm, given)
    _check_ends(G, level, parent, start, limit)
    best = _check_arcs(G, level, limit, directed)
    _check_parents(G, level, parent, best)
    last = int(G.comm.allreduce(np.array([level.max(initial=0)]), "max")[0])
    wrong = rounds is not None and rounds != last
    error = CheckFailed(f"bfs: rounds is {rounds}, but the largest level is {last}")
    raise_first(G.comm, error if wrong else None)


def _raise(G: Any, wrong: Array, text: Any) -> None:
    """Raise on all ranks what `text(vertex, place)` says of the smallest vertex that is wrong."""
    at = first_of(wrong, G.ids)
    raise_first(G.comm, None if at is None else CheckFailed(f"bfs: {text(*at)}"), at)


def _check_ends(G: Any, level: Array, parent: Array, start: Array, limit: int) -> None:
    def zero(v: int, k: int) -> str:
        what = "is a source, not of level 0" if start[k] else "has level 0 but is no source"
        return f"vertex {v} {what}"

    _raise(G, (level == 0) != start, zero)
    _raise(G, start & (parent != G.ids), lambda v, k: f"source {v} is not its own parent")
    lost = (level == -1) & (parent == -1)
    outside = (level < 0) | (level > limit) | (parent < 0) | (parent >= G.n)
    _raise(
        G, ~lost & outside, lambda v, k: f"vertex {v} has level {level[k]} and parent {parent[k]}"
    )


def _check_arcs(G: Any, level: Array, limit: int, directed: bool) -> Array:
    """Raise where an arc skips a level.  Returns the least possible parent of own vertices, or n.

    A row holds the arcs into its vertex, from the columns.
    """
    grid, names = G.grid, G.original_local
    there = G.exchange.expand_rows(level)
    here = np.empty(grid.n_local, np.int64)
    here[grid.columns_to_local] = G.exchange.expand(level)
    best = np.full(grid.n_rows, grid.n, np.int64)
    view = G.transposed_pattern() if directed else G.undirected_pattern()
    block = View(*(engines.moved(array, "cpu") for array in view[:2]))
    error, key = None, None
    for _, v, u in answers.arcs(block):
        one, other = here[u], there[v]
        wrong = np.flatnonzero((one >= 0) & (one < limit) & ((other < 0) | (other > one + 1)))
        if wrong.size:
            ends = np.stack([names[u[wrong]], names[v[wrong]]], 1)
            k = int(np.lexsort((ends[:, 1], ends[:, 0]))[0])
            i, j = (int(end) for end in ends[k])
            if key is None or (i, j) < key:
                key, at = (i, j), wrong[k]
                error = CheckFailed(
                    f"bfs: arc {i} -> {j} leads from level {one[at]} to level {other[at]}"
                )
        before = (other > 0) & (one == other - 1)
        np.minimum.at(best, v[before], names[u[before]])
    raise_first(G.comm, error, key)
    return G.exchange.fold(best, "min")  # type: ignore[no-any-return]


def _check_parents(G: Any, level: Array, parent: Array, best: Array) -> None:
    inner = level > 0
    inside = parent[inner] if G.order is None else G.order.inside(parent[inner])
    above = np.full(level.size, -1, np.int64)
    above[inner] = ask(G.exchange, inside, level)
    _raise(
        G, inner & (above != level - 1),
        lambda v, k: f"parent {parent[k]} of {v} is not of the level before",
    )  # fmt: skip
    _raise(
        G, inner & (best < parent),
        lambda v, k: f"parent of {v} is {parent[k]}, but {best[k]} is smaller and as near",
    )  # fmt: skip
    _raise(
        G, inner & (best > parent),
        lambda v, k: f"parent of {v} is {parent[k]}, but there is no arc {parent[k]} -> {v}",
    )  # fmt: skip
