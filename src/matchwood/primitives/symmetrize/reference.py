"""Union with the transpose through dictionaries, in plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.primitives.assemble.reference import csr_of


def _entries(indptr: Any, indices: Any, data: Any) -> dict[tuple[int, int], Any]:
    one = np.float32(1)
    return {
        (i, int(indices[k])): one if data is None else data[k]
        for i in range(len(indptr) - 1)
        for k in range(int(indptr[i]), int(indptr[i + 1]))
    }


def union_with_transpose(
    indptr: Any, indices: Any, data: Any, *, reduce: str = "sum", threads: int | None = None
) -> tuple[Any, Any, Any]:
    entry = _entries(indptr, indices, data)
    table = {}
    for i, j in entry:
        if i != j:
            both = [abs(entry[key]) for key in ((i, j), (j, i)) if key in entry]
            weight = sum(both) if reduce == "sum" else max(both) if reduce == "max" else min(both)
            if data is None or weight != 0:
                table[i, j] = table[j, i] = weight
    return csr_of([(*key, w) for key, w in table.items()], len(indptr) - 1, indptr.dtype, data)


def magnitudes(
    indptr: Any, indices: Any, data: Any, *, threads: int | None = None
) -> tuple[Any, Any, Any]:
    entry = _entries(indptr, indices, data)
    table = {key: abs(w) for key, w in entry.items() if key[0] != key[1] and w != 0}
    return csr_of([(*key, w) for key, w in table.items()], len(indptr) - 1, indptr.dtype, data)
