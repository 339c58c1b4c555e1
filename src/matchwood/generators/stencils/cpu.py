"""The stencil on a team: members take lines of the grid and write the rows of their points."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.generators.stencils.plans import Plan
from matchwood.teams import crew, device, kernel, next_chunk

Array = np.ndarray[Any, Any]

POINTS = 4096  # about so many points a member takes at a time


@device
def _number(y: int, x: int, base: int, nx: int, starts: Array) -> int:
    """Number of point (y, x) of the plane whose first point has the number `base`."""
    if starts.size == 0:
        return base + y * nx + x
    s = y + x
    return starts[s] + y - max(0, s - (nx - 1))


@kernel
def _count_rows(
    team: Any, shape: Any, offsets: Array, starts: Array, lines: int, counts: Array
) -> None:
    """counts[p] = offsets that stay inside of the grid at point p."""
    nz, ny, nx = shape
    while True:
        first = next_chunk(team, nz * ny, lines)
        if first < 0:
            break
        for line in range(first, min(first + lines, nz * ny)):
            z, y = line // ny, line % ny
            for x in range(nx):
                inside = 0
                for k in range(offsets.shape[0]):
                    inside += (
                        0 <= z + offsets[k, 0] < nz
                        and 0 <= y + offsets[k, 1] < ny
                        and 0 <= x + offsets[k, 2] < nx
                    )
                counts[_number(y, x, z * ny * nx, nx, starts)] = inside


@kernel
def _fill_rows(
    team: Any,
    shape: Any,
    offsets: Array,
    values: Array,
    starts: Array,
    lines: int,
    indptr: Array,
    indices: Array,
    data: Array,
) -> None:
    nz, ny, nx = shape
    while True:
        first = next_chunk(team, nz * ny, lines)
        if first < 0:
            break
        for line in range(first, min(first + lines, nz * ny)):
            z, y = line // ny, line % ny
            for x in range(nx):
                place = indptr[_number(y, x, z * ny * nx, nx, starts)]
                for k in range(offsets.shape[0]):
                    to_z, to_y, to_x = z + offsets[k, 0], y + offsets[k, 1], x + offsets[k, 2]
                    if 0 <= to_z < nz and 0 <= to_y < ny and 0 <= to_x < nx:
                        indices[place] = _number(to_y, to_x, to_z * ny * nx, nx, starts)
                        data[place] = values[k]
                        place += 1


def apply(plan: Plan, dtype: Any, threads: int | None = None) -> tuple[Array, Array, Array]:
    index, nnz = plan.index, plan.nnz
    lines = max(1, POINTS // max(plan.shape[2], 1))
    team = crew(threads, work=plan.n * len(plan.values))
    indptr = np.zeros(plan.n + 1, index)
    team.run(_count_rows, plan.shape, plan.offsets, plan.starts, lines, indptr[1:])
    np.cumsum(indptr, out=indptr)
    indices, data = np.empty(nnz, index), np.empty(nnz, dtype)
    values = plan.values.astype(dtype)
    team.run(
        _fill_rows, plan.shape, plan.offsets, values, plan.starts, lines, indptr, indices, data
    )
    return indptr, indices, data
