"""Suitor matching on the GPU.  Kernels: gpu.cu; the rule and the paper: matching/weighted.py.

Where many weights are equal, vertices are first matched along chains of equal weights.  Where the
caches cannot hold the words of vertices, and weights have 32 bits, lists of first edges are used.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines import gpu
from matchwood.matching.methods import EngineMatching
from matchwood.primitives.row_reduce import trusted_strongest_neighbours as strongest_neighbours
from matchwood.primitives.wide_sums import total

WIDTHS = (2, 8)  # lanes per row
ENTRIES_PER_LANE = 4  # entries per lane, on average
SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    (
        "list_giants<I>",
        "add_offers<I,W>",
        *(
            f"make_proposals{width}{'_far' if far else ''} = make_proposals<I,W,{width},{far:d}>"
            for width in WIDTHS
            for far in (False, True)
        ),
        "propose_from_lists<I>",
        "read_mates<I,F>",
        *(f"list_first_edges{width} = list_first_edges<I,F,{width}>" for width in WIDTHS),
        *(f"propose_the_rest{width} = propose_the_rest<I,F,{width}>" for width in WIDTHS),
        "link_chains<I>",
        "jump<I>",
        "match_ahead<I,W>",
    ),
    types={"F": (np.float32,)},  # weights where lists are used
)

BLOCK, GIANT_ROW = SOURCE.constants("BLOCK", "GIANT_ROW")
LISTED, JUMPS = SOURCE.constants("LISTED", "JUMPS")

SUM_BLOCKS = 512  # blocks that add up the weight
MOST_VERTICES = 1 << 31  # vertices of a graph with lists: a vertex is half of a word
CACHED_BYTES = 32 << 20  # bytes of all offers; more do not stay in the caches of a device
SAMPLED_PAIRS = (
    1024  # pairs of neighbouring entries, compared to estimate how many weights are equal
)


def many_ties(data: Any) -> bool:
    """Whether more than a tenth of neighbouring entries weigh the same, estimated from a sample."""
    step = max(1, data.size // SAMPLED_PAIRS)
    one, other = data[:-1:step], data[1::step]
    return 10 * int((one == other).sum()) > one.size


def match(view: Any, seed: int, by_hash: bool, threads: int | None = None) -> EngineMatching:
    n, nnz, kind, weight = view.n, view.nnz, view.indices.dtype, view.data.dtype
    mate = gpu.empty(n, kind, "weighted_matching")
    mate.data.memset_async(0xFF, mate.nbytes)
    if n == 0 or nnz == 0:
        return EngineMatching(mate, 0.0, 1)
    width = next((width for width in WIDTHS if nnz <= ENTRIES_PER_LANE * width * n), WIDTHS[-1])
    far = n * weight.itemsize > CACHED_BYTES
    chains = not by_hash and many_ties(view.data)  # ties by hash leave no long chains
    if far and not chains and lists_fit(view):
        return match_by_lists(view, (seed, by_hash), width, mate)
    name = f"make_proposals{width}{'_far' if far else ''}"
    k = SOURCE.kernels("list_giants", "add_offers", name, I=kind, W=weight)
    space = gpu.workspace(
        "weighted_matching",
        want=(n, weight),
        offer=(n, weight),
        giants=(nnz // GIANT_ROW + 1, kind),
        count=(1, np.uint64),
        sums=(SUM_BLOCKS, np.float64),
    )
    for array in (space.want, space.offer, space.count):
        array.data.memset_async(0, array.nbytes)
    if chains:
        match_ahead(view, mate, space.want, space.offer)
    k.list_giants(n, (n, view.indptr, space.giants, space.count))
    make_proposals = getattr(k, name)
    arguments = (
        n, view.indptr, view.indices, view.data, seed, by_hash,
        space.giants, space.count, mate, space.want, space.offer,
    )  # fmt: skip
    blocks = min(make_proposals.resident(BLOCK), -(-n * width // BLOCK))
    make_proposals(None, arguments, block=BLOCK, grid=blocks)
    k.add_offers(None, (n, space.offer, space.sums), grid=SUM_BLOCKS)
    return EngineMatching(mate, total(space.sums.get()) / 2, 1)


# Lists of first edges


def lists_fit(view: Any) -> bool:
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
    """The bytes of words, lists and the state of giants, and a tenth more."""
    return int(1.1 * view.n * (8 + 8 * LISTED + view.data.itemsize))


def match_by_lists(view: Any, ties: tuple[int, bool], width: int, mate: Any) -> EngineMatching:
    """Fill `mate`.  `width`: lanes per row."""
    n, kind, weight = view.n, view.indices.dtype, view.data.dtype
    names = ("list_giants", "propose_from_lists", "read_mates")
    wide = (f"list_first_edges{width}", f"propose_the_rest{width}")
    k = SOURCE.kernels(*names, *wide, I=kind, F=weight)
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
    rest = mate  # used as scratch: mates are written last
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
    return EngineMatching(mate, total(space.sums.get()) / 2, 1)


# Chains of equal weights


def match_ahead(view: Any, mate: Any, want: Any, offer: Any) -> None:
    """Match the vertices that the chains decide, with ties by index; leave the others unchanged.

    Where weights are equal, or grow along paths, proposals displace each other one after the other,
    and a path of k vertices takes k steps.  Here it takes O(log k) launches.
    """
    n = view.n
    first_two, weights = strongest_neighbours(view.indptr, view.indices, view.data, 2)
    words = gpu.workspace("weighted_matching", words=(n, np.uint64)).words
    names = ("link_chains", "jump", "match_ahead")
    k = SOURCE.kernels(*names, I=mate.dtype, W=view.data.dtype)
    k.link_chains(n, (n, first_two, words))
    reached = 1
    while reached < n:  # n: the longest chain possible; threads at the end of theirs return at once
        k.jump(n, (n, words))
        reached *= JUMPS + 1
    k.match_ahead(n, (n, first_two, weights, words, mate, want, offer))
