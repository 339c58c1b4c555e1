"""The multilevel preconditioner: pairs and cycles as defined, checks, bad input, iterations."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given

import matchwood
from graphs import ZOO
from matchwood.errors import CheckFailed
from matchwood.krylov import fcg
from matchwood.preconditioners import multilevel
from matchwood.preconditioners.multilevel import hierarchy, reference
from matchwood.preconditioners.multilevel.check import check_multilevel
from matchwood.preconditioners.multilevel.cpu import pairs, smoothed
from multilevel_matrices import SMALL, definite, laplacian, spoiled
from strategies import graphs
from support import REST, THREADS, looped, some


def dense_levels(M) -> list:
    """(A, S, P) of each level, as `reference.cycle` takes them."""
    found = []
    for level in M.levels:
        A, n = hierarchy.dense(level.matrix), level.rows
        P = None
        if level.passes:
            label, count = hierarchy._whole(level.passes)
            P = np.zeros((n, count + 1))
            P[np.arange(n), label] = 1
            P = P[:, :count] if level.interpolation is None else level.interpolation.toarray()
        if level.made is None:
            S = np.linalg.inv(A)
        elif isinstance(level.made, pairs.Lines):
            order, lower, inverse, upper = level.made
            L = np.eye(n) + np.diag(lower[1:], -1)
            U = np.eye(n) + np.diag(upper[:-1], 1)
            S = np.empty((n, n))
            S[np.ix_(order, order)] = np.linalg.inv(U) @ np.diag(inverse) @ np.linalg.inv(L)
        else:
            S = np.diag(level.made)
        found.append((A, S, P))
    return found


def labels_are_those_of_the_reference(A: sp.csr_array) -> None:
    n = A.shape[0]
    for seed, join in ((0, False), (1, True)):
        zero = np.zeros(n)
        m, _ = pairs.measure(A.indptr, A.indices, A.data, zero, seed, 1)
        assert m.hash.tolist() == [reference.mixed(v, seed) for v in range(n)]
        rows = np.repeat(np.arange(n), np.diff(A.indptr))
        off = sp.csr_array((A.data * (rows != A.indices), A.indices, A.indptr), shape=A.shape)
        expected = reference.labels(off.indptr, off.indices, off.data, A.diagonal(), seed, join)
        for threads in THREADS:
            label, count = pairs.pair(A.indptr, A.indices, A.data, m, join, threads)
            assert count == expected[1]
            assert np.array_equal(label, expected[0])


@looped("name", ZOO)
def test_pairs_on_the_zoo(name: str) -> None:
    A = ZOO[name]()
    if A.shape[0] <= 400:
        labels_are_those_of_the_reference(definite(A))


@given(graphs(max_n=40, max_m=80))
def test_pairs_of_random_graphs(A: sp.csr_array) -> None:
    labels_are_those_of_the_reference(definite(A))


@pytest.mark.parametrize("rest", REST)
@looped("name", SMALL)
def test_cycles_are_those_of_the_reference(name: str, rest: bool) -> None:
    A = SMALL[name]()
    symmetric = name != "unsymmetric"
    r = np.random.default_rng(0).standard_normal(A.shape[0])
    for smoother in list(reference.DAMPING)[rest::2]:  # both halves have one along paths
        for cycle in "VWK" if rest else "VK":
            for sweeps in (1, 2) if cycle == "K" and rest else (1,):
                jacobi_step = symmetric and sweeps == 1 and cycle in "VK" and "tri" in smoother
                options = {"smoother": smoother, "cycle": cycle, "sweeps": sweeps}
                options["interpolation"] = "smoothed" if jacobi_step else "plain"
                M = multilevel(A, coarsest=8, **options)
                assert len(M.levels) > 2
                check_multilevel(A, M)
                levels = dense_levels(M)
                expected = reference.cycle(levels, r, cycle, symmetric=symmetric, sweeps=sweeps)
                assert np.allclose(M @ r, expected, rtol=1e-9, atol=1e-9 * abs(expected).max())


def test_levels_that_a_cycle_visits_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    assert reference.visited_twice([40_000, 10_000, 2_500, 600]) == 2
    assert reference.visited_twice([10**6, 250_000, 60_000, 3_334, 3_333]) == 3
    assert reference.visited_twice([9, 5, 2]) == 2  # none is below
    A = laplacian((18, 19))
    r = np.random.default_rng(0).standard_normal(A.shape[0])
    found = []
    for rows, part in ((1000, 300), (0, 1000), (0, 20)):
        monkeypatch.setattr(reference, "TWICE_ROWS", rows)
        monkeypatch.setattr(reference, "TWICE_PART", part)
        M = multilevel(A, coarsest=4, cycle="K")
        assert len(M.levels) > 4
        expected = reference.cycle(dense_levels(M), r, "K", symmetric=True)
        assert np.allclose(M @ r, expected, rtol=1e-9, atol=1e-9 * abs(expected).max())
        found.append(M @ r)
    assert not np.allclose(found[0], found[1], rtol=1e-9)
    assert not np.allclose(found[1], found[2], rtol=1e-9)


def test_smoothed_interpolation_and_its_coarse_matrix() -> None:
    """The kernels give what SciPy's products give, at any number of threads."""
    for A in (laplacian((40, 41)), laplacian((9, 8, 7), 5.0), definite(laplacian((30, 31)), 4)):
        label = np.random.default_rng(0).integers(0, 60, A.shape[0]).astype(A.indices.dtype)
        count = 59  # so label 59 stands for rows left out
        for B in (A, A.astype(np.float32)):
            inner = np.random.default_rng(1).uniform(1, 2, A.shape[0]).astype(B.dtype)
            matrix = hierarchy.Matrix(B.indptr, B.indices, B.data, inner)
            whole = sp.csr_array(B.astype(np.float64) + sp.diags_array(inner.astype(np.float64)))
            rows = np.repeat(np.arange(A.shape[0]), np.diff(whole.indptr))
            off = rows != whole.indices
            size = np.where(off, abs(whole.data), 0)
            most = np.sqrt(np.maximum.reduceat(size, whole.indptr[:-1]))
            weak = off & (size < smoothed.STRONG * most[rows] * most[whole.indices])
            lumped = np.bincount(rows[weak], whole.data[weak], minlength=A.shape[0])
            F = sp.csr_array(whole, copy=True)
            F.data[weak] = 0
            F.data[~off] += lumped
            taken = np.flatnonzero(label < count)
            Q = sp.csr_array((np.ones(taken.size), (taken, label[taken])), (A.shape[0], count))
            step = smoothed.JACOBI_STEP / abs(F).sum(axis=1)
            expected = (Q - sp.diags_array(step) @ (F @ Q)).toarray()
            answers = []
            for threads in THREADS:
                P = smoothed.interpolation(matrix, label, count, threads)
                dense = sp.csr_array((P[2], P[1], P[0]), shape=Q.shape).toarray()
                assert np.allclose(dense, expected, rtol=1e-12, atol=1e-12)
                C, diagonal, R = smoothed.coarse(matrix, P, count, threads)
                made = sp.csr_array((C[2], C[1], C[0]), shape=(count, count), copy=True)
                assert not made.diagonal().any()
                assert sp.csr_array(made.T).nnz == sp.csr_array(made.tocoo()).nnz  # no duplicates
                assert abs(made - made.T).max() <= 1e-12 * abs(made).max()
                wanted = dense.T @ whole @ dense
                assert np.allclose(made.toarray() + np.diag(diagonal), wanted, rtol=1e-10)
                answers.append((*P, *C, diagonal, *R))
            for other in answers[1:]:
                assert all(map(np.array_equal, other, answers[0]))


