"""The blocks of all ranks joined to one view, on the GPU that they share.  Kernel: gpu.cu.

A row of the view is in as many pieces as a row of the grid has ranks, each of them ascending.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines import gpu
from matchwood.gate.views import View

CALLER = "a whole graph"
SOURCE = gpu.Source(
    __package__, "gpu.cu", ("merge_piece<I,W>",), types={"W": (np.uint32, np.uint64)}
)
TILE = SOURCE.constant("TILE")


def joined(grid: Any, blocks: list[dict[str, Any]], kind: Any) -> View:
    """The view by the user's ids, with indices of that type, of the blocks of all ranks.

    A block has `indptr`, `indices`, the user's ids `names` of its local ids, and `data` or none.
    They may be mapped memory of other ranks, and are read in order.
    """
    xp, C = engines.cupy(), grid.C
    groups = [blocks[r * C : (r + 1) * C] for r in range(grid.R)]
    rows = [sum(grid.size_of(r * C + c) for c in range(C)) for r in range(grid.R)]
    lengths = xp.zeros(grid.n + 1, kind)
    after = lengths[1:]
    for size, group in zip(rows, groups, strict=True):
        users = group[0]["names"][:size]
        for block in group:
            after[users] += xp.diff(block["indptr"][: size + 1]).astype(kind, copy=False)
    indptr = xp.cumsum(lengths, dtype=kind)
    entries = sum(int(block["indices"].size) for block in blocks)
    indices = gpu.empty(entries, kind, CALLER)
    data = None
    if "data" in blocks[0]:
        data = gpu.empty(entries, blocks[0]["data"].dtype, CALLER)
    for size, group in zip(rows, groups, strict=True):
        _merge(size, group, View(indptr, indices, data))
    return View(indptr, indices, data)


def _merge(rows: int, group: list[dict[str, Any]], view: View) -> None:
    """Write the rows of a row group, which the blocks of its ranks have in pieces."""
    xp, kind = engines.cupy(), view.indices.dtype
    ends = np.cumsum([0, *(int(block["indices"].size) for block in group)])
    columns = gpu.empty(int(ends[-1]), kind, CALLER)  # of all pieces, by the user's ids
    for lo, hi, block in zip(ends, ends[1:], group, strict=False):
        names = block["names"].copy()  # read at random, which mapped memory is slow at
        columns[int(lo) : int(hi)] = names[block["indices"]]
    starts = xp.concatenate([block["indptr"][: rows + 1].astype(kind) for block in group])
    users = group[0]["names"][:rows].astype(kind)
    begins = xp.asarray(ends.astype(np.int64))
    word = np.dtype(np.uint64 if view.data is not None and view.data.itemsize == 8 else np.uint32)
    values = None if view.data is None else view.data.view(word)
    k = SOURCE.kernels(I=kind, W=word)
    for own, block in enumerate(group):
        nnz = int(block["indices"].size)
        data = None if values is None else block["data"].view(word)
        if nnz:
            k.merge_piece(
                -(-(rows + nnz) // TILE) * 32,
                (
                    len(group), own, rows, nnz, starts, begins, columns, users, view.indptr,
                    data, view.indices, values,
                ),
            )  # fmt: skip
