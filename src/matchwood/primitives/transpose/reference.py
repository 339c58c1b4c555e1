"""The transpose by appending every entry to the list of its column."""

from __future__ import annotations

from typing import Any

import numpy as np


def transpose(
    indptr: Any, indices: Any, data: Any, columns: int, *, threads: int | None = None
) -> tuple[Any, Any, Any]:
    lists: list[list[int]] = [[] for _ in range(columns)]
    places: list[list[int]] = [[] for _ in range(columns)]
    for i in range(len(indptr) - 1):
        for k in range(int(indptr[i]), int(indptr[i + 1])):
            lists[int(indices[k])].append(i)
            places[int(indices[k])].append(k)
    lengths = [len(rows) for rows in lists]
    out_indptr = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(indptr.dtype)
    out_indices = np.array([i for rows in lists for i in rows], indices.dtype)
    order = np.array([k for ks in places for k in ks], np.int64)
    return out_indptr, out_indices, None if data is None else data[order]
