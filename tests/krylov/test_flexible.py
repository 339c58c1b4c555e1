"""Flexible methods, the choice of `solve`, and systems of graph Laplacians."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from scipy.sparse.linalg import LinearOperator

import matchwood
from graphs import ZOO
from matchwood.krylov import fbicgstab, fcg, fgmres, gpu, reference, solve_laplacian
from matchwood.preconditioners import jacobi, multilevel
from strategies import graphs
from support import THREADS, looped

METHODS = {"fcg": fcg, "fgmres": fgmres, "fbicgstab": fbicgstab}


def system(k: int = 24, wind: float = 0.0) -> tuple[sp.csr_array, np.ndarray]:
    """The 5-point Laplacian, with `wind` not symmetric, and a right-hand side."""
    one = np.ones(k)
    line = sp.diags_array(
        ((-1 - wind) * one[1:], 2 * one, (wind - 1) * one[1:]), offsets=(-1, 0, 1)
    )
    A = sp.csr_array(sp.kron(line, sp.eye_array(k)) + sp.kron(sp.eye_array(k), line))
    return A, np.random.default_rng(k).standard_normal(k * k)


class Varying:
    """Another preconditioner at every step: what flexible methods are for."""

    shape = (576, 576)

    def __init__(self) -> None:
        self.calls = 0

    def __matmul__(self, r: np.ndarray) -> np.ndarray:
        self.calls += 1
        return r / (4 + np.arange(r.size) % (1 + self.calls % 3))


@looped("name", METHODS)
def test_flexible_methods_solve(name: str) -> None:
    method = METHODS[name]
    for wind in (0.0, 0.3) if name != "fcg" else (0.0,):
        A, b = system(wind=wind)
        varying = () if name == "fbicgstab" else (Varying(),)  # a little is all that it bears
        same = LinearOperator(A.shape, matvec=lambda r: r, dtype=float)  # no copy
        for M in (None, same, jacobi(A), multilevel(A), *varying):
            before = b.copy()
            x, info = method(A, b, M=M, rtol=1e-9)
            assert info == 0
            assert np.linalg.norm(b - A @ x) <= 2e-9 * np.linalg.norm(b)
            again, _ = method(A, b, x, M=M, rtol=1e-8)  # from the solution: no step is needed
            assert np.array_equal(again, x)
            assert np.array_equal(b, before)
    x, info = method(A, b, maxiter=1, rtol=1e-14, **({"restart": 1} if name == "fgmres" else {}))
    assert info == 1
    assert np.linalg.norm(b - A @ x) < np.linalg.norm(b)
    x, info = method(A, 0 * b, b)
    assert info == 0
    assert not x.any()
    single, info = method(A.astype(np.float32), b.astype(np.float32), rtol=1e-4)
    assert single.dtype == np.float32
    assert info == 0


class Other:
    """What it returns has another shape."""

    shape = (576, 576)

    def __init__(self, *returned: int) -> None:
        self.returned = returned

    def __matmul__(self, r: np.ndarray) -> np.ndarray:
        return np.ones(self.returned)


@looped("returned", ((3,), (5000,), (576, 1)))
def test_a_preconditioner_that_returns_another_shape(returned: tuple[int, ...]) -> None:
    A, b = system()
    with pytest.raises(ValueError, match=r"preconditioner must return shape \(576,\), got"):
        matchwood.solve(A, b, preconditioner=Other(*returned), method="fcg")


def test_restarts_that_never_come() -> None:
    """No memory is taken for them."""
    A, b = system()
    expected = fgmres(A, b, restart=400, rtol=1e-10)
    for restart in (10**6, 10**12, 2**62):
        x, info = fgmres(A, b, restart=restart, rtol=1e-10)
        assert info == expected[1] == 0
        assert np.array_equal(x, expected[0])


@looped("scale", ("1e-250", "1e250"))
def test_own_preconditioners_of_very_large_and_small_matrices(scale: str) -> None:
    """They are for the matrix as it is, and the methods see one that is scaled."""
    A, b = system()
    A *= float(scale)
    for M in (jacobi(A), multilevel(A, cycle="V"), sp.diags_array(1 / A.diagonal()).tocsr()):
        for method in ("bicgstab", "cg", "gmres", *METHODS):
            assert matchwood.solve(A, b, preconditioner=M, method=method).converged
    assert matchwood.solve(A, np.stack([b, b], axis=1), preconditioner=multilevel(A)).converged


def test_breakdowns_are_reported() -> None:
    A = sp.csr_array(np.diag([1.0, -1.0]))
    assert fcg(A, [1.0, 1.0])[1] == -1
    assert fbicgstab(sp.csr_array([[0.0, 1.0], [-1.0, 0.0]]), [1.0, 0.0])[1] == -1
    assert fgmres(sp.csr_array((2, 2)), [1.0, 1.0])[1] == -1


@looped("name", METHODS)
def test_histories(name: str) -> None:
    A, b = system()
    found = matchwood.solve(A, b, preconditioner="multilevel", method=name)
    assert found.converged
    assert found.method == name
    assert found.residuals.shape == (found.iterations + 1,)
    found.check(A, b)
    seen: list = []
    METHODS[name](A, b, M=multilevel(A), rtol=1e-8, callback=seen.append)
    assert len(seen) == found.iterations


@pytest.mark.slow
def test_conjugate_gradients_on_a_team() -> None:
    """`solve` has a kernel of its own for fcg: the same steps, and bits, at any thread count."""
    for A, b in (system(100), (system()[0] + 8e3 * sp.eye_array(576), system()[1])):
        for kind in (np.float64, np.float32):
            C, right = sp.csr_array(A).astype(kind), b.astype(kind)
            rtol = 1e-9 if kind is np.float64 else 1e-4
            M = jacobi(C)
            x, _ = fcg(C, right, M=M, rtol=rtol)
            options = {"preconditioner": M, "method": "fcg", "rtol": rtol}
            one = matchwood.solve(C, right, threads=1, **options)
            assert one.converged
            assert one.x.dtype == kind
            assert np.allclose(one.x, x, rtol=1e-3, atol=100 * rtol * abs(x).max())
            again = matchwood.solve(C, right, x0=one.x, history=False, **options)
            assert again.iterations == 0
            for threads in THREADS[1:]:
                found = matchwood.solve(C, right, threads=threads, **options)
                assert np.array_equal(found.x, one.x)
                assert np.array_equal(found.residuals, one.residuals)
    A, b = system(12)
    M = sp.linalg.aslinearoperator(np.diag(1 / (1 + np.arange(144) % 5)))
    for steps in (1, 2, 7):
        options = {"preconditioner": M, "method": "fcg", "maxiter": steps}
        expected = reference.fcg(A.toarray(), b, lambda r: M @ r, steps)
        assert np.allclose(matchwood.solve(A, b, **options).x, expected, rtol=1e-10, atol=1e-10)
    broken = sp.csr_array(np.diag([1.0, -1.0]))
    assert matchwood.solve(broken, [1.0, 1.0], method="fcg", preconditioner=None).info == -1


def test_extreme_numbers_in_single_precision() -> None:
    """float32 inside float64: 1e60 is infinite in it, 1e-60 is 0."""
    A, b = system(40)
    expected = matchwood.solve(A, b)
    for scale in (2.0**200, 2.0**-200):
        for C, right in ((A * scale, b * scale), (A, b * scale)):
            found = matchwood.solve(sp.csr_array(C), right)
            assert found.tried == (("multilevel", "used"),)
            assert found.iterations == expected.iterations


def test_bad_arguments() -> None:
    A, b = system(4)
    for name, method in METHODS.items():
        with pytest.raises(ValueError, match=f"{name}: A must be a square matrix"):
            method(np.ones((2, 3)), b)
        with pytest.raises(ValueError, match=f"{name}: A must be a square matrix, got Graph"):
            method(matchwood.graph(A), b)
        with pytest.raises(ValueError, match=rf"{name}: b must have shape \(16,\), got \(3,\)"):
            method(A, [1.0, 2.0, 3.0])
        with pytest.raises(ValueError, match=f"{name}: x0 must have shape"):
            method(A, b, [1.0])
        with pytest.raises(ValueError, match=f"{name}: b and x0 must be finite"):
            method(A, b * np.nan)
        with pytest.raises(TypeError, match=f"{name}: A and b must be real"):
            method(A, b * 1j)
        with pytest.raises(ValueError, match=f"{name}: rtol must be"):
            method(A, b, rtol=-1.0)
    with pytest.raises(ValueError, match="solve: preconditioner must be linear for 'cg'"):
        matchwood.solve(A, b, preconditioner=multilevel(A), method="cg")


@pytest.mark.slow
def test_what_solve_takes() -> None:
    A, b = system(80)
    found = matchwood.solve(A, b)
    assert (found.method, found.tried) == ("fcg", (("multilevel", "used"),))
    assert found.preconditioner.levels[0].rows == 6400
    for method in ("cg", "bicgstab"):
        assert "tridiagonal" in matchwood.solve(A, b, method=method).tried[0][0]
    V = matchwood.solve(A, b, method="cg", preconditioner="multilevel")
    assert V.converged
    assert V.preconditioner.cycle == "V"
    positive = sp.csr_array(abs(A) + 4 * sp.eye_array(6400))  # levels cannot gain there
    assert matchwood.solve(positive, b).tried == (("tridiagonal", "used"),)
    indefinite = sp.csr_array(A - 8 * sp.eye_array(6400))
    assert matchwood.solve(indefinite, b, maxiter=2).method == "bicgstab"
    wind, b = system(80, 0.3)
    assert matchwood.solve(wind, b).method == "bicgstab"
    found = matchwood.solve(wind, b, preconditioner="multilevel")
    assert (found.method, found.converged) == ("fbicgstab", True)
    columns = matchwood.solve(A, np.stack((b, b[::-1]), axis=1))
    assert columns.converged
    assert columns.columns[1].preconditioner is columns.preconditioner


# Laplacians


def is_solution(A: sp.csr_array, b: np.ndarray, x: np.ndarray) -> None:
    """x is the pseudoinverse times b."""
    dense = sp.csr_array(A).astype(np.float64).toarray()
    W = abs(dense) if np.array_equal(dense, dense.T) else abs(dense) + abs(dense.T)
    np.fill_diagonal(W, 0)
    L = np.diag(W.sum(axis=1)) - W
    expected = np.linalg.pinv(L, hermitian=True) @ b
    assert np.allclose(x, expected, atol=1e-6 * (1 + abs(expected).max()))


def test_right_hand_sides_that_are_nearly_constant() -> None:
    A = matchwood.generators.grid((31, 33))
    b = np.random.default_rng(0).standard_normal(A.shape[0])
    plain = solve_laplacian(A, b)
    found = solve_laplacian(A, b + 1e10)  # which leaves six digits of b
    assert found.converged
    assert np.allclose(found.x, plain.x, atol=1e-3)
    found = solve_laplacian(A, np.full((A.shape[0], 2), [0.1, 1 / 3]))
    assert found.converged
    assert not found.x.any()


def test_laplacian_solutions_can_be_copied() -> None:
    A = matchwood.generators.grid((6, 7))
    b = np.arange(42.0)
    found = solve_laplacian(A, b)
    for again in (copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        assert np.array_equal(again.x, found.x)
        assert np.array_equal(again.preconditioner @ b, found.preconditioner @ b)


@looped("scale", ("-13", "-40", "100"))
def test_components_on_different_scales(scale: str) -> None:
    """Rounding errors of one are not those of another; "auto" takes float32 where that can do."""
    A, b = system(24)
    two, right = sp.block_diag((A, float(f"1e{scale}") * A), format="csr"), np.append(b, b[::-1])
    for preconditioner in ("auto", multilevel(two)):
        found = matchwood.solve(two, right, preconditioner=preconditioner)
        assert found.converged
        assert found.tried == (("multilevel", "used"),)
        assert found.iterations < 30
    W = matchwood.generators.grid((25, 24)).astype(float)
    graph = sp.block_diag((W, float(f"1e{scale}") * W), format="csr")
    found = solve_laplacian(graph, np.random.default_rng(0).standard_normal(1200))
    assert found.converged
    assert found.iterations < 30


@looped("scale", ("1e-300", "1e300"))
def test_laplacians_of_very_light_and_heavy_edges(scale: str) -> None:
    """With vertices without edges, and columns on different scales."""
    W = sp.block_diag((matchwood.generators.path(5), np.zeros((2, 2))), format="csr")
    b = np.random.default_rng(0).standard_normal((7, 3))
    expected = solve_laplacian(W, b).x
    for preconditioner in ("multilevel", "jacobi", None):
        found = solve_laplacian(float(scale) * W, b, preconditioner=preconditioner)
        assert found.converged
        assert np.allclose(found.x * float(scale), expected, rtol=1e-6, atol=1e-8)
        assert np.array_equal(found.columns[1].x, found.x[:, 1])
    powers = np.array([1e-290, 1.0, 1e300])
    found = solve_laplacian(W, b * powers)
    assert np.allclose(found.x / powers, expected, rtol=1e-6, atol=1e-8)
    assert not solve_laplacian(W, np.full(7, 1e308)).x.any()  # their sum is no number
    with pytest.raises(OverflowError, match="solve_laplacian: the solution is beyond the range"):
        solve_laplacian(1e-300 * W, b * 1e100)


def test_laplacians_without_vertices() -> None:
    for shape in ((0,), (0, 2)):
        assert solve_laplacian(sp.csr_array((0, 0)), np.zeros(shape)).x.shape == shape


@pytest.mark.slow
@looped("name", ZOO)
def test_laplacians_of_the_zoo(name: str) -> None:
    A = ZOO[name]()
    if 0 < A.shape[0] <= 150:
        b = np.random.default_rng(0).standard_normal(A.shape[0])
        found = solve_laplacian(A, b, rtol=1e-11)
        assert found.converged
        is_solution(A, b, found.x)


@given(graphs(max_n=30, max_m=60))
def test_laplacians_of_random_graphs(A: sp.csr_array) -> None:
    if A.shape[0]:
        b = np.arange(A.shape[0], dtype=np.float64) ** 2
        is_solution(A, b, solve_laplacian(A, b, rtol=1e-11).x)


def test_effective_resistance() -> None:
    A = matchwood.generators.cycle(10)
    b = np.zeros((10, 2))
    b[0], b[3, 0], b[5, 1] = 1, -1, -1
    found = solve_laplacian(A, b)
    across = [found.x[0, 0] - found.x[3, 0], found.x[0, 1] - found.x[5, 1]]
    assert np.allclose(across, [3 * 7 / 10, 5 * 5 / 10])
    with pytest.raises(ValueError, match=r"solve_laplacian: b must have shape \(10,\) or"):
        solve_laplacian(A, np.ones(3))
    with pytest.raises(ValueError, match="solve_laplacian: b must be finite"):
        solve_laplacian(A, np.full(10, np.inf))
    with pytest.raises(TypeError, match="solve_laplacian: b must be real"):
        solve_laplacian(A, np.ones(10) * 1j)
    for wrong in (np.int64(-1), "nonsense", np.eye(3)):
        with pytest.raises(ValueError, match="solve_laplacian: preconditioner must"):
            solve_laplacian(A, b, preconditioner=wrong)
    with pytest.raises(TypeError, match="solve_laplacian: history must"):
        solve_laplacian(A, b, history="yes")
    with pytest.raises(matchwood.EngineUnavailable, match="has no 'reference' engine"):
        solve_laplacian(A, b, engine="reference")


@pytest.mark.slow
def test_large_laplacians() -> None:
    for A in (
        matchwood.generators.rmat(13),
        matchwood.generators.grid((100, 100)),
        matchwood.generators.path(5000),
        matchwood.generators.star(5000),
    ):
        b = np.random.default_rng(1).standard_normal(A.shape[0])
        answers = [solve_laplacian(A, b, threads=threads) for threads in THREADS]
        assert answers[0].converged
        assert answers[0].iterations <= 40
        for other in answers[1:]:
            assert np.array_equal(other.x, answers[0].x)


class Breaking(Varying):
    """Its answers are NaN from some call on."""

    def __init__(self, last: int) -> None:
        super().__init__()
        self.last = last

    def __matmul__(self, r: np.ndarray) -> np.ndarray:
        z = super().__matmul__(r)
        return z if self.calls <= self.last else np.nan * z


class Words:
    """`gpu.Flag`, on the host."""

    def __init__(self, words: int, dtype: type) -> None:
        self.device_words = np.zeros(words, dtype)

    def fetch(self) -> None: ...

    def read(self) -> np.ndarray:
        return self.device_words


@pytest.mark.parametrize("last", [0, 1, 4, 5])
def test_a_breakdown_on_the_gpu_leaves_what_was_found(
    last: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    A, b = system(wind=0.3)
    with np.errstate(all="ignore"):
        expected, info = fbicgstab(A, b, M=Breaking(last))
        monkeypatch.setattr(gpu.engines, "cupy", lambda: np)
        monkeypatch.setattr(gpu.gpu, "Flag", Words)
        x, r = np.zeros(b.size), b.copy()
        assert gpu.fbicgstab(A, x, r, 1e-9, 100, Breaking(last), None)[1] == info == -1
    assert np.allclose(x, expected, rtol=1e-10)


@pytest.mark.gpu
def test_flexible_methods_on_a_gpu() -> None:
    import cupy
    from cupyx.scipy.sparse import csr_matrix

    A, b = system()
    there, right = csr_matrix(sp.csr_matrix(A)), cupy.asarray(b)
    for name, method in METHODS.items():
        x, info = method(there, right, M=jacobi(there), rtol=1e-9)
        assert isinstance(x, cupy.ndarray)
        assert info == 0
        assert np.linalg.norm(b - A @ x.get()) <= 2e-9 * np.linalg.norm(b)
        found = matchwood.solve(there, right, preconditioner="jacobi", method=name)
        assert (found.method, found.converged) == (name, True)
        found = matchwood.solve(there, right, preconditioner="multilevel", method=name)
        expected = matchwood.solve(A, b, preconditioner="multilevel", method=name)
        assert found.converged
        assert abs(found.iterations - expected.iterations) <= 1
        one, info = method(there, right, rtol=1e-14, maxiter=1)
        assert info == 1
        assert isinstance(one, cupy.ndarray)
    broken = csr_matrix(sp.csr_matrix(np.diag([1.0, -1.0])))
    assert fcg(broken, cupy.ones(2))[1] == -1
    skew = csr_matrix(sp.csr_matrix([[0.0, 1.0], [-1.0, 0.0]]))
    assert fbicgstab(skew, cupy.asarray([1.0, 0.0]))[1] == -1
