"""What one unit would exchange: its arms, paths and cycles.  The definition: __init__.py.

Device functions of cpu.py; they read the matching and change nothing.

A short row is scanned without branches: which arms win something, nobody can foresee.  Equal gains
are only noticed there, and the row is then scanned again with the order of edges in full.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import device, expanded
from matchwood.matching.cpu_rows import Rows, Ties
from matchwood.primitives.edge_order.cpu import rank_in_row

Array = np.ndarray[Any, Any]
SHORT = 32  # entries; in longer rows branches pay, see suitor/cpu.py


class Scale(NamedTuple):
    """Weights times both are integers, cut; see `two_factors`."""

    first: float
    second: float


class Weighing(NamedTuple):
    """How gains are compared, and how long."""

    scale: Scale
    ties: Ties
    least: int  # gain that is worth an exchange
    limit: int  # rounds


class State(NamedTuple):
    """The matching, and for each vertex what its last scan found, or bounds of that."""

    mate: Array  # all ones for free vertices
    own: Array  # weight of the edge at v, 0 for free vertices
    price: Array  # the same as an integer: what an arm to v costs
    arm: Array  # what the best arm of v wins at most, 0 for none
    target: Array  # where it led to when v was scanned
    stale: Array  # 1: arm may have risen since
    heaviest: Array  # weight in the row, as an integer; bounds what a cycle can win


@device
def cut(w: Any, scale: Scale) -> Any:
    """The integer of a weight."""
    return np.int64(np.float64(w) * scale.first * scale.second)


@device
def unit_of(mate: Array, v: Any) -> Any:
    """The smaller end of the edge at v; v itself where it is free."""
    return min(v, mate[v])  # a free one has all ones there


@device
def place_in_row(rows: Rows, u: Any, v: Any) -> Any:
    """Where v is in the row of u, or the end of that row where it is not."""
    low, end = np.uint64(rows.indptr[u]), np.uint64(rows.indptr[u + rows.indptr.dtype.type(1)])
    high = end
    while low < high:
        middle = (low + high) >> np.uint64(1)
        if rows.indices[middle] < v:
            low = middle + np.uint64(1)
        else:
            high = middle
    if low < end and rows.indices[low] == v:
        return low
    return end


@device
def degree(rows: Rows, u: Any) -> Any:
    return rows.indptr[u + rows.indptr.dtype.type(1)] - rows.indptr[u]


@device
def weight_between(rows: Rows, u: Any, v: Any) -> Any:
    """Of an edge, from the shorter row.

    0 where it is not there: in one direction only, of a matrix that was said to be symmetric.
    """
    if degree(rows, v) < degree(rows, u):
        u, v = v, u
    place = place_in_row(rows, u, v)
    if place == np.uint64(rows.indptr[u + rows.indptr.dtype.type(1)]):
        return rows.weights.dtype.type(0)
    return rows.weights[place]


@device
def _comes_first(value: Any, best: Any, u: Any, x: Any, best_x: Any, ties: Ties) -> bool:
    """The arm {u, x} before {u, best_x}, which stands before it in the row, or is none."""
    if value != best:
        return value > best
    if value == 0:
        return False
    seed, by_hash = ties
    return rank_in_row(u, x, seed, by_hash) > rank_in_row(u, best_x, seed, by_hash)


@device
def _first_arm(
    rows: Rows, u: Any, avoided: Any, also: Any, state: State, weighing: Weighing
) -> Any:
    """The best arm of u that leads to neither of two vertices: what it wins, and where; u for none.

    With the order of edges in full.
    """
    best, best_x = np.int64(0), u
    for k in range(
        np.uint64(rows.indptr[u]), np.uint64(rows.indptr[u + rows.indptr.dtype.type(1)])
    ):
        x = rows.indices[k]
        value = cut(rows.weights[k], weighing.scale) - state.price[x]
        if value < best or x == avoided or x == also:  # noqa: SIM109  a tuple costs more
            continue
        if _comes_first(value, best, u, x, best_x, weighing.ties):
            best, best_x = value, x
    return best, best_x


@expanded
def scan_arms(rows: Rows, u: Any, state: State, weighing: Weighing) -> None:
    """Find the best arm of u and the heaviest weight in its row."""
    price = state.price
    best, best_x, heaviest = np.int64(0), u, np.int64(0)
    tied = False
    start, end = np.uint64(rows.indptr[u]), np.uint64(rows.indptr[u + rows.indptr.dtype.type(1)])
    if end - start <= np.uint64(SHORT):
        for k in range(start, end):
            x, w = rows.indices[k], cut(rows.weights[k], weighing.scale)
            value = w - price[x]
            heaviest = max(heaviest, w)
            tied |= (value == best) & (value > 0)
            better = value > best
            best_x = x if better else best_x
            best = value if better else best
    else:
        for k in range(start, end):
            x, w = rows.indices[k], cut(rows.weights[k], weighing.scale)
            value = w - price[x]
            heaviest = max(heaviest, w)
            if value > 0 and value >= best:
                tied |= value == best
                if value > best:
                    best, best_x = value, x
    if tied:
        best, best_x = _first_arm(rows, u, u, u, state, weighing)
    state.arm[u], state.target[u], state.heaviest[u] = best, best_x, heaviest
    state.stale[u] = 0


@device
def _second_arm(rows: Rows, u: Any, state: State, weighing: Weighing) -> Any:
    """The best arm of u to another unit than its first one leads to."""
    x = state.target[u]
    return _first_arm(rows, u, x, state.mate[x], state, weighing)


@device
def _best_cycle(rows: Rows, u: Any, state: State, scale: Scale, least: Any) -> Any:
    """The best cycle of the unit {u, v} that wins more than `least`, and the x at u; u for none.

    The shorter of both rows is read, and of each edge there the other one is looked up.
    """
    mate, price = state.mate, state.price
    v = mate[u]
    a, b = (u, v) if degree(rows, u) <= degree(rows, v) else (v, u)
    given_up, most = price[u], state.heaviest[b]
    best, best_x = least, u
    for k in range(
        np.uint64(rows.indptr[a]), np.uint64(rows.indptr[a + rows.indptr.dtype.type(1)])
    ):
        x = rows.indices[k]
        half = cut(rows.weights[k], scale) - price[x] - given_up
        if half + most < best or price[x] > given_up:
            continue
        y = mate[x]
        if y == ~mate.dtype.type(0) or y == a or half + state.heaviest[y] < best:
            continue
        place = place_in_row(rows, b, y)
        if place == np.uint64(rows.indptr[b + rows.indptr.dtype.type(1)]):
            continue
        gain, at_u = half + cut(rows.weights[place], scale), x if a == u else y
        if gain > best or (gain == best and best_x != u and at_u < best_x):
            best, best_x = gain, at_u
    return best, best_x


@device
def _best_edge(rows: Rows, u: Any, state: State, weighing: Weighing) -> Any:
    """The best edge of the free u to a free neighbour: its weight, and where; u for none."""
    free = ~state.mate.dtype.type(0)
    best, best_x = np.int64(0), u
    for k in range(
        np.uint64(rows.indptr[u]), np.uint64(rows.indptr[u + rows.indptr.dtype.type(1)])
    ):
        x = rows.indices[k]
        if state.mate[x] == free:
            value = cut(rows.weights[k], weighing.scale)
            if _comes_first(value, best, u, x, best_x, weighing.ties):
                best, best_x = value, x
    return best, best_x


@device
def path_may_gain(u: Any, state: State) -> bool:
    """Whether the edge {u, v} could be given up for arms, as far as bounds tell."""
    return state.arm[u] + state.arm[state.mate[u]] > state.price[u]


@device
def cycle_may_gain(u: Any, state: State, least: Any) -> bool:
    """Whether a cycle through {u, v} could win more than `least`.

    It wins at most an arm of one end and the heaviest weight at the other; and it has an arm that
    wins something.
    """
    v = state.mate[u]
    a, b = state.arm[u], state.arm[v]
    if a + b == 0:
        return False
    return min(a + state.heaviest[v], b + state.heaviest[u]) > state.price[u] + least


@device
def is_fresh(rows: Rows, u: Any, state: State, scale: Scale) -> bool:
    """Whether the best arm of u is still what it was when u was scanned."""
    if state.stale[u]:
        return False
    if state.arm[u] == 0:
        return True
    x = state.target[u]
    if x == state.mate[u]:
        return False
    return cut(weight_between(rows, u, x), scale) - state.price[x] == state.arm[u]


@expanded
def best_path(rows: Rows, u: Any, state: State, weighing: Weighing) -> Any:
    """The gain of the edge {u, v} by arms, and its new mates x and y; all ones for none.

    Caller: the arms of both ends are those of this matching.
    """
    mate, arm, target = state.mate, state.arm, state.target
    free = ~mate.dtype.type(0)
    v = mate[u]
    a, b, given_up = arm[u], arm[v], state.price[u]
    x = target[u] if a > 0 else free
    y = target[v] if b > 0 else free
    if a > 0 and b > 0 and a + b > given_up and unit_of(mate, x) == unit_of(mate, y):
        second_a, second_x = _second_arm(rows, u, state, weighing)
        second_b, second_y = _second_arm(rows, v, state, weighing)
        if a + second_b >= second_a + b:
            b, y = second_b, second_y if second_b > 0 else free
        else:
            a, x = second_a, second_x if second_a > 0 else free
    return a + b - given_up, x, y


@expanded
def best_exchange(rows: Rows, u: Any, state: State, weighing: Weighing, fresh: bool) -> Any:
    """The gain of the unit with the smaller end u, and its new mates x and y; all ones for none.

    `fresh`: nothing has changed since the ends were scanned.
    """
    mate = state.mate
    free = ~mate.dtype.type(0)
    v = mate[u]
    if v == free:
        gain, x = _best_edge(rows, u, state, weighing)
        return gain, x, free
    gain, x, y = np.int64(0), free, free
    if path_may_gain(u, state):
        for end in (u, v):
            if not (fresh or is_fresh(rows, end, state, weighing.scale)):
                scan_arms(rows, end, state, weighing)
        gain, x, y = best_path(rows, u, state, weighing)
        gain = max(gain, np.int64(0))
        if x == v or y == u:  # only where symmetry is a lie
            gain, x, y = np.int64(0), free, free
    if cycle_may_gain(u, state, gain):
        cycle, at_u = _best_cycle(rows, u, state, weighing.scale, gain)
        if at_u != u:
            return cycle, at_u, mate[at_u]
    return gain, x, y
