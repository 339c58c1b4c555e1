"""What the gate does on a GPU equals the plain Python definitions, on the whole zoo."""

from __future__ import annotations

import numpy as np
import pytest

import matchwood
from graphs import ZOO
from matchwood import engines
from matchwood.primitives.assemble import gpu as assemble_gpu
from matchwood.primitives.assemble import reference as assemble_reference
from matchwood.primitives.inspect import checksum
from matchwood.primitives.inspect import gpu as inspect_gpu
from matchwood.primitives.inspect import reference as inspect_reference
from matchwood.primitives.symmetrize import gpu as symmetrize_gpu
from matchwood.primitives.symmetrize import reference as symmetrize_reference
from matchwood.primitives.transpose import gpu as transpose_gpu
from matchwood.primitives.transpose import reference as transpose_reference
from support import looped

pytestmark = pytest.mark.gpu


@pytest.fixture
def cp():
    return engines.cupy()


CASES = [(name, kind) for name in ZOO for kind in (np.float32, np.float64)]


def arrays_of(name, kind):
    """indptr, indices and floating data of a zoo graph."""
    A = ZOO[name]()
    return A.indptr, A.indices, A.data.astype(kind)


def on_gpu(cp, arrays):
    return tuple(None if array is None else cp.asarray(array) for array in arrays)


def equal(ours, expected):
    for one, other in zip(ours, expected, strict=True):
        if other is None:
            assert one is None
            continue
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one.get(), other)


def canonical(arrays):
    indptr, indices, data = arrays
    return assemble_reference.canonical(indptr, indices, data, indptr.size - 1)


@looped(("name", "kind"), CASES)
def test_structure(cp, name, kind):
    arrays = arrays_of(name, kind)
    indptr, indices, _ = arrays
    n = indptr.size - 1
    expected = inspect_reference.structure(indptr, indices, n)
    assert inspect_gpu.structure(cp.asarray(indptr), cp.asarray(indices), n) == expected
    if expected.ascending:
        found = inspect_gpu.symmetry(cp.asarray(indptr), cp.asarray(indices))
        assert found == inspect_reference.symmetry(indptr, indices)


@looped(("name", "kind"), CASES)
def test_values(cp, name, kind):
    arrays = arrays_of(name, kind)
    indptr, indices, data = canonical(arrays)
    facts = inspect_gpu.values(*on_gpu(cp, (indptr, indices, data)))
    expected = inspect_reference.values(indptr, indices, data)
    assert facts == expected


@looped("value", [np.nan, np.inf, -np.inf])
def test_first_value_that_is_not_finite(cp, value):
    A = ZOO["random"]()
    A.data[[900, 30, 31]] = value
    facts = inspect_gpu.values(*on_gpu(cp, (A.indptr, A.indices, A.data)))
    assert (facts.finite, facts.at) == (False, 30)


def test_subnormal_values_are_no_zeros(cp):
    tiny = np.float32(1e-40)
    indptr, indices = np.array([0, 2, 3], np.int32), np.array([0, 1, 0], np.int32)
    data = np.array([1, -tiny, tiny], np.float32)
    facts = inspect_gpu.values(*on_gpu(cp, (indptr, indices, data)))
    assert (facts.zeros, facts.minimum, facts.maximum) == (0, float(-tiny), float(tiny))
    assert not facts.symmetric
    equal(
        symmetrize_gpu.union_with_transpose(*on_gpu(cp, (indptr, indices, data))),
        symmetrize_reference.union_with_transpose(indptr, indices, data),
    )


@looped("kind", [np.int32, np.int64])
def test_faults(cp, kind):
    good = np.array([0, 2, 2, 4], kind), np.array([1, 2, 0, 1], kind)

    def found(indptr, indices, n=3):
        indptr, indices = np.asarray(indptr, kind), np.asarray(indices, kind)
        expected = inspect_reference.structure(indptr, indices, n)
        assert inspect_gpu.structure(cp.asarray(indptr), cp.asarray(indices), n) == expected
        return expected.fault, expected.at

    assert found(*good) == ("", -1)
    assert found([1, 2, 2, 4], good[1]) == ("indptr_start", 0)
    assert found([0, 3, 2, 4], good[1]) == ("indptr_order", 1)
    assert found([0, 9, 3, 4], good[1]) == ("indptr_order", 1)
    assert found([0, 2, 2, 3], good[1]) == ("indptr_end", 3)
    assert found([0, 2, 2, 9], good[1]) == ("indptr_end", 3)
    assert found([1], [], n=0) == ("indptr_start", 0)
    assert found([0], [1], n=0) == ("indptr_end", 0)
    assert found(good[0], [1, 2, 3, -1]) == ("index_range", 2)
    assert found(good[0], [-1, 2, 3, 1]) == ("index_range", 0)


