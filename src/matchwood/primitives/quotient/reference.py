"""A graph added up by labels: one entry after the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.primitives.quotient import sums_type
from matchwood.primitives.tally.reference import weights_of_labels


def quotient(
    indptr: Any,
    indices: Any,
    data: Any,
    inner: Any,
    labels: Any,
    count: int,
    symmetric: bool,
    threads: int | None = None,
    *,
    ordered: bool = True,
) -> tuple[Any, Any, Any, Any]:
    """See matchwood.primitives.quotient.quotient."""
    kind = sums_type(data)
    rows: list[dict[int, Any]] = [{} for _ in range(count)]
    diagonal = np.zeros(count, kind)
    for v in range(labels.size):
        c = int(labels[v])
        if inner is not None:
            diagonal[c] += inner[v]
        for d, weight in weights_of_labels(indptr, indices, data, labels, v).items():
            if d == c:
                diagonal[c] += kind.type(weight)
            else:
                rows[c][d] = rows[c].get(d, kind.type(0)) + kind.type(weight)
    out_indptr = np.zeros(count + 1, indptr.dtype)
    np.cumsum([len(row) for row in rows], out=out_indptr[1:])
    columns = [d for row in rows for d in sorted(row)]
    values = [row[d] for row in rows for d in sorted(row)]
    return out_indptr, np.array(columns, indices.dtype), np.array(values, kind), diagonal
