"""Tridiagonal solvers: against LAPACK and dense solutions, for awkward sizes, at any team size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import solve_banded

import matchwood
from bench.tridiagonal import accuracy
from bench.tridiagonal.kinds import KINDS
from matchwood.check import check_tridiagonal_solution
from matchwood.tridiagonal import block_tridiagonal, factorize, solve
from support import THREADS, looped

SIZES = [0, 1, 2, 3, 7, 64, 126, 127, 128, 129, 130, 256, 1023, 1024, 1025, 2049, 16_385, 40_011]


def system(n: int, dtype: type = np.float64, *, seed: int = 0) -> list[np.ndarray]:
    return list(np.random.default_rng((seed, n)).standard_normal((4, n)).astype(dtype))


def blocks(n: int, dtype: type = np.float64, *, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng((seed, n))
    made = [rng.standard_normal((n, 2, 2)) for _ in range(3)]
    return [array.astype(dtype) for array in (*made, rng.standard_normal((n, 2)))]


def dense(dl: np.ndarray, d: np.ndarray, du: np.ndarray) -> np.ndarray:
    n, p = d.shape[0], (2 if d.ndim == 3 else 1)
    full = np.zeros((n * p, n * p))
    for i in range(n):
        for block, j in ((dl, i - 1), (d, i), (du, i + 1)):
            if 0 <= j < n:
                full[i * p : i * p + p, j * p : j * p + p] = block[i]
    return full


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", SIZES)
def test_solves(n: int, dtype: type) -> None:
    given = system(n, dtype)
    before = [array.copy() for array in given]
    x = solve(*given, threads=1)
    assert x.dtype == dtype
    check_tridiagonal_solution(*given, x)
    assert all(np.array_equal(x, solve(*given, threads=threads)) for threads in THREADS)
    assert all(np.array_equal(a, b) for a, b in zip(given, before, strict=True))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 14, 15, 16, 17, 31, 33, 255, 257, 4099])
def test_solves_blocks(n: int) -> None:
    for dtype in (np.float32, np.float64):
        given = blocks(n, dtype)
        x = block_tridiagonal.solve(*given, threads=1)
        assert x.dtype == dtype
        check_tridiagonal_solution(*given, x)
        for threads in THREADS:
            assert np.array_equal(x, block_tridiagonal.solve(*given, threads=threads))


@pytest.mark.parametrize("n", [1, 2, 5, 64, 65, 130])
def test_equals_the_reference_and_lapack(n: int) -> None:
    dl, d, du, b = system(n)
    bands = np.zeros((3, n))
    bands[0, 1:], bands[1], bands[2, :-1] = du[:-1], d, dl[1:]
    expected = solve_banded((1, 1), bands, b) if n > 1 else b / d
    for engine in ("reference", "cpu"):
        assert np.allclose(solve(dl, d, du, b, engine=engine), expected, rtol=1e-8)
    dl, d, du, b = blocks(n)
    expected = np.linalg.solve(dense(dl, d, du), b.ravel()).reshape(n, 2)
    for engine in ("reference", "cpu"):
        found = block_tridiagonal.solve(dl, d, du, b, engine=engine)
        assert np.allclose(found, expected, rtol=1e-8)


entries = st.sampled_from([0.0, 0.0, 1.0, -1.0, 2.0, 0.5, 1e-8, -1e8])


@given(st.integers(1, 150), st.data())
def test_awkward_values(n: int, data: st.DataObject) -> None:
    """Zeros and numbers of very different size, where the matrix is not singular."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    few = data.draw(st.lists(entries, min_size=2, max_size=5))
    dl, d, du = rng.choice(few, (3, n))
    if np.linalg.cond(dense(dl, d, du)) > 1e12:
        return
    b = rng.standard_normal(n)
    x = solve(dl, d, du, b)
    error = np.abs(dense(dl, d, du) @ x - b).max()
    assert error <= 1e-12 * (max(map(abs, few)) * np.abs(x).max() + np.abs(b).max())


def test_many_right_hand_sides() -> None:
    dl, d, du, _ = system(700)
    b = np.random.default_rng(1).standard_normal((700, 5))
    x = solve(dl, d, du, b)
    assert x.shape == b.shape
    assert all(np.array_equal(x[:, k], solve(dl, d, du, b[:, k])) for k in range(5))
    assert solve(dl, d, du, b[:, :0]).shape == (700, 0)
    dl, d, du, _ = blocks(100)
    b = np.random.default_rng(1).standard_normal((100, 2, 3))
    check_tridiagonal_solution(dl, d, du, b, block_tridiagonal.solve(dl, d, du, b))


