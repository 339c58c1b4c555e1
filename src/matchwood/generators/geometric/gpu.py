"""Graphs of random points on the GPU.  Kernels: gpu.cu."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.arguments import index_type
from matchwood.engines import gpu
from matchwood.generators.geometric.reference import Near, Points
from matchwood.primitives.assemble.gpu import assemble
from matchwood.primitives.scan.gpu import exclusive_scan

SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    (
        "draw_points",
        "count_cells",
        "place_points<I>",
        "count_near = join<I,true>",
        "write_near = join<I,false>",
        "measure<I,W>",
    ),
)

WARP = SOURCE.constant("WARP")


def points(plan: Points | Near, threads: int | None = None) -> Any:
    made = gpu.empty((plan.dim, plan.n), np.int32, "random points")
    SOURCE.kernels("draw_points").draw_points(made.size, (plan.n, plan.dim, plan.key, made))
    return made


def near(plan: Near, threads: int | None = None) -> tuple[Any, Any, Any]:
    what = "random_geometric"
    n, dim, index = plan.n, plan.dim, index_type(plan.n)
    x = points(plan)
    k = SOURCE.kernels("count_cells", "place_points", "count_near", "write_near", I=index)
    space = gpu.workspace(
        what, cursor=(plan.cells**dim, np.int32), vertex=(n, index), placed=((dim, n), np.int32),
        counts=(n, np.int64),
    )  # fmt: skip
    cells = (n, dim, x, plan.width, plan.cells)
    space.cursor.fill(0)
    k.count_cells(n, (*cells, space.cursor))
    starts = exclusive_scan(space.cursor, dtype=np.int64)
    space.cursor.fill(0)
    k.place_points(n, (*cells, starts, space.cursor, space.vertex, space.placed))
    around = (n, dim, plan.width, *plan.shape, plan.radius**2, starts, space.vertex, space.placed)
    k.count_near(n, (*around, space.counts, None, None))
    places = exclusive_scan(space.counts)
    m = int(places[-1])
    edges = gpu.workspace(what, rows=(m, index), cols=(m, index))
    k.write_near(n, (*around, places, edges.rows, edges.cols))
    indptr, indices, _ = assemble(n, n, edges.rows, edges.cols, symmetric=True, reduce="first")
    return x, indptr, indices


def distances(x: Any, indptr: Any, indices: Any, dtype: Any, threads: int | None = None) -> Any:
    dim, n = x.shape
    data = gpu.empty(indices.size, dtype, "distances")
    k = SOURCE.kernels("measure", I=indices.dtype, W=dtype)
    k.measure(n * WARP, (n, dim, engines.cupy().ascontiguousarray(x), indptr, indices, data))
    return data
