"""Gaps and arrangements on the GPU.  Kernels: gpu.cu; definitions: __init__.py.

Rows of another order are sorted all at once: CuPy sorts the entries as numbers (row, place).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines import gpu
from matchwood.ordering.gap import table
from matchwood.ordering.permutation import sorted_places
from matchwood.primitives.transpose.gpu import expand_rows

SOURCE = gpu.Source(__package__, "gpu.cu", ("add_lengths<I>", "add_gaps<I>"))
NAMES = ("linear_arrangement", "log_arrangement", "linear_gap", "log_gap")
THREADS = 1 << 18  # threads of a pass that adds up


def measure(
    view: Any, place: Any, which: tuple[str, ...], *, threads: int | None = None
) -> dict[str, int]:
    cupy = engines.cupy()
    n, nnz, kind = view.n, view.nnz, view.indptr.dtype
    k = SOURCE.kernels(I=kind)
    gapped = any(name.endswith("gap") for name in which)
    needs = nnz * (kind.itemsize + (24 if gapped and place is not None else 0))
    with gpu.guard("gaps", needs):
        words = cupy.zeros(len(NAMES), np.uint64)
        logs = cupy.asarray(table())
        rows = expand_rows(view.indptr, nnz)
        if any(name.endswith("arrangement") for name in which):
            k.add_lengths(
                min(nnz, THREADS), (nnz, rows, view.indices, place, logs, words[0:1], words[1:2])
            )
        if gapped:
            columns = view.indices
            if place is not None:
                columns = sorted_places("gaps", n, rows, place[columns])
            k.add_gaps(min(nnz, THREADS), (nnz, rows, columns, logs, words[2:3], words[3:4]))
        found = dict(zip(NAMES, words.get().tolist(), strict=True))
    return {name: int(found[name]) for name in which}
