"""Contraction from the definition: one entry after the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.primitives.contract import sums_type


def contract(
    indptr: Any, indices: Any, data: Any, inner: Any, labels: Any, count: int, *, loops: bool,
    symmetric: bool, threads: int | None = None, ordered: bool = True,
) -> Any:  # fmt: skip
    """See matchwood.primitives.contract.contract.  Of two equal sums the upper one is stored."""
    kind = sums_type(data)
    table: list[dict[int, Any]] = [{} for _ in range(count)]
    diagonal, inside = np.zeros(count, kind), np.zeros(count, kind)
    for u in range(len(indptr) - 1):
        if inner is not None:
            diagonal[labels[u]] += inner[u]
        for e in range(indptr[u], indptr[u + 1]):
            i, j = int(labels[u]), int(labels[indices[e]])
            w = kind.type(1 if data is None else data[e])
            if i == j:
                inside[i] += w
            elif i < j or not symmetric:
                table[i][j] = table[i][j] + w if j in table[i] else w
                if symmetric:
                    table[j][i] = table[i][j]
    rows = [sorted(row.items()) for row in table]
    out = np.zeros(count + 1, indptr.dtype)
    out[1:] = np.cumsum([len(row) for row in rows])
    columns = np.array([j for row in rows for j, _ in row], indices.dtype)
    sums = np.array([w for row in rows for _, w in row], kind)
    return out, columns, sums, diagonal + inside if loops else None


def contract_pattern(
    indptr: Any, indices: Any, labels: Any, count: int, threads: int | None
) -> Any:
    """(indptr, indices) of the directed graph of groups."""
    options: Any = {"loops": False, "symmetric": False}
    return contract(indptr, indices, None, None, labels, count, **options)[:2]


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
    options: Any = {"loops": False, "symmetric": True}
    made = contract(indptr, indices, data, None, label, len(weights), **options)
    return made[:3], label, np.array(weights, members.dtype)
