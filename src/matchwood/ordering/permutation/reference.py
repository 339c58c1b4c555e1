"""A symmetric permutation by its definition."""

from __future__ import annotations

from typing import Any

import numpy as np


def permute(
    view: Any, perm: Any, place: Any, *, threads: int | None = None
) -> tuple[Any, Any, Any]:
    indptr, indices, data = [0], [], []
    for old in perm.tolist():
        first, last = int(view.indptr[old]), int(view.indptr[old + 1])
        row = sorted((int(place[view.indices[k]]), k) for k in range(first, last))
        indices += [column for column, _ in row]
        data += [k for _, k in row]
        indptr.append(len(indices))
    kind = view.indptr.dtype
    values = None if view.data is None else view.data[np.array(data, np.int64)]
    return np.array(indptr, kind), np.array(indices, kind), values