def test_the_inverse_of_the_coarsest_matrix() -> None:
    A = definite(laplacian((9, 8))).toarray()
    assert np.allclose(pairs.inverse(A) @ A, np.eye(72), atol=1e-12)
    assert np.array_equal(pairs.inverse(A), pairs.inverse(A).T)
    assert pairs.inverse(np.array([[1.0, 2.0], [2.0, 1.0]])) is None
    assert pairs.inverse(np.zeros((2, 2))) is None
    singular = laplacian((9, 8)).toarray()
    singular[np.diag_indices(72)] -= singular.sum(axis=1)
    whole = np.block([[singular, 0 * singular], [0 * singular, 1e-20 * singular]])
    found, one = (reference.pseudoinverse(a, True) for a in (whole, singular))
    assert np.allclose(one, np.linalg.pinv(singular))
    assert np.allclose(found[72:, 72:] * 1e-20, one)


def test_a_vector_of_nan_leaves_nothing_behind() -> None:
    """Vectors of the cycle are used again, with the word after their rows."""
    for n, cycle in ((81, "K"), (82, "V"), (83, "W")):
        A = definite(laplacian((7, n)))
        r = np.random.default_rng(2).standard_normal(A.shape[0])
        M = multilevel(A, cycle=cycle)
        expected = M @ r
        M @ np.full(A.shape[0], np.nan)
        assert np.array_equal(M @ r, expected)


