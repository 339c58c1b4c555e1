"""Bandwidth, profile and wavefronts on the GPU.  Kernels: gpu.cu; definitions: __init__.py."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines import gpu

SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    (
        "start_rows<I>",
        "lower_rows<I>",
        "add_distances<I>",
        "count_first<I>",
        "add_fronts<I>",
    ),
)

TILE = SOURCE.constant("TILE")
THREADS = 1 << 18  # threads at most of a pass over the vertices that adds up


def measure(
    view: Any, place: Any, which: tuple[str, ...], *, threads: int | None = None
) -> dict[str, Any]:
    cupy = engines.cupy()
    n, nnz, kind = view.n, view.nnz, view.indptr.dtype
    k = SOURCE.kernels(I=kind)
    needs = 3 * n * kind.itemsize
    with gpu.guard("order_measures", needs):
        first = cupy.empty(n, kind)
        words = cupy.zeros(5, np.uint64)
        most, total, fronts, low, high = (words[i : i + 1] for i in range(5))
        k.start_rows(n, (n, place, first))
        threads_of_tiles = -(-(n + nnz) // TILE) * 32  # a warp for each
        k.lower_rows(threads_of_tiles, (n, nnz, view.indptr, view.indices, place, first))
        k.add_distances(min(n, THREADS), (n, place, first, most, total))
        if any(name.endswith("wavefront") for name in which):
            count = cupy.zeros(n, kind)
            k.count_first(n, (n, first, count))
            begun = cupy.cumsum(count, dtype=kind)
            k.add_fronts(min(n, THREADS), (n, begun, fronts, low, high))
        found = words.get().tolist()
        answers = {
            "bandwidth": found[0],
            "profile": found[1],
            "max_wavefront": found[2],
            "rms_wavefront": math.sqrt(((found[4] << 32) + found[3]) / max(1, n)),
        }
    return {name: answers[name] for name in which}
