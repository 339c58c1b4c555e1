"""Levels of elements on the GPU, for plain and block systems alike: elements.cuh."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numpy as np

from matchwood import gpu

TOP_GROUP = 4  # as in elements.cuh
THREADS = 32  # of a block that joins
TOP_BLOCK = 256
TOP_BYTES = 150_000  # of shared memory, for the elements that one block solves for


class Plan(NamedTuple):
    """How the elements of `parts` parts with P x P blocks are joined."""

    p: int
    group: int  # elements that a thread joins
    levels: list[tuple[int, int]]  # (start, size) of those with a launch of their own, and the last
    total: int  # elements of all levels in memory
    capacity: int  # elements that the last launch has in shared memory
    shared: int  # bytes of shared memory of a joining block
    itemsize: int

    @property
    def fields(self) -> int:
        """Numbers of an element."""
        return 2 * self.p * (4 * self.p + 2)


def plan(parts: int, p: int, itemsize: int) -> Plan:
    """The levels down to what one block can hold."""
    group, fields = (32, 12) if p == 1 else (16, 40)
    top = TOP_BYTES // (2 * fields * itemsize)
    levels, start, size = [], 0, parts
    while size > top:
        levels.append((start, size))
        start, size = start + size, -(-size // group)
    levels.append((start, size))
    total = start + size
    capacity = size
    while size > 1:
        size = -(-size // TOP_GROUP)
        capacity += size
    shared = THREADS * (group + 1) * fields * itemsize
    return Plan(p, group, levels, total, capacity, shared, itemsize)


def solve_ends(
    k: Any, how: Plan, elements: Any, ends: Any, rows: int, n: int, status: Any
) -> None:
    """`ends` from the elements of level 0, each of `rows` rows."""
    parts = how.levels[0][1]
    step, level = 1, 1
    options = {"block": THREADS, "shared_mem": how.shared}
    for start, size in how.levels[:-1]:
        groups = -(-size // how.group)
        k.join(groups, (elements, how.total, start, size, level, rows * step, n, status), **options)
        step *= how.group
        level += 1
    start, size = how.levels[-1]
    args = (elements, how.total, start, size, how.capacity, ends, level, step, parts, rows, n, status)
    k.top(None, args, grid=1, block=TOP_BLOCK, shared_mem=how.capacity * how.fields * how.itemsize)
    for start, size in reversed(how.levels[:-1]):
        step //= how.group
        groups = -(-size // how.group)
        k.expand(groups, (elements, how.total, start, size, ends, step, parts), **options)


NOT_FINITE = 100  # as in elements.cuh; smaller codes are singular, on one level or another
_spare: list[Any] = []
_lock = threading.Lock()


def take_status() -> Any:
    """A cleared status word; give it back with `return_status`.  A new one costs pinned memory."""
    with _lock:
        status = _spare.pop() if _spare else None
    if status is None:
        return gpu.Status()
    status.clear()
    return status


def return_status(status: Any) -> None:
    with _lock:
        _spare.append(status)


class Solver:
    """Solves systems of one size and type on the current stream, without waiting."""

    def __init__(
        self,
        source: Any,
        n: int,
        p: int,
        rows: int,
        block: int,
        dtype: Any,
        index: Any = np.int32,
        *,
        permuted: bool = False,
        status: Any = None,
    ) -> None:
        self.n, self.dtype = n, np.dtype(dtype)
        self.rows, self._block = rows, block
        self._parts = -(-n // rows)
        self.plan = plan(self._parts, p, self.dtype.itemsize)
        self._shared = block * rows * p * (3 * p + 1) * self.dtype.itemsize
        self._arrays = {
            "elements": (self.plan.fields * self.plan.total, self.dtype),
            "ends": (2 * p * (self._parts + 1), self.dtype),
            "gathered": (n * p if permuted else 0, self.dtype),
        }
        self.status = gpu.Status() if status is None else status
        self._kernels = source.kernels(T=self.dtype, I=np.dtype(index))

    def solve(self, dl: Any, d: Any, du: Any, b: Any, x: Any, perm: Any = None) -> None:
        """x for one right-hand side; with `perm`, row i belongs to b[perm[i]] and x[perm[i]]."""
        k, n, how = self._kernels, self.n, self.plan
        space = gpu.workspace("tridiagonal.solve", **self._arrays)  # its own: calls may overlap
        right = b if perm is None else space.gathered
        options = {"block": self._block, "shared_mem": self._shared}
        k.reduce_rows(
            self._parts,
            (n, dl, d, du, b, perm, space.gathered, space.elements, how.total, self.status),
            **options,
        )
        solve_ends(k, how, space.elements, space.ends, self.rows, n, self.status)
        k.substitute_rows(self._parts, (n, dl, d, du, right, space.ends, perm, x), **options)


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
    return x, detail if 0 < code < NOT_FINITE else -1, code != NOT_FINITE
