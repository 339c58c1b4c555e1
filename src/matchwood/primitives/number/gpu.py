"""Labels numbered on the GPU.  Kernel: gpu.cu."""

from __future__ import annotations

from typing import Any

from matchwood import engines
from matchwood.engines import gpu

SOURCE = gpu.Source(__package__, "gpu.cu", ("find_first<I>",))


def number_labels(labels: Any, *, threads: int | None = None) -> tuple[int, Any]:
    cupy = engines.cupy()
    n, kind = labels.size, labels.dtype
    if n == 0:
        return 0, labels.copy()
    with gpu.guard("number_labels", 5 * labels.nbytes):
        first = cupy.full(n, n, kind)
        SOURCE.kernels(I=kind).find_first(n, (n, labels, first))
        root = first[labels]
        is_root = root == cupy.arange(n, dtype=kind)
        number = cupy.cumsum(is_root, dtype=kind) - 1
        return int(is_root.sum()), number[root].astype(kind, copy=False)
