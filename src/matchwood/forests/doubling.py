"""Linear forests by scans along all paths: pointer doubling, as in section 3.3 of the paper.

Every vertex knows the vertices 1, 2, 4, ... steps away on both sides, until all have reached an
end.  Both engines run the same array operations, except for `path_scan` of the primitives.

1. cycles       a scan with `minimum` finds the weakest weight of each cycle, a second one the
                edge that has it; these edges are taken out
2. paths        a scan with `add` over ones: the ends of each path, and how far they are
3. permutation  by (path, position), from the lengths of the paths
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.forests.result import PathOrder
from matchwood.primitives.path_scan import path_scan
from matchwood.primitives.scan import exclusive_scan
from matchwood.stopwatch import Stopwatch


def forest(neighbours: Any, weights: Any, *, threads: int | None = None) -> PathOrder:
    """See matchwood.forests.linear_forest, method="doubling"."""
    on_gpu = engines.location(neighbours) == "gpu"
    xp = engines.xp(neighbours)
    options: dict[str, Any] = {"method": "doubling", "threads": threads}

    def lap(phase: str) -> None:
        if on_gpu:
            xp.cuda.get_current_stream().synchronize()
        watch.lap(phase)

    if on_gpu:
        xp.cuda.get_current_stream().synchronize()
    watch = Stopwatch()
    n, kind = int(neighbours.shape[0]), neighbours.dtype
    table, cuts = _without_cycles(xp, neighbours, weights, options)
    lap("cycles")
    rows = xp.arange(n, dtype=kind)
    scan = path_scan(table, xp.ones(n, kind), "add", **options)
    side = (scan.ends[:, 1] < scan.ends[:, 0]).astype(kind)  # that of the smaller end
    path = xp.where(side == 1, scan.ends[:, 1], scan.ends[:, 0])
    position = xp.where(side == 1, scan.values[:, 1], scan.values[:, 0])
    lap("paths")
    longest = xp.maximum(scan.values[:, 0], scan.values[:, 1])
    lengths = xp.where(path == rows, longest, 0).astype(kind)
    place = exclusive_scan(lengths, threads=threads)[path] + position - 1
    perm = xp.empty(n, kind)
    perm[place] = rows
    lap("permutation")
    return PathOrder(perm, path, position, place, lambda: cuts, lambda: watch.seconds)


def _without_cycles(
    xp: Any, neighbours: Any, weights: Any, options: dict[str, Any]
) -> tuple[Any, Any]:
    """The table without the weakest edge of each cycle, and these edges."""
    n, kind = int(neighbours.shape[0]), neighbours.dtype
    none = xp.empty((0, 2), kind)
    if n == 0:
        return neighbours, none
    lightest = xp.minimum(weights[:, 0], weights[:, 1])  # vertices on cycles have two edges
    scan = path_scan(neighbours, lightest, "minimum", **options)
    if not bool(scan.cycle.any()):
        return neighbours, none
    least = xp.minimum(scan.values[:, 0], scan.values[:, 1])
    rows = xp.arange(n, dtype=np.int64)[:, None]
    keys = xp.minimum(rows, neighbours) * n + xp.maximum(rows, neighbours)
    most = np.iinfo(np.int64).max
    keys_of_least = xp.where((weights == least[:, None]) & scan.cycle[:, None], keys, most)
    offered = xp.minimum(keys_of_least[:, 0], keys_of_least[:, 1])
    found = path_scan(neighbours, offered, "minimum", **options).values
    chosen = xp.minimum(found[:, 0], found[:, 1])
    is_cut = scan.cycle[:, None] & (keys == chosen[:, None])
    u, slot = xp.nonzero(is_cut & (neighbours > rows))
    return (
        xp.where(is_cut, kind.type(-1), neighbours).astype(kind, copy=False),
        xp.stack((u.astype(kind), neighbours[u, slot]), axis=1),
    )
