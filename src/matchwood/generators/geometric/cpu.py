"""Graphs of points on a team: draw points, sort them into cells, compare neighbouring cells.

Within a cell the points stand in the order in which members placed them.  That order reaches only
the edge list, which `assemble` sorts; so the graph does not depend on it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.arguments import index_type
from matchwood.engines.cpu import atomic_add, barrier, crew, device, kernel, next_chunk
from matchwood.generators.geometric.reference import BITS, Near, Points, triangle_sides
from matchwood.generators.streams.cpu import value
from matchwood.primitives.assemble.cpu import assemble

Array = np.ndarray[Any, Any]

CHUNK = 512  # points that a member takes at a time


@kernel
def _draw_points(team: Any, key: Any, shift: Any, points: Array) -> None:
    dim, n = points.shape
    while True:
        start = next_chunk(team, n, CHUNK)
        if start < 0:
            break
        for v in range(start, min(start + CHUNK, n)):
            for i in range(dim):
                points[i, v] = value(key, v * dim + i) >> shift


def points(plan: Points | Near, threads: int | None = None) -> Array:
    made = np.empty((plan.dim, plan.n), np.int32)
    crew(threads, work=plan.n * plan.dim).run(
        _draw_points, np.uint64(plan.key), np.uint64(64 - BITS), made
    )
    return made


@device
def _cell(points: Array, v: int, width: int, cells: int) -> int:
    """Cells are numbered with the first coordinate running fastest."""
    number: Any = 0
    for i in range(points.shape[0] - 1, -1, -1):
        number = number * cells + points[i, v] // width
    return number


class Cells(NamedTuple):
    """Points sorted into cells: those of cell c in the slots starts[c] .. starts[c + 1] - 1."""

    width: int
    shape: Any
    limit: Any
    starts: Array
    vertex: Array  # vertex[slot]: the point
    placed: Array  # placed[:, slot]: where it is


@kernel
def _sort_into_cells(team: Any, points: Array, to: Cells, cursor: Array) -> None:
    """Fill starts, vertex and placed; `starts` and `cursor` are zeros before."""
    dim, n = points.shape
    width, cells, starts = to.width, to.shape[1], to.starts
    while True:
        start = next_chunk(team, n, CHUNK)
        if start < 0:
            break
        for v in range(start, min(start + CHUNK, n)):
            atomic_add(starts, _cell(points, v, width, cells) + 1, 1)
    if barrier(team):
        return
    if team.me == 0:
        for c in range(1, starts.size):
            starts[c] += starts[c - 1]
    if barrier(team):
        return
    while True:
        start = next_chunk(team, n, CHUNK)
        if start < 0:
            break
        for v in range(start, min(start + CHUNK, n)):
            c = _cell(points, v, width, cells)
            slot = starts[c] + atomic_add(cursor, c, 1)
            to.vertex[slot] = v
            for i in range(dim):
                to.placed[i, slot] = points[i, v]


@device
def _square(points: Array, u: int, v: int) -> Any:
    """Squared distance; a sum of three squares needs all 64 bits."""
    total = np.uint64(0)
    for i in range(points.shape[0]):
        apart = np.int64(points[i, u]) - np.int64(points[i, v])
        total += np.uint64(apart * apart)
    return total


@kernel
def _join(
    team: Any, cells: Cells, counting: bool, begin: int, counts: Array, rows: Array, cols: Array
) -> None:
    """Edges from each slot, from `begin` on, to later ones.

    counting: counts[slot - begin] = how many; otherwise their first place in rows and cols.
    Cells in a line along x are neighbours in the numbering, so a point is compared with one range
    of slots for each of the lines around it, beginning with its own.
    """
    nz, ny, nx = cells.shape
    width, starts, vertex, placed = cells.width, cells.starts, cells.vertex, cells.placed
    dim = placed.shape[0]
    while True:
        start = next_chunk(team, counts.size, CHUNK)
        if start < 0:
            break
        for at in range(start, min(start + CHUNK, counts.size)):
            slot = begin + at
            x, y = placed[0, slot] // width, placed[1, slot] // width
            z = placed[2, slot] // width if dim == 3 else 0
            place = np.int64(0) if counting else counts[at]
            x_first, x_last = max(x - 1, 0), min(x + 1, nx - 1)
            for to_z in range(z, min(z + 1, nz - 1) + 1):
                for to_y in range(y if to_z == z else max(y - 1, 0), min(y + 1, ny - 1) + 1):
                    line = (to_z * ny + to_y) * nx
                    first = max(starts[line + x_first], slot + 1)
                    for other in range(first, starts[line + x_last + 1]):
                        if _square(placed, slot, other) <= cells.limit:
                            if not counting:
                                rows[place] = vertex[slot]
                                cols[place] = vertex[other]
                            place += 1
            if counting:
                counts[at] = place


def sorted_points(plan: Near, threads: int | None = None) -> tuple[Array, Cells]:
    """The points by number, and in their cells."""
    x = points(plan, threads)
    starts = np.zeros(plan.cells**plan.dim + 1, np.int64)
    vertex, placed = np.empty(plan.n, index_type(plan.n)), np.empty_like(x)
    limit = np.uint64(plan.radius**2)
    cells = Cells(plan.width, plan.shape, limit, starts, vertex, placed)
    crew(threads, work=plan.n * 8).run(_sort_into_cells, x, cells, np.zeros_like(starts))
    return x, cells


def near_edges(
    cells: Cells, begin: int, end: int, threads: int | None = None
) -> tuple[Array, Array]:
    """Edges from the points in slots begin .. end - 1 to those in later slots."""
    index = cells.vertex.dtype
    team = crew(threads, work=(end - begin) * 8)
    counts = np.empty(end - begin, np.int64)
    nothing = np.empty(0, index)
    team.run(_join, cells, True, begin, counts, nothing, nothing)
    ends = np.cumsum(counts)
    rows = np.empty(int(ends[-1]) if ends.size else 0, index)
    cols = np.empty_like(rows)
    team.run(_join, cells, False, begin, ends - counts, rows, cols)
    return rows, cols


def near(plan: Near, threads: int | None = None) -> tuple[Array, Array, Array]:
    x, cells = sorted_points(plan, threads)
    n = plan.n
    rows, cols = near_edges(cells, 0, n, threads)
    indptr, indices, _ = assemble(n, n, rows, cols, symmetric=True, reduce="first", threads=threads)
    return x, indptr, indices


def triangulated(plan: Points, threads: int | None = None) -> tuple[Array, Array, Array]:
    x = points(plan, threads)
    index = index_type(plan.n)
    rows, cols = (np.ascontiguousarray(side, index) for side in triangle_sides(x))
    indptr, indices, _ = assemble(
        plan.n, plan.n, rows, cols, symmetric=True, reduce="first", threads=threads
    )
    return x, indptr, indices


@kernel
def _measure(
    team: Any, points: Array, unit: float, names: Array, indptr: Array, indices: Array, data: Array
) -> None:
    """data[k] = length of entry k; names[v] is the point of local id v, v itself without names."""
    rows, named = indptr.size - 1, names.size > 0
    while True:
        start = next_chunk(team, rows, CHUNK)
        if start < 0:
            break
        for row in range(start, min(start + CHUNK, rows)):
            for k in range(indptr[row], indptr[row + 1]):
                u, v = np.int64(row), np.int64(indices[k])
                if named:
                    u, v = np.int64(names[u]), np.int64(names[v])
                data[k] = np.sqrt(np.float64(_square(points, u, v))) * unit


def distances(
    x: Array, indptr: Array, indices: Array, dtype: Any, threads: int | None = None,
    names: Array | None = None,
) -> Array:  # fmt: skip
    """Length of every edge of a graph, or of a block whose ids are `names`."""
    data = np.empty(indices.size, dtype)
    names = np.empty(0, indices.dtype) if names is None else names
    crew(threads, work=indices.size + indptr.size).run(
        _measure, x, 2.0**-BITS, names, indptr, indices, data
    )
    return data
