"""Label propagation on the block of a rank that has a GPU; the functions are those of cpu.py.

Lists of labels are sorted by (vertex, label), and equal ones added up.  All of it is CuPy's sorts,
sums and gathers; the same functions run on NumPy arrays, which is how they are tested.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.primitives.hashing import mix64

WORD = 64  # bits of a word in which active vertices are marked


def _entries(indptr: Any, vertices: Any) -> tuple[Any, Any]:
    """The entries of the rows of these vertices, and the vertex that each belongs to."""
    xp = engines.xp(indptr)
    begin = indptr[vertices].astype(np.int64)
    size = indptr[vertices + 1].astype(np.int64) - begin
    ends = xp.cumsum(size)
    places = xp.arange(int(ends[-1]) if ends.shape[0] else 0)
    which = xp.searchsorted(ends, places, side="right")
    return places + (begin - ends + size)[which], which


def _joined(which: Any, label: Any, weight: Any) -> tuple[Any, Any, Any]:
    """Sorted by (which, label), equal ones as one with the sum of their weights."""
    xp = engines.xp(label)
    order = xp.argsort(label, kind="stable")
    order = order[xp.argsort(which[order], kind="stable")]
    which, label = which[order], label[order]
    new = xp.ones(label.shape[0], bool)
    new[1:] = (which[1:] != which[:-1]) | (label[1:] != label[:-1])
    first = xp.flatnonzero(new)
    before = xp.zeros(label.shape[0] + 1, np.int64)
    before[1:] = xp.cumsum(weight[order])
    ends = xp.append(first[1:], xp.asarray([label.shape[0]]))
    return which[first], label[first], before[ends] - before[first]


def label_sums(
    rows: Any, labels: Any, vertices: Any, kind: Any, threads: int | None
) -> tuple[Any, Any, Any]:
    """For each of these rows how many labels it has; then all labels, and their weights."""
    xp = engines.xp(labels)
    at, which = _entries(rows.indptr, vertices)
    weight = rows.data[at] if rows.data.size else xp.ones(at.shape[0], np.int64)
    which, label, weight = _joined(which, labels[rows.indices[at]], weight)
    return xp.bincount(which, minlength=vertices.shape[0]), label.astype(kind), weight


def _all_lists(lists: Any, own: int) -> tuple[Any, Any, Any]:
    """The lists of all ranks as one: vertex, label, weight."""
    xp = engines.xp(lists.words)
    ranks = int(lists.sizes.shape[0])
    sizes = lists.sizes.reshape(-1)
    ends = xp.cumsum(sizes)
    places = xp.arange(int(ends[-1]) if ends.shape[0] else 0)
    which = xp.searchsorted(ends, places, side="right")
    at = places + (lists.begins.reshape(-1) - ends + sizes)[which]
    after = xp.repeat(xp.asarray(lists.after), own) if own else xp.zeros(ranks, np.int64)
    weight = lists.words[at + after[which]].astype(np.int64)
    return _joined(which % max(own, 1), lists.words[at], weight)


def _of_own(which: Any, label: Any, weight: Any, own: Any) -> Any:
    """The weight of each vertex' own label around it."""
    inside = engines.xp(own).zeros(own.shape[0], np.int64)
    mine = label.astype(np.uint64) == own.astype(np.uint64)[which]
    inside[which[mine]] = weight[mine]
    return inside


def _last_of_each(which: Any, count: int, *keys: Any) -> tuple[Any, Any]:
    """Of each vertex that occurs the entry with the largest keys, the first key first."""
    xp = engines.xp(which)
    order = xp.arange(which.shape[0])
    for key in (*reversed(keys), which):
        order = order[xp.argsort(key[order], kind="stable")]
    ends = xp.cumsum(xp.bincount(which, minlength=count))
    some = xp.bincount(which, minlength=count) > 0
    return xp.flatnonzero(some), order[ends[some] - 1]


def decided(lists: Any, own: Any, threads: int | None) -> Any:
    """The label that each of the own vertices takes; `own` are the labels that they have."""
    which, label, weight = _all_lists(lists, own.shape[0])
    inside = _of_own(which, label, weight, own)
    heavy = weight > 0
    which, label, weight = which[heavy], label[heavy], weight[heavy]
    hashes = mix64(label.astype(np.uint64))
    vertices, best = _last_of_each(which, own.shape[0], weight, ~hashes)
    before = mix64(own[vertices].astype(np.uint64))
    more = weight[best] > inside[vertices]
    same = weight[best] == inside[vertices]
    takes = more | (same & (hashes[best] < before))
    targets = own.copy()
    targets[vertices[takes]] = label[best][takes].astype(own.dtype)
    return targets


def weighed(lists: Any, own: Any, threads: int | None) -> tuple[Any, Any]:
    """The weight of the own label around each vertex; the largest weight and its least label."""
    xp = engines.xp(own)
    which, label, weight = _all_lists(lists, own.shape[0])
    most = xp.stack([xp.zeros(own.shape[0], np.int64), own.astype(np.int64)])
    vertices, best = _last_of_each(which, own.shape[0], weight, ~label.astype(np.uint64))
    most[0, vertices], most[1, vertices] = weight[best], label[best].astype(np.int64)
    return _of_own(which, label, weight, own), most


def take_marks(vertices: Any, active: Any, threads: int | None) -> Any:
    """A bit for each vertex, 1 where it is active; none of them is active afterwards."""
    xp = engines.xp(active)
    bits = xp.zeros(-(-vertices.shape[0] // WORD) * WORD, np.uint8)
    bits[: vertices.shape[0]] = active[vertices]
    active[vertices] = 0
    return xp.packbits(bits, bitorder="little").view(np.uint64)


def wake(
    columns: tuple[Any, Any], moved: Any, new: Any, labels: Any, active: Any, threads: int | None
) -> None:
    """Give columns that moved their new labels, and mark the rows that hold one as active."""
    labels[moved] = new
    active[columns[1][_entries(columns[0], moved)[0]]] = 1


def late_of(rows: Any, vertices: Any, wishes: Any, ids: Any, threads: int | None) -> Any:
    """Which vertices have a neighbour here that wishes to move too, and is before them by mix64."""
    xp = engines.xp(ids)
    at, which = _entries(rows.indptr, vertices)
    u = rows.indices[at]
    wishing = wishes[u] != 0
    u, which = u[wishing], which[wishing]
    mine = mix64(ids[vertices].astype(np.uint64))
    late = xp.zeros(vertices.shape[0], np.uint8)
    late[which[mix64(ids[u].astype(np.uint64)) < mine[which]]] = 1
    return late


def inside(rows: Any, labels: Any, n: int, threads: int | None) -> int:
    """The weight of the entries of n rows that lie within a label."""
    xp = engines.xp(labels)
    at, which = _entries(rows.indptr, xp.arange(n))
    same = labels[rows.indices[at]] == labels[which]
    return int(same.sum()) if not rows.data.size else int(rows.data[at][same].sum())
