"""Largest matchings: Karp and Sipser's start, Hopcroft and Karp's phases, Edmonds' search.

    start      every vertex takes its first free neighbour.  Where that leaves many: a vertex
               with one free neighbour takes it; else the next free vertex takes the one with the
               fewest free neighbours
    phase      (bipartite) many paths at once, on a team: bipartite.py
    search     (any graph) a tree of alternating paths from one free vertex; an odd cycle is
               contracted

Start and search are the work of one member: each choice depends on those before it.  Vertices are
unsigned here; all ones is "nobody".

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

from matchwood.engines.cpu import Team, crew, device, interrupted, kernel, stopping, workspace
from matchwood.matching.cardinality.cpu.bipartite import Pattern, rows_of, turn_paths, two_sides
from matchwood.matching.cpu import begin, end

Array = np.ndarray[Any, Any]
UNSEEN, OUTER, INNER = 0, 1, 2
MANY = 16  # where first fit leaves more than one vertex in MANY free, a better start pays
NO_LIMIT = 1 << 62  # entries
CHEAP = 2  # searches that read more than CHEAP times all entries are left to phases, on a team


class Search(NamedTuple):
    """Scratch of Edmonds' search."""

    label: Array
    before: Array
    base: Array
    queue: Array
    reached: Array  # vertices with a label in this search
    stamp: Array  # marks of `_meeting`
    spent: Array  # marks used; entries read; the most entries that may be read


@device
def _retire(rows: Pattern, v: Any, degree: Array, stack: Array, size: Any) -> Any:
    """v is matched: its neighbours have a free neighbour less.  Returns the size of `stack`."""
    for k in range(begin(rows, v), end(rows, v)):
        u = rows.indices[k]
        degree[u] -= degree.dtype.type(1)
        if degree[u] == 1:
            stack[size] = u
            size += np.uint64(1)
    return size


@device
def _fewest(rows: Pattern, v: Any, degree: Array) -> Any:
    """The free neighbour of v with the fewest free neighbours; v where there is none."""
    best, fewest = v, ~degree.dtype.type(0) >> degree.dtype.type(1)
    for k in range(begin(rows, v), end(rows, v)):
        u = rows.indices[k]
        if degree[u] < fewest:
            best, fewest = u, degree[u]
            if fewest == 1 or degree[v] == 1:
                break
    return best


@device
def _first_fit(team: Team, rows: Pattern, mate: Array) -> bool:
    """Every vertex takes its first free neighbour; False as soon as that leaves many."""
    kind = mate.dtype.type
    nobody = ~kind(0)
    left = 0
    for v in range(np.uint64(mate.size)):
        if v & np.uint64(255) == 0 and (stopping(team) or left * MANY > mate.size):
            break
        if mate[v] != nobody:
            continue
        left += 1
        for k in range(begin(rows, v), end(rows, v)):
            u = rows.indices[k]
            if mate[u] == nobody:
                mate[u], mate[v] = kind(v), u
                left -= 1 + (u < v)  # a smaller u was counted as left before
                break
    return left * MANY <= mate.size


@kernel
def _start(team: Team, rows: Pattern, mate: Array, degree: Array, stack: Array) -> None:
    """First fit, or where that leaves many, Karp and Sipser's rule.  Caller: mate all ones."""
    n, kind = mate.size, mate.dtype.type
    nobody = ~kind(0)
    if team.me > 0 or _first_fit(team, rows, mate):
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
        if mate[v] != nobody or degree[v] == 0:
            continue
        u = _fewest(rows, v, degree)
        if u != v:
            mate[u], mate[v] = v, u
            degree[u], degree[v] = nobody, nobody  # stays large: one read shows who is free
            size = _retire(rows, u, degree, stack, size)
            size = _retire(rows, v, degree, stack, size)


@device
def _base(base: Array, v: Any) -> Any:
    while base[v] != v:
        base[v] = base[base[v]]
        v = base[v]
    return v


@device
def _meeting(a: Any, b: Any, mate: Array, search: Search, mark: Any) -> Any:
    """Where the paths from two outer vertices to the root meet; nobody: A is not symmetric."""
    nobody = ~mate.dtype.type(0)
    while True:
        if a != nobody:
            a = _base(search.base, a)
            if search.stamp[a] == mark:
                return a
            search.stamp[a] = mark
            a = nobody if mate[a] == nobody else search.before[mate[a]]
        elif b == nobody:
            return nobody
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
    nobody = ~mate.dtype.type(0)
    while u != nobody:
        v = before[u]
        after = mate[v]
        mate[u], mate[v] = v, u
        u = after


@device
def _search(team: Team, root: Any, rows: Pattern, mate: Array, search: Search) -> bool:
    """Find a path from the free `root` and turn it round; False where there is none."""
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
        search.spent[1] += np.int64(end(rows, v) - begin(rows, v)) + 1
        for k in range(begin(rows, v), end(rows, v)):
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
                if top != nobody:
                    tail = _contract(u, v, top, mate, search, tail)
                    tail = _contract(v, u, top, mate, search, tail)
    if found:
        for i in range(reached):
            u = search.reached[i]
            label[u] = UNSEEN
            search.base[u] = u
    return found


@kernel
def _search_all(team: Team, rows: Pattern, mate: Array, search: Search, found: Array) -> None:
    """Search from all free vertices; found[1]: stopped early.  Caller: labels 0, base[v] = v."""
    if team.me > 0:
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


def match(view: Any, method: str, threads: int | None = None) -> tuple[Array, int, str]:
    """The mates, the number of phases or searches that found a path, and the method used last."""
    n = view.n
    mate, found = np.full(n, -1, view.indices.dtype), np.zeros(2, np.int64)
    rows, unsigned = rows_of(view)
    space = workspace(degree=(n, unsigned), stack=(n + 1, unsigned))
    crew(1, work=view.nnz).run(_start, rows, mate.view(unsigned), space.degree, space.stack)
    if method == "auto":  # usually few free vertices are left, and searches are short
        improve(view, mate, found, CHEAP * (view.nnz + n))
        if not found[1]:
            return mate, int(found[0]), "blossom"
    sides = None if method == "blossom" else two_sides(view, threads)
    if sides is not None:
        return mate, turn_paths(view, sides, mate, threads), "hopcroft_karp"
    if method == "hopcroft_karp":
        raise ValueError(
            "maximum_matching: the graph must be bipartite for 'hopcroft_karp', got an odd one"
        )
    improve(view, mate, found)
    return mate, int(found[0]), "blossom"


def improve(view: Any, mate: Array, found: Array, most: int = NO_LIMIT) -> Array:
    """Search from every free vertex, changing `mate`; returns the final labels."""
    n = view.n
    rows, unsigned = rows_of(view)
    label = np.zeros(n, np.uint8)
    search = Search(
        label, np.empty(n, unsigned), np.arange(n, dtype=unsigned), np.empty(n + 1, unsigned),
        np.empty(n + 1, unsigned), np.zeros(n, np.int64), np.array([0, 0, most]),
    )  # fmt: skip
    found[1] = 0
    crew(1, work=view.nnz).run(_search_all, rows, mate.view(unsigned), search, found)
    return label
