"""Whether an array of mates is one, on the GPU.  Kernel: gpu.cu; the rule: __init__.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines import gpu

SOURCE = gpu.Source(__package__, "gpu.cu", ("check_mates<M>",), types={"M": (np.int32, np.int64)})

OUTSIDE, NOT_MUTUAL = SOURCE.constants("OUTSIDE", "NOT_MUTUAL")


def first_fault(mate: Any, n: int) -> tuple[int, int]:
    """OUTSIDE, NOT_MUTUAL or 0, and the first vertex with that fault; waits for the device.

    Caller: `mate` is int32 or int64."""
    words = engines.cupy().ascontiguousarray(mate)
    status = gpu.Status()
    SOURCE.kernels(M=words.dtype).check_mates(n, (n, words, status))
    return status.read()
