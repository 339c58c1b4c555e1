"""Contraction on the GPU.  Kernels of `contract_pairs`: gpu.cu.

`contract` sorts all edges together.  `contract_pairs` numbers the pairs, then sorts within each row
of the result.  Only where such a row is too long for a warp it does as `contract`.
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


def contract(
    indptr: Any,
    indices: Any,
    data: Any,
    label: Any,
    count: int,
    *,
    loops: bool = False,
    symmetric: bool = True,
    threads: int | None = None,
) -> Any:
    """Each place once, sorted; of a symmetric matrix the upper half first, then its mirror too."""
    i, j = label[expand_rows(indptr, indices.size)], label[indices]
    if symmetric:
        listed = i <= j if loops else i < j
    else:
        listed = None if loops else i != j
    if listed is not None:
        kept = compact(listed)
        i, j, data = i[kept], j[kept], None if data is None else data[kept]
    if symmetric and not loops:
        return assemble(count, count, i, j, data, symmetric=True)
    made = assemble(count, count, i, j, data)
    if not symmetric:
        return made
    rows = expand_rows(made[0], made[1].size)
    # a loop is its own mirror: the first of the two stays
    return assemble(count, count, rows, made[1], made[2], symmetric=True, reduce="first")


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
        return contract(*matrix, label, rows), label, weights

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
