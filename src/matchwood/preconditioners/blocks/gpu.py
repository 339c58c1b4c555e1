"""2x2 blocks of a matrix, and paths laid side by side, on the GPU.  Kernels: gpu.cu."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines import gpu
from matchwood.forests import linear_forest
from matchwood.matching import weighted_matching
from matchwood.primitives.assemble import trusted_assemble as assemble
from matchwood.primitives.compact.gpu import compact
from matchwood.primitives.row_reduce import trusted_strongest_neighbours as strongest_neighbours
from matchwood.primitives.scan.gpu import scan_into
from matchwood.primitives.transpose.gpu import first_places

SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    (
        "list_members<I>",
        "collect<I,W>",
        "add_magnitudes<W>",
        "add_diagonal<I,W>",
        "mark_starts<I>",
        "mark_strong<I,W>",
        "keep_strong<I,W>",
        "measure_paths<I>",
        "mark_between<I>",
        "list_between<I,W>",
        "sort_pairs = sort_keys<unsigned long long>",
        "unpack<I,H>",
        "mark_coupled<I>",
        "list_bins<I,K>",
        "sort_bins = sort_keys<K>",
        "add_runs<H>",
        "add_long_runs<H>",
        "raise_most = compare_bins<I,false>",
        "choose = compare_bins<I,true>",
        "pair_up<I>",
    ),
    types={"H": (np.int32, np.int64)},
)

WHAT = "algebraic_block_tridiagonal"
BLOCK = 256  # threads
SHORT_RUN = SOURCE.constant("SHORT_RUN")
SUM_BLOCKS = 1024  # thread blocks that add up weights
ALL, OFF_DIAGONAL = 0b1111, 0b0110  # bit masks: which of the four numbers of a 2x2 block


def members(map: Any, mate: Any, place: Any) -> Any:
    """See `_members_of` in __init__.py."""
    n, kind = map.shape[0], mate.dtype
    map, place = map.astype(kind, copy=False), place.astype(kind, copy=False)
    made = gpu.empty((place.shape[0], 2), kind, WHAT)
    mate = engines.cupy().ascontiguousarray(mate)
    SOURCE.kernels("list_members", I=kind).list_members(n, (n, map, mate, place, made))
    return made


def blocks(
    view: Any, place: Any, position: Any, members: Any, *, threads: int | None = None
) -> tuple[Any, Any, Any]:
    shape = (members.shape[0], 2, 2)
    made = [gpu.empty(shape, view.data.dtype, WHAT) for _ in range(3)]
    k = SOURCE.kernels("collect", I=view.indices.dtype, W=view.data.dtype)
    arrays = (view.indptr, view.indices, view.data, place, position, members)
    k.collect(shape[0], (shape[0], *arrays, *made))
    dl, d, du = made
    return dl, d, du


def weight_inside(dl: Any, d: Any, du: Any) -> float:
    """See `_weight_inside` in __init__.py."""
    sums = gpu.empty((3, SUM_BLOCKS), np.float64, WHAT)
    k = SOURCE.kernels("add_magnitudes", W=d.dtype)
    for array, wanted, part in zip((dl, d, du), (ALL, OFF_DIAGONAL, ALL), sums, strict=True):
        k.add_magnitudes(None, (array.size, array, wanted, part), grid=SUM_BLOCKS)
    return float(sums.get().sum())


def weight_off_diagonal(view: Any) -> float:
    """The sum of the absolute values of all entries, minus those of the diagonal."""
    sums = gpu.empty((2, SUM_BLOCKS), np.float64, WHAT)
    k = SOURCE.kernels("add_magnitudes", "add_diagonal", I=view.indices.dtype, W=view.data.dtype)
    k.add_magnitudes(None, (view.nnz, view.data, ALL, sums[0]), grid=SUM_BLOCKS)
    k.add_diagonal(None, (view.n, *view, sums[1]), grid=SUM_BLOCKS)
    everything, diagonal = sums.get().sum(axis=1)
    return float(everything - diagonal)


# Paths side by side


def side_by_side(view: Any, *, rng: Any, ties: str) -> Any:
    """The mate of each vertex; see __init__.py."""
    n, kind = view.n, view.indices.dtype
    k = SOURCE.kernels(
        "mark_starts", "mark_strong", "keep_strong", "measure_paths", "mark_between",
        "list_between", "pair_up", I=kind, W=view.data.dtype,
    )  # fmt: skip
    rows, space = _rows_of_entries(k, view)
    strong = _strong_edges(k, view, rows, space)
    forest = linear_forest(strong, rounds=1, period=1, rng=rng, ties=ties)
    del strong
    names = ("perm", "path", "position", "place")
    perm, path, position, place = (getattr(forest, name).astype(kind, copy=False) for name in names)
    length = gpu.empty(n, kind, WHAT)
    k.measure_paths(n, (n, perm, path, position, length))
    edges = _Between(k, view, rows, space, path, position)
    del rows, space
    couple = edges.couples(n, rng=rng, ties=ties)
    number = None
    if edges.count:
        number = edges.best_numbers(perm, path, position, couple, length, place)
    mate = gpu.empty(n, kind, WHAT)
    k.pair_up(n, (n, perm, path, position, couple, length, place, number, mate))
    return mate


def _rows_of_entries(k: Any, view: Any) -> tuple[Any, Any]:
    """The row of each entry; and a workspace with the arrays `flags` and `place` of that length."""
    nnz, kind = view.nnz, view.indices.dtype
    space = gpu.workspace(WHAT, flags=(nnz, kind), place=(nnz + 1, kind), rows=(nnz + 1, kind))
    space.flags.data.memset_async(0, space.flags.nbytes)
    k.mark_starts(view.n, (view.n, nnz, view.indptr, space.flags))
    scan_into(space.flags, space.rows)
    return space.rows[1:], space


def _strong_edges(k: Any, view: Any, rows: Any, space: Any) -> tuple[Any, Any, Any]:
    n, nnz, kind = view.n, view.nnz, view.indices.dtype
    _, heaviest = strongest_neighbours(view.indptr, view.indices, view.data, 1)
    k.mark_strong(nnz, (nnz, rows, view.indices, view.data, heaviest, space.flags))
    scan_into(space.flags, space.place)
    count = int(space.place[nnz])
    made = [gpu.empty(n + 1, kind, WHAT), gpu.empty(count, kind, WHAT)]
    made.append(gpu.empty(count, view.data.dtype, WHAT))
    k.keep_strong(max(nnz, n + 1), (n, nnz, *view, space.place, *made))
    indptr, indices, data = made
    return indptr, indices, data


class _Between:
    """The edges between paths, in the order of their rows."""

    def __init__(self, k: Any, view: Any, rows: Any, space: Any, path: Any, position: Any) -> None:
        nnz, self._kind = view.nnz, view.indices.dtype
        k.mark_between(nnz, (nnz, rows, view.indices, path, space.flags))
        scan_into(space.flags, space.place)
        self.count = m = int(space.place[nnz])
        self._shift = max(view.n - 1, 1).bit_length()
        self._keys = gpu.empty(m, np.uint64, WHAT)
        self._here, self._there = (gpu.empty(m, self._kind, WHAT) for _ in range(2))
        self._weights = gpu.empty(m, np.float64, WHAT)
        k.list_between(
            nnz,
            (
                nnz, rows, view.indices, view.data, path, position, space.place, self._shift,
                self._keys, self._here, self._there, self._weights,
            ),
        )  # fmt: skip

    def couples(self, n: int, *, rng: Any, ties: str) -> Any:
        """The path that each path is matched with, by the weight between them; -1 for none."""
        cupy = engines.cupy()
        if self.count == 0:
            return cupy.full(n, -1, self._kind)
        order = _order(self._keys)
        sorted_keys = cupy.empty_like(self._keys)
        first = gpu.empty(self.count, np.bool_, WHAT)
        k = SOURCE.kernels("sort_pairs")
        k.sort_pairs(self.count, (self.count, self._keys, order, sorted_keys, first))
        heads = compact(first)
        pairs = heads.size
        sums = _run_sums(heads, pairs, order, self._weights)
        lower, upper = (gpu.empty(pairs, self._kind, WHAT) for _ in range(2))
        k = SOURCE.kernels("unpack", I=self._kind, H=heads.dtype)
        k.unpack(pairs, (pairs, heads, sorted_keys, self._shift, lower, upper))
        del order, sorted_keys, first, heads
        matrix = assemble(n, n, lower, upper, sums, symmetric=True)
        mate = weighted_matching(matrix, rng=rng, ties=ties).mate
        return mate.astype(self._kind, copy=False)

    def best_numbers(
        self, perm: Any, path: Any, position: Any, couple: Any, length: Any, place: Any
    ) -> Any:
        """For each lower path of a couple, the number that puts most weight into the blocks."""
        n, m, kind = perm.size, self.count, self._kind
        bin_type = np.uint32 if 2 * n <= np.iinfo(np.uint32).max else np.uint64
        k = SOURCE.kernels(
            "mark_coupled", "list_bins", "sort_bins", "raise_most", "choose", I=kind, K=bin_type
        )
        kept = gpu.empty(m, np.bool_, WHAT)
        k.mark_coupled(m, (m, self._keys, self._shift, couple, kept))
        edges = compact(kept).astype(np.int64, copy=False)
        size = edges.size
        bins, weights = gpu.empty(2 * size, bin_type, WHAT), gpu.empty(size, np.float64, WHAT)
        k.list_bins(
            size,
            (
                size, n, edges, self._keys, self._shift, self._here, self._there, self._weights,
                length, place, bins, weights,
            ),
        )  # fmt: skip
        order = _order(bins)
        ascending = gpu.empty(2 * size, bin_type, WHAT)
        k.sort_bins(2 * size, (2 * size, bins, order, ascending, None))
        starts = first_places(ascending, 2 * n, np.int64)
        sums = _run_sums(starts, 2 * n, order, weights)
        space = gpu.workspace(WHAT, most=(n, np.uint64))
        number = gpu.empty(n, np.uint64, WHAT)
        space.most.data.memset_async(0, space.most.nbytes)
        number.data.memset_async(0xFF, number.nbytes)
        forest = (n, perm, path, position, couple, length, place)
        k.raise_most(2 * n, (*forest, sums, space.most, number))
        k.choose(2 * n, (*forest, sums, space.most, number))
        return number


def _order(keys: Any) -> Any:
    """The permutation that sorts the keys; equal ones keep their order."""
    with gpu.guard(WHAT, keys.size * (16 + 2 * keys.itemsize)):
        return engines.cupy().argsort(keys, kind="stable")


def _run_sums(starts: Any, runs: int, order: Any, weights: Any) -> Any:
    """Sums over runs of equal keys; see `struct Run` in gpu.cu."""
    sums = gpu.empty(runs, np.float64, WHAT)
    space = gpu.workspace(
        WHAT, listed=(order.size // SHORT_RUN + 1, np.int64), count=(1, np.uint64)
    )
    space.count.data.memset_async(0, space.count.nbytes)
    k = SOURCE.kernels("add_runs", "add_long_runs", H=starts.dtype)
    arguments = (
        runs, starts, order.size, order, weights, weights.size, sums, space.listed, space.count
    )  # fmt: skip
    k.add_runs(runs, arguments)
    k.add_long_runs(None, arguments, block=BLOCK, grid=k.add_long_runs.resident(BLOCK))
    return sums
