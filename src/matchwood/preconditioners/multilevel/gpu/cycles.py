"""Host side of cycles.cu: levels laid out, and the launches of a cycle, captured once."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines import gpu
from matchwood.preconditioners.multilevel.reference import NOISE, pseudoinverse, visited_twice
from matchwood.primitives.scan.gpu import scan_into
from matchwood.primitives.transpose.gpu import expand_rows, first_places

_STEPS = ("smooth", "multiply", "go_down", "come_up", "smooth_last", "accelerate", "take_step")
SOURCE = gpu.Source(
    __package__,
    "cycles.cu",
    (
        *(f"{name}<T>" for name in (*_STEPS, "tail")), "point", "find_largest<X>", "begin<T,X>",
        "finish<T,X>", "sort_windows<I>", "fill_slices<I,W,T>",
    ),
    types={"T": (np.float32, np.float64), "X": (np.float32, np.float64)},
)  # fmt: skip
_TABLE = ("N", "COARSE", "AT", "TILES", "BOUNDS", "ORDER", "DOWN", "INVERSE", "UPPER", "LABEL")
(N, COARSE, AT, TILES, BOUNDS, ORDER, DOWN, INVERSE, UPPER, LABEL) = SOURCE.constants(*_TABLE)
INNER, DENSE, MATRIX, RESTRICTION, INTERPOLATION, COLUMNS = SOURCE.constants(
    "INNER", "DENSE", "MATRIX", "RESTRICTION", "INTERPOLATION", "COLUMNS"
)
R, Z, C, D, V, Q, VECTORS = SOURCE.constants("R", "Z", "C", "D", "V", "Q", "VECTORS")
WORDS, STATE, ONE, TWO, SUMS, WARP = SOURCE.constants(
    "WORDS", "STATE", "ONE", "TWO", "SUMS", "WARP"
)
BLOCK, TAIL_BLOCK, CLUSTER, WINDOW, MOST_LEVELS = SOURCE.constants(
    "BLOCK", "TAIL_BLOCK", "CLUSTER", "WINDOW", "MOST_LEVELS"
)
CYCLES = {name: SOURCE.constant(f"{name}CYCLE") for name in "VWK"}
# Entries and rows of a level below which `tail` visits it.
ALONE_STEPS = 100_000
SUM_BLOCKS = 2  # of a multiprocessor, that add up in `accelerate`
END_BLOCKS = 8  # of a multiprocessor, in what comes before and after a cycle
ONCE_ROWS = 1000  # of a level that is visited once: it and those below are one dense matrix


class Layout:
    """The rows of the table, and the arrays whose addresses they hold."""

    def __init__(self, count: int, kind: Any) -> None:
        self.kind = np.dtype(kind)
        self.table = np.zeros((count, COLUMNS), np.int64)
        self.arrays: list[Any] = []

    def place(self, array: Any, dtype: Any) -> int:
        """The address of the array, as that type."""
        kept = engines.cupy().ascontiguousarray(array.astype(dtype, copy=False))
        self.arrays.append(kept)
        return int(kept.data.ptr)

    def on_device(self) -> Any:
        return engines.cupy().asarray(self.table)

    def lines(self, level: int, made: Any) -> None:
        """The smoother along paths."""
        real = self.kind
        self.table[level, [ORDER, DOWN, INVERSE, UPPER, TILES, BOUNDS]] = [
            self.place(made.order, np.int32), self.place(made.down, real),
            self.place(made.inverse, real), self.place(made.upper, real),
            made.bounds.size - 1, self.place(made.bounds, np.int32),
        ]  # fmt: skip

    def add(self, level: int, first: int, csr: Any, inner: Any = None) -> None:
        """A CSR matrix, of ones where it has no data, in slices."""
        cupy = engines.cupy()
        indptr, indices, data = csr
        n, index = indptr.size - 1, indptr.dtype
        windows = -(-n // WINDOW)
        slices = windows * (WINDOW // WARP)
        rows = gpu.empty(windows * WINDOW, np.int32, "multilevel")
        long_rows = gpu.empty(max(n, 1), np.int32, "multilevel")
        places = gpu.empty(slices + 1, np.int64, "multilevel")
        lengths, longs = cupy.empty(slices, np.int32), cupy.zeros(1, np.int32)
        k = SOURCE.kernels("sort_windows", I=index)
        sized = (n, indptr, int(inner is not None), rows, lengths, longs, long_rows)
        k.sort_windows(None, sized, block=WINDOW, grid=windows)
        scan_into(lengths, places)
        total, many = int(places[slices]), int(longs[0])
        columns = gpu.empty(total, np.int32, "multilevel")
        values = None if data is None else gpu.empty(total, self.kind, "multilevel")
        kind = self.kind if data is None else data.dtype
        f = SOURCE.kernels("fill_slices", I=index, W=kind, T=self.kind)
        args = (slices, indptr, indices, data, inner, rows, places, columns, values)
        f.fill_slices(slices * WARP, args)
        found = [slices, self.place(rows, np.int32), self.place(places, np.int64)]
        found += [self.place(columns, np.int32)]
        found += [0 if values is None else self.place(values, self.kind)]
        if many:  # copied, as the entries of slices are: the matrix may be the caller's
            chosen = cupy.sort(long_rows[:many])  # sums over rows go by this order
            begins, starts = indptr[chosen], gpu.empty(many + 1, np.int64, "multilevel")
            scan_into(indptr[chosen + 1] - begins, starts)
            entries = cupy.arange(int(starts[many]))
            entries += (begins - starts[:many])[expand_rows(starts, entries.size)]
            spans = cupy.stack((starts[:many], starts[1:]), axis=1)
            found += [many, self.place(chosen, np.int32), self.place(spans, np.int64)]
            found += [self.place(indices[entries], np.int32)]
            kept = None if data is None else data[entries]
            found += [0 if a is None else self.place(a, self.kind) for a in (kept, inner)]
        self.table[level, first : first + len(found)] = found


def members_of(label: Any, count: int) -> tuple[Any, Any]:
    """Where each group begins, and its rows, ascending; those left out, label `count`, are last."""
    order = engines.cupy().argsort(label, kind="stable").astype(label.dtype, copy=False)
    starts = first_places(label[order], count, label.dtype)
    return starts, order


def smoother(T: Any, n: int) -> tuple[Any, Any, Callable[[], None]]:
    """(q, x, solve): two vectors, and what makes x the smoother along paths times q."""
    layout = Layout(1, np.float64)
    layout.table[0, N] = n
    layout.lines(0, T)
    vectors, table = gpu.empty(2 * n, np.float64, "multilevel"), layout.on_device()
    words, k = engines.cupy().zeros(WORDS, np.uint32), SOURCE.kernels("smooth", T=np.float64)
    args = (table, vectors, n, words, 0, 0, -1, 1)

    def solve(layout: Layout = layout) -> None:
        k.smooth(None, args, block=BLOCK, grid=T.bounds.size - 1, shared_mem=8 * T.longest)

    return vectors[:n], vectors[n:], solve


def inverse(matrix: Any, symmetric: bool) -> Any:
    """The inverse; of a singular matrix the pseudoinverse.  See hierarchy.py, `_inverted`."""
    cupy, whole = engines.cupy(), dense(matrix)
    if not whole.size:
        return whole
    found = cupy.linalg.inv(whole)
    error = float(abs((whole * found.sum(axis=1)).sum(axis=1) - 1).max())
    if not error < 1e-6:
        found = cupy.asarray(pseudoinverse(whole.get(), symmetric))
    return (found + found.T) / 2 if symmetric else found


def dense(matrix: Any) -> Any:
    indptr, indices, data, inner = matrix
    whole = engines.cupy().diag(inner.astype(np.float64))
    whole[expand_rows(indptr, indices.size), indices] += data
    return whole


def dense_smoother(made: Any) -> Any:
    cupy = engines.cupy()
    if not hasattr(made, "order"):
        return cupy.diag(made.astype(np.float64))
    n, S = made.order.size, cupy.diag(made.inverse)
    for links, side in ((made.down[1:], -1), (made.upper[:-1], 1)):
        S = cupy.linalg.solve(cupy.eye(n) + cupy.diag(links, side), S)
    found = cupy.empty_like(S)
    found[cupy.ix_(made.order, made.order)] = S
    return found


def once_from(levels: Any, cycle: str, twice: int) -> int:
    """The first of the last levels that are visited once, and small."""
    k = len(levels) - 1
    if levels[k].rows > ONCE_ROWS or cycle == "W":
        return k
    first = twice + 1 if cycle == "K" else 1
    while k > max(first, 1) and levels[k - 1].rows <= ONCE_ROWS:
        k -= 1
    return k


def in_one(levels: Any, labels: Any, first: int, symmetric: bool, sweeps: int) -> Any:
    """The matrix of one visit of level `first` and those below, which is linear."""
    cupy, last = engines.cupy(), levels[-1]
    M = inverse(last.matrix, symmetric) if last.made is None else dense_smoother(last.made)
    for k in range(len(levels) - 2, first - 1, -1):
        level, A, S = levels[k], dense(levels[k].matrix), dense_smoother(levels[k].made)
        if level.interpolation is None:
            label, count = labels[k]
            P = (label[:, None] == cupy.arange(count)).astype(np.float64)
        else:
            P = level.interpolation.toarray()
        X = S
        for _ in range(1, sweeps):
            X = X + S - S @ (A @ X)
        X = X + P @ (M @ (P.T - P.T @ (A @ X)))
        for _ in range(sweeps):
            X = X + S - S @ (A @ X)
        M = X
    return M


class Cycle:
    """Levels on the GPU, and their cycle; its vectors are used by one call at a time."""

    def __init__(
        self, levels: Any, labels: Any, symmetric: bool, options: Any, exponent: int
    ) -> None:
        cupy = engines.cupy()
        if len(levels) > MOST_LEVELS:
            raise ValueError(f"multilevel: at most {MOST_LEVELS} levels on the GPU")
        kind = np.dtype(options.precision or levels[0].matrix.data.dtype)
        self._kind, self._levels, self._exponent = kind, levels, exponent
        self._symmetric, self._options = symmetric, options
        self._layout = Layout(len(levels), kind)
        self._longest, self._inverse, at = 0, None, 0
        self._twice = visited_twice([level.rows for level in levels])
        self._last = once_from(levels, options.cycle, self._twice)
        self._dense = levels[-1].made is None or self._last < len(levels) - 1
        for k, level in enumerate(levels[: self._last + 1]):
            self._layout.table[k, [N, AT]] = level.rows, at
            at += -(-level.rows // WARP) * WARP
            if k == self._last and self._dense:
                M = in_one(levels, labels, k, symmetric, options.sweeps)
                self._layout.table[k, DENSE] = self._layout.place(M, kind)
            else:
                self._lay_out(k, level, labels[k])
        self._total = at
        steps = [level.rows + level.matrix.indices.size for level in levels]
        self._alone = next(
            k for k in range(len(levels) + 1) if max(steps[k:], default=0) < ALONE_STEPS
        )
        if self._dense:
            self._alone = min(self._alone, self._last)
        noise = NOISE * float(np.finfo(kind).eps)
        self._noise = noise if symmetric else noise**2
        self._cycle = options.cycle
        self._table = self._layout.on_device()
        self._vectors = gpu.empty(VECTORS * at, kind, "multilevel")
        self._sum_blocks = SUM_BLOCKS * gpu.multiprocessors()
        self._parts = cupy.zeros(max(self._sum_blocks, CLUSTER) * SUMS)
        state = np.zeros((len(levels), STATE))
        state[:, ONE] = 1
        state[1:, TWO] = float(self._cycle == "W")
        state[self._last, TWO] = 0
        self._state = cupy.asarray(state)
        self._words = cupy.zeros(WORDS, np.uint32)
        self._io, self._top = cupy.zeros(2, np.uint64), cupy.zeros(1, np.uint64)
        self._k = SOURCE.kernels(*_STEPS, "tail", T=kind)
        capability = int(cupy.cuda.Device().compute_capability)
        self._cluster = CLUSTER if capability >= 90 else 1
        self._graphs: dict[Any, Any] = {}
        self._lock, self._done = threading.Lock(), cupy.cuda.Event(disable_timing=True)

    def _lay_out(self, k: int, level: Any, groups: Any) -> None:
        layout, matrix, made = self._layout, level.matrix, level.made
        row = layout.table[k]
        real = layout.kind
        beside = matrix.inner if bool(matrix.inner.any()) else None
        layout.add(k, MATRIX, matrix[:3], beside)
        row[INNER] = layout.place(matrix.inner, real)
        if hasattr(made, "order"):
            layout.lines(k, made)
            self._longest = max(self._longest, made.longest)
        else:
            row[INVERSE] = layout.place(made, real)
            self._inverse = layout.arrays[-1] if k == 0 else self._inverse
        if groups is None:
            return
        label, count = groups
        row[COARSE] = count
        if level.interpolation is None:
            row[LABEL] = layout.place(label, np.int32)
            starts, members = members_of(label, count)
            layout.add(k, RESTRICTION, (starts, members, None))
        else:
            both = (INTERPOLATION, level.interpolation), (RESTRICTION, level.restriction)
            for first, P in both:
                layout.add(k, first, (P.indptr, P.indices, P.data))

    def _launch(self, name: str, depth: int, *args: Any, grid: int, shared: int = 0) -> None:
        whole = (self._table, self._vectors, self._total, self._words, depth, *args)
        getattr(self._k, name)(None, whole, block=BLOCK, grid=max(grid, 1), shared_mem=shared)

    def _grid(self, depth: int, part: int | None = None) -> int:
        row = self._layout.table[depth]
        if part is None:
            return -(-int(row[N]) // BLOCK)
        return -(-int(row[part]) * WARP // BLOCK)

    def _smooth(self, depth: int, source: int, base: int, onto: int) -> None:
        tiles = int(self._layout.table[depth, TILES])
        shared = self._longest * self._kind.itemsize if tiles else 0
        self._launch(
            "smooth", depth, source, base, onto, grid=tiles or self._grid(depth), shared=shared
        )

    def _residual(self, depth: int, of: int = Z, onto: int = Q) -> None:
        self._launch("multiply", depth, of, True, onto, grid=self._grid(depth, MATRIX))

    def _solve(self, depth: int) -> None:
        """Level `depth`, from R to C and D, which `state` combines."""
        last = self._last
        if depth >= self._alone:
            args = (
                self._table, self._vectors, self._total, self._words, depth, last + 1,
                CYCLES[self._cycle], self._symmetric, self._options.sweeps, self._twice,
                self._noise, self._parts, self._state,
            )  # fmt: skip
            self._k.tail(
                None, args, block=TAIL_BLOCK, grid=self._cluster,
                shared_mem=self._longest * self._kind.itemsize,
            )  # fmt: skip
            return
        if depth == last:
            self._smooth(depth, R, -1, C)
            return
        self._visit(depth, C, True)
        if depth == 0 or self._cycle == "V" or (self._cycle == "K" and depth > self._twice):
            return
        if self._cycle == "W":
            self._residual(depth, C, R)
            self._visit(depth, D, False)
            return
        self._accelerate(depth, True)
        self._launch("take_step", depth, self._state, grid=self._grid(depth))
        self._visit(depth, D, True)
        self._accelerate(depth, False)

    def _accelerate(self, depth: int, first: bool) -> None:
        grid = self._grid(depth, MATRIX)
        self._launch("multiply", depth, C if first else D, False, V if first else Q, grid=grid)
        args = (self._state, first, self._symmetric, self._noise, self._parts)
        grid = min(self._sum_blocks, grid)
        self._launch("accelerate", depth, *args, grid=grid)

    def _visit(self, depth: int, onto: int, ready: bool) -> None:
        """Once from R to `onto`; `ready`: Z is there where the smoother is diagonal."""
        if self._layout.table[depth, TILES] or not ready:
            self._smooth(depth, R, -1, Z)
        for _ in range(1, self._options.sweeps):
            self._residual(depth)
            self._smooth(depth, Q, Z, Z)
        self._residual(depth)
        self._launch("go_down", depth, grid=self._grid(depth, RESTRICTION))
        self._solve(depth + 1)
        plain = self._levels[depth].interpolation is None
        grid = self._grid(depth, None if plain else INTERPOLATION)
        self._launch("come_up", depth, self._state, grid=grid)
        for _ in range(1, self._options.sweeps):
            self._residual(depth)
            self._smooth(depth, Q, Z, Z)
        if self._layout.table[depth, TILES]:
            self._residual(depth)
            self._smooth(depth, Q, Z, onto)
        else:
            self._launch("smooth_last", depth, onto, grid=self._grid(depth, MATRIX))

    def _captured(self, kind: Any) -> Any:
        """The cycle for vectors of that type."""
        if kind not in self._graphs:
            n = self._levels[0].rows
            ends = SOURCE.kernels("find_largest", "begin", "finish", "point", T=self._kind, X=kind)
            right, z, answer = (self._vectors[v * self._total :][:n] for v in (R, Z, C))
            grid = min(END_BLOCKS * gpu.multiprocessors(), -(-n // BLOCK))
            cycle = weakref.proxy(
                self
            )  # which has the graph: memory is free as soon as it is not used

            def run() -> None:
                ends.find_largest(None, (n, cycle._io, cycle._top), grid=grid)
                ends.begin(None, (n, cycle._io, cycle._top, cycle._inverse, right, z), grid=grid)
                cycle._solve(0)
                args = (n, cycle._io, cycle._top, cycle._exponent, answer)
                ends.finish(None, args, grid=grid)

            self._graphs[kind] = ends.point, gpu.capture(run)
        return self._graphs[kind]

    def __call__(self, rows: Any) -> Any:
        """The cycle applied to each row; nothing waits for the device."""
        out = engines.cupy().empty_like(rows)
        if rows.size == 0:
            return out
        with self._lock:
            point, graph = self._captured(rows.dtype)
            stream = engines.cupy().cuda.get_current_stream()
            stream.wait_event(self._done)  # of a call on another stream, with the same vectors
            for r, x in zip(rows, out, strict=True):
                point(1, (int(r.data.ptr), int(x.data.ptr), self._io, self._top), block=WARP)
                graph.launch()
            self._done.record(stream)
        return out
