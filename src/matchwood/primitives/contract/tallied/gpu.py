"""A graph added up by labels on the GPU: entries between labels are sorted, and equal ones added.

The sort is that of primitives/assemble.  Entries inside a label are added up before it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines, gpu
from matchwood.primitives.assemble.gpu import assemble
from matchwood.primitives.contract import sums_type
from matchwood.primitives.transpose.gpu import expand_rows

PIECE = 22  # bits of a weight that are added up at once: 2^31 of them stay below 2^53


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
    """See matchwood.primitives.contract.tallied.cpu.quotient.

    Memory beside the result: about 60 bytes for each entry, most of it the sort's.
    """
    cupy = engines.cupy()
    kind, m = sums_type(data), int(indices.size)
    with gpu.guard("quotient", m * (2 * indices.itemsize + 9)):
        rows = labels[expand_rows(indptr, m)]
        columns = labels[indices]
        between = rows != columns
        diagonal = _added(rows[~between], None if data is None else data[~between], count, kind)
        if inner is not None:
            diagonal += _added(labels, inner, count, kind)
        rows, columns = rows[between], columns[between]
        if data is None:
            values = cupy.ones(rows.size, kind)
        else:
            values = data[between].astype(kind, copy=False)
    return (*assemble(count, count, rows, columns, values), diagonal)


def _added(labels: Any, weights: Any, count: int, kind: Any) -> Any:
    """The sum of the weights of each label; integers in pieces, since
    the sums are in double precision, which holds integers up to 2^53.
    """
    cupy = engines.cupy()
    if count == 0 or labels.size == 0:
        return cupy.zeros(count, kind)
    if weights is not None and kind.kind == "i":
        found = cupy.zeros(count, np.int64)
        wide = weights.astype(np.int64, copy=False)
        for shift in (0, PIECE, 2 * PIECE):
            piece = wide >> shift
            if shift < 2 * PIECE:
                piece = piece & ((1 << PIECE) - 1)
            sums = cupy.bincount(labels, weights=piece.astype(np.float64), minlength=count)
            found += sums.astype(np.int64) << shift
        return found
    found = cupy.bincount(labels, weights=weights, minlength=count)
    return found.astype(kind)