def test_factorize_and_transpose() -> None:
    for made, whole, b in (
        (factorize(*system(300)[:3]), dense(*system(300)[:3]), system(300)[3]),
        (block_tridiagonal.factorize(*blocks(90)[:3]), dense(*blocks(90)[:3]), blocks(90)[3]),
    ):
        assert np.allclose(whole @ made.solve(b).ravel(), b.ravel())
        assert np.allclose(whole.T @ made.solve(b, transpose=True).ravel(), b.ravel())
        assert "rows, float64, cpu" in repr(made)


def test_solve_ordered() -> None:
    dl, d, du, b = system(500)
    rng = np.random.default_rng(5)
    order = rng.permutation(500).astype(np.int32)
    x = factorize(dl, d, du).solve_ordered(b[None], order)[0]
    assert np.array_equal(x[order], solve(dl, d, du, b[order]))
    dl, d, du, _ = blocks(40)
    order = rng.permutation(80).reshape(40, 2)
    dl[7, 0], d[7, 0], du[7, 0] = 0, (1, 0), 0  # a dummy unknown
    dl[8, :, 0], d[7, 1, 0], du[6, :, 0] = 0, 0, 0
    order[7, 0] = -1
    b = rng.standard_normal(80)
    right = np.where(order >= 0, b[order], 1)
    x = block_tridiagonal.factorize(dl, d, du).solve_ordered(b[None], order)[0]
    expected = block_tridiagonal.solve(dl, d, du, right)
    assert np.allclose(x[order[order >= 0]], expected[order >= 0])


@pytest.mark.parametrize("row", [0, 1, 126, 127, 128, 700, 2999])
def test_singular_row_is_named(row: int) -> None:
    n = 3000
    d, zero = np.ones(n), np.zeros(n)
    d[row] = 0
    for threads in THREADS:
        with pytest.raises(np.linalg.LinAlgError, match=f"unknown of row {row} has no pivot"):
            solve(zero, d, zero, d, threads=threads)
    assert np.isfinite(solve(zero, d, zero, d, allow_singular=True)).all()
    with pytest.raises(np.linalg.LinAlgError, match=f"row {row} has"):
        factorize(zero, d, zero)
    eye = np.tile(np.eye(2), (n, 1, 1))
    eye[row, 1, 1] = 0
    for threads in THREADS:
        with pytest.raises(np.linalg.LinAlgError, match=f"unknown of block row {row} has no pivot"):
            block_tridiagonal.solve(0 * eye, eye, 0 * eye, np.ones((n, 2)), threads=threads)


@looped("scale", ("1e-300", "1e-200", "1e200", "1e300"))
def test_allow_singular_on_any_scale(scale: str) -> None:
    """Products inside leave the range of numbers; the matrix is as good as with scale 1."""
    rng = np.random.default_rng(0)
    dl, d, du, b = rng.uniform(-0.5, 0.5, (4, 400))
    d = 1 + abs(d)
    expected = solve(dl, d, du, b)
    system = [float(scale) * part for part in (dl, d, du)]
    made = factorize(*system, allow_singular=True)
    for x in (
        solve(*system, b, allow_singular=True), made.solve(b), made.solve_ordered(b[None])[0],
    ):  # fmt: skip
        assert np.allclose(x * float(scale), expected, rtol=1e-12)


def test_singular_by_its_values() -> None:
    n = 129  # the path's adjacency matrix with an odd number of vertices
    one, zero = np.ones(n), np.zeros(n)
    for engine in ("cpu", "reference"):
        with pytest.raises(np.linalg.LinAlgError, match="singular"):
            solve(one, zero, one, one, engine=engine)
    x = solve(one[1:], zero[1:], one[1:], one[1:])  # an even number: regular
    check_tridiagonal_solution(one[1:], zero[1:], one[1:], one[1:], x)


@pytest.mark.parametrize("kind", KINDS)
def test_as_accurate_as_lapack(kind: str) -> None:
    for n in (2, 31, 65, 513, 1000):
        times, ours, theirs = accuracy.typical(kind, n)
        assert times < 10, f"{kind}, n = {n}: {ours} against {theirs}"
        if n < 1000:
            times, ours, theirs = accuracy.typical(kind, n, np.float32)
            assert times < 10, f"{kind}, n = {n}, float32: {ours} against {theirs}"


def test_couplings_of_zero_make_independent_systems() -> None:
    dl, d, du, b = system(1000)
    cut = np.array([1, 50, 63, 64, 65, 200, 999])
    dl[cut] = 0
    du[cut - 1] = 0
    x = solve(dl, d, du, b)
    for lo, hi in zip([0, *cut], [*cut, 1000], strict=True):
        part = slice(lo, hi)
        assert np.allclose(x[part], solve(dl[part], d[part], du[part], b[part]), rtol=1e-6)


