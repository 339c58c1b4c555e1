"""Exclusive scan on the GPU: one pass.  The kernel and its idea: gpu.cu."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines import gpu
from matchwood.primitives.scan import does_not_fit

SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    ("scan<C,O>",),
    types={"C": (np.int32, np.int64), "O": (np.int32, np.int64)},
)

TILE = SOURCE.constant("TILE")
_DOES_NOT_FIT = SOURCE.constant("DOES_NOT_FIT")


def scan_into(counts: Any, offsets: Any, status: Any = None) -> None:
    """Scan `counts` (n) into `offsets` (n + 1) on the current stream, without waiting.

    `status`, a `gpu.Status`, gets code 1 when an offset does not fit; None where `offsets` are
    int64.  Both arrays are contiguous.  Allocates a few words for every 4096 counts.
    """
    tiles = counts.size // TILE + 1  # offsets has one element more than counts
    space = gpu.workspace(
        "exclusive_scan", flags=(tiles + 1, np.uint32), sums=((2, tiles), np.int64)
    )
    space.flags.data.memset_async(0, space.flags.nbytes)
    k = SOURCE.kernels(C=counts.dtype, O=offsets.dtype)
    k.scan(
        None,
        (counts.size, counts, offsets, tiles, space.flags, space.sums[0], space.sums[1], status),
        grid=tiles,
    )


def exclusive_scan(counts: Any, *, dtype: Any = None, threads: int | None = None) -> Any:
    """See matchwood.primitives.scan.exclusive_scan.  Waits for the device to learn what fits."""
    cupy = engines.cupy()
    dtype = np.dtype(counts.dtype if dtype is None else dtype)
    offsets = gpu.empty(counts.size + 1, dtype, "exclusive_scan")
    status = gpu.Status()
    scan_into(cupy.ascontiguousarray(counts), offsets, status)
    if dtype.itemsize < 8:  # sums beyond int64 are not looked for
        status.check({_DOES_NOT_FIT: lambda _: does_not_fit(dtype)})
    return offsets
