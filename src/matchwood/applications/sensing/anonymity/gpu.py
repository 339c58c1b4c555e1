"""The permutation on the GPU.  Kernel: gpu.cu.  AES stays on the host: see anonymizer.py."""

from __future__ import annotations

from typing import Any

from matchwood import engines
from matchwood.engines import gpu

SOURCE = gpu.Source(__package__, "gpu.cu", ("permute_addresses",))


def permuted(addresses: Any, tables: Any, threads: int | None) -> Any:
    """The permutation of every address; the tables (1.3 MB) are copied to the device."""
    cupy = engines.cupy()
    out = gpu.empty(addresses.size, cupy.uint32, "anonymous addresses")
    n, tables = addresses.size, cupy.asarray(tables)
    addresses = cupy.ascontiguousarray(addresses)
    SOURCE.kernels().permute_addresses(n, (n, addresses, tables, out))
    return out
