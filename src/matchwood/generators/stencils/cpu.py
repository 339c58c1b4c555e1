"""The stencil on a team: members take points of the grid and write their rows."""

from __future__ import annotations

from typing import Any, NamedTuple

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
    team: Any, shape: Any, reach: Any, offsets: Array, starts: Array, begin: int, counts: Array
) -> None:
    """counts[number of p - begin] = offsets that stay inside of the grid, of points p >= begin."""
    nz, ny, nx = shape
    while True:
        first = next_chunk(team, counts.size, CHUNK)
        if first < 0:
            break
        for point in range(begin + first, begin + min(first + CHUNK, counts.size)):
            z, y, x = point // (ny * nx), point // nx % ny, point % nx
            inside = offsets.shape[0]
            if not _all_inside(z, y, x, shape, reach):
                for k in range(offsets.shape[0]):
                    to_z, to_y, to_x = z + offsets[k, 0], y + offsets[k, 1], x + offsets[k, 2]
                    inside -= not _inside(to_z, to_y, to_x, nz, ny, nx)
            counts[_number(z, y, x, ny, nx, starts) - begin] = inside


class Rows(NamedTuple):
    """Where entries go."""

    indptr: Array
    indices: Array
    data: Array
    numbers: Array  # the row of each entry; empty where rows are in the order of their numbers


@kernel
def _fill_rows(
    team: Any, shape: Any, reach: Any, offsets: Array, values: Array, starts: Array, begin: int,
    out: Rows,
) -> None:  # fmt: skip
    """The rows of points from `begin` on: in the order of their numbers, or of the points."""
    nz, ny, nx = shape
    n, size, listed = out.indptr.size - 1, values.size, out.numbers.size > 0
    while True:
        first = next_chunk(team, n, CHUNK)
        if first < 0:
            break
        for point in range(begin + first, begin + min(first + CHUNK, n)):
            z, y, x = point // (ny * nx), point // nx % ny, point % nx
            number = _number(z, y, x, ny, nx, starts)
            row = point - begin if listed else number
            place = out.indptr[row]
            if listed:
                out.numbers[place : out.indptr[row + 1]] = number
            if starts.size == 0 and _all_inside(z, y, x, shape, reach):
                columns = out.indices[place : place + size]
                entries = out.data[place : place + size]
                for k in range(columns.size):
                    columns[k] = point + (offsets[k, 0] * ny + offsets[k, 1]) * nx + offsets[k, 2]
                    entries[k] = values[k]
                continue
            for k in range(size):
                to_z, to_y, to_x = z + offsets[k, 0], y + offsets[k, 1], x + offsets[k, 2]
                if _inside(to_z, to_y, to_x, nz, ny, nx):
                    out.indices[place] = _number(to_z, to_y, to_x, ny, nx, starts)
                    out.data[place] = values[k]
                    place += 1


def apply(plan: Plan, dtype: Any, threads: int | None = None) -> tuple[Array, Array, Array]:
    rows = _rows(plan, dtype, 0, plan.n, threads, listed=False)
    return rows.indptr, rows.indices, rows.data


def entries(
    plan: Plan, dtype: Any, begin: int, count: int, threads: int | None = None
) -> tuple[Array, Array, Array]:
    """(rows, columns, values) of `count` points from point `begin` on, in any order of rows."""
    rows = _rows(plan, dtype, begin, count, threads, listed=True)
    return rows.numbers, rows.indices, rows.data


def _rows(
    plan: Plan, dtype: Any, begin: int, count: int, threads: int | None, *, listed: bool
) -> Rows:
    team = crew(threads, work=count * len(plan.values))
    reach = tuple(int(abs(plan.offsets[:, axis]).max(initial=0)) for axis in range(3))
    where = (plan.shape, reach, plan.offsets)
    indptr = np.zeros(count + 1, plan.index)
    team.run(_count_rows, *where, plan.starts[:0] if listed else plan.starts, begin, indptr[1:])
    np.cumsum(indptr, out=indptr)
    nnz = int(indptr[-1])
    out = Rows(
        indptr, np.empty(nnz, plan.index), np.empty(nnz, dtype),
        np.empty(nnz if listed else 0, plan.index),
    )  # fmt: skip
    team.run(_fill_rows, *where, plan.values.astype(dtype), plan.starts, begin, out)
    return out
