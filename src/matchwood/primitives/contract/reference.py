"""Contraction from the definition."""

from __future__ import annotations

from typing import Any

import numpy as np


def contract(
    indptr: Any,
    indices: Any,
    data: Any,
    label: Any,
    count: int,
    *,
    loops: bool = False,
    symmetric: bool = True,
    threads: int | None = None,
) -> Any:
    table: list[dict[int, Any]] = [{} for _ in range(count)]
    for u in range(len(indptr) - 1):
        for e in range(indptr[u], indptr[u + 1]):
            i, j = int(label[u]), int(label[indices[e]])
            if (i == j and not loops) or (i > j and symmetric):
                continue
            w = 1 if data is None else data[e]
            table[i][j] = table[i][j] + w if j in table[i] else w
            if symmetric:
                table[j][i] = table[i][j]
    rows = [sorted(row.items()) for row in table]
    out = np.zeros(count + 1, indptr.dtype)
    out[1:] = np.cumsum([len(row) for row in rows])
    columns = np.array([j for row in rows for j, _ in row], indices.dtype)
    if data is None:
        return out, columns, None
    return out, columns, np.array([w for row in rows for _, w in row], data.dtype)


def contract_pairs(
    indptr: Any, indices: Any, data: Any, mate: Any, members: Any, caller: str, threads: int | None
) -> Any:
    """((indptr, indices, data), label, weights of the groups)."""
    n = len(mate)
    label = np.empty(n, indices.dtype)
    weights: list[Any] = []
    for v in range(n):
        if 0 <= mate[v] < v:
            label[v] = label[mate[v]]
            weights[label[v]] += members[v]
        else:
            label[v] = len(weights)
            weights.append(members[v])
    made = contract(indptr, indices, data, label, len(weights))
    return made, label, np.array(weights, members.dtype)
