"""Roots of a forest whose parents are distributed over ranks: pointer jumping by questions.

Every vertex that does not know its root asks the owner of the vertex that it points to.  The answer
is the root, if that vertex knows it, or else the vertex that it points to itself.  So a way to the
root of d steps needs log2(d) rounds.  A rank asks for each vertex once a round.

A known root is stored as its complement, which is negative.  Vertices are numbered as the grid
numbers them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood import answers, arguments, engines
from matchwood.engines.ranks.agreement import raise_first, together
from matchwood.engines.ranks.exchanges.cpu import distinct
from matchwood.engines.ranks.exchanges.routing import ask
from matchwood.engines.ranks.vectors import DistributedVector, first_of, own_integers
from matchwood.errors import CheckFailed, EngineUnavailable
from matchwood.traversal.pointer_jumping import has_cycle

Array = np.ndarray[Any, Any]


class Route(NamedTuple):
    """What questions need of an exchange."""

    comm: Any
    grid: Any
    threads: int | None


def roots(
    parent: DistributedVector, engine: str | None = None, threads: int | None = None
) -> DistributedVector:
    """See matchwood.traversal.pointer_jumping.forest_roots."""
    caller = "forest_roots"

    def check() -> None:
        engines.check_threads(threads)
        if engine not in (None, engines.location(parent.local)):
            raise EngineUnavailable(
                f"{caller}: engine must be None where parent is a DistributedVector, "
                f"got {arguments.shown(engine)}"
            )

    together(parent.comm, check, named=False)
    given = together(parent.comm, lambda: _own_parents(caller, parent))
    kind = np.int32 if parent.dtype == np.int32 else np.int64
    found = _climbed(caller, parent, given, threads)
    users = found if parent.order is None else parent.order.user(found)
    local = engines.moved(users.astype(kind), engines.location(parent.local))
    return DistributedVector(parent.grid, parent.comm, local, parent.order)


def check(parent: DistributedVector, root: Any) -> None:
    """See matchwood.check.check_forest_roots."""
    caller, comm, ids = "check_forest_roots", parent.comm, parent.ids
    given, found = together(
        comm,
        lambda: (
            _own_parents(caller, parent),
            own_integers(parent, caller, "forest roots", "root", root),
        ),
    )
    _climbed(caller, parent, given, None)  # raises where there is a cycle
    tops = given == ids
    at = first_of(tops & (found != ids), ids)
    error = None
    if at is not None:
        v, place = at
        error = CheckFailed(
            f"forest roots: root of {v} is {found[place]}, but {v} is a root itself"
        )
    raise_first(comm, error, at)
    above = ask(Route(comm, parent.grid, comm.threads), _inside(parent, given), found)
    at = first_of(~tops & (found != above), ids)
    error = None
    if at is not None:
        v, place = at
        error = CheckFailed(
            f"forest roots: root of {v} is {found[place]}, "
            f"but that of its parent {given[place]} is {above[place]}"
        )
    raise_first(comm, error, at)


def _own_parents(caller: str, parent: DistributedVector) -> Array:
    """The parents of own vertices as the user numbers them; a root is its own."""
    local, n = engines.moved(parent.local, "cpu"), parent.n
    answers.of_kind(caller, "iu", parent=local)
    if local.shape != (parent.grid.owned,):
        raise ValueError(
            f"{caller}: parent must have {parent.grid.owned} own values, got shape {local.shape}"
        )
    outside = (local < -1) | (local >= n) if local.dtype.kind == "i" else local >= n
    at = first_of(outside, parent.ids)
    if at is not None:
        v, place = at
        raise ValueError(f"{caller}: parent must lie within -1..{n - 1}, got {local[place]} at {v}")
    given = local.astype(np.int64)
    return np.where(given < 0, parent.ids, given)


def _inside(parent: DistributedVector, ids: Array) -> Array:
    return ids if parent.order is None else parent.order.inside(ids)


def _climbed(caller: str, parent: DistributedVector, given: Array, threads: int | None) -> Array:
    """The root of each own vertex, as the grid numbers it; ValueError where there is a cycle."""
    comm, grid = parent.comm, parent.grid
    route = Route(comm, grid, comm.threads if threads is None else threads)
    mine = grid.original_owned()
    up = _inside(parent, given)
    up = np.where(up == mine, ~up, up)
    # after k rounds a pointer is 2^k steps further up, or the root is known; no way has n steps
    for number in range(int(grid.n).bit_length() + 1):
        active = np.flatnonzero(up >= 0)
        total = int(comm.allreduce(np.array([active.size], np.int64), "sum")[0])
        comm.report(number + 1, total)
        if total == 0:
            return ~up
        asked = up[active]
        firsts, back = distinct(asked)
        up[active] = ask(route, asked[firsts], up)[back]
    lost = np.where(up >= 0, parent.ids, grid.n).min(initial=grid.n)
    smallest = int(comm.allreduce(np.array([lost], np.int64), "min")[0])
    if smallest < grid.n:
        raise has_cycle(caller, smallest)
    return ~up
