"""Two passes over the rows and the levels of elements between them, on the GPU.

For plain and block systems; the kernels are in ../plain/gpu.cu, ../block/gpu.cu, ../elements.cuh
and ../passes.cuh.
"""

from __future__ import annotations

import functools
import threading
from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.engines import gpu
from matchwood.tridiagonal import check as accuracy

ZONES_PER_BLOCK = 128  # zones of a thread block in the first round; for block systems half as many
MOST_REPAIR_BLOCKS = 1024  # thread blocks of a later round; a thread may take several zones


class RepairRound(NamedTuple):
    """A round of repair: its zones and its windows."""

    zone: int  # block rows of a zone
    shift: int  # block rows by which zones begin earlier
    least: int  # block rows of the first window, to each side of a row
    most: int  # of the widest window
    threads: int  # of a thread block; few, so that no thread waits long for others


REPAIR_ROUNDS = (
    RepairRound(128, 0, 1, 4, 32),
    RepairRound(512, 192, 16, 16, 8),
    RepairRound(2048, 0, 64, 64, 2),
    RepairRound(2048, 1024, 1, 64, 2),
)


def levels(parts: int, threads: int, each: int) -> list[tuple[int, int]]:
    """(start, size) of each level of elements: of the parts, of trees of parts, and so on.

    A tree has `threads` threads; each of them takes `each` elements.
    """
    found, start, size = [], 0, parts
    while True:
        found.append((start, size))
        if size <= threads * each:
            return found
        start, size = start + _rounded(size, each), -(-size // (threads * each))


def _rounded(size: int, each: int) -> int:
    return -(-size // each) * each


_spare: dict[int, list[Any]] = {}  # unused status words, by device
_lock = threading.Lock()


def take_status() -> Any:
    """A cleared status word; give it back with `return_status`.  A new one takes pinned memory."""
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


class Codes(NamedTuple):
    """What kernels report; the smallest counts.  With a code up to `off` there is no solution."""

    not_finite: int
    off: int
    some_off: int
    few_off: int


class Solver:
    """Solves systems of one size and type on the current stream, without waiting."""

    def __init__(
        self, source: Any, n: int, p: int, rows: int, dtype: Any, index: Any = np.int32, *,
        permuted: bool = False,
    ) -> None:  # fmt: skip
        self.n, self.dtype = n, np.dtype(dtype)
        self.rows = rows
        self.codes = Codes(*source.constants("NOT_FINITE", "OFF", "SOME_OFF", "FEW_OFF"))
        kind_of_row = "PLAIN" if p == 1 else "BLOCK"
        self._threads, each = source.constants(f"{kind_of_row}_THREADS", f"{kind_of_row}_EACH")
        self._warp = source.constant("TILE_THREADS")
        self._tree = self._threads * each
        self._parts = -(-n // rows)
        self._blocks = -(-self._parts // self._warp)
        self.levels = levels(self._parts, self._threads, each)
        self._total = _rounded(sum(self.levels[-1]), each)
        size = self.dtype.itemsize
        fields, line = 2 * p * (4 * p + 1), 128 // size
        self._tile = self._warp * rows * p * (3 * p + 1) * size
        places = self._threads + self._threads // line
        self._room = (fields * places + 2 * p * (self._threads + 1)) * size
        self._layout = gpu.Layout(
            "tridiagonal.solve",
            # numbers, picks, and the number of rows that are off
            elements=((fields + 2 * p) * self._total + 1, self.dtype),
            gathered=(n * p if permuted else 0, self.dtype),
            marks=(self._parts + _list_words(source, self._parts), np.uint32),
            **{
                f"ends{k}": (2 * p * (count + 1), self.dtype)
                for k, (_, count) in enumerate(self.levels)
            },
        )
        limit = accuracy.limit(self.dtype)
        few, usual = np.int32(accuracy.few(n * p)), np.int32(accuracy.by_chance(n, p))
        self._limits = (self.dtype.type(limit), few, usual)
        self._repairs = self._repair_rounds(source, p, limit, limit * accuracy.worst_by_chance(n))
        self._unread = gpu.Status()
        self._kernels = source.kernels(T=self.dtype, I=np.dtype(index))

    def solve(
        self, dl: Any, d: Any, du: Any, b: Any, x: Any, perm: Any = None, status: Any = None
    ) -> Any:
        """x for one right-hand side; with `perm`, row i belongs to b[perm[i]] and x[perm[i]].

        All are contiguous arrays of the solver's types; this is not checked.  Faults are reported
        to `status`, if there is one.  Returns the memory block with the marks of rows that are off.
        """
        k, n, parts = self._kernels, np.int64(self.n), np.int64(self._parts)
        block = self._layout.take()  # one for each call, since calls may overlap
        matrix = (_address(dl), _address(d), _address(du))
        right, out = _address(b), _address(x)
        order = np.uint64(0) if perm is None else _address(perm)
        elements = self._place(block, "elements")
        gathered = self._place(block, "gathered")
        total, word = np.int64(self._total), _address((status or self._unread).device_words)
        reduced = (n, *matrix, right, order, gathered, elements, total, parts, word)
        k.reduce_rows.launch(self._blocks, self._warp, reduced, self._tile)
        self._solve_ends(block, elements, total, n, word)
        right = right if perm is None else gathered
        ends = self._place(block, "ends0")
        known = (n, *matrix, right, elements, total, parts, ends, order, out, *self._limits)
        substitute = k.substitute_rows if status is None else k.substitute_and_check
        marks = self._place(block, "marks")
        substitute.launch(self._blocks, self._warp, (*known, marks, word), self._tile)
        return block

    def repair(self, dl: Any, d: Any, du: Any, b: Any, x: Any, block: Any, status: Any) -> None:
        """Repair the rows that `solve` marked in `block`; `status` reports rows still off."""
        matrix = (_address(dl), _address(d), _address(du), _address(b), _address(x))
        where = (np.int64(self.n), *matrix, self._place(block, "marks"), np.int64(self._parts))
        word = _address(status.device_words)
        for blocks, threads, rest, room in self._repairs:
            self._kernels.repair.launch(blocks, threads, (*where, *rest, word), room)

    def _repair_rounds(self, source: Any, p: int, limit: float, far: float) -> list[Any]:
        """(thread blocks, threads of a block, arguments, bytes of shared memory) of each round."""
        made: list[Any] = []
        for step, one in enumerate(REPAIR_ROUNDS):
            after = REPAIR_ROUNDS[min(step + 1, len(REPAIR_ROUNDS) - 1)]
            rows = (one.zone, one.shift, after.zone, after.shift)
            sizes = [count // self.rows for count in rows]
            zones = -(-(self._parts + sizes[1]) // sizes[0])
            each = ZONES_PER_BLOCK // p if step == 0 else one.threads
            blocks = -(-zones // each)
            counts = (step, self.rows, *sizes, each, one.least, one.most)
            rest = (*map(np.int32, counts), np.float64(limit), np.float64(far))
            triangle = (2 * one.most + 1) * p * (3 * p + 1)
            room = 8 * (source.constant("REPAIR_LIST") + one.threads * triangle)
            blocks = blocks if step == 0 else min(blocks, MOST_REPAIR_BLOCKS)
            made.append((blocks, one.threads, rest, room))
        assert len(made) == source.constant("REPAIR_ROUNDS")
        return made

    def _place(self, block: Any, name: str) -> Any:
        return np.uint64(block.ptr + getattr(self._layout, name))

    def _solve_ends(self, block: Any, elements: Any, total: Any, n: Any, status: Any) -> None:
        k, last = self._kernels, len(self.levels) - 1
        rows = self.rows
        for level in range(last):
            (start, size), (out, count) = self.levels[level : level + 2]
            where = (elements, total, np.int64(start), np.int64(size), np.int64(out))
            args: tuple[Any, ...] = (*where, np.uint32(level + 1), np.int64(rows), n, status)
            k.join.launch(count, self._threads, args, self._room)
            rows *= self._tree
        start, size = self.levels[last]
        ends = self._place(block, f"ends{last}")
        args = (elements, total, np.int64(start), np.int64(size), ends, np.uint32(last + 1))
        k.top.launch(1, self._threads, (*args, np.int64(rows), n, status), self._room)
        for level in range(last - 1, -1, -1):
            start, size = self.levels[level]
            outer, ends = ends, self._place(block, f"ends{level}")
            args = (elements, total, np.int64(start), np.int64(size), outer, ends)
            k.expand.launch(self.levels[level + 1][1], self._threads, args, self._room)


def _list_words(source: Any, parts: int) -> int:
    """32-bit words that the lists of zones need: `ZoneLists` in passes.cuh."""
    rounds, rows = source.constants("REPAIR_ROUNDS", "REPAIR_ROWS")
    most = parts // (rows // 32) + 2
    words: int = rounds + (rounds - 1) * (most // 32 + 1 + most)
    return words


def _address(array: Any) -> Any:
    return np.uint64(array.data.ptr)


@functools.lru_cache(maxsize=16)
def _solver(make: Any, n: int, dtype: Any, index: Any, permuted: bool, device: int) -> Solver:
    """A solver, kept for later systems of that size and type: making one costs two launches."""
    solver: Solver = make(n, dtype, index, permuted=permuted)
    return solver


def solve(
    make: Any, dl: Any, d: Any, du: Any, b: Any, perm: Any = None, *, threads: int | None = None
) -> tuple[Any, int, int]:
    """The solution for every row of b; the row without a pivot or -1; a verdict (check.py)."""
    x = gpu.empty(b.shape, b.dtype, "tridiagonal.solve")
    if d.shape[0] == 0 or b.shape[0] == 0:
        return x, -1, accuracy.RIGHT
    index = np.dtype(np.int32) if perm is None else perm.dtype
    device = engines.cupy().cuda.runtime.getDevice()
    solver = _solver(make, d.shape[0], d.dtype, index, perm is not None, device)
    status = take_status()
    lacking, verdict = solve_all(solver, (dl, d, du), b, x, perm, status)
    return_status(status)
    return x, lacking, verdict


def solve_all(
    solver: Solver, matrix: Any, b: Any, x: Any, perm: Any, status: Any
) -> tuple[int, int]:
    """Solve for every row of b.  Returns the row without a pivot or -1, and a verdict."""
    codes, (dl, d, du) = solver.codes, matrix
    pairs = list(zip(b, x, strict=True)) if b.shape[0] > 1 else [(b, x)]
    blocks = [solver.solve(dl, d, du, one, out, perm, status) for one, out in pairs]
    code, detail = status.read()
    if codes.not_finite < code < codes.off:  # SINGULAR plus a level
        return detail, accuracy.RIGHT
    if code not in (codes.some_off, codes.few_off) or perm is not None:
        return -1, accuracy.RIGHT if code == 0 else accuracy.WRONG
    status.clear()
    for (one, out), block in zip(pairs, blocks, strict=True):
        solver.repair(dl, d, du, one, out, block, status)
    again, _ = status.read()
    if again not in (0, codes.some_off):
        return -1, accuracy.WRONG
    return -1, accuracy.RIGHT if code == codes.few_off and again == 0 else accuracy.HARD
