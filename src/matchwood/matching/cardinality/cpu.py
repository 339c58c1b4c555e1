"""Largest matchings: Karp and Sipser's start, Hopcroft and Karp's phases, Edmonds' search.

One member does the work: paths of a phase must not meet, and to find them in one order, whatever
the team, is to find them one after the other.  Vertices are unsigned here; all ones is "nobody".

    start      every vertex takes its first free neighbour.  Where that leaves many: a vertex
               with one free neighbour takes it; else the next free vertex takes the one with the
               fewest free neighbours
    phase      (bipartite) distances from all free vertices of side 0, along paths that alternate;
               then paths along growing distances, each turned round when it is found
    search     (any graph) a tree of such paths from one free vertex; an odd cycle is contracted

Phases.  Hopcroft and Karp end the distances where the first free vertex of side 1 is reached.  Here
they go on to the end, as in Dinic's flows.  A path then leads to any free vertex, one level after
the other; no later path is shorter, and those of the least length are used up, so the bound on the
number of phases holds.  A grid of 400 x 400 with holes took 10 phases instead of 80, and a sixth of
the time.

Encoding of a search.  OUTER vertices are reached by a path of even length, INNER ones by an odd
one.  `before` of an inner vertex is the outer one that it was reached from.  In a contracted cycle
it leads along the cycle, in the direction that a path through it needs.  `base` is a union-find of
the contracted cycles.  A tree without a path out of it keeps its labels for good: no later path can
lead through it.  So at the end the inner vertices are those whose removal leaves too many odd
components (Tutte and Berge), which is what check.py proves a matching with.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.teams import Team, crew, device, interrupted, kernel, workspace

Array = np.ndarray[Any, Any]
UNSEEN, OUTER, INNER = 0, 1, 2
ODD_CYCLE = 2  # in `sides`, of the first vertex
MANY = 16  # one vertex of so many: where first fit leaves more free, a better start pays
NO_LIMIT = 1 << 62  # entries
CHEAP = 4  # times all entries: searches that read more are left to phases


class Rows(NamedTuple):
    indptr: Array
    indices: Array


class Search(NamedTuple):
    """Scratch of Edmonds' search."""

    label: Array
    before: Array
    base: Array
    queue: Array
    reached: Array  # vertices with a label in this search
    stamp: Array  # marks of `_meeting`
    spent: Array  # marks used; entries read, and how many may be


@device
def _begin(rows: Rows, v: Any) -> Any:
    return np.uint64(rows.indptr[v])


@device
def _end(rows: Rows, v: Any) -> Any:
    return np.uint64(rows.indptr[v + rows.indptr.dtype.type(1)])


@kernel
def _colour(team: Team, rows: Rows, side: Array, queue: Array) -> None:
    """side[0] = ODD_CYCLE where there is one.  Caller: side all 255."""
    n, kind = side.size, rows.indices.dtype.type
    if team.rank > 0:
        return
    for start in range(np.uint64(n)):
        if side[start] != 255:
            continue
        side[start] = 0
        queue[0] = kind(start)
        head, tail = np.uint64(0), np.uint64(1)
        while head < tail:
            if interrupted(team, head):
                return
            u = queue[head]
            head += np.uint64(1)
            other = np.uint8(1 - side[u])
            for k in range(_begin(rows, u), _end(rows, u)):
                v = rows.indices[k]
                if side[v] == 255:
                    side[v] = other
                    queue[tail] = v
                    tail += np.uint64(1)
                elif side[v] != other:
                    side[0] = ODD_CYCLE
                    return


@device
def _retire(
    rows: Rows, v: Any, mate: Array, degree: Array, stack: Array, size: Any
) -> Any:  # fmt: skip
    """v is matched: its neighbours have a free neighbour less.  Returns the size of `stack`."""
    nobody = ~mate.dtype.type(0)
    for k in range(_begin(rows, v), _end(rows, v)):
        u = rows.indices[k]
        degree[u] -= degree.dtype.type(1)
        if degree[u] == 1 and mate[u] == nobody:
            stack[size] = u
            size += np.uint64(1)
    return size


@device
def _fewest(rows: Rows, v: Any, mate: Array, degree: Array) -> Any:
    """The free neighbour of v with the fewest free neighbours; v where there is none."""
    nobody = ~mate.dtype.type(0)
    best = v
    for k in range(_begin(rows, v), _end(rows, v)):
        u = rows.indices[k]
        if mate[u] == nobody and (best == v or degree[u] < degree[best]):
            best = u
            if degree[u] == 1:
                break
    return best


@device
def _first_fit(team: Team, rows: Rows, mate: Array) -> int:
    """Every vertex takes its first free neighbour; how many are left without a mate."""
    kind = mate.dtype.type
    nobody = ~kind(0)
    left = 0
    for v in range(np.uint64(mate.size)):
        if interrupted(team, v):
            return 0
        if mate[v] != nobody:
            continue
        left += 1
        for k in range(_begin(rows, v), _end(rows, v)):
            u = rows.indices[k]
            if mate[u] == nobody:
                mate[u], mate[v] = kind(v), u
                left -= 1 + (u < v)  # a smaller one was counted as left before
                break
    return left


