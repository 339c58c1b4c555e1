"""Queue and bitmap on the GPU.  Kernels: gpu.cu; device functions: matchwood/frontier.cuh."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.arguments import index_type
from matchwood.engines import gpu
from matchwood.primitives.frontier import vertex_out_of_range, words_for
from matchwood.primitives.scan import gpu as scan

SOURCE = gpu.Source(__package__, "gpu.cu", ("mark<I>", "count_bits", "list_bits<I>"))

_NO_VERTEX = SOURCE.constant("NO_VERTEX")


def bitmap_from_queue(queue: Any, n: int, *, threads: int | None = None) -> Any:
    """See matchwood.primitives.frontier.bitmap_from_queue.  Waits for the device."""
    cupy = engines.cupy()
    bitmap = gpu.empty(words_for(n), np.uint64, "bitmap_from_queue")
    bitmap.fill(0)
    status = gpu.Status()
    k = SOURCE.kernels(I=queue.dtype)
    k.mark(queue.size, (queue.size, cupy.ascontiguousarray(queue), n, bitmap, status))
    status.check({_NO_VERTEX: lambda place: vertex_out_of_range(n, place)})
    return bitmap


def queue_from_bitmap(bitmap: Any, n: int, *, threads: int | None = None, dtype: Any = None) -> Any:
    """See matchwood.primitives.frontier.queue_from_bitmap.  Waits to learn the size."""
    cupy = engines.cupy()
    dtype = np.dtype(index_type(n) if dtype is None else dtype)
    words = bitmap.size
    bitmap = cupy.ascontiguousarray(bitmap)
    space = gpu.workspace(
        "queue_from_bitmap", counts=(words, np.int32), starts=(words + 1, np.int64)
    )
    k = SOURCE.kernels(I=dtype)
    k.count_bits(words, (words, bitmap, space.counts))
    scan.scan_into(space.counts, space.starts)
    queue = gpu.empty(int(space.starts[words]), dtype, "queue_from_bitmap")
    k.list_bits(words, (words, bitmap, space.starts, queue))
    return queue
