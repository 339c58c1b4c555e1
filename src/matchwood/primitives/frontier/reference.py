"""Queue and bitmap: the definition, one bit after the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.arguments import index_type
from matchwood.primitives.frontier import vertex_out_of_range, words_for


def bitmap_from_queue(queue: Any, n: int, *, threads: int | None = None) -> Any:
    words = [0] * words_for(n)
    for place, v in enumerate(queue.tolist()):
        if not 0 <= v < n:
            raise vertex_out_of_range(n, place)
        words[v // 64] |= 1 << (v % 64)
    return np.array(words, dtype=np.uint64)


def queue_from_bitmap(bitmap: Any, n: int, *, threads: int | None = None, dtype: Any = None) -> Any:
    words = bitmap.tolist()
    marked = [v for v in range(n) if words[v // 64] >> (v % 64) & 1]
    return np.array(marked, dtype=index_type(n) if dtype is None else dtype)
