"""Row reduction on a team: the skeleton `reduce_rows`, and its instances.

A kernel of your own is one line, with device functions for the four steps:

    @kernel
    def propose(team, indptr, indices, data, columns, x, out):
        reduce_rows(team, indptr, indices, data, columns, x, out, init, multiply, combine, finish)

Members take ranges of whole rows with about the same number of entries, and write only what
belongs to their rows: no races, and results that do not depend on the number of members.  One row
is the work of one member, however long it is.

Rows and columns are checked before they are used, a block at a time: the second reading finds them
in the cache.  (A separate pass before would slow SpMV by a third.)  A block with a column that
is not below `columns` makes the team fail with BROKEN.

Give the accumulator one type: what `combine` returns must be what `init` returns (`converted` in
engines/cpu/hints.py helps, as Numba widens sums).  A tuple lives in registers.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from matchwood.engines.cpu import Team, crew, device, fail, inlined, kernel, share_rows, stopping
from matchwood.engines.cpu.compiled import is_compiled
from matchwood.engines.cpu.hints import converted, natural, with_item
from matchwood.primitives.inspect import fault
from matchwood.primitives.patterns import ANY
from matchwood.primitives.row_reduce import Operation, lowest

Array = np.ndarray[Any, Any]

ROWS = 1 << 10  # rows between two checks of the stop word
BROKEN = 1  # code of the failure: the arrays are not CSR


@device
def sound(indptr: Any, indices: Any, lo: int, hi: int, columns: int) -> bool:
    """Whether rows lo .. hi - 1 lie inside `indices`, and their columns below `columns`."""
    for i in range(natural(lo), hi):
        if indptr[i] > indptr[i + 1]:
            return False
    first, last = indptr[lo], indptr[hi]
    if first < 0 or last > indices.size:
        return False
    if first == last:
        return True
    part = indices[first:last]
    least = most = part[0]
    for k in range(part.size):
        least = min(least, part[k])
        most = max(most, part[k])
    return least >= 0 and most < columns


@inlined
def reduce_rows(
    team: Team, indptr: Any, indices: Any, data: Any, columns: int, x: Any, out: Any, init: Any,
    multiply: Any, combine: Any, finish: Any,
) -> None:  # fmt: skip
    """Reduce this member's share of the rows; see __init__.py.  `data` None: `multiply` gets 1."""
    lo, hi = share_rows(team, indptr)
    if team.me == 0:
        lo = 0  # with a broken indptr the search may end elsewhere; here all rows are checked
    for start in range(natural(lo), hi, ROWS):
        if stopping(team):
            return
        stop = min(start + ROWS, hi)
        if not sound(indptr, indices, start, stop, columns):
            fail(team, BROKEN, 0)
            return
        for i in range(natural(start), stop):
            accumulator = init(i, x)
            k, end = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
            while k < end:
                j = natural(np.int64(indices[k]))
                if data is None:
                    accumulator = combine(accumulator, multiply(i, j, 1, x))
                else:
                    accumulator = combine(accumulator, multiply(i, j, data[k], x))
                k += np.uint64(1)
            finish(i, accumulator, out)


@device
def _put(i: int, accumulator: Any, out: Any) -> None:
    out[i] = accumulator


# SpMV.  x = (vector, 0 in the type of the accumulator)


@device
def _second(i: int, x: Any) -> Any:
    return x[1]


@device
def _times(i: int, j: int, a: Any, x: Any) -> Any:
    return converted(converted(a, x[1]) * converted(x[0][j], x[1]), x[1])


@device
def _plus(total: Any, term: Any) -> Any:
    return converted(total + term, total)


@kernel
def _spmv(team: Team, indptr: Any, indices: Any, data: Any, columns: int, x: Any, out: Any) -> None:
    reduce_rows(team, indptr, indices, data, columns, x, out, _second, _times, _plus, _put)


# The n strongest.  The accumulator is (n weights, n columns), sorted; a place that is free has
# weight minus infinity and column -1.  x is an empty one, whose type says n.  A term is (weight,
# column), with column -1 for the diagonal.


@device
def _none_yet(i: int, x: Any) -> Any:
    return x


@device
def _neighbour(i: int, j: int, a: Any, x: Any) -> Any:
    return a, (j if j != i else np.int64(-1))


@device
def _before(weight: Any, column: int, other_weight: Any, other_column: int) -> bool:
    """Whether a pair belongs before another, or before a free place."""
    if weight > other_weight:
        return True
    return weight == other_weight and (other_column < 0 or 0 <= column < other_column)


@device
def _insert(accumulator: Any, term: Any) -> Any:
    weights, columns = accumulator
    weight, column = term
    if weight >= weights[-1] and column >= 0:  # one comparison for most entries; false for NaN
        for place in range(len(weights)):
            if _before(weight, column, weights[place], columns[place]):
                next_weight, next_column = weights[place], columns[place]
                weights = with_item(weights, place, weight)
                columns = with_item(columns, place, column)
                weight, column = next_weight, next_column
    return weights, columns


