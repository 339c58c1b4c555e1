"""Roots of a forest on the GPU.  Kernels: gpu.cu; the rule and the paper: __init__.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines import gpu
from matchwood.traversal.pointer_jumping import has_cycle

SOURCE = gpu.Source(__package__, "gpu.cu", ("start<I>", "jump<I>", "find_lost<I>"))


def roots(parent: Any, *, threads: int | None = None) -> Any:
    """See matchwood.traversal.pointer_jumping.forest_roots."""
    n, kind = parent.size, parent.dtype
    up = gpu.empty(n, kind, "forest_roots")
    if n == 0:
        return up
    # after k rounds a pointer is 2^k steps further up, or at the root; no way has n steps
    rounds = max(1, int(n - 1).bit_length())
    space = gpu.workspace("forest_roots", changed=(rounds + 1, np.int32), lost=(1, kind))
    space.changed.data.memset_async(0, space.changed.nbytes)
    space.lost.fill(n)
    k = SOURCE.kernels(I=kind)
    k.start(n, (n, parent, up, space.changed[0:1]))
    for i in range(rounds):
        k.jump(n, (n, up, space.changed[i : i + 1], space.changed[i + 1 : i + 2]))
    k.find_lost(n, (n, parent, up, space.lost))
    lost = int(space.lost.item())
    if lost < n:
        raise has_cycle("forest_roots", lost)
    return up
