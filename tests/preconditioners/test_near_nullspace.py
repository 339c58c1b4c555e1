"""Candidates of the multilevel preconditioner: nodes, bases, levels as defined, bad input."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import matchwood
from bench.preconditioners.problems import elasticity
from graphs import ZOO
from matchwood.errors import CheckFailed
from matchwood.preconditioners import multilevel
from matchwood.preconditioners.multilevel import candidates, reference
from matchwood.preconditioners.multilevel.check import check_multilevel
from matchwood.preconditioners.multilevel.cpu import candidates as cpu
from matchwood.preconditioners.multilevel.cpu import pairs
from multilevel_matrices import laplacian, spoiled
from strategies import graphs
from support import THREADS, looped


def definite(A: sp.csr_array, rng: int = 0) -> sp.csr_array:
    """Random values at the places of A, and a diagonal that dominates them slightly."""
    A = sp.csr_array(A, copy=True).astype(np.float64)
    A.sum_duplicates()
    A.data = -np.random.default_rng(rng).uniform(0.1, 1, A.nnz)
    A = sp.csr_array(A + A.T)
    A = sp.csr_array(A - sp.diags_array(A.diagonal()))
    return sp.csr_array(A + sp.diags_array(1.05 * abs(A).sum(axis=1) + 0.01))


def in_blocks(A: sp.csr_array, size: int) -> sp.csr_array:
    """Each row becomes `size` rows, with random blocks; still definite."""
    rng = np.random.default_rng(A.shape[0])
    block = rng.standard_normal((size, 2 * size))
    block = block @ block.T
    return sp.csr_array(sp.kron(A, block / abs(block).max() + np.eye(size)))


def neighbourhoods_are_those_of_the_reference(A: sp.csr_array) -> None:
    n = A.shape[0]
    m, _ = pairs.measure(A.indptr, A.indices, A.data, np.zeros(n), 0, 1)
    rows = np.repeat(np.arange(n), np.diff(A.indptr))
    off = sp.csr_array((A.data * (rows != A.indices), A.indices, A.indptr), shape=A.shape)
    expected = reference.neighbourhoods(off.indptr, off.indices, off.data, A.diagonal(), 0)
    for threads in THREADS:
        label, count = cpu.neighbourhoods(A.indptr, A.indices, A.data, m, threads)
        assert count == expected[1]
        assert np.array_equal(label, expected[0])


@looped("name", ZOO)
def test_neighbourhoods_on_the_zoo(name: str) -> None:
    A = ZOO[name]()
    if A.shape[0] <= 400:
        neighbourhoods_are_those_of_the_reference(definite(A))


@given(graphs(max_n=40, max_m=80))
def test_neighbourhoods_of_random_graphs(A: sp.csr_array) -> None:
    neighbourhoods_are_those_of_the_reference(definite(A))


def test_neighbourhoods_of_a_grid() -> None:
    """Most aggregates of a 9-point grid have nine points."""
    A = sp.csr_array(matchwood.generators.stencil(9 * np.eye(3)[1][:, None] * np.eye(3)[1] - 1,
                                                  (30, 30)))  # fmt: skip
    m, _ = pairs.measure(A.indptr, A.indices, A.data, np.zeros(900), 0, 1)
    label, count = cpu.neighbourhoods(A.indptr, A.indices, A.data, m, None)
    assert count <= 110
    assert np.median(np.bincount(label)) == 9


def test_the_graph_of_nodes() -> None:
    A, B = elasticity((7, 6))
    inner = np.random.default_rng(0).uniform(1, 2, A.shape[0])
    nodes = candidates.given(B, None, A, A.shape[0]).nodes
    matrix = (A.indptr, A.indices, A.data, inner)
    whole = (A + sp.diags_array(inner)).toarray().reshape(36, 2, 36, 2)
    # the diagonal beside the matrix is a second entry at its place
    square = (whole**2).sum(axis=(1, 3))
    twice = 2 * A.diagonal() * inner
    expected = np.sqrt(square - np.diag(twice.reshape(36, 2).sum(axis=1)))
    answers = [candidates.node_graph(matrix, nodes, True, threads) for threads in THREADS]
    indptr, indices, data, diagonal = answers[0]
    made = sp.csr_array((data, indices, indptr), shape=(36, 36)).toarray() + np.diag(diagonal)
    assert np.allclose(made, expected)
    assert all(np.array_equal(a, b) for other in answers for a, b in zip(other, answers[0],
                                                                         strict=True))  # fmt: skip


@given(st.integers(1, 30), st.integers(1, 5), st.integers(0, 1000))
def test_bases_of_random_candidates(n: int, q: int, seed: int) -> None:
    """Small aggregates have fewer columns than there are candidates; so have repeated ones."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((n, q))
    if q > 2:
        values[:, 2] = 3 * values[:, 0]
    group = rng.integers(0, max(n // 4, 1) + 1, n).astype(np.int32)
    count = int(group.max())  # the last ones are left out
    near = candidates.Near(np.arange(n), values)
    expected = reference.basis(values, group, count)
    answers = [candidates.basis(near, group, count, threads) for threads in THREADS]
    T, below = answers[0]
    assert T.shape[1] == len(below.nodes) == expected[0].shape[1]
    assert np.allclose(T.toarray(), expected[0], atol=1e-9)
    assert np.array_equal(below.nodes, expected[1])
    assert np.allclose(below.values, expected[2], atol=1e-9)
    assert np.allclose((T @ below.values)[group < count], values[group < count])
    for other, its in answers[1:]:
        assert np.array_equal(other.toarray(), T.toarray())
        assert np.array_equal(its.values, below.values)


OPTIONS = {
    "default": {},
    "pairs": {"aggregate": 8},
    "smoothed": {"interpolation": "smoothed"},
    "jacobi": {"smoother": "jacobi", "sweeps": 2},
    "lines": {"smoother": "tridiagonal", "cycle": "W"},
    "single": {"precision": "float32", "smoother": "l1_jacobi"},
}


@pytest.mark.slow
@looped("name", OPTIONS)
def test_levels_and_cycles(name: str) -> None:
    """The check holds, at any number of threads the answer is the same, and CG converges."""
    for A, B in (elasticity((13, 12)), elasticity((5, 6, 4))):
        before = A.copy(), B.copy()
        b = np.random.default_rng(0).standard_normal(A.shape[0])
        made = [
            multilevel(A, near_nullspace=B, coarsest=10, threads=threads, **OPTIONS[name])
            for threads in THREADS
        ]
        M = made[0]
        check_multilevel(A, M)
        assert len(M.levels) > 2
        assert M.levels[0].near.nodes[-1] == A.shape[0] // (2 if B.shape[1] == 3 else 3) - 1
        for other in made[1:]:
            for level, its in zip(M.levels, other.levels, strict=True):
                pairs_of = zip(level.passes, its.passes, strict=True)
                assert all(np.array_equal(p[0], s[0]) for p, s in pairs_of)
            assert np.array_equal(other @ b, M @ b)
        found = matchwood.solve(A, b, preconditioner=M)
        assert found.converged
        assert found.iterations <= 30
        assert (A != before[0]).nnz == 0
        assert np.array_equal(B, before[1])


@given(graphs(max_n=30, max_m=90), st.integers(1, 3), st.integers(1, 4))
def test_drawn_problems(A: sp.csr_array, size: int, q: int) -> None:
    A = in_blocks(definite(A), size)
    n = A.shape[0]
    B = np.random.default_rng(n).standard_normal((n, q)) + 2
    if n:
        M = multilevel(A, near_nullspace=B, blocksize=size, coarsest=5)
        check_multilevel(A, M)
        b = np.ones(n)
        assert matchwood.solve(A, b, preconditioner=M).converged


def test_where_the_size_of_nodes_comes_from() -> None:
    A, B = elasticity((6, 6))
    n = A.shape[0]
    turned = B @ np.random.default_rng(0).standard_normal((3, 3))  # shows no translations

    def nodes(matrix: object, modes: np.ndarray, **options: object) -> int:
        return int(multilevel(matrix, near_nullspace=modes, **options).levels[0].near.nodes[-1]) + 1

    assert nodes(A, B) == n // 2
    assert nodes(A, turned) == n
    assert nodes(A, turned, blocksize=2) == n // 2
    assert nodes(A.tobsr((2, 2)), turned) == n // 2
    assert nodes(A.tobsr((2, 2)), turned, blocksize=1) == n
    b = np.ones(n)
    one = matchwood.solve(A.tobsr((2, 2)), b, near_nullspace=turned)
    two = matchwood.solve(A, b, near_nullspace=turned, blocksize=2, preconditioner="multilevel")
    assert one.converged
    assert abs(one.iterations - two.iterations) <= 2  # one of them in float32
    many = matchwood.solve(A.tobsr((2, 2)), np.stack((b, 2 * b), axis=1), near_nullspace=turned)
    assert many.converged
    assert [column.iterations for column in many.columns] == [one.iterations] * 2


@pytest.mark.slow
def test_types() -> None:
    A, B = elasticity((12, 12))
    b = np.ones(A.shape[0])
    for dtype in (np.float32, np.float64):
        C = A.astype(dtype)
        M = multilevel(C, near_nullspace=B.astype(dtype))
        check_multilevel(C, M)
        assert (M @ b.astype(dtype)).dtype == dtype
        assert matchwood.solve(C, b.astype(dtype), preconditioner=M, rtol=1e-3).converged
    C = A.copy()
    C.indices, C.indptr = C.indices.astype(np.int64), C.indptr.astype(np.int64)
    assert np.array_equal(multilevel(C, near_nullspace=B) @ b, multilevel(A, near_nullspace=B) @ b)
    # powers of two change no digit
    for power in (-900, 900):
        scaled = sp.csr_array((np.ldexp(A.data, power), A.indices, A.indptr), shape=A.shape)
        M = multilevel(scaled, near_nullspace=np.ldexp(B, power))
        assert np.array_equal(M @ np.ldexp(b, power), multilevel(A, near_nullspace=B) @ b)
        check_multilevel(scaled, M)


def test_not_symmetric() -> None:
    """Then the interpolation is not smoothed; patterns that are not symmetric do as well."""
    A, B = elasticity((10, 11))
    C = A.tolil()
    C[3, 40] = 0.05
    C = sp.csr_array(C + sp.diags_array(0.1 * A.diagonal()))
    C.data *= np.random.default_rng(0).uniform(0.98, 1.02, C.nnz)
    M = multilevel(C, near_nullspace=B, coarsest=20)
    assert not M.levels[0].smoothed
    assert M.cycle == "K"
    check_multilevel(C, M)
    found = matchwood.solve(C, np.ones(A.shape[0]), preconditioner=M)
    assert found.converged
    assert found.method == "fbicgstab"
    with pytest.raises(ValueError, match="interpolation='smoothed' needs a symmetric matrix"):
        multilevel(C, near_nullspace=B, interpolation="smoothed")


def test_one_candidate_scales_the_matrix() -> None:
    A = matchwood.generators.aniso(2, (30, 30))
    d = np.exp2(np.random.default_rng(0).integers(-2, 3, 900))
    d[::7] *= -1
    scaled = sp.csr_array(sp.diags_array(d) @ A @ sp.diags_array(d))
    b = np.random.default_rng(1).standard_normal(900)
    for options in ({}, {"interpolation": "smoothed"}, {"precision": "float32", "aggregate": 8}):
        M = multilevel(scaled, near_nullspace=1 / d, coarsest=20, **options)
        check_multilevel(scaled, M)
        assert np.allclose(M @ b, (multilevel(A, coarsest=20, **options) @ (b / d)) / d, rtol=1e-4)
        assert np.array_equal(M.refresh(scaled) @ b, M @ b)
        with pytest.raises(ValueError, match="refresh: A must have entries at the same places"):
            M.refresh(scaled[:100, :100])
    with_it = matchwood.solve(scaled, b, near_nullspace=1 / d)
    without = matchwood.solve(scaled, b, preconditioner="multilevel")
    assert with_it.iterations < without.iterations


def test_refresh_copy_and_pickle() -> None:
    A, B = elasticity((14, 13))
    b = np.ones(A.shape[0])
    for options in ({}, {"interpolation": "smoothed"}):
        M = multilevel(A, near_nullspace=B, coarsest=20, **options)
        other = sp.csr_array((A.data * 4, A.indices, A.indptr), shape=A.shape)
        assert np.array_equal(M.refresh(A) @ b, M @ b)
        assert np.allclose(M.refresh(other) @ b, (M @ b) / 4)
        check_multilevel(other, M.refresh(other))
        for again in (copy.deepcopy(M), pickle.loads(pickle.dumps(M))):
            assert np.array_equal(again @ b, M @ b)
            assert again.levels[0].smoothed == M.levels[0].smoothed
            assert np.array_equal(again.refresh(A) @ b, M @ b)


def test_refresh_of_levels_that_end_early() -> None:
    line = sp.diags_array((-1.0, 10.0, -1.0), offsets=(-1, 0, 1), shape=(300, 300), format="csr")
    M = multilevel(line, near_nullspace=np.stack([np.ones(300), np.arange(300)], axis=1))
    (level,) = M.refresh(line).levels
    assert level.note == "every row is diagonally dominant"


def test_rows_that_are_held_are_left_out() -> None:
    """Rows with nothing but their diagonal, as of nodes whose displacement is given."""
    A, B = elasticity((9, 9))
    held = sp.csr_array(sp.block_diag((100 * sp.eye_array(4), A), format="csr"))
    modes = np.concatenate((B[:4], B))
    M = multilevel(held, near_nullspace=modes, coarsest=20)
    assert M.levels[0].left_out == 4
    check_multilevel(held, M)
    assert matchwood.solve(held, np.ones(held.shape[0]), preconditioner=M).converged


def test_a_body_that_floats() -> None:
    """The matrix is singular; its nullspace is that of the candidates."""
    A, B = elasticity((3, 9))
    C = sp.csr_array(A)
    K = sp.csr_array(sp.block_diag((C, C), format="csr"))
    modes = sp.block_diag((B, B)).toarray()
    M = multilevel(K, near_nullspace=modes, blocksize=2, coarsest=10)
    check_multilevel(K, M)
    assert matchwood.solve(K, np.ones(K.shape[0]), preconditioner=M).converged


def test_the_check_finds_faults() -> None:
    A, B = elasticity((14, 13))
    M = multilevel(A, near_nullspace=B, coarsest=20, interpolation="smoothed")
    check_multilevel(A, M)
    level, below = M.levels[:2]

    def fails(message: str, k: int = 0, **changes: object) -> None:
        with pytest.raises(CheckFailed, match=message):
            check_multilevel(A, spoiled(M, k, **changes))

    nodes = level.near.nodes.copy()
    nodes[5] += 7
    fails("level 0: nodes must be 0, 1", near=level.near._replace(nodes=nodes))
    values = level.near.values.copy()
    values[9, 2] += 1e-3
    fails("level 0: candidate 2 is not interpolated at row 9",
          near=level.near._replace(values=values))  # fmt: skip
    values = below.near.values.copy()
    values[0, 1] += 1e-3
    fails("level 0: candidate 1 is not interpolated", 1, near=below.near._replace(values=values))
    T = level.tentative.copy()
    T.data[0] *= 1.01
    fails("level 0: the columns of the interpolation are not orthonormal", tentative=T)
    T = level.tentative.copy()
    T.indices[0] = T.shape[1] - 1
    fails("level 0: a column of the interpolation is not on its aggregate", tentative=T)
    P = level.interpolation.copy()
    P.data *= -1  # P'AP is as before
    fails("level 0: the interpolation is not what a Jacobi step makes", interpolation=P)
    inner = below.matrix.inner.copy()
    inner[3] *= 1.001
    fails("level 1: its matrix is not that", 1, matrix=below.matrix._replace(inner=inner))
    ((label, count),) = level.passes
    other = label.copy()
    other[0] = label[-1]
    fails("row 0 has no neighbour in its aggregate", passes=((other, count),))

    class Skew:
        """Not symmetric, though it says so."""

        def __getattr__(self, name: str) -> object:
            return getattr(M, name)

        def __matmul__(self, x: np.ndarray) -> np.ndarray:
            return (M @ x) * np.linspace(1, 2, x.size)

    with pytest.raises(CheckFailed, match=r"y.Mx is"):
        check_multilevel(A, Skew())


def test_bad_input() -> None:
    A, B = elasticity((5, 5))
    n = A.shape[0]
    nan, zero, row = B.copy(), B.copy(), B.copy()
    nan[7, 1] = np.nan
    zero[:, 2] = 0
    row[6:8] = 0
    for modes, message in (
        (B[:-1], rf"near_nullspace must have shape \({n}, q\), got \({n - 1}, 3\)"),
        (B[:, :0], rf"near_nullspace must have shape \({n}, q\), got \({n}, 0\)"),
        (B[None], "near_nullspace must have shape"),
        (nan, r"near_nullspace must be finite, got nan at \(7, 1\)"),
        (zero, "column 2 of near_nullspace must not be zero"),
        (row, "near_nullspace must not be zero in all of rows 6 to 7"),
        (np.r_[0.0, np.ones(n - 1)], "near_nullspace must not be zero in all of row 0"),
    ):
        with pytest.raises(ValueError, match=message):
            multilevel(A, near_nullspace=modes)
        with pytest.raises(ValueError, match=message):
            matchwood.solve(A, np.ones(n), near_nullspace=modes)
    for modes, message in (
        (B * 1j, "near_nullspace must be real, got complex128"),
        ([["a"] * 3] * n, "near_nullspace must be real"),
        (np.ma.masked_array(B), "near_nullspace must be an array without a mask"),
    ):
        with pytest.raises(TypeError, match=message):
            multilevel(A, near_nullspace=modes)
    for options, message in (
        ({"near_nullspace": B, "blocksize": 3}, f"blocksize must divide the {n} rows, got 3"),
        ({"near_nullspace": B, "blocksize": 0}, "blocksize must be at least 1, got 0"),
        ({"blocksize": 2}, "blocksize needs near_nullspace"),
    ):
        with pytest.raises(ValueError, match=message):
            multilevel(A, **options)
        with pytest.raises(ValueError, match=message):
            matchwood.solve(A, np.ones(n), **options)
    with pytest.raises(TypeError, match="blocksize must be an integer"):
        multilevel(A, near_nullspace=B, blocksize=2.0)
    with pytest.raises(ValueError, match="near_nullspace is for preconditioner 'multilevel'"):
        matchwood.solve(A, np.ones(n), near_nullspace=B, preconditioner="jacobi")
    empty = multilevel(sp.csr_array((0, 0)), near_nullspace=np.zeros((0, 3)))
    assert (empty @ np.zeros(0)).shape == (0,)


@pytest.mark.slow
def test_iterations_hardly_grow() -> None:
    for shapes, stretch in ((((50, 50), (140, 140)), None), (((50, 50), (140, 140)), (1.0, 0.1)),
                            (((10, 10, 10), (20, 20, 20)), None)):  # fmt: skip
        counts = []
        for shape in shapes:
            A, B = elasticity(shape, stretch)
            b = np.random.default_rng(0).standard_normal(A.shape[0])
            found = matchwood.solve(A, b, near_nullspace=B, rtol=1e-8, history=False)
            assert found.converged
            counts.append(found.iterations)
        assert max(counts) <= (60 if stretch else 30), counts
        assert counts[1] <= 1.5 * counts[0], counts


def test_errors_of_solve_are_in_its_name() -> None:
    A = laplacian((3, 4))
    with pytest.raises(ValueError, match=r"^solve: near_nullspace must have shape"):
        matchwood.solve(A, np.ones(12), near_nullspace=range(3))