def test_large_symmetric_and_almost_symmetric(cp):
    """A change of one entry of many is seen, also in a long row."""
    rng = np.random.default_rng(8)
    n, m = 20_000, 200_000
    u, v = rng.integers(0, n, m), rng.integers(0, n, m)
    u[:15_000] = 0  # a long row and column
    indptr, indices, _ = assemble_gpu.assemble(
        n, n, cp.asarray(u.astype(np.int32)), cp.asarray(v.astype(np.int32)), symmetric=True
    )
    facts = inspect_gpu.structure(indptr, indices, n)
    assert inspect_gpu.symmetry(indptr, indices).symmetric
    assert facts.ascending
    assert facts.longest == int(cp.diff(indptr).max())
    host = indices.get()
    row = host[: int(indptr[1])]
    missing = np.setdiff1d(np.arange(n), row)[0]
    place = np.searchsorted(row, missing)
    changed = row.copy()
    changed[min(place, row.size - 1)] = missing
    host[: row.size] = np.sort(changed)
    facts = inspect_gpu.structure(indptr, cp.asarray(host), n)
    assert facts.ascending
    assert not inspect_gpu.symmetry(indptr, cp.asarray(host)).symmetric


@looped("symmetric", [False, True])
@looped("loops", [False, True])
@looped("reduce", ["sum", "first"])
@looped("kind", [np.int32, np.int64])
def test_assemble(cp, symmetric, loops, reduce, kind):
    rng = np.random.default_rng(9)
    for n_rows, n_cols, m in ((1, 1, 5), (7, 7, 0), (50, 50, 2000), (1000, 1000, 300)):
        rows = rng.integers(0, n_rows, m).astype(kind)
        cols = rng.integers(0, n_cols, m).astype(kind)
        for data in (None, rng.normal(size=m), rng.normal(size=m).astype(np.float32)):
            options = {"symmetric": symmetric, "loops": loops, "reduce": reduce}
            expected = assemble_reference.assemble(n_rows, n_cols, rows, cols, data, **options)
            moved = on_gpu(cp, (rows, cols, data))
            equal(assemble_gpu.assemble(n_rows, n_cols, *moved, **options), expected)


def test_assemble_a_wide_matrix(cp):
    rng = np.random.default_rng(10)
    rows, cols = rng.integers(0, 3, 500), rng.integers(0, 100_000, 500)
    expected = assemble_reference.assemble(3, 100_000, rows, cols)
    equal(assemble_gpu.assemble(3, 100_000, cp.asarray(rows), cp.asarray(cols)), expected)


@looped(("name", "kind"), CASES)
def test_canonical(cp, name, kind):
    arrays = arrays_of(name, kind)
    indptr, indices, _ = arrays
    n = indptr.size - 1
    equal(assemble_gpu.canonical(*on_gpu(cp, arrays), n), canonical(arrays))
    pattern = (indptr, indices, None)
    equal(assemble_gpu.canonical(*on_gpu(cp, pattern), n), canonical(pattern))


@looped(("name", "kind"), CASES)
def test_transpose(cp, name, kind):
    arrays = arrays_of(name, kind)
    indptr, indices, data = arrays
    n = indptr.size - 1
    equal(
        transpose_gpu.transpose(*on_gpu(cp, arrays), n),
        transpose_reference.transpose(indptr, indices, data, n),
    )


@looped(("name", "kind"), CASES)
def test_union_and_magnitudes(cp, name, kind):
    arrays = arrays_of(name, kind)
    for with_data in (True, False):
        indptr, indices, data = canonical(arrays)
        given = (indptr, indices, data if with_data else None)
        for name in ("union_with_transpose", "magnitudes"):
            ours = getattr(symmetrize_gpu, name)(*on_gpu(cp, given))
            equal(ours, getattr(symmetrize_reference, name)(*given))


LENGTHS = {
    "a chunk": [2048],  # of entries, as entry_rows.cuh has it
    "chunks": [1] * 4096,
    "one more": [3, 2045, 1, 0, 0],
    "long among empty": [0] * 5000 + [9000] + [0] * 5000 + [1, 0, 2] * 900 + [0] * 3000,
    "mixed": [length % 37 for length in range(3000)] + [4000, 0, 513, 512, 0, 0, 7],
    "empty": [0] * 3000,
}


def rows_of(name):
    """indptr, indices, data with rows of these lengths: loops, zeros of both signs, any order."""
    lengths = np.array(LENGTHS[name])
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    rng = np.random.default_rng(12)
    indices = rng.integers(0, lengths.size, indptr[-1]).astype(np.int32)
    loops = rng.random(indices.size) < 0.2
    indices[loops] = np.repeat(np.arange(lengths.size), lengths)[loops]
    data = rng.choice(np.array([0.0, -0.0, 1e-40, -2.5, 3.0], np.float32), indices.size)
    return indptr, indices, data


