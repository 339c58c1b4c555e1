"""Boruvka's method on the GPU.  Kernels: gpu.cu; its rounds: lists/."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines import gpu
from matchwood.primitives.row_reduce.gpu import Tiles
from matchwood.spanning.forest import order as orders
from matchwood.spanning.forest.lists.gpu import CALLER, LIST_BLOCK, Lists, clear, fill

SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    (
        "first_edges<I,B,X,2048>",
        "hook_vertices<I>",
        "mark_largest<I>",
        "list_light<I,B,X>",
        "list_rest<I,B,X>",
    ),
    types={"B": (np.uint32, np.uint64), "X": ("true", "false")},
)

TILE_ENTRIES, LIGHT_ENTRIES = SOURCE.constants("TILE_ENTRIES", "LIGHT_ENTRIES")
LIGHT_DEGREE = 8.0  # mean degree from which light edges go first
# Edges for each vertex that are light.  Where degrees are skewed fewer do: hubs join most trees.
# Measured on an H200 with 0.15, 0.3, 0.6, 1.0, 1.5 and 2.0, in milliseconds: R-MAT 22 4.8, 4.8,
# 4.9, 5.3, 5.7, 6.3; mesh 128^3 11, 11, 8.9, 4.8, 4.1, 4.3.
LIGHT_EDGES, LIGHT_EDGES_SKEWED = 1.5, 0.3
SKEWED = 16.0  # times the mean degree: that of the row of an entry, on average
SAMPLE = 1024  # vertices whose roots tell which tree is the largest
# Vertices from which the largest tree has a bitmap: the roots of fewer stay in the L2 cache.
BITMAP_VERTICES = 1 << 22


def mark_forest(
    costs: Any, order: orders.Order, method: str, threads: int | None
) -> tuple[Any, int]:
    """Marks of the forest's entries, and rounds.

    Memory: a list of 16 bytes for each edge that is listed (24 with 64-bit indices), twice; 12
    bytes a vertex (16), and 8 (16) more at first.
    """
    n, nnz = costs.n, costs.nnz
    lists = Lists(costs, order)
    k = SOURCE.kernels(I=costs.indices.dtype, B=lists.bits.dtype, X=lists.exact)
    light, most = orders.EVERYTHING, nnz // 2
    if nnz > LIGHT_DEGREE * n:
        share = (LIGHT_EDGES_SKEWED if _skewed(costs) else LIGHT_EDGES) * n / (nnz / 2)
        sample = costs.data[:: max(1, nnz // orders.SAMPLE)].get()
        light = orders.light_prefix(sample, order, share)
        most = min(most, int(1.5 * share * most) + 1024)
    near = gpu.empty(n, costs.indices.dtype, CALLER)
    entry = gpu.empty(n, costs.indices.dtype, CALLER)
    accumulator = 8 if order.exact else 16
    args = (lists.bits, lists.words_of_order, near, entry)
    Tiles(costs.indptr).launch(k.first_edges, accumulator, costs.indices, args)
    pattern = (n, costs.indptr, costs.indices)
    k.hook_vertices(n, (*pattern, near, entry, lists.up, lists.marks))
    del near, entry
    for lightest in (True, False) if light < orders.EVERYTHING else (False,):
        lists.flatten()
        if lightest:
            listed = _listed(lists, k.list_light, LIGHT_ENTRIES, (light,), most)
        else:
            split = light < orders.EVERYTHING and n >= BITMAP_VERTICES
            tree = _largest_tree(k, lists) if split else (-1, None)
            listed = _listed(lists, k.list_rest, TILE_ENTRIES, tree, most)
        if listed:
            lists.hook_and_shrink(listed)
    return lists.marks, lists.rounds + 1


def _skewed(costs: Any) -> bool:
    """Are the rows of entries much longer than rows, judged by a sample?"""
    cupy = engines.cupy()
    nnz = costs.nnz
    places = cupy.arange(0, nnz, max(1, nnz // orders.SAMPLE), dtype=costs.indptr.dtype)
    row = cupy.searchsorted(costs.indptr, places, side="right") - 1
    length = costs.indptr[row + 1] - costs.indptr[row]
    return float(length.mean(dtype=np.float64)) > SKEWED * nnz / costs.n


def _largest_tree(k: Any, lists: Lists) -> tuple[int, Any]:
    """The root of the largest tree, as a sample tells, and a bitmap of its vertices."""
    n = lists.costs.n
    roots, counts = np.unique(lists.up[:: max(1, n // SAMPLE)].get(), return_counts=True)
    largest = int(roots[counts.argmax()])
    bits = gpu.empty(-(-n // 32), np.uint32, CALLER)
    k.mark_largest(n, (n, lists.up, largest, bits))
    return largest, bits


def _listed(lists: Lists, kernel: Any, tile: int, which: tuple[Any, ...], most: int) -> int:
    """Fill the first list; how many are in it.  Once more if there was no room for all."""
    costs = lists.costs
    n, nnz = costs.n, costs.nnz
    lists.current = 0
    tiles = -(-(n + nnz) // tile) * 32
    while True:
        lists.make_room(most)
        clear(lists.sizes)
        fill(lists.best)
        kernel(
            min(tiles, kernel.resident(LIST_BLOCK) * LIST_BLOCK),
            (n, nnz, costs.indptr, costs.indices, lists.bits, lists.words_of_order, *which,
             lists.up, lists.ends[0], lists.words[0], lists.size(0), lists.room, lists.best),
            block=LIST_BLOCK,
        )  # fmt: skip
        listed = int(lists.size(0).item())
        if listed <= lists.room:
            return listed
        most = listed
