"""A round of joins on the GPU.  Kernels: gpu.cu; the rule: __init__.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines import gpu
from matchwood.primitives.scan.gpu import scan_into

WIDTHS = (4, 8, 16, 32)  # lanes for a row
SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    (
        *(f"join_rows{width} = join_rows<I,{width}>" for width in WIDTHS),
        "join_pieces<I>",
        "join_long<I>",
        "climb<I>",
        "number_trees<I>",
    ),
)
BLOCK, LONG_ROW, PIECE, UNFINISHED, TREES = SOURCE.constants(
    "BLOCK", "LONG_ROW", "PIECE", "UNFINISHED", "TREES"
)


def joins(
    pattern: tuple[Any, Any, Any], volume: Any, names: Any, total: int, resolution: float, *,
    threads: int | None = None,
) -> Any:  # fmt: skip
    """Short rows in one launch; pieces of long rows, and then those rows, in two more."""
    indptr, indices, weights = pattern
    kind = indices.dtype
    n, nnz = indptr.size - 1, indices.size
    target = gpu.empty(n, kind, "joins")
    if n == 0:
        return target
    k = SOURCE.kernels(I=kind)
    long_rows, pieces = nnz // LONG_ROW, nnz // LONG_ROW + nnz // PIECE  # at most
    space = gpu.workspace(
        "joins",
        row=(long_rows, kind),
        first=(long_rows, kind),
        piece_row=(pieces, kind),
        gain=(pieces, np.float64),
        who=(pieces, kind),
        words=(2, np.uint64),
    )
    space.words.data.memset_async(0, space.words.nbytes)
    graph = (indptr, indices, weights, volume, names, float(max(total, 1)), resolution)
    listed = (space.row, space.first, space.piece_row, space.gain, space.who, space.words)
    width = next((width for width in WIDTHS if nnz <= width * n), WIDTHS[-1])
    getattr(k, f"join_rows{width}")(n * width, (n, *graph, target, *listed), block=BLOCK)
    if long_rows:
        most = 4 * gpu.multiprocessors()
        k.join_pieces(None, (*graph, *listed), block=BLOCK, grid=min(pieces, most))
        found = (space.row, space.first, space.gain, space.who, space.words)
        blocks = -(-long_rows * WIDTHS[-1] // BLOCK)
        k.join_long(
            None, (indptr, volume, names, *found, target), block=BLOCK, grid=min(blocks, most)
        )
    return target


def trees(target: Any, *, threads: int | None = None) -> tuple[Any, Any]:
    """One wait, where no tree is higher than a launch climbs."""
    n, kind = target.size, target.dtype
    label, roots = gpu.empty(n, kind, "trees"), gpu.empty(n, kind, "trees")
    if n == 0:
        return label, roots
    k = SOURCE.kernels("climb", "number_trees", I=kind)
    space = gpu.workspace(
        "trees", one=(n, kind), other=(n, kind), is_root=(n, np.int32), starts=(n + 1, kind)
    )
    words = gpu.Flag(2, np.int64)
    parent, here, there = target, space.one, space.other
    while True:
        words.clear()
        k.climb(n, (n, parent, here, space.is_root, words))
        scan_into(space.is_root, space.starts)
        k.number_trees(n, (n, here, space.starts, label, roots, words))
        words.fetch()
        found = words.read()
        if not found[UNFINISHED]:
            return label, roots[: int(found[TREES])]
        parent, here, there = here, there, here
