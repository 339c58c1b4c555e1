"""Connected components on the GPU.  Kernels: gpu.cu; the rule and the papers: __init__.py."""

from __future__ import annotations

from typing import Any

from matchwood import engines
from matchwood.engines import gpu
from matchwood.traversal.breadth_first import bfs

SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    (
        "hook_near<I>",
        "hook_more<I>",
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

TILE = SOURCE.constant("TILE")
NEAR = SOURCE.constant("NEAR")
SAMPLE = SOURCE.constant("SAMPLE")

PASS_THREADS = 1 << 19  # threads of a pass over the vertices that may turn out to be needless
RUNS = 1024  # blocks that number the roots; each adds up the counts of all before it
RUN_BLOCK = 512  # threads of such a block
ROUNDS_PER_CHECK = 4  # rounds of FastSV between two checks by the host
MORE = (True, False)  # neighbours that hook_more tries: the last of a row, the middle one
SAMPLED_NEIGHBOURS = 2  # passes over all vertices before the largest component is skipped


def label(
    view: Any, symmetric: bool, method: str, *, graph: Any = None, threads: int | None = None
) -> tuple[int, Any, int]:
    """Labels of the pattern `view`; the method "bfs" searches its `graph`."""
    n, kind = view.n, view.indptr.dtype
    labels = gpu.empty(n, kind, "connected_components")
    if n == 0:
        return 0, labels, 0
    k = SOURCE.kernels(I=kind)
    if method == "fastsv":
        space = workspace(kind, parent=(n, kind), spare=(n, kind), grand=(n, kind))
        rounds = _fastsv(k, view, symmetric, space)
        return _number(k, n, space.grand, space, labels), labels, rounds
    space = workspace(kind, parent=(n, kind))
    if method == "bfs":
        _search_largest(k, view, graph, space)
        count = _number(k, n, space.parent, space, labels)
        return count, labels, count
    _afforest(k, view, symmetric, space)
    return _number(k, n, space.parent, space, labels), labels, SAMPLED_NEIGHBOURS + 1


def workspace(kind: Any, **arrays: Any) -> Any:
    """Scratch memory of a call: `words`, `counts` and these arrays."""
    return gpu.workspace("connected_components", counts=(RUNS, kind), words=(3, kind), **arrays)


def _tiles(view: Any) -> int:
    """Threads of a pass over all rows and entries."""
    return -(-(view.n + view.nnz) // TILE) * 32


def _afforest(k: Any, view: Any, symmetric: bool, space: Any) -> None:
    sample(k, view, space)
    hook_rest(k, view, symmetric, space)


def sample(k: Any, view: Any, space: Any) -> None:
    """Join a few neighbours of each vertex; space.words[0] is the root that most have then."""
    n, parent = view.n, space.parent
    largest, settled = space.words[0:1], space.words[1:2]
    pattern = (n, view.indptr, view.indices)
    k.hook_near(n, (*pattern, parent), block=NEAR)
    k.compress(n, (n, True, None, parent))
    k.compress(n, (n, False, None, parent))
    asked = (n, view.indptr, parent)
    k.find_largest(None, (*asked, False, largest, settled), block=SAMPLE, grid=1)
    for last in MORE:
        k.hook_more(min(n, PASS_THREADS), (*pattern, last, settled, parent))
        k.compress(min(n, PASS_THREADS), (n, False, settled, parent))
    k.find_largest(None, (*asked, True, largest, settled), block=SAMPLE, grid=1)


def hook_rest(k: Any, view: Any, symmetric: bool, space: Any) -> None:
    """Join all entries, in a symmetric pattern but those of rows under space.words[0]."""
    pattern = (view.n, view.nnz, view.indptr, view.indices, symmetric)
    k.hook_rest(_tiles(view), (*pattern, space.words[0:1], space.parent))


def _search_largest(k: Any, view: Any, graph: Any, space: Any) -> None:
    """Search from a vertex of the highest degree; hook the vertices that it does not reach."""
    cupy = engines.cupy()
    n, largest = view.n, space.words[0:1]
    with gpu.guard("connected_components"):
        level = bfs(graph, int(cupy.diff(view.indptr).argmax()), directed=False).level
        largest[0] = (level >= 0).argmax()  # the first, so the smallest
    k.adopt_reached(n, (n, level, largest, space.parent))
    hook_rest(k, view, True, space)


def _fastsv(k: Any, view: Any, symmetric: bool, space: Any) -> int:
    """Rounds until the grandparents, which are the roots then, stop changing."""
    cupy = engines.cupy()
    n, nnz = view.n, view.nnz
    parent, following, grand = space.parent, space.spare, space.grand
    for array in (parent, following, grand):
        array[...] = cupy.arange(n, dtype=array.dtype)
    flag = gpu.Flag(ROUNDS_PER_CHECK + 1)
    changed = [flag.device_words[i : i + 1] for i in range(ROUNDS_PER_CHECK + 1)]
    rounds = 0
    while True:
        flag.clear()
        changed[0].fill(1)
        for i in range(ROUNDS_PER_CHECK):
            pattern = (n, nnz, view.indptr, view.indices, symmetric)
            k.sv_hook(_tiles(view), (*pattern, parent, grand, following, changed[i]))
            k.sv_follow(n, (n, following, grand, parent, changed[i], changed[i + 1]))
            parent, following = following, parent
        flag.fetch()
        words = flag.read()
        rounds += int(words[:-1].sum())
        if not words[-1]:
            return rounds


def _number(k: Any, n: int, parent: Any, space: Any, labels: Any) -> int:
    """Labels from a forest, whose roots become ~number; the number of components."""
    total = space.words[2:3]
    blocks = min(RUNS, -(-n // RUN_BLOCK))
    run = -(-n // blocks)
    k.count_roots(None, (n, run, parent, space.counts), block=RUN_BLOCK, grid=blocks)
    k.number_roots(None, (n, run, space.counts, parent, total), block=RUN_BLOCK, grid=blocks)
    k.write_labels(n, (n, parent, labels))
    return int(total.item())