@kernel
def _start(team: Team, rows: Rows, mate: Array, degree: Array, stack: Array) -> None:
    """First fit, or where that leaves many, Karp and Sipser's rule.  Caller: mate all ones."""
    n, kind = mate.size, mate.dtype.type
    nobody = ~kind(0)
    if team.rank > 0 or _first_fit(team, rows, mate) * MANY <= n:
        return
    for v in range(np.uint64(n)):
        mate[v] = nobody
        degree[v] = rows.indptr[v + np.uint64(1)] - rows.indptr[v]
    size = np.uint64(0)
    for v in range(np.uint64(n)):
        if degree[v] == 1:
            stack[size] = kind(v)
            size += np.uint64(1)
    following = np.uint64(0)
    while True:
        if interrupted(team, following):
            return
        if size > 0:
            size -= np.uint64(1)
            v = stack[size]
        elif following < np.uint64(n):
            v = kind(following)
            following += np.uint64(1)
        else:
            return
        if mate[v] != nobody:
            continue
        u = _fewest(rows, v, mate, degree)
        if u != v:
            mate[u], mate[v] = v, u
            size = _retire(rows, u, mate, degree, stack, size)
            size = _retire(rows, v, mate, degree, stack, size)


@device
def _distances(team: Team, rows: Rows, side: Array, mate: Array, level: Array, queue: Array) -> Any:
    """level[u]: half the length of a shortest path from a free vertex to u, both of side 0.

    Returns whether a free vertex of side 1 is reached.
    """
    kind = mate.dtype.type
    nobody = ~kind(0)
    head, tail = np.uint64(0), np.uint64(0)
    for u in range(np.uint64(mate.size)):
        level[u] = nobody
        if side[u] == 0 and mate[u] == nobody:
            level[u] = kind(0)
            queue[tail] = kind(u)
            tail += np.uint64(1)
    found = False
    while head < tail:
        if interrupted(team, head):
            return False
        u = queue[head]
        head += np.uint64(1)
        for k in range(_begin(rows, u), _end(rows, u)):
            w = mate[rows.indices[k]]
            if w == nobody:
                found = True
            elif level[w] == nobody:
                level[w] = level[u] + kind(1)
                queue[tail] = w
                tail += np.uint64(1)
    return found


@device
def _level_path(
    rows: Rows, root: Any, mate: Array, level: Array, place: Array, stack: Array
) -> bool:
    """Look for a path from `root` along the levels and turn it round; `place` is where rows are
    read on, so that every edge is looked at once in a phase."""
    nobody = ~mate.dtype.type(0)
    one = np.uint64(1)
    stack[0] = root
    depth = np.uint64(0)
    while True:
        u = stack[depth]
        k = np.uint64(place[u])
        if k == _end(rows, u):
            if depth == 0:
                return False
            depth -= one
            place[stack[depth]] += place.dtype.type(1)
            continue
        w = mate[rows.indices[k]]
        if w == nobody:
            break
        if level[w] == level[u] + mate.dtype.type(1) and level[w] != nobody:
            depth += one
            stack[depth] = w
        else:
            place[u] += place.dtype.type(1)
    while True:
        u = stack[depth]
        v = rows.indices[np.uint64(place[u])]
        place[u] += place.dtype.type(1)
        mate[u], mate[v] = v, u
        if depth == 0:
            return True
        depth -= one


@kernel
def _phases(
    team: Team,
    rows: Rows,
    side: Array,
    mate: Array,
    level: Array,
    place: Array,
    queue: Array,
    rounds: Array,
) -> None:
    if team.rank > 0:
        return
    nobody = ~mate.dtype.type(0)
    while _distances(team, rows, side, mate, level, queue):
        rounds[0] += 1
        for u in range(np.uint64(mate.size)):
            place[u] = rows.indptr[u]
        for u in range(np.uint64(mate.size)):
            if interrupted(team, u):
                return
            if side[u] == 0 and mate[u] == nobody:
                _level_path(rows, mate.dtype.type(u), mate, level, place, queue)


@device
def _base(base: Array, v: Any) -> Any:
    while base[v] != v:
        base[v] = base[base[v]]
        v = base[v]
    return v


@device
def _meeting(a: Any, b: Any, mate: Array, search: Search, mark: Any) -> Any:
    """Where the paths from two outer vertices to the root meet."""
    nobody = ~mate.dtype.type(0)
    while True:
        if a != nobody:
            a = _base(search.base, a)
            if search.stamp[a] == mark:
                return a
            search.stamp[a] = mark
            a = nobody if mate[a] == nobody else search.before[mate[a]]
        a, b = b, a


@device
def _contract(v: Any, other: Any, top: Any, mate: Array, search: Search, tail: Any) -> Any:
    """The cycle from v up to `top` becomes one vertex; its inner vertices are outer now."""
    base = search.base
    while _base(base, v) != top:
        search.before[v] = other
        other = mate[v]
        if search.label[other] == INNER:
            search.label[other] = OUTER
            search.queue[tail] = other
            tail += np.uint64(1)
        if base[v] == v:
            base[v] = top
        if base[other] == other:
            base[other] = top
        v = search.before[other]
    return tail


