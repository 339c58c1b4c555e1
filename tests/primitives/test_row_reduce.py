"""Row reduction: the skeleton with functions of one's own, and the instances, on every engine."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphs import ZOO
from matchwood.engines.cpu import device
from matchwood.errors import CheckFailed
from matchwood.primitives.row_reduce import (
    Operation,
    maximum_neighbour,
    minimum_label,
    reduce_rows,
    reference,
    spmv,
    strongest_neighbours,
)
from matchwood.primitives.row_reduce.check import (
    check_maximum_neighbour,
    check_minimum_label,
    check_spmv,
    check_strongest_neighbours,
)
from strategies import graphs
from support import THREADS, looped, same

SQUARE = [name for name in ZOO if ZOO[name]().shape[0] == ZOO[name]().shape[1]]


def parts(A, index=np.int32, value=np.float64):
    return A.indptr.astype(index), A.indices.astype(index), A.data.astype(value)


@pytest.mark.slow
@looped("name", SQUARE)
def test_every_graph_of_the_zoo(engine, name):
    A = ZOO[name]()
    indptr, indices, data = parts(A)
    n = A.shape[0]
    x = np.random.default_rng(n).standard_normal(n)
    check_spmv(indptr, indices, data, x, spmv(indptr, indices, data, x, engine=engine))
    label = np.random.default_rng(1).permutation(n).astype(np.int32)
    smallest = minimum_label(indptr, indices, label, engine=engine)
    check_minimum_label(indptr, indices, label, smallest)
    largest = maximum_neighbour(indptr, indices, x, engine=engine)
    check_maximum_neighbour(indptr, indices, x, largest)
    for count in (1, 2, 4):
        found = strongest_neighbours(indptr, indices, data, count, engine=engine)
        check_strongest_neighbours(indptr, indices, data, count, *found)


@given(graphs(max_n=12), st.integers(1, 4), st.integers(1, 3))
def test_random_graphs(A, count, threads):
    indptr, indices, data = parts(A)
    found = strongest_neighbours(indptr, indices, data, count, threads=threads)
    check_strongest_neighbours(indptr, indices, data, count, *found)
    assert same(found, reference.strongest_neighbours(indptr, indices, data, count))
    x = np.arange(A.shape[0], dtype=np.float64) - 3.5
    y = spmv(indptr, indices, data, x, threads=threads)
    check_spmv(indptr, indices, data, x, y)
    right = reference.spmv(indptr, indices, data, x, dtype=np.float64, accumulator=np.float64)
    assert same(y, right)  # the order of the row is kept: the same bits


def random_matrix(index=np.int32, value=np.float32, n=40):
    rng = np.random.default_rng(3)
    counts = rng.integers(0, 9, n)
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(index)
    indices = rng.integers(0, n, indptr[-1]).astype(index)
    return indptr, indices, rng.integers(-20, 20, indptr[-1]).astype(value)


TYPES = ["int32", "int64", "float32", "float64"]


@looped(
    ("index", "value", "vector"),  # each costs a compilation
    [
        ("int32", None, "float32"),
        ("int64", None, "int32"),
        ("int32", "float32", "int32"),
        ("int64", "float64", "float64"),
        ("int64", "float32", "float64"),
    ],
)
def test_spmv_of_all_types(engine, index, value, vector):
    indptr, indices, data = random_matrix(index, value or "float32")
    data = None if value is None else data
    x = np.random.default_rng(4).integers(-5, 5, 40).astype(vector)
    y = spmv(indptr, indices, data, x, engine=engine)
    assert y.dtype == (x.dtype if data is None else np.result_type(data.dtype, x.dtype))
    check_spmv(indptr, indices, data, x, y)


@looped(("result", "accumulator"), [("float32", "float64"), ("int64", "int32")])
def test_result_and_accumulator_are_independent(engine, result, accumulator):
    indptr, indices, data = random_matrix(value="int32")
    x = np.random.default_rng(5).integers(-5, 5, 40).astype("int64")
    y = spmv(indptr, indices, data, x, dtype=result, accumulator=accumulator, engine=engine)
    assert y.dtype == result
    right = reference.spmv(indptr, indices, data, x, dtype=result, accumulator=accumulator)
    np.testing.assert_array_equal(y, right)


def test_the_type_of_the_accumulator_decides():
    """1e8 + 1 - 1e8 is 0 in float32 and 1 in float64, whatever the other types are."""
    indptr, indices = np.array([0, 3], dtype=np.int32), np.arange(3, dtype=np.int32)
    data, x = np.array([1e8, 1, -1e8], dtype=np.float32), np.ones(3, dtype=np.float64)
    for name in ("reference", "cpu"):
        for accumulator, right in (("float32", 0), ("float64", 1)):
            y = spmv(indptr, indices, data, x, accumulator=accumulator, engine=name)
            assert y.tolist() == [right]
            assert y.dtype == np.float64


def test_integers_wrap_alike():
    indptr, indices = np.array([0, 2], dtype=np.int32), np.arange(2, dtype=np.int32)
    data = np.array([2**30, 2**30], dtype=np.int32)
    x = np.array([3, 3], dtype=np.int32)
    for name in ("reference", "cpu"):
        assert spmv(indptr, indices, data, x, engine=name).tolist() == [6 * 2**30 - 2**33]
        assert spmv(indptr, indices, data, x, dtype=np.int64, engine=name).tolist() == [6 * 2**30]


@pytest.mark.slow
@looped("rows", [0, 1, 5, 30_000])
def test_threads_do_not_matter(rows):
    """One row has half of all entries: shares are by entries, and no row is split."""
    rng = np.random.default_rng(rows)
    counts = rng.integers(0, 4, rows)
    if rows:
        counts[rows // 2] = rows
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    indices = rng.integers(0, max(rows, 1), indptr[-1]).astype(np.int32)
    data, x = rng.standard_normal(indptr[-1]), rng.standard_normal(max(rows, 1))
    label = np.arange(rows, dtype=np.int32)
    y = spmv(indptr, indices, data, x, threads=1)
    check_spmv(indptr, indices, data, x, y)
    strongest = strongest_neighbours(indptr, indices, data, 2, threads=1)
    check_strongest_neighbours(indptr, indices, data, 2, *strongest)
    smallest = minimum_label(indptr, indices, label, threads=1)
    check_minimum_label(indptr, indices, label, smallest)
    largest = maximum_neighbour(indptr, indices, x, threads=1)
    check_maximum_neighbour(indptr, indices, x, largest)
    for threads in THREADS:
        assert same(spmv(indptr, indices, data, x, threads=threads), y)
        assert same(strongest_neighbours(indptr, indices, data, 2, threads=threads), strongest)
        assert same(minimum_label(indptr, indices, label, threads=threads), smallest)
        assert same(maximum_neighbour(indptr, indices, x, threads=threads), largest)


@looped(
    ("count", "index", "value"),
    [
        *((count, np.int32, np.float64) for count in (1, 2, 3, 4, 8)),
        (2, np.int64, np.float64),
        (2, np.int32, np.float32),
    ],
)
def test_strongest_with_ties_diagonals_and_short_rows(engine, count, index, value):
    rng = np.random.default_rng(6)
    n = 30
    indptr = np.concatenate([[0], np.cumsum(rng.integers(0, 20, n))]).astype(index)
    indices = np.concatenate(
        [rng.permutation(n)[: indptr[i + 1] - indptr[i]] for i in range(n)]
    ).astype(index)
    data = rng.choice([-np.inf, -1.0, 0.0, 1.0, 2.0, np.inf, np.nan], indptr[-1]).astype(value)
    columns, weights = strongest_neighbours(indptr, indices, data, count, engine=engine)
    assert (columns.dtype, weights.dtype) == (index, value)
    assert columns.shape == weights.shape == (n, count)
    check_strongest_neighbours(indptr, indices, data, count, columns, weights)
    right = reference.strongest_neighbours(indptr, indices, data, count)
    assert same((columns, weights), right)


@looped("kind", TYPES)
def test_maximum_of_all_types(engine, kind):
    indptr, indices, _ = random_matrix()
    x = np.random.default_rng(7).integers(-100, 100, 40).astype(kind)
    largest = maximum_neighbour(indptr, indices, x, engine=engine)
    assert largest.dtype == x.dtype
    check_maximum_neighbour(indptr, indices, x, largest)


def test_nan_is_never_the_largest(engine):
    indptr, indices = np.array([0, 2, 3], dtype=np.int32), np.array([0, 1, 0], dtype=np.int32)
    x = np.array([np.nan, 3.0])
    largest = maximum_neighbour(indptr, indices, x, engine=engine)
    assert largest.tolist() == [3.0, -np.inf]


@looped("kind", [np.int32, np.int64])
def test_minimum_label_of_both_types(engine, kind):
    indptr, indices, _ = random_matrix(kind)
    label = np.random.default_rng(8).permutation(40).astype(kind)
    smallest = minimum_label(indptr, indices, label, engine=engine)
    assert smallest.dtype == kind
    check_minimum_label(indptr, indices, label, smallest)


# An operation of one's own, as the linear-forest paper has it: propose to the heaviest neighbour of
# the other charge that is still free.  Input (charges, free), accumulator (weight, column), output
# (columns, weights): five types, none of them equal.


def nobody(i, x):
    return np.float32(0.0), -1


def candidate(i, j, a, x):
    charge, free = x
    if charge[i] == charge[j] or not free[j]:
        return np.float32(0.0), -1
    return np.float32(abs(a)), j


def heavier(best, term):
    if term[1] >= 0 and (term[0] > best[0] or (term[0] == best[0] and term[1] < best[1])):
        return term
    return best


def propose(i, best, out):
    out[0][i] = best[1]
    out[1][i] = best[0]


PROPOSAL = Operation(nobody, candidate, heavier, propose)


@pytest.mark.slow
@looped("name", ["reference", "cpu"])
def test_an_operation_of_ones_own(name):
    indptr, indices, data = random_matrix(value=np.float64)
    rng = np.random.default_rng(9)
    charge, free = rng.integers(0, 2, 40).astype(np.int8), rng.random(40) < 0.8
    out = np.empty(40, dtype=np.int64), np.empty(40, dtype=np.float64)
    reduce_rows(PROPOSAL, indptr, indices, data, (charge, free), out, engine=name)
    for i in range(40):
        row = range(indptr[i], indptr[i + 1])
        open_to = [k for k in row if charge[indices[k]] != charge[i] and free[indices[k]]]
        pairs = [(-abs(data[k]), indices[k]) for k in open_to if data[k] != 0]
        expected = min(pairs, default=(0, -1))
        assert (-out[1][i], out[0][i]) == expected


def test_an_operation_at_any_number_of_threads():
    indptr, indices, data = random_matrix(n=3000)
    charge, free = np.arange(3000) % 2, np.ones(3000, dtype=np.bool_)
    right = np.empty(3000, dtype=np.int64), np.empty(3000)
    reduce_rows(PROPOSAL, indptr, indices, data, (charge, free), right, engine="reference")
    for threads in THREADS:
        ours = np.full(3000, -9, dtype=np.int64), np.full(3000, np.nan)
        reduce_rows(PROPOSAL, indptr, indices, data, (charge, free), ours, threads=threads)
        assert same(ours, right)


def test_compiled_functions_and_no_data():
    """Without data `multiply` gets 1: this counts.  Functions may be compiled already."""

    @device
    def zero(i, x):
        return 0

    @device
    def one(i, j, a, x):
        return a

    @device
    def plus(total, term):
        return total + term

    @device
    def put(i, total, out):
        out[i] = total

    indptr, indices, _ = random_matrix()
    for name in ("reference", "cpu"):
        degree = np.empty(40, dtype=np.int32)
        reduce_rows(
            Operation(zero, one, plus, put), indptr, indices, None, degree, degree, engine=name
        )
        np.testing.assert_array_equal(degree, np.diff(indptr))


def test_bad_input():
    indptr, indices, data = random_matrix()
    x = np.ones(40)
    with pytest.raises(TypeError, match="indptr and indices must be of one type"):
        spmv(indptr.astype(np.int64), indices, data, x)
    with pytest.raises(ValueError, match="indptr must have at least one element"):
        spmv(indptr[:0], indices, data, x)
    with pytest.raises(ValueError, match="data must have the size of indices"):
        spmv(indptr, indices, data[1:], x)
    with pytest.raises(TypeError, match="x must be int32 or .* got complex128"):  # noqa: RUF043
        spmv(indptr, indices, data, x * 1j)
    with pytest.raises(TypeError, match="accumulator must be one of int32"):
        spmv(indptr, indices, data, x, accumulator=np.int8)
    with pytest.raises(TypeError, match="dtype must be one of int32"):
        spmv(indptr, indices, data, x, dtype=np.float16)
    with pytest.raises(TypeError, match="data must be float32 or float64, got int64"):
        strongest_neighbours(indptr, indices, data.astype(np.int64), 2)
    with pytest.raises(ValueError, match="n must be at least 1, got 0"):
        strongest_neighbours(indptr, indices, data, 0)
    with pytest.raises(ValueError, match="n must be at most 8, got 9"):
        strongest_neighbours(indptr, indices, data, 9)
    with pytest.raises(ValueError, match="one element for each of 40 rows, got 39"):
        minimum_label(indptr, indices, np.arange(39))
    with pytest.raises(TypeError, match="operation must be an Operation"):
        reduce_rows(max, indptr, indices, data, x, x)
    with pytest.raises(ValueError, match="engine must be one of None, 'reference', 'cpu'"):
        reduce_rows(PROPOSAL, indptr, indices, data, x, x, engine="gpu")


def test_the_checks_see_what_is_broken():
    indptr, indices, data = random_matrix(value=np.float64)
    x = np.random.default_rng(10).standard_normal(40)
    y = spmv(indptr, indices, data, x)
    broken = y.copy()
    broken[7] += 1e-9
    with pytest.raises(CheckFailed, match="spmv: row 7 must be"):
        check_spmv(indptr, indices, data, x, broken)
    broken[7] = np.nan
    with pytest.raises(CheckFailed, match="row 7"):
        check_spmv(indptr, indices, data, x, broken)
    with pytest.raises(CheckFailed, match="each of 40 rows expected"):
        check_spmv(indptr, indices, data, x, y[1:])
    label = np.arange(40)
    smallest = minimum_label(indptr, indices, label)
    smallest[3] += 1
    with pytest.raises(CheckFailed, match="minimum label: row 3 must be"):
        check_minimum_label(indptr, indices, label, smallest)
    largest = maximum_neighbour(indptr, indices, x)
    largest[4] = 99
    with pytest.raises(CheckFailed, match="maximum neighbour: row 4 must be"):
        check_maximum_neighbour(indptr, indices, x, largest)


def test_the_check_of_the_strongest_sees_what_is_broken():
    indptr, indices = np.array([0, 4, 5]), np.array([0, 1, 2, 3, 0])
    data = np.array([9.0, 1.0, 3.0, 3.0, 5.0])
    columns, weights = strongest_neighbours(indptr, indices, data, 2)
    assert columns.tolist() == [[2, 3], [0, -1]]

    def check(columns, weights):
        check_strongest_neighbours(indptr, indices, data, 2, np.array(columns), np.array(weights))

    check(columns, weights)
    with pytest.raises(CheckFailed, match="shape"):
        check(columns[:1], weights)
    with pytest.raises(CheckFailed, match="row 0 is not listed heaviest first"):
        check([[3, 2], [0, -1]], weights)
    with pytest.raises(CheckFailed, match="row 0 lists column 0"):
        check([[0, 2], [0, -1]], [[9.0, 3.0], [5.0, 0.0]])
    with pytest.raises(CheckFailed, match="row 0 leaves out column 3"):
        check([[2, 1], [0, -1]], [[3.0, 1.0], [5.0, 0.0]])
    with pytest.raises(CheckFailed, match="row 0 lists column 2"):
        check([[2, 2], [0, -1]], weights)
    with pytest.raises(CheckFailed, match="row 1 has 1 neighbours, 0 of 2 are listed"):
        check([[2, 3], [-1, -1]], weights)
    with pytest.raises(CheckFailed, match="row 1 must end in columns -1"):
        check(columns, [[3.0, 3.0], [5.0, 1.0]])
    with pytest.raises(CheckFailed, match=r"row 1 lists column 0 with weight 4\.0"):
        check(columns, [[3.0, 3.0], [4.0, 0.0]])