@device
def _put_all(i: int, accumulator: Any, out: Any) -> None:
    weights, columns = accumulator
    for place in range(len(weights)):
        column = columns[place]
        out[0][i, place] = column
        out[1][i, place] = weights[place] if column >= 0 else 0


@kernel
def _strongest(
    team: Team, indptr: Any, indices: Any, data: Any, columns: int, x: Any, out: Any
) -> None:
    reduce_rows(
        team, indptr, indices, data, columns, x, out, _none_yet, _neighbour, _insert, _put_all
    )


# Smallest label (the vertex's own included), x = (labels,); largest neighbour, x = (values,
# smallest value of their type)


@device
def _own(i: int, x: Any) -> Any:
    return x[0][i]


@device
def _value(i: int, j: int, a: Any, x: Any) -> Any:
    return x[0][j]


@device
def _smaller(best: Any, term: Any) -> Any:
    return term if term < best else best


@kernel
def _minimum(
    team: Team, indptr: Any, indices: Any, data: Any, columns: int, x: Any, out: Any
) -> None:
    reduce_rows(team, indptr, indices, data, columns, x, out, _own, _value, _smaller, _put)


@device
def _larger(best: Any, term: Any) -> Any:
    return term if term > best else best


@kernel
def _maximum(
    team: Team, indptr: Any, indices: Any, data: Any, columns: int, x: Any, out: Any
) -> None:
    reduce_rows(team, indptr, indices, data, columns, x, out, _second, _value, _larger, _put)


@kernel
def _operation(
    team: Team, indptr: Any, indices: Any, data: Any, columns: int, x: Any, out: Any,
    init: Any, multiply: Any, combine: Any, finish: Any,
) -> None:  # fmt: skip
    reduce_rows(team, indptr, indices, data, columns, x, out, init, multiply, combine, finish)


@functools.lru_cache(maxsize=64)
def _compiled(operation: Operation) -> tuple[Any, ...]:
    """Functions of the user's own as kernels can call them; compiled again in each process."""
    return tuple(f if is_compiled(f) else device(f) for f in operation)


def _run(
    work: Any, function: str, arrays: tuple[Any, Any, Any], columns: int, x: Any, out: Any, *,
    threads: int | None, cost: int = 1,
) -> None:  # fmt: skip
    """Run a kernel over (indptr, indices, data); `cost` is that of an entry, in steps of a team.

    A block that is not sound is an error in the name of `function`.
    """
    given: Any = [None if a is None else np.ascontiguousarray(a) for a in arrays]
    indptr, indices, data = given
    team = crew(threads, work=cost * indices.size + indptr.size)
    errors: Any = {BROKEN: lambda detail: fault(function, indptr, indices, columns)}
    team.run(work, indptr, indices, data, columns, x, out, errors=errors)


def run_operation(
    operation: Operation, indptr: Array, indices: Array, data: Array | None, x: Any, out: Any, *,
    threads: int | None = None,
) -> None:  # fmt: skip
    team = crew(threads, work=indices.size + indptr.size)
    team.run(_operation, indptr, indices, data, ANY, x, out, *_compiled(operation))


def spmv(
    indptr: Array, indices: Array, data: Array | None, x: Array, *, dtype: Any, accumulator: Any,
    threads: int | None = None,
) -> Array:  # fmt: skip
    y, zero = np.empty(indptr.size - 1, dtype), np.dtype(accumulator).type(0)
    given = (np.ascontiguousarray(x), zero)
    _run(_spmv, "spmv", (indptr, indices, data), x.size, given, y, threads=threads)
    return y


def strongest_neighbours(
    indptr: Array, indices: Array, data: Array, n: int, *, threads: int | None = None
) -> tuple[Array, Array]:
    columns = np.empty((indptr.size - 1, n), indices.dtype)
    weights = np.empty((indptr.size - 1, n), data.dtype)
    empty = ((lowest(data.dtype),) * n, (-1,) * n)
    arrays, out = (indptr, indices, data), (columns, weights)
    _run(_strongest, "strongest_neighbours", arrays, ANY, empty, out, threads=threads, cost=2)
    return columns, weights


def minimum_label(
    indptr: Array, indices: Array, label: Array, *, threads: int | None = None
) -> Array:
    smallest, label = np.empty_like(label), np.ascontiguousarray(label)
    arrays = (indptr, indices, None)
    _run(_minimum, "minimum_label", arrays, label.size, (label,), smallest, threads=threads)
    return smallest


def maximum_neighbour(
    indptr: Array, indices: Array, x: Array, *, threads: int | None = None
) -> Array:
    largest = np.empty(indptr.size - 1, x.dtype)
    arrays, given = (indptr, indices, None), (np.ascontiguousarray(x), lowest(x.dtype))
    _run(_maximum, "maximum_neighbour", arrays, x.size, given, largest, threads=threads)
    return largest
