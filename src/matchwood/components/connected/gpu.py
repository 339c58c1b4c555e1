"""Connected components on the GPU.  Kernels: gpu.cu; the rule and the papers: __init__.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines, gpu
from matchwood.traversal.breadth_first.gpu import search

SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    (
        "hook_first<I>",
        "hook_last<I>",
        "compress<I>",
        "find_largest<I>",
        "hook_rest<I>",
        "adopt_reached<I>",
        "sv_hook<I>",
        "sv_follow<I>",
        "count_roots<I>",
        "number_roots<I>",
        "write_labels<I>",
    ),
)

TILE = 2048  # as in gpu.cu
SAMPLE = 1024  # as in gpu.cu
RUNS = 1024  # blocks that number the roots; each adds up the counts of all before it
RUN_BLOCK = 512  # threads of such a block
BATCH = 4  # rounds of FastSV between two looks of the host
SAMPLED_NEIGHBOURS = 2  # hook_first and hook_last


def label(
    view: Any, symmetric: bool, method: str, *, threads: int | None = None
) -> tuple[int, Any, int]:
    n, kind = view.n, view.indptr.dtype
    labels = gpu.empty(n, kind, "connected_components")
    if n == 0:
        return 0, labels, 0
    k = SOURCE.kernels(I=kind)
    if method == "fastsv":
        space = _workspace(n, kind, parent=(n, kind), spare=(n, kind), grand=(n, kind))
        rounds = _fastsv(k, view, symmetric, space)
        return _number(k, n, space.grand, space, labels), labels, rounds
    space = _workspace(n, kind, parent=(n, kind))
    if method == "bfs":
        _search_largest(k, view, space)
        count = _number(k, n, space.parent, space, labels)
        return count, labels, count
    _afforest(k, view, symmetric, space)
    return _number(k, n, space.parent, space, labels), labels, SAMPLED_NEIGHBOURS + 1


def _workspace(n: int, kind: Any, **arrays: Any) -> Any:
    return gpu.workspace(
        "connected_components", counts=(RUNS, kind), largest=(1, kind), total=(1, kind), **arrays
    )


def _tiles(nnz: int) -> int:
    """Threads of a pass over all entries."""
    return -(-nnz // TILE) * 32


def _afforest(k: Any, view: Any, symmetric: bool, space: Any) -> None:
    n, nnz, parent = view.n, view.nnz, space.parent
    k.hook_first(n, (n, view.indptr, view.indices, parent))
    k.compress(n, (n, parent))
    k.hook_last(n, (n, view.indptr, view.indices, parent))
    k.compress(n, (n, parent))
    if symmetric:
        sampled = (n, view.indptr, parent, space.largest)
        k.find_largest(None, sampled, block=SAMPLE, grid=1)
    rest = (n, nnz, view.indptr, view.indices, symmetric, space.largest, parent)
    k.hook_rest(_tiles(nnz), rest)


def _search_largest(k: Any, view: Any, space: Any) -> None:
    """Search from a vertex of the highest degree; hook the vertices that it does not reach."""
    cupy = engines.cupy()
    n, nnz = view.n, view.nnz
    with gpu.guard("connected_components"):
        start = np.array([int(cupy.diff(view.indptr).argmax())])
        level = search(view, view, start, n)[0]
        space.largest[0] = (level >= 0).argmax()  # the first, so the smallest
    k.adopt_reached(n, (n, level, space.largest, space.parent))
    rest = (n, nnz, view.indptr, view.indices, True, space.largest, space.parent)
    k.hook_rest(_tiles(nnz), rest)


def _fastsv(k: Any, view: Any, symmetric: bool, space: Any) -> int:
    """Rounds until the grandparents, which are the roots then, stop changing."""
    cupy = engines.cupy()
    n, nnz = view.n, view.nnz
    parent, following, grand = space.parent, space.spare, space.grand
    for array in (parent, following, grand):
        array[...] = cupy.arange(n, dtype=array.dtype)
    flag = gpu.Flag(BATCH + 1)
    changed = [flag.device_words[i : i + 1] for i in range(BATCH + 1)]
    rounds = 0
    while True:
        flag.clear()
        changed[0].fill(1)
        for i in range(BATCH):
            pattern = (n, nnz, view.indptr, view.indices, symmetric)
            k.sv_hook(_tiles(nnz), (*pattern, parent, grand, following, changed[i]))
            k.sv_follow(n, (n, following, grand, parent, changed[i], changed[i + 1]))
            parent, following = following, parent
        flag.fetch()
        words = flag.read()
        rounds += int(words[:-1].sum())
        if not words[-1]:
            return rounds


def _number(k: Any, n: int, parent: Any, space: Any, labels: Any) -> int:
    """Labels from a forest; the number of components."""
    blocks = min(RUNS, -(-n // RUN_BLOCK))
    run = -(-n // blocks)
    k.count_roots(None, (n, run, parent, space.counts), block=RUN_BLOCK, grid=blocks)
    numbered = (n, run, space.counts, parent, space.total)
    k.number_roots(None, numbered, block=RUN_BLOCK, grid=blocks)
    k.write_labels(n, (n, parent, labels))
    return int(space.total.item())
