"""A graph added up by labels on the GPU: entries between labels are sorted, and equal ones added.

The sort is that of primitives/assemble.  Entries inside a label are added up before it.  Kernels:
gpu.cu.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines import gpu
from matchwood.primitives.assemble.gpu import rows_of_keys
from matchwood.primitives.compact.gpu import compact
from matchwood.primitives.transpose.gpu import expand_rows

SOURCE = gpu.Source(__package__, "gpu.cu", ("label_entries<I>", "add_by_label<I>"))


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
    kind, m = np.dtype(np.int64), int(indices.size)
    k = SOURCE.kernels(I=indices.dtype)
    shift = max(count - 1, 1).bit_length()
    with gpu.guard("quotient", m * (indices.itemsize + 26)):
        diagonal = cupy.zeros(count, kind)
        rows = expand_rows(indptr, m)
        keys, between = cupy.empty(m, np.uint64), cupy.empty(m, np.bool_)
        if data is not None:
            data = data.astype(kind, copy=False)
        k.label_entries(m, (m, rows, indices, data, labels, shift, keys, between, diagonal))
        add_inner(labels, inner, diagonal)
        del rows
        keys = compact(between, keys)
        if data is not None:
            data = compact(between, data)
    how = "count" if data is None else "sum"
    found = rows_of_keys((count, count), keys, data, indices.dtype, shift, reduce=how)
    return (*found, diagonal)


def add_inner(labels: Any, inner: Any, sums: Any) -> None:
    """Add the int64 `inner` of each vertex, unless it is None, to the sum of its label."""
    if inner is not None:
        k = SOURCE.kernels("add_by_label", I=labels.dtype)
        k.add_by_label(labels.size, (labels.size, labels, inner, sums))


def sums_by_label(values: Any, labels: Any, count: int, threads: int | None = None) -> Any:
    """See matchwood.primitives.contract.trusted_sums."""
    sums = engines.cupy().zeros(count, np.int64)
    add_inner(labels, values, sums)
    return sums
