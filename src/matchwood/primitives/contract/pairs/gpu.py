"""Contraction of pairs on the GPU.  Kernels: gpu.cu.

The pairs are numbered, then entries are sorted within each row of the result.  Where such a row is
too long for a warp, all entries are sorted together, as listed/gpu.py does.  Waits for the device
twice, to learn how many rows and how many entries there will be.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines import gpu
from matchwood.primitives.contract.listed.gpu import list_and_sort
from matchwood.primitives.scan.gpu import scan_into

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


def contract_pairs(
    indptr: Any,
    indices: Any,
    data: Any,
    mate: Any,
    members: Any,
    caller: str,
    threads: int | None,
) -> Any:
    matrix = (indptr, indices, data)
    n, nnz, kind, values = mate.size, indices.size, indices.dtype, data.dtype
    if n == 0:
        starts = engines.cupy().zeros(1, kind)
        nothing = [gpu.empty(0, dtype, caller) for dtype in (kind, values, kind, members.dtype)]
        return (starts, *nothing[:2]), nothing[2], nothing[3]
    # two fine rows to a coarse one, at most
    width = next((width for width in WIDTHS if 2 * nnz <= width * n), WIDTHS[-1])
    label = gpu.empty(n, kind, caller)
    capacity = nnz // WIDTHS[0] + 1
    space = gpu.workspace(
        caller,
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
            n, indptr, mate, space.starts, width, label, space.code, space.leaders,
            space.listed, space.places, space.sizes,
        ),
    )  # fmt: skip
    rows, listed, long_entries, too_long = (int(size) for size in space.sizes.get())
    weights = gpu.empty(rows, members.dtype, caller)
    k.add_members(rows, (rows, space.leaders, mate, members, weights))
    if too_long:
        del space
        made = list_and_sort(*matrix, label, rows, loops=False, symmetric=True)
        return made, label, weights

    counts = gpu.workspace(caller, counts=(rows, kind)).counts
    out_indptr = gpu.empty(rows + 1, kind, caller)
    short = (rows, *matrix, mate, space.code, space.leaders)
    blocks = -(-rows * width // BLOCK)
    count_short(None, (*short, counts, None, None, None), block=BLOCK, grid=blocks)
    if listed:
        keys = gpu.workspace(caller, keys=(long_entries, np.uint64)).keys
        lists = (space.listed, space.places)
        pattern = (indptr, indices, mate, space.code, space.leaders, *lists)
        k.sort_by_warps(WARP * listed, (listed, rows, *pattern, keys), block=LONG_BLOCK)
        long = (rows, *matrix, mate, space.leaders, *lists, keys)
        count_long(None, (*long, counts, None, None, None), block=LONG_BLOCK, grid=listed)
    scan_into(counts, out_indptr)
    entries = int(out_indptr[rows])
    made = (out_indptr, gpu.empty(entries, kind, caller), gpu.empty(entries, values, caller))
    write_short(None, (*short, None, *made), block=BLOCK, grid=blocks)
    if listed:
        write_long(None, (*long, None, *made), block=LONG_BLOCK, grid=listed)
    return made, label, weights
