"""Coarsening on the GPU: number the pairs, then sort within each coarse row.  Kernels: gpu.cu.

Where a coarse row is too long for a warp, all edges are sorted together instead: `_assembled`.
Waits for the device twice, to learn how many rows and how many entries there will be.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines, gpu
from matchwood.primitives.assemble.gpu import assemble
from matchwood.primitives.compact.gpu import compact
from matchwood.primitives.scan.gpu import scan_into
from matchwood.primitives.transpose.gpu import expand_rows

WIDTHS = (16, 32)  # lanes for a row
SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    (
        "mark_leaders<I>",
        "number<I>",
        "add_members<I,V>",
        *(f"count_short{width} = short_rows<I,W,{width},false>" for width in WIDTHS),
        *(f"write_short{width} = short_rows<I,W,{width},true>" for width in WIDTHS),
        "sort_by_warps<I>",
        "count_long = long_rows<I,W,false>",
        "write_long = long_rows<I,W,true>",
    ),
    types={"V": (np.int64, np.float64)},
)

BLOCK = SOURCE.constant("BLOCK")
LONG_BLOCK = SOURCE.constant("LONG_BLOCK")
WARP = SOURCE.constant("WARP")

WHAT = "coarsen"


def coarsen(view: Any, mate: Any, members: Any, threads: int | None = None) -> Any:
    n, kind, values = view.n, view.indices.dtype, view.data.dtype
    if n == 0:
        indptr = engines.cupy().zeros(1, kind)
        nothing = [gpu.empty(0, dtype, WHAT) for dtype in (kind, values, kind, members.dtype)]
        return (indptr, *nothing[:2]), nothing[2], nothing[3]
    # two fine rows to a coarse one, at most
    width = next((width for width in WIDTHS if 2 * view.nnz <= width * n), WIDTHS[-1])
    map = gpu.empty(n, kind, WHAT)
    capacity = view.nnz // WIDTHS[0] + 1
    space = gpu.workspace(
        WHAT,
        leads=(n, kind),
        starts=(n + 1, kind),
        code=(n, kind),
        leaders=(n, kind),
        listed=(capacity, kind),
        places=(capacity, np.int64),
        sizes=(4, np.uint64),
    )
    names = (f"count_short{width}", f"write_short{width}", "count_long", "write_long")
    k = SOURCE.kernels(
        "mark_leaders", "number", "add_members", "sort_by_warps", *names,
        I=kind, W=values, V=members.dtype,
    )  # fmt: skip
    count_short, write_short, count_long, write_long = (getattr(k, name) for name in names)

    k.mark_leaders(n, (n, mate, space.leads))
    scan_into(space.leads, space.starts)
    space.sizes.data.memset_async(0, space.sizes.nbytes)
    k.number(
        n,
        (
            n, view.indptr, mate, space.starts, width, map, space.code, space.leaders,
            space.listed, space.places, space.sizes,
        ),
    )  # fmt: skip
    rows, listed, long_entries, too_long = (int(size) for size in space.sizes.get())
    weights = gpu.empty(rows, members.dtype, WHAT)
    k.add_members(rows, (rows, space.leaders, mate, members, weights))
    if too_long:
        del space
        return _assembled(view, map, rows), map, weights

    counts = gpu.workspace(WHAT, counts=(rows, kind)).counts
    indptr = gpu.empty(rows + 1, kind, WHAT)
    short = (rows, *view, mate, space.code, space.leaders)
    blocks = -(-rows * width // BLOCK)
    count_short(None, (*short, counts, None, None, None), block=BLOCK, grid=blocks)
    if listed:
        keys = gpu.workspace(WHAT, keys=(long_entries, np.uint64)).keys
        lists = (space.listed, space.places)
        pattern = (view.indptr, view.indices, mate, space.code, space.leaders, *lists)
        k.sort_by_warps(WARP * listed, (listed, rows, *pattern, keys), block=LONG_BLOCK)
        long = (rows, *view, mate, space.leaders, *lists, keys)
        count_long(None, (*long, counts, None, None, None), block=LONG_BLOCK, grid=listed)
    scan_into(counts, indptr)
    entries = int(indptr[rows])
    indices, data = gpu.empty(entries, kind, WHAT), gpu.empty(entries, values, WHAT)
    made = (None, indptr, indices, data)
    write_short(None, (*short, *made), block=BLOCK, grid=blocks)
    if listed:
        write_long(None, (*long, *made), block=LONG_BLOCK, grid=listed)
    return (indptr, indices, data), map, weights


def _assembled(view: Any, map: Any, rows: int) -> Any:
    """The coarse matrix by sorting its edges, each kept once."""
    i, j = map[expand_rows(view.indptr, view.nnz)], map[view.indices]
    kept = compact(i < j)
    return assemble(rows, rows, i[kept], j[kept], view.data[kept], symmetric=True, loops=False)
