"""Contraction by groups.  Kernels: gpu.cu."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.engines import gpu
from matchwood.primitives.scan.gpu import scan_into

WIDTHS = (8, 16, 32)  # lanes for a group
SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    (
        "measure_groups<I>",
        "bring_together<I>",
        *(f"add_groups{width} = add_groups<I,{width}>" for width in WIDTHS),
        "add_listed<I>",
        "copy_rows<I>",
    ),
)
BLOCK, WARP, WARP_ROW, MEDIUM_ROW = SOURCE.constants("BLOCK", "WARP", "WARP_ROW", "MEDIUM_ROW")
TOO_MANY, LONGEST, TIED, TOTAL, WORDS = SOURCE.constants(
    "TOO_MANY", "LONGEST", "TIED", "TOTAL", "WORDS"
)
CALLER = "contract"


class Rows(NamedTuple):
    """The graph of the groups, and what is known of its rows."""

    indptr: Any
    indices: Any
    data: Any
    inner: Any  # entries within each group
    longest: int
    tied: int  # rows that are not empty


def contract_groups(indptr: Any, indices: Any, data: Any, labels: Any, count: int) -> Rows | None:
    """The rows, unsorted; None where a group has more entries than a block's table takes.

    Memory beside the result: an index and 8 bytes for each entry, three indices for each vertex.
    Waits once.
    """
    n, m, kind = labels.size, indices.size, indices.dtype
    cupy = engines.cupy()
    inner = cupy.zeros(count, np.int64)
    if count == 0:
        nothing = gpu.empty(0, kind, CALLER), gpu.empty(0, np.int64, CALLER)
        return Rows(cupy.zeros(1, kind), *nothing, inner, 0, 0)
    k = SOURCE.kernels(I=kind)
    space = gpu.workspace(
        CALLER,
        offset=(n, kind),
        sizes=(count, kind),
        starts=(count + 1, kind),
        keys=(m, kind),
        weights=(m, np.int64),
        counts=(count, kind),
        listed=(m // WARP_ROW, kind),
    )
    words = gpu.Flag(WORDS, np.uint64)
    space.sizes.data.memset_async(0, space.sizes.nbytes)
    k.measure_groups(n, (n, indptr, labels, space.sizes, space.offset))
    scan_into(space.sizes, space.starts)
    width = _lanes(n, m)
    graph = (n, indptr, indices, data, labels, space.starts, space.offset)
    k.bring_together(n * width, (*graph, width, space.keys, space.weights))
    entries = (space.starts, space.keys, space.weights, data is not None, space.counts, inner)
    width = next((width for width in WIDTHS if m <= width * count), WIDTHS[-1])
    add = getattr(k, f"add_groups{width}")
    add(count * width, (count, *entries, space.listed, words), block=BLOCK)
    blocks = min(space.listed.size, 2 * gpu.multiprocessors())
    if blocks:
        k.add_listed(None, (*entries, space.listed, words), block=BLOCK, grid=blocks)
    words.fetch()
    starts = gpu.empty(count + 1, kind, CALLER)
    scan_into(space.counts, starts)
    found = words.read()
    if found[TOO_MANY]:
        return None
    total = int(found[TOTAL])
    made = gpu.empty(total, kind, CALLER), gpu.empty(total, np.int64, CALLER)
    width = _lanes(count, total)
    k.copy_rows(
        count * width, (count, space.starts, space.keys, space.weights, starts, width, *made)
    )
    return Rows(starts, *made, inner, int(found[LONGEST]), int(found[TIED]))


def _lanes(rows: int, entries: int) -> int:
    """Lanes for a row of average length."""
    width = 1
    while width < WARP and width * rows < entries:
        width *= 2
    return width
