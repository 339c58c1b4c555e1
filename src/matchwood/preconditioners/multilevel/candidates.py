"""Near-nullspace candidates: what errors look like that no smoother reduces.

    given         the argument of `multilevel`, checked, and the nodes to which the rows belong
    coarsened     aggregates of nodes, and the interpolation that contains the candidates

A node is what stands at one point of a mesh: two or three displacements.  Nodes are aggregated, by
the Frobenius norms of their blocks; on each aggregate the candidates get an orthonormal basis, and
each column of it is a row of the next level.  There the aggregate is a node [3]_.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from matchwood import arguments
from matchwood.preconditioners.multilevel.cpu import candidates as cpu
from matchwood.preconditioners.multilevel.cpu import smoothed
from matchwood.primitives.contract import trusted_contract_values
from matchwood.primitives.transpose.cpu import transpose

Array = np.ndarray[Any, Any]
CALLER, NAME = "multilevel", "near_nullspace"


class Near(NamedTuple):
    """Of each row: its node, and the values of the candidates."""

    nodes: Array
    values: Array

    @property
    def is_scaling(self) -> bool:
        """One candidate of nodes of one row?  It scales the matrix to one with constants."""
        n, q = self.values.shape
        return q == 1 and (n == 0 or int(self.nodes[-1]) == n - 1)


def given(near: Any, blocksize: Any, A: Any, n: int) -> Near | None:
    """`near_nullspace` and `blocksize` as they were given with the matrix A of n rows, checked.

    Columns are multiplied by powers of two, so that the largest number is between 1/2 and 1.
    """
    if near is None:
        if blocksize is not None:
            raise ValueError(f"{CALLER}: blocksize needs {NAME}")
        return None
    values = arguments.plain(CALLER, NAME, near)
    if not isinstance(values, np.ndarray):
        raise TypeError(f"{CALLER}: {NAME} must be an array of NumPy, got {type(near).__name__}")
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or values.shape[0] != n or not values.shape[1]:
        raise ValueError(f"{CALLER}: {NAME} must have shape ({n}, q), got {np.shape(near)}")
    if values.dtype.kind not in "biuf":
        raise TypeError(f"{CALLER}: {NAME} must be real, got {values.dtype}")
    values = np.ascontiguousarray(values, np.float64)
    good = np.isfinite(values)
    if not good.all():
        row, column = np.argwhere(~good)[0]
        raise ValueError(
            f"{CALLER}: {NAME} must be finite, got {values[row, column]} at ({row}, {column})"
        )
    largest = abs(values).max(axis=0, initial=0.0)
    if n and (largest == 0).any():
        raise ValueError(f"{CALLER}: column {int(largest.argmin())} of {NAME} must not be zero")
    values = np.ldexp(values, -np.frexp(largest)[1])
    size = _blocksize(blocksize, A, values)
    nothing = ~values.reshape(n // size, values.shape[1] * size).any(axis=1)
    if nothing.any():
        row = size * int(nothing.argmax())
        where = f"row {row}" if size == 1 else f"rows {row} to {row + size - 1}"
        raise ValueError(f"{CALLER}: {NAME} must not be zero in all of {where}")
    return Near(np.arange(n) // size, values)


def _blocksize(blocksize: Any, A: Any, values: Array) -> int:
    """Rows of a node: as given, as of a BSR matrix, or as many translations as there are."""
    n = values.shape[0]
    if blocksize is not None:
        size = arguments.count(CALLER, "blocksize", blocksize, 1)
        if n % size:
            raise ValueError(f"{CALLER}: blocksize must divide the {n} rows, got {size}")
        return size
    blocks = getattr(A, "blocksize", None)
    if isinstance(blocks, tuple) and len(blocks) == 2 and blocks[0] == blocks[1]:
        return int(blocks[0])
    for size in range(values.shape[1], 1, -1):
        own = np.arange(n)[:, None] % size == np.arange(size)
        if n % size == 0 and not values[:, :size][~own].any():
            return size
    return 1


def node_graph(
    matrix: Any, nodes: Array, symmetric: bool, threads: int | None
) -> tuple[Array, ...]:
    """Frobenius norms of the blocks: CSR arrays without the diagonal, and the diagonal."""
    indptr, indices, data, inner = matrix
    labels = nodes.astype(indices.dtype)
    count = int(nodes[-1]) + 1 if nodes.size else 0
    made = trusted_contract_values(
        indptr, indices, np.square(data, dtype=np.float64), np.square(inner, dtype=np.float64),
        labels, count, symmetric=symmetric, threads=threads,
    )  # fmt: skip
    return made.indptr, made.indices, np.sqrt(made.data), np.sqrt(made.inner)


def basis(near: Near, label: Array, count: int, threads: int | None) -> tuple[Any, Near]:
    """(the matrix T whose columns are the basis on each aggregate, the candidates in it).

    T times these candidates are those of `near`, in the rows of aggregates.
    """
    n, q = near.values.shape
    group = np.asarray(label)[near.nodes]
    rows = np.arange(n + 1, dtype=group.dtype)
    starts, members, _ = transpose(rows, group, None, count + 1, threads=threads)
    made = cpu.orthonormal(near.values, starts[: count + 1], members, count, threads)
    kept = made.kept.astype(bool)
    number = (np.cumsum(kept.ravel()) - 1).reshape(kept.shape)
    there = made.basis != 0
    column = np.append(number, np.zeros((1, q), number.dtype), axis=0)[group][there]
    indptr = np.append(0, np.cumsum(there.sum(axis=1)))
    arrays = made.basis[there], column.astype(group.dtype), indptr.astype(group.dtype)
    T = sp.csr_array(arrays, shape=(n, int(kept.sum())))
    below = made.coefficients[kept]
    return T, Near(np.repeat(np.arange(count), kept.sum(axis=1)), below)


def smooth(matrix: Any, sizes: Array, T: Any, threads: int | None) -> Any:
    """P = T - W A T, with W a damped Jacobi step; `sizes` are the sums of |entries| of each row."""
    indptr, indices, data, inner = matrix
    step = np.where(sizes > 0, smoothed.JACOBI_STEP / np.where(sizes > 0, sizes, 1), 0)
    left = data * np.repeat(-step, np.diff(indptr))
    arrays, _ = smoothed.product(
        (indptr, indices, left), 1 - step * inner, (T.indptr, T.indices, T.data), T.shape[1],
        False, threads,
    )  # fmt: skip
    return sp.csr_array((arrays[2], arrays[1], arrays[0]), shape=T.shape)