def test_bad_input() -> None:
    ok = np.ones(3)
    for arguments, error, message in [
        ((ok, ok, ok[:2], ok), ValueError, "must have the same shape"),
        ((ok, ok, ok, ok[:2]), ValueError, r"b must have shape \(3\) or \(3, k\)"),
        ((ok, ok, ok, np.ones((3, 2, 2))), ValueError, "b must have shape"),
        ((ok, ok * 1j, ok, ok), TypeError, "d must be real"),
        ((ok, ok, ok, ["a"] * 3), TypeError, "b must hold numbers"),
        ((np.ones((3, 2)),) * 4, ValueError, r"d must have shape \(n,\)"),
        ((ok, ok, ok, np.array([1, np.nan, 1])), ValueError, "b must be finite, .* row 1"),
        ((np.array([1, 1, np.inf]), ok, ok, ok), ValueError, "dl must be finite, .* row 2"),
    ]:
        with pytest.raises(error, match=message):
            solve(*arguments)
    unread = np.array([np.nan, 0.1, 0.1])
    assert np.isfinite(solve(unread, ok, unread[::-1], ok)).all()
    with pytest.raises(ValueError, match=r"d must have shape \(n, 2, 2\)"):
        block_tridiagonal.solve(ok, ok, ok, ok)
    assert solve([0, 1], [1, 1], [0, 0], [1, 2]).tolist() == [1.0, 1.0]


def test_the_check_finds_every_fault() -> None:
    given = system(40)
    x = solve(*given)
    check_tridiagonal_solution(*given, x)
    wrong = x.copy()
    wrong[17] += 0.01
    worse = x.copy()
    worse[3] = np.nan
    for answer, message in [
        (wrong, r"row 1[678] is off by"),
        (worse, "not finite at row 3"),
        (x[:-1], r"must have shape \(40,\)"),
    ]:
        with pytest.raises(matchwood.CheckFailed, match=message):
            check_tridiagonal_solution(*given, answer)
    check_tridiagonal_solution(*given, wrong, tolerance=1.0)


@pytest.mark.parametrize("wrap", [memoryview, np.ndarray.tolist, lambda a: a.view(np.recarray)])
def test_arrays_of_any_class_are_taken(wrap) -> None:
    dl, d, du, b = system(7)
    made, order = factorize(dl, 9 + d, du), np.arange(7)[::-1].copy()
    expected = made.solve_ordered(b[None], order)
    assert np.array_equal(made.solve_ordered(wrap(b[None].copy()), order), expected)
    assert np.array_equal(made.solve_ordered(b[None], wrap(order)), expected)
    assert np.array_equal(solve(wrap(dl), wrap(9 + d), wrap(du), wrap(b)), made.solve(b))
    check_tridiagonal_solution(wrap(dl), 9 + d, wrap(du), wrap(b), wrap(made.solve(b)))


def test_masks_text_and_complex_numbers_are_refused() -> None:
    dl, d, du, b = system(7)
    made, order = factorize(dl, 9 + d, du), np.ma.masked_array(np.arange(7), np.arange(7) == 2)
    with pytest.raises(ValueError, match="solve_ordered: order must name no place twice"):
        made.solve_ordered(b[None], np.zeros(b.size, np.int32))
    with pytest.raises(TypeError, match="solve_ordered: order must be an array without a mask"):
        made.solve_ordered(b[None], order)
    for wrong in (b.astype(str), b.astype(complex), np.ma.masked_array(b, order.mask)):
        with pytest.raises(TypeError, match="check_tridiagonal_solution: b must"):
            check_tridiagonal_solution(dl, 9 + d, du, wrong, b)


def _spread_blocks() -> list[np.ndarray]:
    """Lower blocks of the largest number: rows of LAPACK's pivots swamp those above them."""
    rest = np.ones((5, 2, 2)) + np.arange(20).reshape(5, 2, 2) / 10
    largest = np.full_like(rest, np.finfo(float).max)
    return [largest, rest + 9 * np.eye(2), rest, np.ones((5, 2))]


def test_rows_that_pivots_of_others_swamp_are_repaired() -> None:
    given = _spread_blocks()
    check_tridiagonal_solution(*given, block_tridiagonal.solve(*given))


def test_what_the_check_refuses_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where scaled pivots do not help either."""
    from matchwood.tridiagonal.repair import cpu as repair

    solve_by = repair.solve_row_by_row
    monkeypatch.setattr(repair, "solve_row_by_row", lambda *given: solve_by(*given[:4]))
    with pytest.raises(np.linalg.LinAlgError, match=r"singular as far as float64 can tell: .* row"):
        block_tridiagonal.solve(*_spread_blocks())
    assert np.isfinite(block_tridiagonal.solve(*_spread_blocks(), allow_singular=True)).all()
