"""Greedy matching on the GPU: a sort, then windows of edges.  Kernels: gpu.cu."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines import gpu
from matchwood.matching.gpu import finish_matching
from matchwood.matching.methods import EngineMatching
from matchwood.primitives.patterns import not_symmetric

WIDTH = 8  # lanes per vertex that list its edges
SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    ("count_upper<I>", f"list_edges = list_edges<I,W,{WIDTH}>", "hash_edges<I>", "take_edges<I>"),
)

BLOCK = SOURCE.constant("BLOCK")
SIZES, NEXT, ROUNDS, LEFT, CONTROL_WORDS = SOURCE.constants(
    "SIZES", "NEXT", "ROUNDS", "LEFT", "CONTROL_WORDS"
)
MOST_ROUNDS = SOURCE.constant("MOST_ROUNDS")

WINDOW = 1 << 20  # edges, at least; as many as vertices in larger graphs
ROUNDS_PER_LAUNCH = 8192  # some 50 ms; Ctrl-C works between launches


def match(view: Any, seed: int, by_hash: bool, threads: int | None = None) -> EngineMatching:
    n, kind = view.n, view.indices.dtype
    mate = gpu.empty(n, kind, "weighted_matching")
    mate.data.memset_async(0xFF, mate.nbytes)
    if n == 0 or view.nnz == 0:
        return EngineMatching(mate, 0.0)
    k = SOURCE.kernels(I=kind, W=view.data.dtype)
    m = view.nnz // 2
    # bytes: ends, keys and hashes of edges; the sort has positions of 8 bytes, and two buffers
    needs = m * (2 * kind.itemsize + 3 * view.data.dtype.itemsize + 40)
    with gpu.guard("weighted_matching", needs):
        tails, heads, order = _sorted_edges(k, view, m, seed, by_hash)
    _take(k, n, m, tails, heads, order, mate)
    return EngineMatching(mate, finish_matching(view, mate))


def _sorted_edges(k: Any, view: Any, m: int, seed: int, by_hash: bool) -> tuple[Any, Any, Any]:
    """The smaller and the larger end of each edge, and the order of edges."""
    cupy = engines.cupy()
    n, kind = view.n, view.indices.dtype
    counts = cupy.empty(n, kind)
    k.count_upper(n, (n, view.indptr, view.indices, counts))
    ends = cupy.cumsum(counts, dtype=kind)
    if int(ends[-1]) != m:  # the lists have room for half of the entries
        raise not_symmetric("weighted_matching")
    tails, heads = cupy.empty(m, kind), cupy.empty(m, kind)
    keys = cupy.empty(m, view.data.dtype)
    listed = (n, view.indptr, view.indices, view.data, ends, tails, heads, keys)
    k.list_edges(n * WIDTH, listed)
    del counts, ends
    unsigned = keys.view(f"u{keys.itemsize}")
    order = cupy.argsort(unsigned, kind="stable")
    if by_hash:
        ordered = unsigned[order]
        tied = bool((ordered[1:] == ordered[:-1]).any())
        del ordered
        if tied:
            hashes = cupy.empty(m, np.uint64)
            k.hash_edges(m, (m, tails, heads, seed, hashes))
            order = cupy.argsort(hashes, kind="stable")
            del hashes
            order = order[cupy.argsort(unsigned[order], kind="stable")]
    return tails, heads, order.astype(kind)


def _take(k: Any, n: int, m: int, tails: Any, heads: Any, order: Any, mate: Any) -> None:
    window = min(m, max(WINDOW, n))
    space = gpu.workspace(
        "weighted_matching",
        bids=(n, np.uint64),
        undecided=((2, window), order.dtype),
        control=(CONTROL_WORDS, np.uint64),
        barrier=(2, np.uint32),
    )
    space.barrier.data.memset_async(0, space.barrier.nbytes)
    words = np.zeros(CONTROL_WORDS, np.uint64)
    arguments = (
        m, window, order, tails, heads, mate,
        space.bids, space.undecided, space.control, space.barrier,
    )  # fmt: skip
    while words[NEXT] < m or words[SIZES + int(words[ROUNDS]) % 2]:
        if words[ROUNDS] % MOST_ROUNDS == 0:
            space.bids.data.memset_async(0xFF, space.bids.nbytes)
        words[LEFT] = ROUNDS_PER_LAUNCH
        space.control.set(words)
        k.take_edges(window, arguments, block=BLOCK, cooperative=True)
        words = space.control.get()
