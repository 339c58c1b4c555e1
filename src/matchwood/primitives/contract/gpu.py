"""Contraction on the GPU: which method takes which call.

As on the CPU, with one difference: tallied/gpu.py and grouped/gpu.py add in any order, which only
integers allow.  So floating values are listed in any case, and the diagonal is taken out of the
result.
"""

from __future__ import annotations

from typing import Any

from matchwood import engines
from matchwood.primitives.assemble.gpu import assemble
from matchwood.primitives.compact.gpu import compact
from matchwood.primitives.contract import sums_type
from matchwood.primitives.contract.grouped.gpu import MEDIUM_ROW, contract_groups
from matchwood.primitives.contract.listed.gpu import list_and_sort
from matchwood.primitives.contract.pairs.gpu import contract_pairs as contract_pairs
from matchwood.primitives.contract.tallied.gpu import add_inner, quotient
from matchwood.primitives.contract.tallied.gpu import sums_by_label as sums_by_label
from matchwood.primitives.transpose.gpu import expand_rows


def contract(
    indptr: Any,
    indices: Any,
    data: Any,
    inner: Any,
    labels: Any,
    count: int,
    *,
    loops: bool,
    symmetric: bool,
    threads: int | None = None,
    ordered: bool = True,
) -> Any:
    if data is None or (loops and data.dtype.kind == "i"):
        found = quotient(
            indptr, indices, data, inner, labels, count, symmetric, threads, ordered=ordered
        )
        return found if loops else (*found[:3], None)
    values = data.astype(sums_type(data), copy=False)
    options: Any = {"loops": loops, "symmetric": symmetric}
    made = list_and_sort(indptr, indices, values, labels, count, **options)
    if not loops:
        return (*made, None)
    *rows, diagonal = _without_diagonal(*made)
    if inner is not None:
        _, groups, sums = assemble(count, count, labels, labels, inner)  # in the order of vertices
        diagonal[groups] += sums
    return (*rows, diagonal)


def contract_measured(
    indptr: Any, indices: Any, data: Any, inner: Any, labels: Any, count: int, longest: int
) -> tuple[Any, int, int]:
    """See matchwood.primitives.contract.trusted_contract_measured.

    By groups where that can be: where one row is too long for it, a group has as many entries.
    """
    if longest <= MEDIUM_ROW:
        found = contract_groups(indptr, indices, data, labels, count)
        if found is not None:
            add_inner(labels, inner, found.inner)
            return found[:4], found.longest, found.tied
    made = quotient(indptr, indices, data, inner, labels, count, symmetric=True, ordered=False)
    xp = engines.cupy()
    lengths = xp.diff(made[0])
    if count == 0:
        return made, 0, 0
    longest, tied = xp.stack([lengths.max(), xp.count_nonzero(lengths)]).get().tolist()
    return made, longest, tied


def contract_pattern(
    indptr: Any, indices: Any, labels: Any, count: int, threads: int | None
) -> Any:
    return list_and_sort(indptr, indices, None, labels, count, loops=False, symmetric=False)[:2]


def _without_diagonal(indptr: Any, indices: Any, data: Any) -> Any:
    """(indptr, indices, data, diagonal) of a matrix that has every entry once."""
    xp = engines.cupy()
    rows = expand_rows(indptr, indices.size)
    inside = rows == indices
    diagonal = xp.zeros(indptr.size - 1, data.dtype)
    diagonal[rows[inside]] = data[inside]
    dropped = xp.zeros_like(indptr)
    dropped[rows[inside] + 1] = 1
    kept = compact(~inside)
    return indptr - xp.cumsum(dropped, dtype=dropped.dtype), indices[kept], data[kept], diagonal
