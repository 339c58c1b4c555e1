"""The random graphs on the GPU.  Kernels: gpu.cu."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.arguments import index_type
from matchwood.engines import gpu
from matchwood.generators.hashed.reference import GNM, RMAT, Bernoulli
from matchwood.primitives.assemble.gpu import assemble
from matchwood.primitives.scan.gpu import exclusive_scan

SOURCE = gpu.Source(
    __package__, "gpu.cu", ("draw_quarters<I>", "pick_pairs<I>", "count_row", "fill_row<I>")
)

WARP = SOURCE.constant("WARP")


def rmat(plan: RMAT, threads: int | None = None) -> tuple[Any, Any]:
    rows, cols = rmat_edges(plan)
    indptr, indices, _ = assemble(
        plan.n, plan.n, rows, cols, symmetric=not plan.directed, loops=False, reduce="first"
    )
    return indptr, indices


def rmat_edges(plan: RMAT, threads: int | None = None) -> tuple[Any, Any]:
    """Ends of the edges as drawn: self loops and equal edges among them."""
    index = index_type(plan.n)
    edges = gpu.workspace("rmat", rows=(plan.samples, index), cols=(plan.samples, index))
    labels = engines.cupy().asarray(np.array(plan.labels, np.uint64))
    SOURCE.kernels("draw_quarters", I=index).draw_quarters(
        plan.samples,
        (plan.samples, plan.scale, plan.key, *plan.thresholds, plan.permute, labels,
         edges.rows, edges.cols),
    )  # fmt: skip
    return edges.rows, edges.cols


def gnm(plan: GNM, threads: int | None = None) -> tuple[Any, Any]:
    index = index_type(plan.n)
    edges = gpu.workspace("erdos_renyi", rows=(plan.m, index), cols=(plan.m, index))
    keys = engines.cupy().asarray(np.array(plan.keys, np.uint64))
    high_bits = plan.bits // 2
    SOURCE.kernels("pick_pairs", I=index).pick_pairs(
        plan.m,
        (plan.m, plan.n, plan.directed, plan.pairs, high_bits, plan.bits - high_bits, keys,
         keys.size, edges.rows, edges.cols),
    )  # fmt: skip
    indptr, indices, _ = assemble(
        plan.n, plan.n, edges.rows, edges.cols, symmetric=not plan.directed, reduce="first"
    )
    return indptr, indices


def bernoulli(plan: Bernoulli, threads: int | None = None) -> tuple[Any, Any]:
    chosen = (plan.n, plan.directed, plan.key, plan.threshold)
    counts = gpu.empty(plan.n, np.int64, "dense_random")
    SOURCE.kernels("count_row").count_row(plan.n * WARP, (*chosen, counts))
    entries = int(counts.sum())
    index = index_type(max(plan.n, entries))
    indptr = exclusive_scan(counts, dtype=index)
    indices = gpu.empty(entries, index, "dense_random")
    SOURCE.kernels("fill_row", I=index).fill_row(plan.n * WARP, (*chosen, indptr, indices))
    return indptr, indices
