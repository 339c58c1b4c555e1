"""One graph that fills a GPU: R-MAT 26, 67 million vertices and 2.1 billion entries.

``python -m bench.full_size [--scale 26] [--json FILE] [--kernels]``.  The graph is made on the GPU
and stays there.  Times are medians between two events around a whole call.  Beside each is how
often the graph could be read in that time: the bytes of the arrays that the problem reads
(pattern, or pattern and weights), at the speed of a copy on this device.  Answers are checked on
the device, entry by entry.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import matchwood
from bench import harness
from bench.harness.gpu import by_kernel, milliseconds
from bench.ordering.rcm_gpu import check_order
from matchwood import engines, generators

ROUNDS = 7  # of which the median counts
CHUNK = 1 << 27  # entries that a check looks at together
COPY_BYTES = 1 << 32  # of the copy that gives the device's speed


def copy_speed() -> float:
    """Bytes a second that a copy reads and writes."""
    cupy = engines.cupy()
    source = cupy.zeros(COPY_BYTES, cupy.uint8)
    target = cupy.empty_like(source)
    times = milliseconds(lambda: cupy.copyto(target, source), ROUNDS)
    return 2 * COPY_BYTES / (statistics.median(times) / 1e3)


def entries(view: Any) -> Iterator[tuple[Any, Any]]:
    """Rows and columns of the entries, a chunk at a time."""
    cupy = engines.cupy()
    for begin in range(0, view.nnz, CHUNK):
        end = min(begin + CHUNK, view.nnz)
        places = cupy.arange(begin, end, dtype=view.indptr.dtype)
        yield cupy.searchsorted(view.indptr, places, side="right") - 1, view.indices[begin:end]


def check_components(view: Any, found: Any) -> None:
    count, label = found
    for u, v in entries(view):
        assert bool((label[u] == label[v]).all()), "an edge between two components"
    assert int(label.max()) + 1 == count == int(engines.cupy().unique(label).size)


def check_bfs(view: Any, found: Any) -> None:
    level, parent = found.level, found.parent
    for u, v in entries(view):
        a, b = level[u], level[v]
        assert bool(((a < 0) == (b < 0)).all()), "an edge from what is reached to what is not"
        assert bool((abs(a - b) <= 1).all()), "an edge skips a level"
    reached = engines.cupy().flatnonzero(level > 0)
    assert bool((level[parent[reached]] == level[reached] - 1).all()), "a parent"


def check_independent(view: Any, inside: Any) -> None:
    covered = inside.copy()
    for u, v in entries(view):
        assert not bool((inside[u] & inside[v]).any()), "two members are neighbours"
        covered[u[inside[v]]] = True
    assert bool(covered.all()), "a vertex could be added"


def check_matching(view: Any, found: Any) -> None:
    cupy = engines.cupy()
    mate, vertices = found.mate, cupy.arange(view.n)
    matched = mate >= 0
    assert bool((mate[mate[matched]] == vertices[matched]).all()), "no matching"
    for u, v in entries(view):
        assert bool((matched[u] | matched[v]).all()), "an edge could be added"


def check_forest(view: Any, found: Any) -> None:
    """As many edges as a spanning forest has, and they join what the graph joins."""
    count, _ = matchwood.connected_components(found.tocsr())
    assert found.edges.shape[0] == view.n - found.components == view.n - count, "no forest"


def check_cuthill_mckee(view: Any, order: Any, G: Any) -> None:
    """The rule of check.py, from where each component starts; that itself is not checked."""
    cupy = engines.cupy()
    _, label = matchwood.connected_components(G)
    parts = label[order]
    begins = cupy.flatnonzero(parts[1:] != parts[:-1]) + 1
    check_order(view, order, label, cupy.concatenate([order[:1], order[begins]]))


def problems(
    G: Any, weighted: Any
) -> dict[str, tuple[bool, Callable[[], Any], Callable[..., Any]]]:
    """Whether weights are read, the call, and the check."""
    view = G.undirected_pattern()
    hub = int((view.indptr[1:] - view.indptr[:-1]).argmax())
    return {
        "connected_components": (
            False, lambda: matchwood.connected_components(G), check_components,
        ),
        "bfs": (False, lambda: matchwood.bfs(G, hub), check_bfs),
        "maximal_independent_set": (
            False, lambda: matchwood.maximal_independent_set(G), check_independent,
        ),
        "maximal_matching": (False, lambda: matchwood.maximal_matching(G), check_matching),
        "weighted_matching": (True, lambda: matchwood.weighted_matching(weighted), check_matching),
        "minimum_spanning_forest": (
            True, lambda: matchwood.minimum_spanning_forest(weighted), check_forest,
        ),
        "cuthill_mckee": (
            False, lambda: matchwood.cuthill_mckee(G),
            lambda view, order: check_cuthill_mckee(view, order, G),
        ),
    }  # fmt: skip


def measured(scale: int, *, check: bool = True, kernels: bool = False) -> dict[str, Any]:
    """The table, for R-MAT of that scale."""
    cupy = engines.cupy()
    speed = copy_speed()
    cupy.get_default_memory_pool().free_all_blocks()
    A = generators.random_weights(generators.rmat(scale, engine="gpu"))
    G, weighted = (
        matchwood.graph(a) for a in ((A.indptr, A.indices), (A.indptr, A.indices, A.data))
    )
    view = G.undirected_pattern()
    pattern = view.indptr.nbytes + view.indices.nbytes
    shape = {"scale": scale, "n": view.n, "entries": view.nnz, "index_bytes": view.indices.itemsize}
    print(f"R-MAT {scale}: {view.n:,} vertices, {view.nnz:,} entries; copy {speed / 1e12:.2f} TB/s")
    rows: dict[str, Any] = {}
    for name, (weights, call, verify) in problems(G, weighted).items():
        found = call()
        if check:
            verify(view, found)
        del found
        cupy.get_default_memory_pool().free_all_blocks()
        times = milliseconds(call, ROUNDS)
        read = (pattern + (A.data.nbytes if weights else 0)) / speed * 1e3
        ms = statistics.median(times)
        rows[name] = {
            "ms": ms, "best": min(times), "read_ms": read, "reads": ms / read, "weights": weights,
        }  # fmt: skip
        print(f"{name:26s} {ms:9.2f} ms  {ms / read:6.1f} reads of {read:.2f} ms", flush=True)
        if kernels:
            rows[name]["kernels"] = spent = by_kernel(call)
            for kernel, (taken, launches) in sorted(
                spent["kernels"].items(), key=lambda x: -x[1][0]
            ):
                print(f"    {kernel:40s} {taken:9.3f} ms  {launches} launches")
            print(f"    {'rest':40s} {spent['rest']:9.3f} ms of {spent['total']:.3f}", flush=True)
    return {"graph": shape, "copy_bytes_per_second": speed, "rows": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--scale", type=int, default=26)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--kernels", action="store_true", help="also print times by kernel")
    parser.add_argument("--unchecked", action="store_true", help="do not check the answers")
    options = parser.parse_args()
    if not engines.gpu_available():
        raise SystemExit("no GPU here")
    table = measured(options.scale, check=not options.unchecked, kernels=options.kernels)
    if options.json:
        table["environment"] = harness.environment()
        options.json.write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
