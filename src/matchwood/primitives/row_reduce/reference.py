"""Row reduction: the skeleton and its instances in plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.primitives.row_reduce import Operation, lowest


def run_operation(
    operation: Operation, indptr: Any, indices: Any, data: Any, x: Any, out: Any, *,
    threads: int | None = None,
) -> None:  # fmt: skip
    # a function that Numba has compiled is called by its Python text
    init, multiply, combine, finish = (getattr(f, "py_func", f) for f in operation)
    for i in range(indptr.size - 1):
        accumulator = init(i, x)
        for k in range(int(indptr[i]), int(indptr[i + 1])):
            a = 1 if data is None else data[k]
            accumulator = combine(accumulator, multiply(i, int(indices[k]), a, x))
        finish(i, accumulator, out)


def spmv(
    indptr: Any, indices: Any, data: Any, x: Any, *, dtype: Any, accumulator: Any,
    threads: int | None = None,
) -> Any:  # fmt: skip
    kind = np.dtype(accumulator).type
    out = np.empty(indptr.size - 1, dtype)

    def zero(i: int, x: Any) -> Any:
        return kind(0)

    def times(i: int, j: int, a: Any, x: Any) -> Any:
        return kind(a) * kind(x[j])

    def plus(total: Any, term: Any) -> Any:
        return kind(total + term)

    def put(i: int, total: Any, out: Any) -> None:
        out[i] = total

    with np.errstate(over="ignore"):
        run_operation(Operation(zero, times, plus, put), indptr, indices, data, x, out)
    return out


def strongest_neighbours(
    indptr: Any, indices: Any, data: Any, n: int, *, threads: int | None = None
) -> tuple[Any, Any]:
    columns = np.full((indptr.size - 1, n), -1, indices.dtype)
    weights = np.zeros((indptr.size - 1, n), data.dtype)
    for i in range(indptr.size - 1):
        row = range(int(indptr[i]), int(indptr[i + 1]))
        pairs = [(-data[k], indices[k]) for k in row if indices[k] != i and data[k] == data[k]]
        for slot, (weight, column) in enumerate(sorted(pairs)[:n]):
            columns[i, slot], weights[i, slot] = column, -weight
    return columns, weights


def minimum_label(indptr: Any, indices: Any, label: Any, *, threads: int | None = None) -> Any:
    smallest = label.copy()
    for i in range(indptr.size - 1):
        for j in indices[indptr[i] : indptr[i + 1]]:
            smallest[i] = min(smallest[i], label[j])
    return smallest


def maximum_neighbour(indptr: Any, indices: Any, x: Any, *, threads: int | None = None) -> Any:
    largest = np.full(indptr.size - 1, lowest(x.dtype), x.dtype)
    for i in range(indptr.size - 1):
        for j in indices[indptr[i] : indptr[i + 1]]:
            if x[j] > largest[i]:
                largest[i] = x[j]
    return largest
