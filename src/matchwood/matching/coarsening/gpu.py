"""Coarsening on the GPU: number the pairs, keep each edge once, assemble.  See cpu.py."""

from __future__ import annotations

from typing import Any

from matchwood import engines
from matchwood.primitives.assemble.gpu import assemble
from matchwood.primitives.compact.gpu import compact
from matchwood.primitives.transpose.gpu import expand_rows


def coarsen(view: Any, mate: Any, members: Any, threads: int | None = None) -> Any:
    cupy = engines.cupy()
    n, kind = view.n, view.indices.dtype
    vertices = cupy.arange(n, dtype=kind)
    first = (mate < 0) | (mate > vertices)
    place = cupy.cumsum(first, dtype=kind) - 1
    map = place[cupy.where(first, vertices, mate)] if n else vertices
    leaders = compact(first, vertices)
    others = mate[leaders]
    weights = members[leaders]
    weights += cupy.where(others >= 0, members[others], 0) if n else 0
    rows = map[expand_rows(view.indptr, view.nnz)] if n else vertices
    columns = map[view.indices] if n else vertices
    kept = compact(rows < columns)
    k = int(leaders.size)
    coarse = assemble(k, k, rows[kept], columns[kept], view.data[kept], symmetric=True, loops=False)
    return coarse, map, weights
