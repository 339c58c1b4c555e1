"""Edge lists to CSR, transposes, unions with the transpose, and the facts of `inspect`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from graphs import ZOO, grid, rmat
from matchwood.errors import CheckFailed
from matchwood.primitives import assemble, inspect, symmetrize, transpose
from matchwood.primitives.assemble import check as assemble_check
from matchwood.primitives.assemble import reference as assemble_reference
from matchwood.primitives.inspect import reference as inspect_reference
from matchwood.primitives.symmetrize import check as symmetrize_check
from matchwood.primitives.symmetrize import cpu as symmetrize_cpu
from matchwood.primitives.symmetrize import reference as symmetrize_reference
from matchwood.primitives.transpose import check as transpose_check
from matchwood.primitives.transpose import reference as transpose_reference
from strategies import graphs
from support import THREADS, looped

TEAMS = (1, 2, 3, 7)


def assert_equal(found: Any, expected: Any) -> None:
    for a, b in zip(found, expected, strict=True):
        if b is None:
            assert a is None
        else:
            assert a.dtype == b.dtype
            assert np.array_equal(a, b)


@st.composite
def edge_lists(draw: st.DrawFn) -> tuple[int, int, Any, Any, Any]:
    rows, cols = draw(st.integers(1, 12)), draw(st.integers(1, 12))
    pairs = draw(st.lists(st.tuples(st.integers(0, rows - 1), st.integers(0, cols - 1))))
    index = draw(st.sampled_from([np.int32, np.int64]))
    kind = draw(st.sampled_from([None, np.float32, np.float64]))
    values = draw(st.lists(st.integers(-8, 8), min_size=len(pairs), max_size=len(pairs)))
    r, c = (np.array([pair[k] for pair in pairs], index) for k in range(2))
    return rows, cols, r, c, None if kind is None else np.array(values, kind) / kind(4)


@pytest.mark.slow
@given(edge_lists(), st.booleans(), st.booleans(), st.sampled_from(["sum", "first"]))
def test_assemble(edges: Any, symmetric: bool, loops: bool, reduce: str) -> None:
    rows, cols, r, c, w = edges
    if symmetric:
        rows = cols = max(rows, cols)
    options = {"symmetric": symmetric, "loops": loops, "reduce": reduce}
    expected = assemble_reference.assemble(rows, cols, r, c, w, **options)
    for threads in TEAMS:
        found = assemble.assemble(rows, cols, r, c, w, **options, threads=threads)
        assert_equal(found, expected)
    if loops and not symmetric:
        assemble_check.check_assembled(rows, cols, r, c, found)


@pytest.mark.slow
@given(graphs())
def test_rows_sorted_transposed_and_merged(A: sp.csr_array) -> None:
    n = A.shape[0]
    for data in (None, A.data):
        arrays = (A.indptr, A.indices, data)
        flipped = transpose_reference.transpose(*arrays, n)
        clean = assemble_reference.canonical(*arrays, n)
        for threads in TEAMS:
            found = transpose.transpose(*arrays, n, threads=threads)
            assert_equal(found, flipped)
            assert_equal(assemble.canonical(*arrays, n, threads=threads), clean)
            both = symmetrize.union_with_transpose(*clean, threads=threads)
            assert_equal(both, symmetrize_reference.union_with_transpose(*clean))
            kept = symmetrize.magnitudes(*clean, threads=threads)
            assert_equal(kept, symmetrize_reference.magnitudes(*clean))
        transpose_check.check_transpose(arrays, found, n)
        symmetrize_check.check_symmetric(*both)


@pytest.mark.parametrize("threads", [1, 3])
def test_checksum(threads: int) -> None:
    """The sums of the definition, also of words that lie anywhere in memory."""
    words = np.random.default_rng(2).integers(0, 2**63, 200_001, dtype=np.uint64)
    for first, kind in ((0, np.uint64), (4, np.uint32), (3, np.uint8)):
        some = words.view(np.uint8)[first:30_003]
        found = inspect.checksum(some, threads=threads)
        here = some[: some.size - some.size % np.dtype(kind).itemsize].view(kind)
        assert found[:2] == inspect_reference.word_sums(here)
    assert inspect.checksum(words, threads=threads) == inspect.checksum(words.copy(), threads=1)


def assert_facts(A: sp.csr_array, threads: int) -> None:
    arrays, n = (A.indptr, A.indices), A.shape[0]
    found = inspect.structure(*arrays, n, threads=threads)
    assert found == inspect_reference.structure(*arrays, n)
    if not found.ascending:
        return
    assert inspect.symmetry(*arrays, threads=threads) == inspect_reference.symmetry(*arrays)
    if A.dtype.kind == "f":
        assert inspect.values(*arrays, A.data, threads=threads) == inspect_reference.values(
            *arrays, A.data
        )


@pytest.mark.slow
@looped("name", ZOO)
def test_facts_of_the_zoo(name: str) -> None:
    for threads in THREADS:
        assert_facts(ZOO[name](), threads)


@given(graphs())
def test_facts_of_random_graphs(A: sp.csr_array) -> None:
    for threads in TEAMS:
        assert_facts(A, threads)


def test_symmetry_is_not_fooled_by_one_entry() -> None:
    """Move one entry of a symmetric pattern, or change one value: it must be noticed."""
    A = rmat(8, 6)
    rng = np.random.default_rng(3)
    for threads in THREADS:
        assert inspect.symmetry(A.indptr, A.indices, threads=threads).symmetric
    for _ in range(50):
        B = A.tolil()
        i = int(rng.integers(256))
        j = int(rng.integers(256))
        if i == j:
            continue
        B[i, j] = 0 if B[i, j] else 1.0
        B = sp.csr_array(B.tocsr())
        B.eliminate_zeros()
        for threads in THREADS:
            assert not inspect.symmetry(B.indptr, B.indices, threads=threads).symmetric
    data = A.data.copy()
    data[17] = np.nextafter(data[17], np.inf)
    for threads in THREADS:
        assert inspect.values(A.indptr, A.indices, A.data, threads=threads).symmetric
        assert not inspect.values(A.indptr, A.indices, data, threads=threads).symmetric


@given(st.data())
def test_faults_are_found_where_they_are(data: st.DataObject) -> None:
    A = grid(4, 5)
    indptr, indices = A.indptr.copy(), A.indices.copy()
    if data.draw(st.booleans()):
        k = data.draw(st.integers(0, indptr.size - 1))
        indptr[k] = data.draw(st.integers(-3, indices.size + 3))
    else:
        k = data.draw(st.integers(0, indices.size - 1))
        indices[k] = data.draw(st.sampled_from([-1, -(2**31), 20, 2**31 - 1]))
    expected = inspect_reference.structure(indptr, indices, 20)
    for threads in TEAMS:
        found = inspect.structure(indptr, indices, 20, threads=threads)
        if expected.fault == "":
            assert found == expected
        else:
            assert (found.fault != "") == (expected.fault != "")
            assert found.fault == expected.fault or expected.fault.startswith("indptr")
            if found.fault == expected.fault:
                assert found.at == expected.at


def test_values_that_are_not_finite_are_found() -> None:
    A = grid(6, 6, 1.0)
    for bad in (np.nan, np.inf, -np.inf):
        data = A.data.copy()
        data[[40, 90]] = bad
        for threads in THREADS:
            found = inspect.values(A.indptr, A.indices, data, threads=threads)
            assert (found.finite, found.at) == (False, 40)


def test_checks_find_faults() -> None:
    A = grid(3, 3)
    arrays = (A.indptr, A.indices, A.data)
    rows = np.repeat(np.arange(9), np.diff(A.indptr))
    assemble_check.check_assembled(9, 9, rows, A.indices, arrays)
    with pytest.raises(CheckFailed, match="is missing"):
        more = np.r_[rows, 0], np.r_[A.indices, 8]
        assemble_check.check_assembled(9, 9, *more, arrays)
    with pytest.raises(CheckFailed, match="was not given"):
        assemble_check.check_assembled(9, 9, rows[1:], A.indices[1:], arrays)
    with pytest.raises(CheckFailed, match="rows, expected 8"):
        assemble_check.check_assembled(8, 9, rows, A.indices, arrays)
    swapped = A.indices.copy()
    swapped[[0, 1]] = swapped[[1, 0]]
    with pytest.raises(CheckFailed, match="row 0 is not strictly ascending at entry 1"):
        assemble_check.check_canonical(A.indptr, swapped, 9)
    with pytest.raises(CheckFailed, match="outside"):
        assemble_check.check_canonical(A.indptr, A.indices, 8)
    with pytest.raises(CheckFailed, match="indptr"):
        assemble_check.check_canonical(A.indptr[:-1], A.indices, 9)

    symmetrize_check.check_symmetric(*arrays)
    with pytest.raises(CheckFailed, match="weights are not symmetric"):
        symmetrize_check.check_symmetric(A.indptr, A.indices, np.arange(24.0))
    with pytest.raises(CheckFailed, match="pattern is not symmetric"):
        symmetrize_check.check_symmetric(np.array([0, 1, 1]), np.array([1]), None)
    with pytest.raises(CheckFailed, match="on the diagonal"):
        symmetrize_check.check_symmetric(np.array([0, 1]), np.array([0]), None)

    B = sp.csr_array(np.array([[0, 1.0, 2.0], [0, 0, 3.0], [0, 0, 0]]))
    right = transpose.transpose(B.indptr, B.indices, B.data, 3)
    before = (B.indptr, B.indices, B.data)
    transpose_check.check_transpose(before, right, 3)
    with pytest.raises(CheckFailed, match="the value of"):
        transpose_check.check_transpose(before, (right[0], right[1], right[2] + 1), 3)
    with pytest.raises(CheckFailed, match="is not at place"):
        transpose_check.check_transpose(before, (right[0], right[1][::-1], right[2]), 3)
    with pytest.raises(CheckFailed, match="wrong length"):
        transpose_check.check_transpose(before, (right[0][:-1], right[1], right[2]), 3)
    with pytest.raises(CheckFailed, match="2 entries, expected 3"):
        transpose_check.check_transpose(before, (right[0], right[1][:2], right[2]), 3)


@pytest.mark.slow
@given(edge_lists(), st.sampled_from(["sum", "first", "min", "max", "heaviest", "keep"]))
def test_what_becomes_of_duplicates(edges: Any, reduce: str) -> None:
    rows, cols, r, c, w = edges
    r, c = r % 3, c % 3  # many duplicates
    expected = assemble_reference.assemble(rows, cols, r, c, w, reduce=reduce)
    for threads in TEAMS:
        assert_equal(
            assemble.assemble(rows, cols, r, c, w, reduce=reduce, threads=threads), expected
        )
    if reduce != "keep":
        kept = assemble.assemble(rows, cols, r, c, w, reduce="keep")
        assert_equal(assemble.canonical(*kept, cols, reduce=reduce), expected)


@given(graphs(canonical=True), st.sampled_from(["sum", "max", "min"]))
def test_what_becomes_of_two_directions(A: sp.csr_array, reduce: str) -> None:
    if A.dtype.kind != "f":
        A = A.astype(np.float64)
    arrays = (A.indptr, A.indices, A.data)
    expected = symmetrize_reference.union_with_transpose(*arrays, reduce=reduce)
    for threads in TEAMS:
        found = symmetrize.union_with_transpose(*arrays, reduce=reduce, threads=threads)
        assert_equal(found, expected)


# Two matrices that are not each other's transpose: blocks of a matrix that is spread over ranks


def merged_by_definition(one: Any, other: Any, how: Any) -> Any:
    """(indptr, indices, values) of the union, from dictionaries."""
    tables = []
    for A in (one, other):
        rows = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr)).tolist()
        tables.append(dict(zip(zip(rows, A.indices.tolist(), strict=True), A.data, strict=True)))
    places = sorted(p for p in tables[0].keys() | tables[1].keys() if p[0] != p[1])
    values = {
        p: how(*(table[p] for table in tables)) if all(p in table for table in tables)
        else next(abs(table[p]) if how is added else table[p] for table in tables if p in table)
        for p in places
    }  # fmt: skip
    if how is added:
        values = {p: w for p, w in values.items() if w != 0}
    indptr = np.cumsum([0, *(sum(p[0] == i for p in values) for i in range(one.shape[0]))])
    columns = np.array([p[1] for p in values], np.int32)
    return indptr.astype(np.int32), columns, np.array(list(values.values()))


def added(x: float, y: float) -> float:
    return abs(x) + abs(y)


def test_merge_where_one_of_the_two_is_empty():
    """Values are kept whichever of the two matrices has no entries."""
    full = sp.csr_array(rmat(5, 3, symmetric=False)).astype(np.float64)
    full.data[:] = np.arange(full.nnz) % 5 - 2.0
    other = sp.csr_array(rmat(5, 2)).astype(np.float64)
    empty = sp.csr_array(full.shape)
    empty.indices, empty.indptr = (a.astype(np.int32) for a in (empty.indices, empty.indptr))
    ways = (
        (symmetrize_cpu.LEAST, min),
        (symmetrize_cpu.GREATEST, max),
        (symmetrize_cpu.ADD, added),
    )
    for pair in ((empty, full), (full, empty), (empty, empty), (full, other), (other, full)):
        views = [(A.indptr, A.indices, A.data) for A in pair]
        for code, how in ways:
            expected = merged_by_definition(*pair, how)
            for threads in TEAMS:
                found = symmetrize_cpu.merge(*views, code, threads=threads)
                assert found[2].dtype == np.float64
                assert_equal(found, expected)


def test_merge_without_values():
    full = sp.csr_array(rmat(5, 3, symmetric=False))
    nothing = np.empty(0, np.float32)
    none = (np.zeros_like(full.indptr), full.indices[:0], nothing)
    some = (full.indptr, full.indices, nothing)
    for pair in ((none, some), (some, none)):
        indptr, indices, data = symmetrize_cpu.merge(*pair, symmetrize_cpu.ADD)
        assert data.size == 0
        assert indices.size == indptr[-1] == full.nnz - (full.diagonal() != 0).sum()
