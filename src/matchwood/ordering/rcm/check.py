"""Is this the order of Cuthill and McKee?  Decided from the rule, without following a queue.

Let f(v) be the place of v's earliest-placed neighbour.  An order is right when components follow
their smallest vertices, each starts where it may, every other vertex has f(v) < place(v), and
these vertices ascend by (f, degree, vertex): then each place holds the vertex of least key among
those that have a placed neighbour, which is the rule.

Where a component may start depends, in a small graph, on orders from other starts: those are made
by `cuthill_mckee`, and checked too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import answers, arguments
from matchwood.components import connected_components
from matchwood.errors import CheckFailed
from matchwood.gate import graph as csr
from matchwood.ordering.measure.check import check_measures
from matchwood.ordering.permutation import inverse
from matchwood.ordering.rcm import as_starts, cuthill_mckee, reference
from matchwood.traversal import bfs

Array = np.ndarray[Any, Any]


def is_rcm_order(A: Any, perm: Any, *, start: Any = None, reverse: bool = True) -> bool:
    """True when `perm` is what `reverse_cuthill_mckee` must return; see `check_rcm_order`.

    Examples
    --------
    >>> import matchwood
    >>> A = matchwood.generators.path(4)
    >>> matchwood.is_rcm_order(A, [3, 2, 1, 0]), matchwood.is_rcm_order(A, [2, 3, 1, 0])
    (True, False)
    """
    return answers.holds(check_rcm_order, A, perm, start=start, reverse=reverse)


def check_rcm_order(A: Any, perm: Any, *, start: Any = None, reverse: bool = True) -> None:
    """Raise `CheckFailed`, naming the vertices at fault, unless `perm` is right.

    Parameters
    ----------
    A : as given to `reverse_cuthill_mckee`
    perm : (n,) array of integers, or Ordering
        Of an `Ordering` the measures before and after are checked as well; counters and seconds
        are not.
    start : as given to `reverse_cuthill_mckee`, or "any" to allow every start
    reverse : bool
        False for the order of `cuthill_mckee`.

    Raises
    ------
    CheckFailed
        If the order is wrong; says what and where.
    TypeError
        If it cannot be an order: it does not hold integers.

    Notes
    -----
    Runs on the CPU: a graph and an order that live on a GPU are moved.  Some breadth-first
    searches and a pass over every edge; memory for some arrays of n.

    Examples
    --------
    >>> import matchwood
    >>> A = matchwood.generators.path(4)
    >>> matchwood.check.check_rcm_order(A, [3, 2, 1, 0])
    >>> matchwood.check.check_rcm_order(A, [2, 3, 1, 0])
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: order: vertex 2 of level 2 follows vertex 3 of level 3
    """
    caller = "check_rcm_order"
    arguments.flag(caller, "reverse", reverse)
    G = csr.as_graph(A, caller).on("cpu")
    view = G.undirected_pattern()
    order = given = _permutation(caller, getattr(perm, "perm", perm), G.n)
    starts = None
    if not (isinstance(start, str) and start == "any"):
        starts = as_starts(start, G.n, caller)
    if G.n and reverse:
        order = order[::-1]
    if G.n:
        _check_order(G, view, order, starts)
    if hasattr(perm, "before") and hasattr(perm, "after"):
        check_measures(G, perm.before)
        check_measures(G, perm.after, given)


def _check_order(G: csr.Graph, view: csr.View, order: Array, starts: Array | None) -> None:
    place = inverse(order)
    labels = connected_components(G).labels
    begins = _components_in_turn(order, labels)
    if starts is not None:
        _starts_allowed(G, view, order[begins], labels, starts)
    _levels_contiguous(G, order, begins, labels)
    _keys_ascend(view, order, place, begins)


def _permutation(caller: str, perm: Any, n: int) -> Array:
    order: Array = answers.integers(caller, "order", "perm", perm, (n,), "cpu")
    k = answers.first((order < 0) | (order >= n))
    if k is not None:
        raise CheckFailed(f"order: place {k} holds {order[k]}, which is no vertex of 0..{n - 1}")
    counts = np.bincount(order, minlength=n)
    if n and counts.max() > 1:
        raise CheckFailed(
            f"order: no permutation, vertex {int(counts.argmax())} appears {counts.max()} times "
            f"and vertex {int(counts.argmin())} not at all"
        )
    return order


def _components_in_turn(order: Array, labels: Array) -> Array:
    """Places where components begin; labels ascend by smallest vertex already."""
    along = labels[order]
    wrong = np.flatnonzero(np.diff(along) < 0)
    if wrong.size:
        k = int(wrong[0])
        raise CheckFailed(
            f"order: vertex {order[k + 1]} follows vertex {order[k]}, but its component has the "
            "smaller first vertex, and must come before as a whole"
        )
    return np.flatnonzero(np.diff(along, prepend=-1))


def _starts_allowed(G: Any, view: Any, begun: Array, labels: Array, starts: Array) -> None:
    allowed = np.full(begun.size, -1)
    allowed[labels[starts]] = starts
    again = answers.first(allowed[labels[starts]] != starts)
    if again is not None:
        one, other = int(starts[again]), int(allowed[labels[starts[again]]])
        raise ValueError(
            f"check_rcm_order: start must have one vertex of a component at most, "
            f"got {one} and {other} of the same"
        )
    if (allowed < 0).any():
        found = found_starts(G, view, labels)
        allowed = np.where(allowed < 0, found, allowed)
    wrong = np.flatnonzero(begun != allowed)
    if wrong.size:
        k = int(wrong[0])
        raise CheckFailed(
            f"order: component {k} starts at vertex {begun[k]}, but must start at {allowed[k]}"
        )


def found_starts(G: Any, view: Any, labels: Array) -> Array:
    """The start of every component, by searches from one vertex of each at the same time."""

    def levels_from(starts: Array) -> Array:
        return np.asarray(bfs(G, starts, directed=False).level)

    def order_from(starts: Array) -> Array:
        order = cuthill_mckee(G, start=starts)
        check_rcm_order(G, order, start=starts, reverse=False)
        return np.asarray(order)

    count = int(labels.max()) + 1
    degree = np.diff(view.indptr).astype(np.int64)
    v = _least(labels, degree, np.ones(G.n, bool), count)
    if reference.is_small(view):
        last = v.copy()  # of each component the greatest vertex that has the degree of v
        alike = np.flatnonzero(degree == degree[v][labels])
        np.maximum.at(last, labels[alike], alike)

        def far_from(starts: Array) -> Array:
            level = levels_from(starts)
            depth = np.zeros(count, np.int64)
            np.maximum.at(depth, labels, level)
            return _least(labels, degree, level == depth[labels], count)

        return reference.tried_starts(
            v, last, far_from, lambda starts: _bands(view, labels, order_from(starts))
        )[0]
    width = depth = np.full(count, -1)
    start, going = v, np.ones(count, bool)
    first = True
    while going.any():
        level = levels_from(v).astype(np.int64)
        new_depth = np.zeros(count, np.int64)
        for begin, end in answers.pieces(G.n):
            np.maximum.at(new_depth, labels[begin:end], level[begin:end])
        new_width = _widths(labels, level, new_depth)
        better = going & (first | (new_width < width))
        start = np.where(better, v, start)
        going = better & (new_depth > depth)
        width, depth = np.where(better, new_width, width), np.where(better, new_depth, depth)
        last = level == new_depth[labels]
        v = np.where(going, _least(labels, degree, last, count), v)
        first = False
    return start


def _least(labels: Array, degree: Array, marked: Array, count: int) -> Array:
    """The marked vertex of least (degree, vertex) in each component."""
    n = labels.size
    best = np.full(count, np.iinfo(np.int64).max)
    for begin, end in answers.pieces(n):
        v = begin + np.flatnonzero(marked[begin:end])
        np.minimum.at(best, labels[v], degree[v] * n + v)
    return best % n


def _bands(view: Any, labels: Array, order: Array) -> Array:
    """The bandwidth of each component, in an order that has one after the other."""
    place = inverse(order.astype(np.int64))
    row = np.repeat(np.arange(view.n), np.diff(view.indptr))
    found = np.zeros(int(labels.max(initial=-1)) + 1, np.int64)
    np.maximum.at(found, labels[row], np.abs(place[row] - place[view.indices]))
    return found


def _widths(labels: Array, level: Array, depth: Array) -> Array:
    """The most vertices in two neighbouring levels, for each component."""
    begin = np.concatenate(([0], np.cumsum(depth + 2)))  # one empty level behind the last
    sizes = np.bincount(begin[labels] + level, minlength=int(begin[-1]))
    pairs = sizes + np.append(sizes[1:], 0)
    return np.maximum.reduceat(pairs, begin[:-1])


def _levels_contiguous(G: Any, order: Array, begins: Array, labels: Array) -> None:
    level = bfs(G, order[begins], directed=False).level
    along = level[order]
    wrong = np.flatnonzero((np.diff(along) < 0) & (np.diff(labels[order]) == 0))
    if wrong.size:
        k = int(wrong[0])
        raise CheckFailed(
            f"order: vertex {order[k + 1]} of level {along[k + 1]} follows vertex {order[k]} "
            f"of level {along[k]}"
        )


def _keys_ascend(view: Any, order: Array, place: Array, begins: Array) -> None:
    n = order.size
    degree = np.diff(view.indptr).astype(np.int64)
    first = np.full(n, n)  # f of the vertex at each place
    for _, u, v in answers.arcs(view):
        begin = np.flatnonzero(np.diff(u, prepend=-1))  # of each row, as far as it is here
        at = place[u[begin]]
        first[at] = np.minimum(first[at], np.minimum.reduceat(place[v], begin))
    is_start = np.zeros(n, bool)
    is_start[begins] = True
    orphan = np.flatnonzero((first > np.arange(n)) & ~is_start)
    if orphan.size:
        k = int(orphan[0])
        raise CheckFailed(
            f"order: vertex {order[k]} is placed before its neighbour {order[first[k]]}, "
            "and has no other"
            if degree[order[k]] == 1
            else f"order: vertex {order[k]} is placed before all its neighbours, "
            f"of which {order[first[k]]} is the first"
        )
    inside = ~is_start[1:] & ~is_start[:-1]
    for key, name in ((first, "parent"), (degree[order], "degree"), (order, "vertex")):
        step = np.diff(key)
        wrong = np.flatnonzero(inside & (step < 0))
        if wrong.size:
            k = int(wrong[0])
            a, b = order[k], order[k + 1]
            if name == "parent":
                what = f"its parent {order[first[k + 1]]} is placed before {order[first[k]]}"
            elif name == "degree":
                what = f"its degree {degree[b]} is less than {degree[a]}, with the same parent"
            else:
                what = "its number is less, with the same parent and degree"
            raise CheckFailed(f"order: vertex {b} follows vertex {a}, but {what}")
        inside = inside & (step == 0)