def shifted(cp, array):
    """On the GPU, but not where 16 bytes begin."""
    longer = cp.zeros(array.size + 1, array.dtype)
    longer[1:] = cp.asarray(array)
    return longer[1:]


@looped("kind", [np.int32, np.int64])
@looped("move", [on_gpu, lambda cp, arrays: tuple(shifted(cp, a) for a in arrays)])
@looped("name", LENGTHS)
def test_chunks_of_entries(cp, name, kind, move):
    indptr, indices, data = rows_of(name)
    indptr, indices = indptr.astype(kind), indices.astype(kind)
    n = indptr.size - 1
    moved = move(cp, (indptr, indices, data))
    expected = inspect_reference.structure(indptr, indices, n)
    assert inspect_gpu.structure(*moved[:2], n) == expected
    off_diagonal = indices != np.repeat(np.arange(n), np.diff(indptr))
    for kept, values in ((off_diagonal, None), (off_diagonal & (data != 0), moved[2])):
        ours = symmetrize_gpu.magnitudes(*moved[:2], values)
        places = np.concatenate([[0], np.cumsum(kept)]).astype(kind)
        weights = None if values is None else abs(data[kept])
        equal(ours, (places[indptr], indices[kept], weights))
    # what is symmetric stays so, whatever the chunks, and one changed value is seen
    full = symmetrize_reference.union_with_transpose(*canonical((indptr, indices, data)))
    facts = inspect_gpu.values(*move(cp, full))
    assert facts == inspect_reference.values(*full)
    assert inspect_gpu.symmetry(*move(cp, full[:2])) == (0, True)
    if full[2].size:
        full[2][full[2].size // 2] += 1
        assert not inspect_gpu.values(*move(cp, full)).symmetric


def test_symmetric_values_need_a_symmetric_pattern(cp):
    """An entry without a mirror, be it zero."""
    indptr, indices = np.array([0, 1, 1], np.int32), np.array([1], np.int32)
    for value in (0.0, -0.0, 1.0):
        data = np.array([value])
        assert not inspect_gpu.values(*on_gpu(cp, (indptr, indices, data))).symmetric
        assert not inspect_reference.values(indptr, indices, data).symmetric


@looped("name", ZOO)
def test_the_gate_makes_its_views_on_the_gpu(cp, name):
    from matchwood.gate import inputs

    zoo_graph = ZOO[name]()
    arrays = (zoo_graph.indptr, zoo_graph.indices, zoo_graph.data)
    before = [array.copy() for array in arrays]
    given = on_gpu(cp, arrays)
    G = matchwood.graph(given)
    assert G.engine == "gpu"
    n = G.n
    kind = np.int32
    weights = inputs.as_weights(zoo_graph.data, "test")
    full = assemble_reference.canonical(
        zoo_graph.indptr.astype(kind), zoo_graph.indices.astype(kind), weights, n
    )
    equal(G.directed_pattern()[:2], full[:2])
    pattern = symmetrize_reference.union_with_transpose(full[0], full[1], None)
    equal(G.undirected_pattern()[:2], pattern[:2])
    facts = inspect_reference.values(*full)
    symmetry = inspect_reference.symmetry(full[0], full[1])
    symmetric = symmetry.symmetric and facts.symmetric
    make = "magnitudes" if symmetric else "union_with_transpose"
    equal(G.undirected_weights(), getattr(symmetrize_reference, make)(*full))
    for array, old in zip(given, before, strict=True):
        np.testing.assert_array_equal(array.get(), old)


@looped("reduce", ["sum", "first", "min", "max", "heaviest", "keep"])
@looped(("name", "kind"), CASES)
def test_what_becomes_of_duplicates(cp, name, kind, reduce):
    arrays = arrays_of(name, kind)
    indptr, indices, data = arrays
    n = indptr.size - 1
    rows = np.repeat(np.arange(n), np.diff(indptr)).astype(indices.dtype)
    rows, cols = rows % 5, indices % 5  # many duplicates
    expected = assemble_reference.assemble(n, n, rows, cols, data, reduce=reduce)
    found = assemble_gpu.assemble(n, n, *on_gpu(cp, (rows, cols, data)), reduce=reduce)
    equal(found, expected)


@looped("reduce", ["sum", "max", "min"])
@looped(("name", "kind"), CASES)
def test_what_becomes_of_two_directions(cp, name, kind, reduce):
    arrays = arrays_of(name, kind)
    clean = canonical(arrays)
    expected = symmetrize_reference.union_with_transpose(*clean, reduce=reduce)
    found = symmetrize_gpu.union_with_transpose(*on_gpu(cp, clean), reduce=reduce)
    equal(found, expected)


@looped("kind", [np.float32, np.float64, np.int64, np.int32, np.uint8])
@looped("rule", [None, "sum", "min", "max", "first"])
def test_edge_lists_on_the_gpu(cp, kind, rule):
    """Every rule gives on the GPU what it gives on the CPU, weights of all types."""
    rng = np.random.default_rng(7)
    edges = rng.integers(0, 40, (600, 2))
    weights = rng.integers(0, 50, 600).astype(kind)
    here = matchwood.graph((40, edges, weights), duplicates=rule)
    there = matchwood.graph((40, cp.asarray(edges), cp.asarray(weights)), duplicates=rule)
    assert there.engine == "gpu"
    for view in ("directed_weights", "heaviest_weights", "undirected_weights"):
        equal(getattr(there, view)(), getattr(here, view)())
    for maximum in (False, True):
        right = matchwood.minimum_spanning_forest(here, maximum=maximum)
        found = matchwood.minimum_spanning_forest(there, maximum=maximum)
        assert np.array_equal(found.edges.get(), right.edges)
        assert found.total == right.total


@looped("form", ["csr", "csc", "coo", "dia"])
def test_cupy_matrices_with_spoiled_arrays(cp, form):
    """Refused before CuPy converts them."""
    sparse = pytest.importorskip("cupyx.scipy.sparse")
    made = sparse.eye(8, format=form)
    assert matchwood.graph(made).nnz == 8
    made.data = made.data[:0] if form != "dia" else made.data[:0, :]
    with pytest.raises(ValueError, match="graph: "):
        matchwood.graph(made)
    if form in ("csr", "csc"):
        made = sparse.eye(8, format=form)
        made.indices = made.indices + 1000
        with pytest.raises(ValueError, match="graph: "):
            matchwood.graph(made)


def test_every_bit_of_a_value_counts_on_the_gpu(cp):
    indptr, indices = cp.asarray([0, 1, 2]), cp.asarray([1, 0])
    for bit in range(64):
        words = np.array([1.5, 1.5]).view(np.uint64)
        words[1] ^= np.uint64(1 << bit)
        data = words.view(np.float64)
        if np.isfinite(data).all():
            assert not inspect_gpu.values(indptr, indices, cp.asarray(data)).symmetric


def test_a_graph_moves_with_weights_that_cannot(cp):
    """Text stays where it is; patterns are read on the GPU all the same."""
    A = (3, [[0, 1], [1, 2]], ["a", "b"])
    assert matchwood.connected_components(A, engine="gpu").count == 1
    with pytest.raises(TypeError, match="weights must be real numbers"):
        matchwood.minimum_spanning_forest(A, engine="gpu")


@looped(("name", "kind"), CASES)
def test_checksum(cp, name, kind):
    """The sums of the definition, also of words that lie anywhere in memory."""
    for array in arrays_of(name, kind):
        words = array.view(np.uint32)
        for here in (words, words[1:], words.view(np.uint8)[3:]):
            found = inspect_gpu.word_sums(cp.asarray(here))
            assert found == inspect_reference.word_sums(here)
        assert checksum(cp.asarray(array)) == checksum(array)


def test_a_graph_has_memory_of_its_own(cp):
    """Copied, the user's arrays may change; shared, a change is found."""
    from cupyx.scipy.sparse import csr_matrix

    A = csr_matrix(matchwood.generators.grid((20, 30)))
    G, S = matchwood.graph(A), matchwood.graph(A, copy=False)
    assert G.owns_memory
    assert not S.owns_memory
    assert S.indices.data.ptr == A.indices.data.ptr != G.indices.data.ptr
    count = matchwood.connected_components(G).count
    assert matchwood.connected_components(S).count == count
    A.indices[:] = 10**8
    assert matchwood.connected_components(G).count == count
    with pytest.raises(ValueError, match="got other values of indices"):
        matchwood.connected_components(S)


def test_what_users_write_into_a_forest_reaches_no_kernel(cp):
    from cupyx.scipy.sparse import csr_matrix

    A = csr_matrix(matchwood.generators.aniso(2, (10, 10)))
    M = matchwood.preconditioners.algebraic_tridiagonal(A)
    x = cp.ones(100, M.dtype)
    y, bands = M @ x, matchwood.tridiagonal_of(A, M.forest)
    forest = M.forest
    for array in (forest.perm, forest.place, forest.position, *forest.factor):
        array[:] = 10**8
    assert (M @ x == y).all()
    for one, other in zip(matchwood.tridiagonal_of(A, forest), bands, strict=True):
        assert (one == other).all()