def test_any_scale() -> None:
    """Powers of two change no digit, in float32 too; before, there was NaN."""
    A = laplacian((30, 31), 3.0)
    r = np.random.default_rng(3).standard_normal(A.shape[0])
    for options in (
        {"precision": "float32"},
        {"precision": "float32", "interpolation": "smoothed"},
        {},
    ):
        expected = multilevel(A, **options) @ r
        for power in (990, -990, 100, -100):
            scaled = sp.csr_array((np.ldexp(A.data, power), A.indices, A.indptr), shape=A.shape)
            M = multilevel(scaled, **options)
            assert np.array_equal(M @ np.ldexp(r, power), expected)
            check_multilevel(scaled, M)
            assert np.array_equal(multilevel(A, **options) @ np.ldexp(r, power // 2),
                                  np.ldexp(expected, power // 2))  # fmt: skip
    zero = multilevel(A, precision="float32") @ np.zeros(A.shape[0])
    assert not zero.any()


def test_symmetric_cycles() -> None:
    A = laplacian((20, 21), 3.0)
    x, y = np.random.default_rng(1).standard_normal((2, A.shape[0]))
    for cycle in "VW":
        M = multilevel(A, cycle=cycle, coarsest=10)
        assert np.isclose(x @ (M @ y), y @ (M @ x), rtol=1e-12)
        assert x @ (M @ x) > 0
        assert np.array_equal(M.H @ x, M @ x)
    with pytest.raises(TypeError, match="only cycles 'V' and 'W' of a symmetric matrix"):
        multilevel(A).H @ x


def test_the_same_at_any_number_of_threads() -> None:
    A = laplacian((70, 71), 30.0)  # several blocks of rows
    X = np.random.default_rng(2).standard_normal((A.shape[0], 2))
    before = A.copy()
    for options in ({"cycle": "K"}, {"cycle": "W", "smoother": "algebraic_tridiagonal"}):
        one = multilevel(A, threads=1, **options)
        Y = one @ X
        assert np.array_equal(Y[:, 1], one @ X[:, 1])
        for threads in THREADS[1:]:
            M = multilevel(A, threads=threads, **options)
            assert np.array_equal(M @ X, Y)
    assert (A != before).nnz == 0
    path = laplacian((3 * pairs.SEGMENT // 2,))  # one path, cut once, and members amid a segment
    r = np.ones(path.shape[0])
    answers = [multilevel(path, threads=threads) @ r for threads in THREADS]
    assert all(np.array_equal(other, answers[0]) for other in answers)


@pytest.mark.slow
def test_members_share_large_levels() -> None:
    A = laplacian((400, 401))
    r = np.random.default_rng(2).standard_normal(A.shape[0])
    answers = [multilevel(A, threads=threads) @ r for threads in THREADS]
    for other in answers[1:]:
        assert np.array_equal(other, answers[0])


@pytest.mark.slow
def test_it_can_be_interrupted() -> None:
    A = laplacian((200, 200))
    b = np.ones(A.shape[0])

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    for threads in (1, 2):
        M = multilevel(A, sweeps=400, threads=threads)
        with matchwood.on_progress(stop), pytest.raises(KeyboardInterrupt):
            for _ in range(1000):
                M @ b
        assert np.array_equal(M @ b, multilevel(A, sweeps=400) @ b)  # it can be used afterwards


def test_rounding_of_sums_decides_nothing() -> None:
    """On this torus the two strongest couplings of all rows are 0.8 of the others exactly."""
    ring = sp.diags_array((1.0, 1.0, 1.0, 1.0), offsets=(-1, 1, 63, -63), shape=(64, 64))
    one = sp.eye_array(64)
    A = sp.csr_array(10 * sp.eye_array(64 * 64) - sp.kron(one, 4 * ring) - sp.kron(ring, one))
    b = np.random.default_rng(0).standard_normal(A.shape[0])
    expected = multilevel(A, threads=1)
    for threads in (2, 3):
        found = multilevel(A, threads=threads)
        assert found.levels[0].smoother == expected.levels[0].smoother
        assert np.array_equal(found @ b, expected @ b)


@pytest.mark.parametrize("dtype", some([np.float64, np.float32]))
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_types(dtype: type, index: type) -> None:
    A = laplacian((30, 31)).astype(dtype)
    A.indptr, A.indices = A.indptr.astype(index), A.indices.astype(index)
    b = np.ones(A.shape[0], dtype)
    M = multilevel(A)
    assert M.dtype == (M @ b).dtype == dtype
    mixed = multilevel(A, precision="float32")
    assert np.allclose(mixed @ b, M @ b, rtol=1e-3)
    assert (mixed @ b).dtype == dtype


def test_refresh_copy_and_pickle() -> None:
    A = laplacian((30, 31), 5.0)
    b = np.ones(A.shape[0])
    M = multilevel(A)
    assert np.array_equal(M.refresh(A) @ b, M @ b)
    other = sp.csr_array((A.data * 4, A.indices, A.indptr), shape=A.shape)
    assert np.allclose(M.refresh(other) @ b, (M @ b) / 4)
    check_multilevel(other, M.refresh(other))
    smoothed = multilevel(A, interpolation="smoothed")
    assert smoothed.cycle == "V"
    assert np.array_equal(smoothed.refresh(A) @ b, smoothed @ b)
    line = sp.diags_array((-1.0, 10.0, -1.0), offsets=(-1, 0, 1), shape=(300, 300), format="csr")
    for ended in (multilevel(line), multilevel(A, coarsest=1, interpolation="smoothed")):
        again = ended.refresh(A if ended.levels[0].passes else line)
        for one, other in zip(again.levels, ended.levels, strict=True):
            assert (one.rows, one.note, one.smoother) == (other.rows, other.note, other.smoother)
    assert ended.levels[-1].note
    with pytest.raises(ValueError, match="refresh: A must have entries at the same places"):
        M.refresh(laplacian((31, 30)))
    for again in (copy.deepcopy(M), pickle.loads(pickle.dumps(M))):
        assert np.array_equal(again @ b, M @ b)
        assert again.operator_complexity == M.operator_complexity


def test_levels_say_what_happened() -> None:
    M = multilevel(laplacian((40, 40)))
    assert [level.smoother for level in M.levels] == ["jacobi"] * 2 + ["dense"]
    assert 1 < M.grid_complexity < 1.5 < 2 * M.operator_complexity < 3.4
    assert multilevel(laplacian((40, 40), 100.0)).levels[0].smoother == "algebraic_tridiagonal"
    assert multilevel(laplacian((40, 40), 100.0)).coverage > 0.9
    (only,) = multilevel(sp.csr_array(10 * sp.eye_array(2000))).levels
    assert (only.smoother, only.note) == ("jacobi", "every row is diagonally dominant")
    level, last = multilevel(laplacian((60, 60)), max_levels=2).levels
    assert (level.note, last.note, last.smoother) == ("", "max_levels", "dense")
    star = sp.csr_array(ZOO["star"]()) if "star" in ZOO else matchwood.generators.star(50)
    assert multilevel(definite(star), coarsest=2).levels[-1].rows <= 2


def test_dominant_rows_are_left_out() -> None:
    A = sp.lil_array(sp.block_diag((laplacian((20, 20)), 7 * sp.eye_array(30))))
    A[0, 410] = A[410, 0] = -0.5
    A = sp.csr_array(A)
    M = multilevel(A, coarsest=10)
    assert M.levels[0].left_out == 30
    check_multilevel(A, M)
    b = np.ones(A.shape[0])
    x, info = fcg(A, b, M=M, rtol=1e-10)
    assert info == 0
    assert np.allclose(A @ x, b)


def test_pairs_that_are_dominant() -> None:
    """The second pass finds nothing to merge, so the first one makes no level."""
    A = sp.csr_array(sp.kron(sp.eye_array(30), sp.csr_array([[2.0, -1.0], [-1.0, 2.0]])))
    for interpolation in ("plain", "smoothed"):
        M = multilevel(A, interpolation=interpolation, coarsest=1)
        assert [level.note for level in M.levels] == ["every row is diagonally dominant"]
        check_multilevel(A, M)


@pytest.mark.parametrize("dtype", some([np.float64, np.float32]))
def test_singular_matrices(dtype: type) -> None:
    A = matchwood.generators.grid((20, 20)).astype(dtype)
    L = sp.csr_array(sp.diags_array(A.sum(axis=1)) - A)
    two = sp.csr_array(sp.block_diag((L, L), format="csr"))
    b = two @ np.random.default_rng(3).standard_normal(800)
    x, info = fcg(two, b, M=multilevel(two), rtol=1e-10)
    assert info == 0
    assert np.allclose(two @ x, b)


def test_the_check_finds_faults() -> None:
    A = laplacian((25, 25))
    M = multilevel(A)
    check_multilevel(A, M)
    with pytest.raises(CheckFailed, match="level 0: its matrix is not that of the aggregates"):
        check_multilevel(2 * A, M)
    inner = M.levels[1].matrix.inner.copy()
    inner[3] *= 1.001
    wrong = M.levels[1].matrix._replace(inner=inner)
    with pytest.raises(CheckFailed, match="level 1: its matrix is not that of the aggregates"):
        check_multilevel(A, spoiled(M, 1, matrix=wrong))
    (label, count), *rest = M.levels[0].passes
    for at, value, message in (
        (0, count + 1, "labels of pass 0 must be"),
        (0, label[-1], "row 0 has no neighbour in its aggregate"),
    ):
        other = label.copy()
        other[at] = value
        passes = ((other, count), *rest)
        with pytest.raises(CheckFailed, match=message):
            check_multilevel(A, spoiled(M, 0, passes=passes))
    with pytest.raises(CheckFailed, match="level 1 has 5 rows"):
        check_multilevel(A, spoiled(M, 1, rows=5))
    N = copy.copy(M)
    N.operator_complexity = 1.0
    with pytest.raises(CheckFailed, match=r"operator_complexity is 1\.0"):
        check_multilevel(A, N)
    with pytest.raises(TypeError, match="check_multilevel: M must be from multilevel"):
        check_multilevel(A, matchwood.preconditioners.jacobi(A))


def test_bad_input() -> None:
    A = laplacian((5, 5))
    for value, shown in ((0.0, "0"), (-1.0, "-1")):
        B = A.copy()
        B[7, 7] = value
        with pytest.raises(ValueError, match=f"diagonal must be positive, got {shown} at row 7"):
            multilevel(B)
    empty = sp.csr_array(np.diag([1.0, 0, 1]))
    with pytest.raises(ValueError, match="diagonal must be positive, got 0 at row 1"):
        multilevel(empty)
    with pytest.raises(ValueError, match="square"):
        multilevel(sp.csr_array(np.ones((2, 3))))
    with pytest.raises(TypeError, match="complex"):
        multilevel(A * 1j)
    B = A.copy()
    B.data[3] = np.nan
    with pytest.raises(ValueError, match="finite"):
        multilevel(B)
    for options, message in (
        ({"aggregate": 3}, "aggregate must be 2, 4, 8 or 16, got 3"),
        ({"cycle": "F"}, "cycle must be"),
        ({"smoother": "ilu"}, "smoother must be"),
        ({"interpolation": "linear"}, "interpolation must be"),
        ({"sweeps": 0}, "sweeps must be"),
        ({"coarsest": 0}, "coarsest must be"),
        ({"max_levels": 0}, "max_levels must be"),
        ({"precision": "float16"}, "precision must be"),
    ):
        with pytest.raises(ValueError, match=message):
            multilevel(A, **options)
    with pytest.raises(ValueError, match="interpolation='smoothed' needs a symmetric matrix"):
        multilevel(SMALL["unsymmetric"](), interpolation="smoothed")
    with pytest.raises(matchwood.EngineUnavailable, match="has no 'reference' engine"):
        multilevel(A, engine="reference")


def test_empty_and_tiny() -> None:
    for shape in ((0,), (0, 3)):
        assert (multilevel(sp.csr_array((0, 0))) @ np.zeros(shape, np.float32)).shape == shape
    assert np.allclose(multilevel(sp.csr_array([[4.0]])) @ [2.0], [0.5])
    assert np.allclose(multilevel(sp.csr_array([[4.0, 1.0], [1.0, 4.0]])) @ [5.0, 5.0], [1.0, 1.0])


def iterations(A: sp.csr_array, **options) -> int:
    b = np.random.default_rng(0).standard_normal(A.shape[0])
    found = matchwood.solve(A, b, preconditioner=multilevel(A, **options), rtol=1e-8, history=False)
    assert found.converged
    return found.iterations


@pytest.mark.slow
def test_iterations_hardly_grow() -> None:
    for name, make in {
        "Laplacian": lambda k: laplacian((k, k)),
        "1000:1": lambda k: laplacian((k, k), 1000.0),
        **{f"aniso{i}": lambda k, i=i: matchwood.generators.aniso(i, (k, k)) for i in (1, 2, 3)},
    }.items():
        few, many = (iterations(make(k)) for k in (200, 400))
        assert many <= 25, (name, few, many)
        assert many <= 1.5 * few, (name, few, many)
    assert iterations(laplacian((30, 30, 30))) <= 20
