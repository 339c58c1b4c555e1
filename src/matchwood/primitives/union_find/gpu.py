"""Union-find on the GPU.  Kernels: gpu.cu; device functions: matchwood/union_find.cuh."""

from __future__ import annotations

from typing import Any

from matchwood import engines
from matchwood.engines import gpu
from matchwood.primitives.union_find import end_out_of_range

SOURCE = gpu.Source(__package__, "gpu.cu", ("join<I>", "flatten<I>"))

_NO_VERTEX = SOURCE.constant("NO_VERTEX")


def union_find(n: int, u: Any, v: Any, *, threads: int | None = None) -> Any:
    """See matchwood.primitives.union_find.union_find.  Waits for the device."""
    cupy = engines.cupy()
    u, v = cupy.ascontiguousarray(u), cupy.ascontiguousarray(v)
    with gpu.guard("union_find", n * u.itemsize):
        parent = cupy.arange(n, dtype=u.dtype)
    status = gpu.Status()
    k = SOURCE.kernels(I=u.dtype)
    k.join(u.size, (u.size, u, v, n, parent, status))
    k.flatten(n, (n, parent))
    status.check({_NO_VERTEX: lambda edge: end_out_of_range(n, edge)})
    return parent
