"""What the methods on a team share: codes of weights, marked edges, and the forest from them.

An edge {u, v}, u < v, is known by its entry: the place k of column v in row u.  Entries of the
upper triangle ascend as (u, v) do, so of two edges of equal weight the one with the smaller entry
comes first.  Methods mark the entries of the forest in a bitmap; `forest_of` reads the edges
from it, which are sorted then by their ends, whatever the method and the number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.primitives.cpu_hints import trailing_zeros
from matchwood.primitives.patterns import not_symmetric
from matchwood.teams import (
    atomic_or,
    barrier,
    crew,
    device,
    fail,
    interrupted,
    kernel,
    load_relaxed,
    share,
    store_relaxed,
)

Array = np.ndarray[Any, Any]

ONE = np.uint64(1)
NOTHING = np.uint64(0xFFFF_FFFF_FFFF_FFFF)  # no edge: behind all words
BROKEN = 1  # the failure of kernels that find an edge in one of its two rows only
ERRORS = {BROKEN: lambda detail: not_symmetric("minimum_spanning_forest")}
_SIX, _LOW = np.uint64(6), np.uint64(63)


@device
def code_of(order: Any, word: Any) -> Any:
    """The code of a weight given by its bits; see order.py."""
    x = np.uint64(word)
    if order.floating:
        if x == order.sign:  # -0.0
            x = np.uint64(0)
        x ^= ((order.sign << ONE) - ONE) if x & order.sign else order.sign
    else:
        x ^= order.sign
    return (x ^ order.flip) - order.base


@device
def upper_entry(indptr: Array, indices: Array, u: Any, v: Any) -> Any:
    """The entry of the edge {u, v}: where max(u, v) stands in the row of min(u, v).

    NOTHING where it does not stand there: the pattern is not symmetric.
    """
    row, column = min(u, v), max(u, v)
    low, high = np.uint64(indptr[row]), np.uint64(indptr[np.uint64(row) + ONE])
    while low < high:
        middle = (low + high) >> ONE
        if indices[middle] < column:
            low = middle + ONE
        else:
            high = middle
    if low == np.uint64(indptr[np.uint64(row) + ONE]) or indices[low] != column:
        return NOTHING
    return low


@device
def mark(marks: Array, k: Any) -> None:
    """Take entry k into the forest."""
    k = np.uint64(k)
    atomic_or(marks, k >> _SIX, ONE << (k & _LOW))


@device
def flatten(up: Array, lo: int, hi: int) -> bool:
    """up[v] = the root of v for v in lo..hi; no hooks may come meanwhile.

    Every vertex on the way is hung under the root too, so a chain costs its length once.  Races:
    all members store nothing but final roots.  False: there is none, the way goes round and round.
    """
    for v in range(lo, hi):
        above = load_relaxed(up, v)
        root = load_relaxed(up, above)
        if root == above:
            continue
        steps = 0
        while True:
            higher = load_relaxed(up, root)
            if higher == root:
                break
            root = higher
            steps += 1
            if steps > up.size:
                return False
        at = up.dtype.type(v)
        while True:
            above = load_relaxed(up, at)
            if above == root:
                break
            store_relaxed(up, at, root)
            at = above
    return True


@device
def number_roots(
    team: Any, up: Array, size: int, best: Array, every: bool, number: Array, sums: Array
) -> int:
    """number[c] = how many roots come before the root of c; returns how many there are.

    Unless `every`, roots without an edge in `best` are done with and not counted.  -1: the team
    stops.  `sums` has a word for each member; a barrier must come before its next use.
    """
    lo, hi = share(team, size)
    roots = 0
    for c in range(lo, hi):
        roots += up[c] == c and (every or best[c] != NOTHING)
    sums[team.rank] = roots
    if barrier(team):
        return -1
    place = total = 0
    for member in range(team.size):
        if member < team.rank:
            place += sums[member]
        total += sums[member]
    for c in range(lo, hi):
        if up[c] == c and (every or best[c] != NOTHING):
            number[c] = place
            place += 1
    if barrier(team):
        return -1
    for c in range(lo, hi):
        if up[c] != c:
            number[c] = number[up[c]]
    return total


@device
def _row_of(indptr: Array, k: Any) -> int:
    """The row that holds entry k."""
    low, high = 0, indptr.size - 1
    while high - low > 1:
        middle = (low + high) // 2
        if np.uint64(indptr[middle]) <= k:
            low = middle
        else:
            high = middle
    return low


@device
def _ones(word: Any) -> int:
    count = 0
    while word:
        word &= word - ONE
        count += 1
    return count


@kernel
def _collect(
    team: Any,
    indptr: Array,
    indices: Array,
    data: Array,
    marks: Array,
    sums: Array,
    edges: Array,
    weights: Array,
) -> None:
    """sums[size] = how many are marked; their ends and weights in the order of entries."""
    lo, hi = share(team, marks.size)
    count = 0
    for i in range(lo, hi):
        if marks[i]:
            count += _ones(marks[i])
    sums[team.rank] = count
    if barrier(team):
        return
    place = 0
    for member in range(team.rank):
        place += sums[member]
    if team.rank == team.size - 1:
        sums[team.size] = place + count
    if place + count > edges.shape[0]:
        fail(team, BROKEN, place + count)
        return
    if count == 0:
        return
    u = -1
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        word = marks[i]
        while word:
            k = (np.uint64(i) << _SIX) + np.uint64(trailing_zeros(word))
            word &= word - ONE
            if u < 0:
                u = _row_of(indptr, k)
            while np.uint64(indptr[u + 1]) <= k:
                u += 1
            edges[place, 0] = u
            edges[place, 1] = indices[k]
            weights[place] = data[k]
            place += 1


def no_marks(nnz: int) -> Array:
    """A bitmap of entries, none of them marked."""
    return np.zeros(-(-nnz // 64), np.uint64)


def forest_of(costs: Any, marks: Array, threads: int | None) -> tuple[Array, Array]:
    """Edges, shape (m, 2), and weights of what is marked."""
    team = crew(threads, work=costs.n + marks.size)
    sums = np.zeros(team.size + 1, np.int64)
    edges = np.empty((costs.n, 2), costs.indices.dtype)
    weights = np.empty(costs.n, costs.data.dtype)
    team.run(_collect, *costs[:3], marks, sums, edges, weights, errors=ERRORS)
    count = int(sums[-1])
    return edges[:count], weights[:count]
