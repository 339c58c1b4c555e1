"""Verify pending pairs on the GPU, in place.  The kernel: gpu.cu."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines import gpu

SOURCE = gpu.Source(__package__, "gpu.cu", ("verify",))
BLOCK, WARP = SOURCE.constants("BLOCK", "WARP")
MOST_BYTES = (
    1 << 32
)  # of the memory that warps work in; fewer warps run at once where pairs are large


def verify(
    corpus: Any,
    rule: Any,
    pairs: tuple[Any, Any, Any],
    which: Any,
    most: tuple[int, int],
    counts: Any,
) -> None:
    """Write the weights of the pairs (left, right, weight) at the places `which`.

    `most`: elements of the largest record on either side.
    """
    if which.size == 0:
        return
    larger, pairs_room = max(most), most[0] * most[1]
    # as `lay_out` in gpu.cu has it: 8-byte numbers, then 4-byte ones
    stride = pairs_room + 5 * larger + 3 + (5 * larger + 3 + 1) // 2 + 1
    kernel = SOURCE.kernels().verify
    warps = min(int(which.size), kernel.resident(BLOCK) * (BLOCK // WARP))
    warps = max(1, min(warps, MOST_BYTES // (8 * stride)))
    blocks = -(-warps * WARP // BLOCK)
    slab = gpu.empty(blocks * (BLOCK // WARP) * stride, np.int64, "fuzzy_join")
    kernel(
        None,
        (corpus.words, rule, which, which.size, *pairs, slab, stride, pairs_room, larger, counts),
        block=BLOCK,
        grid=blocks,
    )
    engines.cupy().cuda.get_current_stream().synchronize()  # the slab goes back to the pool
