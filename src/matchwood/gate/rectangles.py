"""Matrices that need not be square: incidence of sets, traffic from sources to destinations.

The gate is that of graphs: same checks, types of indices and rules for duplicates.  A rectangle is

    a SciPy or CuPy sparse matrix, or a dense 2-D array, whose nonzeros are the entries
    (indptr, indices[, data], (rows, columns))
    ((rows, columns), edges[, weights])     with `edges` of shape (m, 2): row, column
    a Rectangle, or a Graph, which is square

The shape must be a tuple: arrays may be lists, so a list would not be recognised as the shape.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import arguments, engines
from matchwood.gate import inputs, refusals, resources
from matchwood.gate.entries import DUPLICATES, Entries
from matchwood.gate.views import View
from matchwood.primitives.transpose import trusted_transpose

EXPECTED = (
    "a sparse matrix (SciPy or CuPy), a 2-D array, (indptr, indices[, data], shape) or "
    "(shape, edges[, weights])"
)


class Rectangle(Entries):
    """A matrix of any shape that has passed the gate.  Not changed afterwards.

    `directed_pattern` and `directed_weights` are its entries with sorted rows and no duplicates.
    """

    def __repr__(self) -> str:
        rows, columns = self.shape
        return f"<Rectangle: {rows} x {columns}, {self.nnz} entries, {self.engine}>"

    def transposed_pattern(self) -> View:
        """The rows of each column, ascending."""
        view = self.directed_pattern()
        arrays = (view.indptr, view.indices, None, self.shape[1])
        return self.keep("transposed", lambda: View(*trusted_transpose(*arrays)))

    def finite_weights(self, caller: str) -> View:
        def make() -> View:
            view = self.directed_weights(caller)
            refusals.refuse_infinite(view, caller)
            return view

        return self.keep("finite", make)


def as_rectangle(A: Any, caller: str, *, duplicates: str | None = None) -> Rectangle:
    """The Rectangle of an argument `A`; a Rectangle is returned as it is.

    `duplicates` is that of `matchwood.graph`; None adds them up.
    """
    arguments.one_of(caller, "duplicates", duplicates, DUPLICATES)
    if isinstance(A, Rectangle):
        A.require_unchanged(caller)
        return A if duplicates in (None, A.duplicates) else _made(A.raw(), caller, duplicates)
    if isinstance(A, Entries):
        return _made(A.raw(), caller, A.duplicates if duplicates is None else duplicates)
    try:
        return _made(_read(A, caller), caller, duplicates)
    except MemoryError as error:
        raise engines.out_of_memory(error) from error


def _made(raw: inputs.Raw, caller: str, duplicates: str | None) -> Rectangle:
    return Rectangle(raw, None, caller, duplicates)


def _read(A: Any, caller: str) -> inputs.Raw:
    if inputs.is_sparse(A):
        return inputs.read_sparse(A, caller, square=False)
    if isinstance(A, tuple):
        return _from_tuple(A, caller)
    if isinstance(A, np.ndarray) or inputs.is_foreign_array(A):
        return inputs.from_dense(inputs.as_array(A, "A", caller), caller, square=False)
    raise TypeError(f"{caller}: A must be {EXPECTED}, got {type(A).__name__}")


def _from_tuple(A: tuple[Any, ...], caller: str) -> inputs.Raw:
    if len(A) in (2, 3) and _is_shape(A[0]):
        return _from_edges(_sides(A[0], caller), *A[1:], caller=caller)
    if len(A) not in (3, 4) or not _is_shape(A[-1]):
        raise TypeError(f"{caller}: a tuple must begin or end with its shape, (rows, columns)")
    rows, columns = _sides(A[-1], caller)
    raw = inputs.from_arrays(*A[:-1], caller=caller)
    if raw.n != rows:
        raise ValueError(
            f"{caller}: indptr must have {rows + 1} elements for {rows} rows, got {raw.n + 1}"
        )
    return raw._replace(columns=columns)


def _is_shape(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and not any(map(np.ndim, value))


def _sides(shape: Any, caller: str) -> tuple[int, int]:
    rows, columns = (arguments.count(caller, "the sides of A", side) for side in shape)
    if max(rows, columns) > inputs.MOST_VERTICES:
        raise ValueError(
            f"{caller}: the sides of A must be at most 2**62, got {max(rows, columns)}"
        )
    return rows, columns


def _from_edges(
    shape: tuple[int, int], edges: Any, weights: Any = None, *, caller: str
) -> inputs.Raw:
    ends, data = inputs.edge_arrays(edges, weights, caller)
    for name, side, column in (("rows", shape[0], ends[:, 0]), ("columns", shape[1], ends[:, 1])):
        if column.size and not (0 <= int(column.min()) and int(column.max()) < side):
            bad = int(((column < 0) | (column >= side)).argmax())
            raise ValueError(
                f"{caller}: {name} of edges must be within 0..{side - 1}, "
                f"got {tuple(ends[bad].tolist())} as edge {bad}"
            )
    resources.require_vertices(caller, max(shape), engines.location(ends))
    return inputs.sorted_entries(shape, ends[:, 0], ends[:, 1], data)._replace(edges=True)
