"""Two passes over the rows and the levels of elements between them, on the GPU.

For plain and block systems alike; the kernels are in gpu.cu, block/gpu.cu and ../gpu/elements.cuh.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from matchwood import engines, gpu

WARP = 32  # threads of a block in the passes over rows, as TILE_THREADS in tile.cuh
TREE = {1: 1024, 2: 128}  # elements that a block joins, by the size of blocks; a thread takes two


def levels(parts: int, p: int) -> list[tuple[int, int]]:
    """(start, size) of each level of elements: of parts, of trees of parts, ... , of the last."""
    found, start, size = [], 0, parts
    while True:
        found.append((start, size))
        if size <= TREE[p]:
            return found
        start, size = start + size, -(-size // TREE[p])


NOT_FINITE = 1  # as in elements.cuh; larger codes are singular, on one level or another
_spare: dict[int, list[Any]] = {}  # by device
_lock = threading.Lock()


def take_status() -> Any:
    """A cleared status word; give it back with `return_status`.  A new one costs pinned memory."""
    device = engines.cupy().cuda.runtime.getDevice()
    with _lock:
        spare = _spare.setdefault(device, [])
        status = spare.pop() if spare else None
    if status is None:
        return gpu.Status()
    status.clear()
    return status


def return_status(status: Any) -> None:
    with _lock:
        _spare[status.device_words.device.id].append(status)


class Solver:
    """Solves systems of one size and type on the current stream, without waiting."""

    def __init__(
        self,
        source: Any,
        n: int,
        p: int,
        rows: int,
        dtype: Any,
        index: Any = np.int32,
        *,
        permuted: bool = False,
        status: Any = None,
    ) -> None:
        self.n, self.dtype = n, np.dtype(dtype)
        self.rows, self._p = rows, p
        self._parts = -(-n // rows)
        self.levels = levels(self._parts, p)
        self._total = sum(self.levels[-1])
        size = self.dtype.itemsize
        fields, tree = 2 * p * (4 * p + 2), TREE[p]
        self._tile = WARP * rows * p * (3 * p + 1) * size
        self._room = (fields * (tree + tree * size // 128) + 2 * p * (tree + 1)) * size
        self._arrays = {
            "elements": (fields * self._total, self.dtype),
            "gathered": (n * p if permuted else 0, self.dtype),
            **{
                f"ends{k}": (2 * p * (count + 1), self.dtype)
                for k, (_, count) in enumerate(self.levels)
            },
        }
        self.status = gpu.Status() if status is None else status
        self._kernels = source.kernels(T=self.dtype, I=np.dtype(index))

    def solve(self, dl: Any, d: Any, du: Any, b: Any, x: Any, perm: Any = None) -> None:
        """x for one right-hand side; with `perm`, row i belongs to b[perm[i]] and x[perm[i]]."""
        k, n = self._kernels, self.n
        space = gpu.workspace("tridiagonal.solve", **self._arrays)  # its own: calls may overlap
        elements = (space.elements, self._total)
        options = {"block": WARP, "shared_mem": self._tile}
        reduced = (n, dl, d, du, b, perm, space.gathered, *elements, self._parts, self.status)
        k.reduce_rows(self._parts, reduced, **options)
        self._solve_ends(space, elements)
        right = b if perm is None else space.gathered
        known = (n, dl, d, du, right, self._parts, space.ends0, perm, x)
        k.substitute_rows(self._parts, known, **options)

    def _solve_ends(self, space: Any, elements: tuple[Any, int]) -> None:
        """The ends of the parts, from their elements."""
        k, tree = self._kernels, TREE[self._p]
        options = {"block": tree // 2, "shared_mem": self._room}
        rows, last = self.rows, len(self.levels) - 1
        for level in range(last):
            (start, size), (out, count) = self.levels[level : level + 2]
            known = (*elements, start, size, out, level + 1, rows, self.n, self.status)
            k.join(None, known, grid=count, **options)
            rows *= tree
        start, size = self.levels[last]
        ends = getattr(space, f"ends{last}")
        known = (*elements, start, size, ends, last + 1, rows, self.n, self.status)
        k.top(None, known, grid=1, **options)
        for level in range(last - 1, -1, -1):
            start, size = self.levels[level]
            outer, ends = ends, getattr(space, f"ends{level}")
            grid = self.levels[level + 1][1]
            k.expand(None, (*elements, start, size, outer, ends), grid=grid, **options)


def solve(
    make: Any,
    dl: Any,
    d: Any,
    du: Any,
    b: Any,
    perm: Any = None,
    *,
    threads: int | None = None,
) -> tuple[Any, int, bool]:
    """Solution for every row of b; the row without a pivot or -1; whether all was finite."""
    x = gpu.empty(b.shape, b.dtype, "tridiagonal.solve")
    if d.shape[0] == 0 or b.shape[0] == 0:
        return x, -1, True
    index = np.int32 if perm is None else perm.dtype
    status = take_status()
    solver = make(d.shape[0], d.dtype, index, permuted=perm is not None, status=status)
    for one, out in zip(b, x, strict=True):
        solver.solve(dl, d, du, one, out, perm)
    code, detail = status.read()
    return_status(status)
    return x, detail if code > NOT_FINITE else -1, code != NOT_FINITE
