"""Topological levels on the GPU.  Kernel: gpu.cu."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines import gpu

SOURCE = gpu.Source(__package__, "gpu.cu", ("peel_levels<I>",))

BLOCK = SOURCE.constant("BLOCK")
TAIL, HEAD, CONTROL_WORDS = SOURCE.constants("TAIL", "HEAD", "CONTROL_WORDS")
LEVELS_PER_LAUNCH = 8192  # some 50 ms; Ctrl-C takes effect between launches


def levels(indptr: Any, indices: Any, *, threads: int | None = None) -> Any:
    cupy = engines.cupy()
    n, kind = int(indptr.size) - 1, indptr.dtype
    with gpu.guard("condensation", 6 * n * kind.itemsize):
        level = cupy.full(n, -1, kind)
        if n == 0:
            return level
        arcs_to = cupy.bincount(indices, minlength=n).astype(kind)
        control = cupy.zeros(CONTROL_WORDS, np.uint64)
        frontier = cupy.flatnonzero(arcs_to == 0).astype(kind)
        queue = cupy.empty(n, kind)
        queue[: frontier.size] = frontier
        control[TAIL] = frontier.size
        peel = SOURCE.kernels(I=kind).peel_levels
        while True:
            arguments = (n, indptr, indices, LEVELS_PER_LAUNCH, arcs_to, queue, level, control)
            peel(n, arguments, block=BLOCK, cooperative=True)
            words = control.get()
            if words[HEAD] == words[TAIL]:
                return level
