"""Suitor matching on the GPU with lists of first edges.  Kernels and the idea: gpu_lists.cu.

For graphs whose words of vertices no cache holds, with weights of 32 bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines import gpu
from matchwood.matching.methods import Found
from matchwood.primitives.wide_sums import total

WIDTHS = (2, 8)  # lanes per row
SOURCE = gpu.Source(
    __package__,
    "gpu_lists.cu",
    (
        "list_giants<I>",
        "propose_from_lists<I>",
        "read_mates<I,W>",
        *(f"list_first_edges{width} = list_first_edges<I,W,{width}>" for width in WIDTHS),
        *(f"propose_the_rest{width} = propose_the_rest<I,W,{width}>" for width in WIDTHS),
    ),
    types={"W": (np.float32,)},
)

BLOCK = SOURCE.constant("BLOCK")
GIANT_ROW = SOURCE.constant("GIANT_ROW")
LISTED = SOURCE.constant("LISTED")
SUM_BLOCKS = 512  # blocks that add up the weight
MOST_VERTICES = 1 << 31  # a vertex is half of a word


def fits(view: Any) -> bool:
    """Whether a weight and a vertex fit into a word, lists into memory, and no row is very long.

    Graphs with giants are faster without lists.  Measured on an H200: R-MAT 24 and 26 in 7.4 and
    31 ms, 9.1 and 37 with lists; random graphs of that size in 15.4 and 99 ms, 8.7 and 43 with
    lists.
    """
    small = view.data.dtype == np.float32 and view.n < MOST_VERTICES
    return small and gpu.free_bytes() > bytes_for(view) and not has_giants(view)


def has_giants(view: Any) -> bool:
    kind = view.indices.dtype
    giants = (view.nnz // GIANT_ROW + 1, kind)
    space = gpu.workspace("weighted_matching", giants=giants, count=(1, np.uint64))
    space.count.data.memset_async(0, space.count.nbytes)
    k = SOURCE.kernels("list_giants", I=kind)
    k.list_giants(view.n, (view.n, view.indptr, space.giants, space.count))
    return int(space.count.get()[0]) > 0


def bytes_for(view: Any) -> int:
    """Words, lists and the state of giants, and a tenth more."""
    return int(1.1 * view.n * (8 + 8 * LISTED + view.data.itemsize))


def match(view: Any, ties: tuple[int, bool], width: int, mate: Any) -> Found:
    """Fill `mate`.  `width`: lanes per row."""
    n, kind, weight = view.n, view.indices.dtype, view.data.dtype
    names = ("list_giants", "propose_from_lists", "read_mates")
    wide = (f"list_first_edges{width}", f"propose_the_rest{width}")
    k = SOURCE.kernels(*names, *wide, I=kind, W=weight)
    list_edges, the_rest = (getattr(k, name) for name in wide)
    space = gpu.workspace(
        "weighted_matching",
        words=(n, np.uint64),
        lists=(LISTED * n, np.uint64),
        want=(n, weight),
        giants=(view.nnz // GIANT_ROW + 1, kind),
        counts=(2, np.uint64),
        sums=(SUM_BLOCKS, np.float64),
    )
    for array in (space.words, space.want, space.counts):
        array.data.memset_async(0, array.nbytes)
    giant_count, rest_count = space.counts[:1], space.counts[1:]
    rest = mate  # that is written last
    rows = (view.indptr, view.indices, view.data)
    k.list_giants(n, (n, view.indptr, space.giants, giant_count))
    list_edges(n * width, (n, *rows, *ties, space.lists), block=BLOCK)
    from_lists = k.propose_from_lists
    blocks = min(from_lists.resident(BLOCK), -(-n // BLOCK))
    listed = (n, *ties, space.lists, space.words, rest, rest_count)
    from_lists(None, listed, block=BLOCK, grid=blocks)
    left = (rest, rest_count, space.giants, giant_count)
    arguments = (*rows, *ties, space.lists, *left, space.words, space.want)
    the_rest(None, arguments, block=BLOCK, grid=the_rest.resident(BLOCK))
    k.read_mates(None, (n, space.words, mate, space.sums), grid=SUM_BLOCKS)
    return Found(mate, total(space.sums.get()) / 2, 1)
