"""Named graphs, row by row.  All but the Mycielski graphs are a few NumPy calls."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.arguments import index_type
from matchwood.engines.cpu import crew, kernel, next_chunk

Array = np.ndarray[Any, Any]

ROWS = 32  # rows that a member takes at a time


def path(n: int) -> tuple[Array, Array]:
    index = index_type(2 * n)
    degree = np.full(n, 2, index)
    degree[:1] -= 1
    degree[-1:] -= 1
    # before and behind each vertex, without what lies outside of the path at its two ends
    beside = np.arange(n, dtype=index)[:, None] + np.array([-1, 1], index)
    return _indptr(degree), beside.ravel()[1:-1]


def cycle(n: int) -> tuple[Array, Array]:
    index = index_type(2 * n)
    beside = np.arange(n, dtype=index)[:, None] + np.array([-1, 1], index)
    beside[0] = 1, n - 1
    beside[-1] = 0, n - 2
    return _indptr(np.full(n, 2, index)), beside.ravel()


def star(n: int) -> tuple[Array, Array]:
    index = index_type(2 * n)
    degree = np.ones(n, index)
    degree[:1] = n - 1
    rays = np.arange(1, n, dtype=index)
    return _indptr(degree), np.append(rays, np.zeros_like(rays))


def complete(n: int) -> tuple[Array, Array]:
    index = index_type(n * n)
    others = np.tile(np.arange(max(n - 1, 0), dtype=index), (n, 1))
    others += others >= np.arange(n, dtype=index)[:, None]
    return _indptr(np.full(n, max(n - 1, 0), index)), others.ravel()


@kernel
def _copy_rows(
    team: Any, n: int, indptr: Array, indices: Array, out_indptr: Array, out_indices: Array
) -> None:
    """Rows of v_i: its neighbours and their copies; of u_i: the neighbours of v_i and the last.

    Row v writes the rows of v_v and u_v, and one entry of the last row.
    """
    last = np.int64(out_indptr[2 * n])
    while True:
        start = next_chunk(team, n, ROWS)
        if start < 0:
            break
        for v in range(start, min(start + ROWS, n)):
            first, degree = indptr[v], indptr[v + 1] - indptr[v]
            place, copy_place = out_indptr[v], out_indptr[n + v]
            for k in range(degree):
                w = indices[first + k]
                out_indices[place + k] = w
                out_indices[place + degree + k] = w + n
                out_indices[copy_place + k] = w
            out_indices[copy_place + degree] = 2 * n
            out_indices[last + v] = n + v


def mycielskian(k: int) -> tuple[Array, Array]:
    """Grows by a factor of three each time, so the last step is most of the work."""
    if k == 1:
        return np.zeros(2, np.int32), np.empty(0, np.int32)
    indptr: Array = np.arange(3, dtype=np.int32)
    indices: Array = np.array([1, 0], np.int32)
    for _ in range(k - 2):
        n = indptr.size - 1
        degree = np.diff(indptr)
        entries = 3 * indices.size + 2 * n
        indptr_next = np.zeros(2 * n + 2, index_type(entries))
        np.cumsum(np.concatenate((2 * degree, degree + 1, [n])), out=indptr_next[1:])
        indices_next = np.empty(entries, indptr_next.dtype)
        team = crew(work=entries)
        team.run(_copy_rows, n, indptr, indices, indptr_next, indices_next)
        indptr, indices = indptr_next, indices_next
    return indptr, indices


def _indptr(degree: Array) -> Array:
    indptr = np.zeros(degree.size + 1, degree.dtype)
    np.cumsum(degree, out=indptr[1:])
    return indptr