@device
def _turn_round(u: Any, mate: Array, before: Array) -> None:
    """The path that ends at the free u."""
    nobody = ~mate.dtype.type(0)
    while u != nobody:
        v = before[u]
        after = mate[v]
        mate[u], mate[v] = v, u
        u = after


@device
def _search(team: Team, root: Any, rows: Rows, mate: Array, search: Search) -> bool:
    """A path from the free `root`, turned round; False where there is none."""
    nobody, one = ~mate.dtype.type(0), np.uint64(1)
    label, before = search.label, search.before
    label[root] = OUTER
    search.queue[0] = search.reached[0] = root
    head, tail, reached = np.uint64(0), one, one
    found = False
    while head < tail and not found:
        if interrupted(team, head):
            break
        v = search.queue[head]
        head += one
        search.spent[1] += np.int64(_end(rows, v) - _begin(rows, v)) + 1
        for k in range(_begin(rows, v), _end(rows, v)):
            u = rows.indices[k]
            if label[u] == UNSEEN:
                before[u] = v
                label[u] = INNER
                search.reached[reached] = u
                reached += one
                w = mate[u]
                if w == nobody:
                    _turn_round(u, mate, before)
                    found = True
                    break
                label[w] = OUTER
                search.reached[reached] = w
                reached += one
                search.queue[tail] = w
                tail += one
            elif label[u] == OUTER and _base(search.base, u) != _base(search.base, v):
                search.spent[0] += 1
                top = _meeting(u, v, mate, search, search.spent[0])
                tail = _contract(u, v, top, mate, search, tail)
                tail = _contract(v, u, top, mate, search, tail)
    if found:
        for i in range(reached):
            u = search.reached[i]
            label[u] = UNSEEN
            search.base[u] = u
    return found


@kernel
def _search_all(team: Team, rows: Rows, mate: Array, search: Search, found: Array) -> None:
    """Caller: label 0, stamp 0, base[v] = v.  found[1] = 1 where too much was read to go on."""
    if team.rank > 0:
        return
    nobody = ~mate.dtype.type(0)
    for v in range(np.uint64(mate.size)):
        if mate[v] != nobody:
            continue
        if _search(team, mate.dtype.type(v), rows, mate, search):
            found[0] += 1
        if search.spent[1] > search.spent[2]:
            found[1] = 1
            return
        if interrupted(team, v):
            return


def two_sides(view: Any) -> Array | None:
    """0 or 1 for each vertex, no edge inside a side; None where an odd cycle forbids that."""
    side = np.full(view.n, 255, np.uint8)
    if view.n == 0:
        return side
    rows, unsigned = _rows(view)
    crew(1, work=view.nnz).run(_colour, rows, side, np.empty(view.n, unsigned))
    return None if side[0] == ODD_CYCLE else side


def match(view: Any, method: str) -> tuple[Array, int, str]:
    """The mates, how many phases or searches found a path, and the method at last."""
    n = view.n
    mate, found = np.full(n, -1, view.indices.dtype), np.zeros(2, np.int64)
    rows, unsigned = _rows(view)
    space = workspace(a=(n, unsigned), b=(n, unsigned), stack=(n + 1, unsigned))
    crew(1, work=view.nnz).run(_start, rows, mate.view(unsigned), space.a, space.stack)
    if method == "auto":  # few free vertices are left as a rule, and searches short
        improve(view, mate, found, CHEAP * (view.nnz + n))
        if not found[1]:
            return mate, int(found[0]), "blossom"
    sides = None if method == "blossom" else two_sides(view)
    if sides is None:
        if method == "hopcroft_karp":
            raise ValueError(
                "maximum_matching: the graph must be bipartite for 'hopcroft_karp', got an odd one"
            )
        improve(view, mate, found)
        return mate, int(found[0]), "blossom"
    found[0] = 0
    crew(1, work=view.nnz).run(
        _phases, rows, sides, mate.view(unsigned), space.a, space.b, space.stack, found
    )  # fmt: skip
    return mate, int(found[0]), "hopcroft_karp"


def improve(view: Any, mate: Array, found: Array, most: int = NO_LIMIT) -> Array:
    """Search from every free vertex; the labels that are left.  `mate` is changed."""
    n = view.n
    rows, unsigned = _rows(view)
    label = np.zeros(n, np.uint8)
    search = Search(
        label, np.empty(n, unsigned), np.arange(n, dtype=unsigned), np.empty(n + 1, unsigned),
        np.empty(n + 1, unsigned), np.zeros(n, np.int64), np.array([0, 0, most]),
    )  # fmt: skip
    found[1] = 0
    crew(1, work=view.nnz).run(_search_all, rows, mate.view(unsigned), search, found)
    return label


def _rows(view: Any) -> tuple[Rows, str]:
    unsigned = f"u{view.indices.dtype.itemsize}"
    return Rows(view.indptr.view(unsigned), view.indices.view(unsigned)), unsigned
