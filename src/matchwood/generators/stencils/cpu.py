"""The stencil on a team: members take points of the grid and write their rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import crew, device, kernel, next_chunk
from matchwood.generators.stencils.reference import Plan

Array = np.ndarray[Any, Any]

CHUNK = 2048  # points that a member takes at a time


@device
def _number(z: int, y: int, x: int, ny: int, nx: int, starts: Array) -> int:
    if starts.size == 0:
        return (z * ny + y) * nx + x
    s = y + x
    return starts[s] + y - max(0, s - (nx - 1))


@device
def _inside(z: int, y: int, x: int, nz: int, ny: int, nx: int) -> bool:
    return 0 <= z < nz and 0 <= y < ny and 0 <= x < nx


@device
def _all_inside(z: int, y: int, x: int, shape: Any, reach: Any) -> bool:
    """Whether the whole stencil is inside of the grid; reach: the largest |offset| of each axis."""
    return (
        reach[0] <= z < shape[0] - reach[0]
        and reach[1] <= y < shape[1] - reach[1]
        and reach[2] <= x < shape[2] - reach[2]
    )


@kernel
def _count_rows(
    team: Any, shape: Any, reach: Any, offsets: Array, starts: Array, counts: Array
) -> None:
    """counts[p] = offsets that stay inside of the grid at point p."""
    nz, ny, nx = shape
    while True:
        first = next_chunk(team, counts.size, CHUNK)
        if first < 0:
            break
        for point in range(first, min(first + CHUNK, counts.size)):
            z, y, x = point // (ny * nx), point // nx % ny, point % nx
            inside = offsets.shape[0]
            if not _all_inside(z, y, x, shape, reach):
                for k in range(offsets.shape[0]):
                    to_z, to_y, to_x = z + offsets[k, 0], y + offsets[k, 1], x + offsets[k, 2]
                    inside -= not _inside(to_z, to_y, to_x, nz, ny, nx)
            counts[_number(z, y, x, ny, nx, starts)] = inside


@kernel
def _fill_rows(
    team: Any,
    shape: Any,
    reach: Any,
    offsets: Array,
    values: Array,
    starts: Array,
    indptr: Array,
    indices: Array,
    data: Array,
) -> None:
    nz, ny, nx = shape
    n, size = indptr.size - 1, values.size
    while True:
        first = next_chunk(team, n, CHUNK)
        if first < 0:
            break
        for point in range(first, min(first + CHUNK, n)):
            z, y, x = point // (ny * nx), point // nx % ny, point % nx
            place = indptr[_number(z, y, x, ny, nx, starts)]
            if starts.size == 0 and _all_inside(z, y, x, shape, reach):
                columns, entries = indices[place : place + size], data[place : place + size]
                for k in range(columns.size):
                    columns[k] = point + (offsets[k, 0] * ny + offsets[k, 1]) * nx + offsets[k, 2]
                    entries[k] = values[k]
                continue
            for k in range(size):
                to_z, to_y, to_x = z + offsets[k, 0], y + offsets[k, 1], x + offsets[k, 2]
                if _inside(to_z, to_y, to_x, nz, ny, nx):
                    indices[place] = _number(to_z, to_y, to_x, ny, nx, starts)
                    data[place] = values[k]
                    place += 1


def apply(plan: Plan, dtype: Any, threads: int | None = None) -> tuple[Array, Array, Array]:
    index, nnz = plan.index, plan.nnz
    team = crew(threads, work=plan.n * len(plan.values))
    indptr = np.zeros(plan.n + 1, index)
    reach = tuple(int(abs(plan.offsets[:, axis]).max(initial=0)) for axis in range(3))
    where = (plan.shape, reach, plan.offsets)
    team.run(_count_rows, *where, plan.starts, indptr[1:])
    np.cumsum(indptr, out=indptr)
    indices, data = np.empty(nnz, index), np.empty(nnz, dtype)
    values = plan.values.astype(dtype)
    team.run(_fill_rows, *where, values, plan.starts, indptr, indices, data)
    return indptr, indices, data


@kernel
def _count_points(
    team: Any, shape: Any, reach: Any, offsets: Array, begin: int, counts: Array
) -> None:
    """counts[k] = offsets that stay inside of the grid at point begin + k."""
    nz, ny, nx = shape
    while True:
        first = next_chunk(team, counts.size, CHUNK)
        if first < 0:
            break
        for at in range(first, min(first + CHUNK, counts.size)):
            point = begin + at
            z, y, x = point // (ny * nx), point // nx % ny, point % nx
            inside = offsets.shape[0]
            if not _all_inside(z, y, x, shape, reach):
                for k in range(offsets.shape[0]):
                    to_z, to_y, to_x = z + offsets[k, 0], y + offsets[k, 1], x + offsets[k, 2]
                    inside -= not _inside(to_z, to_y, to_x, nz, ny, nx)
            counts[at] = inside


@kernel
def _list_points(
    team: Any, shape: Any, offsets: Array, values: Array, starts: Array, begin: int, ends: Array,
    out: tuple[Array, Array, Array],
) -> None:  # fmt: skip
    """The entries of the rows of points from `begin` on; those of point k end at ends[k]."""
    nz, ny, nx = shape
    rows, columns, data = out
    while True:
        first = next_chunk(team, ends.size, CHUNK)
        if first < 0:
            break
        place = ends[first - 1] if first > 0 else 0
        for at in range(first, min(first + CHUNK, ends.size)):
            point = begin + at
            z, y, x = point // (ny * nx), point // nx % ny, point % nx
            row = _number(z, y, x, ny, nx, starts)
            for k in range(values.size):
                to_z, to_y, to_x = z + offsets[k, 0], y + offsets[k, 1], x + offsets[k, 2]
                if _inside(to_z, to_y, to_x, nz, ny, nx):
                    rows[place] = row
                    columns[place] = _number(to_z, to_y, to_x, ny, nx, starts)
                    data[place] = values[k]
                    place += 1


def entries(
    plan: Plan, dtype: Any, begin: int, count: int, threads: int | None = None
) -> tuple[Array, Array, Array]:
    """(rows, columns, values) of `count` points from point `begin` on, in any order of rows."""
    team = crew(threads, work=count * len(plan.values))
    reach = tuple(int(abs(plan.offsets[:, axis]).max(initial=0)) for axis in range(3))
    counts = np.empty(count, np.int64)
    team.run(_count_points, plan.shape, reach, plan.offsets, begin, counts)
    ends = np.cumsum(counts)
    total = int(ends[-1]) if count else 0
    out = (np.empty(total, plan.index), np.empty(total, plan.index), np.empty(total, dtype))
    values = plan.values.astype(dtype)
    team.run(_list_points, plan.shape, plan.offsets, values, plan.starts, begin, ends, out)
    return out
