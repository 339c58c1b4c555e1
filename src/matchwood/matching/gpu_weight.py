"""The weight of a matching on the GPU.  Kernel: gpu_weight.cu."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines import gpu
from matchwood.primitives.wide_sums import total

SOURCE = gpu.Source(__package__, "gpu_weight.cu", ("finish_matching<I,W>",))
SUM_BLOCKS = 512  # blocks that add up the weight


def finish_matching(view: Any, mate: Any) -> float:
    """The weight of a matching; elements of `mate` that are negative become -1."""
    k = SOURCE.kernels(I=view.indices.dtype, W=view.data.dtype)
    sums = gpu.empty(SUM_BLOCKS, np.float64, "weighted_matching")
    k.finish_matching(
        None, (view.n, view.indptr, view.indices, view.data, mate, sums), grid=SUM_BLOCKS
    )
    return total(sums.get())
