"""The hashes on the GPU.  Device functions: matchwood/hashing.cuh."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines import gpu

SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    ("mix64_all", "hash2_all<U,V>", "quarter_md5_all<I>", "random_bit_all<I>"),
    types={"U": (np.int32, np.int64), "V": (np.int32, np.int64)},
)


def mix64_array(x: Any, *, threads: int | None = None) -> Any:
    out = gpu.empty(x.size, np.uint64, "mix64")
    SOURCE.kernels().mix64_all(x.size, (x.size, engines.cupy().ascontiguousarray(x), out))
    return out


def hash2_array(u: Any, v: Any, seed: int, *, threads: int | None = None) -> Any:
    cupy = engines.cupy()
    out = gpu.empty(u.size, np.uint64, "hash2")
    u, v = cupy.ascontiguousarray(u), cupy.ascontiguousarray(v)
    k = SOURCE.kernels(U=u.dtype, V=v.dtype)
    k.hash2_all(u.size, (u.size, u, v, seed, out))
    return out


def quarter_md5_array(v: Any, r: int, *, threads: int | None = None) -> Any:
    out = gpu.empty(v.size, np.uint32, "quarter_md5")
    k = SOURCE.kernels(I=v.dtype)
    k.quarter_md5_all(v.size, (v.size, engines.cupy().ascontiguousarray(v), r, out))
    return out


def random_bit_array(v: Any, r: int, barrier: int, *, threads: int | None = None) -> Any:
    """See matchwood.primitives.hashing.random_bit; `barrier` is `bit_barrier(p)`."""
    out = gpu.empty(v.size, np.bool_, "random_bit")
    k = SOURCE.kernels(I=v.dtype)
    k.random_bit_all(v.size, (v.size, engines.cupy().ascontiguousarray(v), r, barrier, out))
    return out
