"""The multilevel preconditioner on a GPU: the CPU's levels bit for bit, its vectors to rounding.

The kernels of the setup are compiled for the host, too, so that they are tested without a GPU.
"""

from __future__ import annotations

import dataclasses
import weakref
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import beyond_on_host
import matchwood
from graphs import ZOO
from matchwood import engines
from matchwood.krylov import solve_laplacian
from matchwood.preconditioners import multilevel
from matchwood.preconditioners.multilevel import gpu, hierarchy
from matchwood.preconditioners.multilevel.check import check_multilevel
from matchwood.preconditioners.multilevel.cpu import pairs
from matchwood.preconditioners.multilevel.gpu import cycles
from multilevel_matrices import SMALL, definite, laplacian
from support import looped

CAPACITY = gpu.CAPACITIES[-1][0]


# On the host


def there(array: Any) -> Any:
    return np.ascontiguousarray(array).view(beyond_on_host.Array)


def room(size: int, dtype: Any = np.float64) -> Any:
    return there(np.zeros(size, dtype))


def places(counts: Any) -> Any:
    return there(np.append(0, np.cumsum(counts)).astype(counts.dtype))


def levels_agree(k: Any, A: sp.csr_array) -> None:
    """Couplings, pairs and the contraction, each from the CPU's input."""
    n, kind = A.shape[0], A.indices.dtype
    rows = [there(array) for array in (A.indptr, A.indices, A.data)]
    inner = there(np.random.default_rng(0).uniform(0, 1, n))
    expected, _ = pairs.measure(*A_arrays(A), np.asarray(inner), 1, 1)
    m = [*(room(n) for _ in range(3)), room(n, np.uint32)]
    k.measure(n, (n, *rows, inner, 1, *m, room(3 * (n // 32 + 1))))
    assert all(map(np.array_equal, m, expected))
    for join in (False, True):
        coupling, top = room(A.nnz, np.uint32), room(n, np.uint32)
        choice, mate, root, leads, label = (room(n, kind) for _ in range(5))
        k.couple(n, (n, *rows, m[2], coupling, top, choice, mate))
        for turn in range(6):
            k.propose(n, (n, turn == 0, *rows[:2], coupling, top, m[3], mate, choice))
            k.accept(n, (n, choice, mate, top))
        given = (coupling, top, m[3], m[2], mate, root, leads)
        k.find_roots(n, (n, join, *rows[:2], *given))
        k.name_groups(n, (n, m[2], root, places(leads), label))
        wanted, count = pairs.pair(*A_arrays(A), expected, join, 1)
        assert np.array_equal(label, wanted)
    members = there(np.argsort(label, kind="stable").astype(kind))
    starts = there(np.searchsorted(label[members], np.arange(count + 1)).astype(kind))
    for ordered in (True, False):
        lengths, too_many, diagonal = room(count, kind), room(1, np.int32), room(count)
        given = (count, *rows, inner, label, starts, members, ordered)
        getattr(k, f"count_{CAPACITY}")(count, (*given, lengths, *[None] * 4, too_many))
        assert not too_many[0]
        ends = places(lengths)
        columns, values = room(ends[-1], kind), room(ends[-1])
        written = (*given, None, ends, columns, values, diagonal, too_many)
        getattr(k, f"write_{CAPACITY}")(count, written)
        if ordered:
            k.mirror(count, (count, ends, columns, values))
        matrix = hierarchy.Matrix(*A_arrays(A), np.asarray(inner))
        coarse = hierarchy._contracted(matrix, np.asarray(label), count, True, ordered, 1)
        assert all(map(np.array_equal, (ends, columns, values, diagonal), coarse))


def A_arrays(A: sp.csr_array) -> tuple[Any, Any, Any]:
    return A.indptr, A.indices, A.data


@pytest.mark.skipif(not beyond_on_host.available, reason="there is no g++")
@looped("name", [*ZOO, "stencil"])
def test_the_setup_on_the_host(name: str) -> None:
    A = laplacian((14, 15)) if name == "stencil" else definite(ZOO[name]())
    if 0 < A.shape[0] <= 400:
        types = (("I", A.indices.dtype.name), ("W", "float64"))
        levels_agree(beyond_on_host.library(gpu.SOURCE, types), A)


def host_level(level: Any) -> Any:
    """The level with its smoother as the GPU engine has it."""
    made = level.made
    if isinstance(made, pairs.Lines):
        before = np.append(0, made.inverse[:-1])
        lower = made.lower / np.where(before > 0, before, 1)
        down = np.where(before > 0, lower * made.inverse, 0)
        made = SimpleNamespace(order=made.order, down=down, inverse=made.inverse, upper=made.upper)
    return dataclasses.replace(level, made=made)


def rows_of_entries(indptr: Any, nnz: int) -> Any:
    return np.repeat(np.arange(indptr.size - 1), np.diff(indptr))


def test_levels_visited_once_are_one_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    A = laplacian((14, 15), 3.0)
    r = np.random.default_rng(0).standard_normal(A.shape[0])
    for smoother in ("jacobi", "algebraic_tridiagonal"):
        for interpolation, sweeps in (("plain", 1), ("plain", 2), ("smoothed", 1)):
            options: dict[str, Any] = {"smoother": smoother, "interpolation": interpolation}
            M = multilevel(A, coarsest=8, cycle="V", sweeps=sweeps, **options)
            levels = [host_level(level) for level in M.levels]
            labels = [hierarchy._whole(one.passes) if one.passes else None for one in levels]
            with monkeypatch.context() as patched:
                patched.setattr(engines, "cupy", lambda: np)
                patched.setattr(cycles, "expand_rows", rows_of_entries)
                found = cycles.in_one(levels, labels, 0, True, sweeps) @ r
            assert np.allclose(found, M @ r, rtol=1e-12, atol=1e-12 * abs(found).max())
            assert cycles.once_from(levels, "V", 0) == 1
            assert cycles.once_from(levels, "W", 0) == len(levels) - 1
            assert cycles.once_from(levels, "K", 2) == min(3, len(levels) - 1)


SMALLER = {  # than a warp, which is all that there is; rows of more than 6 entries are long
    "LONG = 256;": "LONG = 6;",
    "WINDOW = 256;": "WINDOW = 32;",
    "extern __shared__ char memory[];": "static char memory[1 << 16];",
    'asm volatile("barrier.cluster.arrive.release;\\n\\tbarrier.cluster.wait.acquire;" '
    '::: "memory");': "",
}


class HostCupy:
    """NumPy, whose arrays lie on the host that plays the device."""

    linalg = np.linalg
    cuda = SimpleNamespace(
        Device=lambda: SimpleNamespace(compute_capability="80"),
        Event=beyond_on_host.Event,
        get_current_stream=beyond_on_host.Stream,
    )

    def __getattr__(self, name: str) -> Any:
        def made(*arguments: Any, **options: Any) -> Any:
            found = getattr(np, name)(*arguments, **options)
            return there(found) if isinstance(found, np.ndarray) else found

        return made


class HostKernel:
    def __init__(self, launch: Any) -> None:
        self._launch = launch

    def __call__(self, threads: Any, given: Any, shared_mem: int = 0, **options: Any) -> None:
        arrays = (there(one) if isinstance(one, np.ndarray) else one for one in given)
        self._launch(threads, tuple(arrays), **options)


@pytest.fixture
def on_host(monkeypatch: pytest.MonkeyPatch) -> None:
    text = beyond_on_host.with_changes(cycles.SOURCE.text(), SMALLER)
    monkeypatch.setattr(cycles.SOURCE, "_text", "#define __ldcg(p) (*(p))\n" + text)
    types = (("I", "int32"), ("T", "float64"), ("W", "float64"), ("X", "float64"))

    def kernels(*names: str, **some: Any) -> Any:
        made = vars(beyond_on_host.library(cycles.SOURCE, types))
        return SimpleNamespace(**{name: HostKernel(made[name]) for name in names})

    def scan(counts: Any, offsets: Any) -> None:
        offsets[:] = np.append(0, np.cumsum(counts))

    def first_places(ascending: Any, n: int, dtype: Any) -> Any:
        return there(np.searchsorted(ascending, np.arange(n + 1)).astype(dtype))

    monkeypatch.setattr(cycles, "WINDOW", 32)
    monkeypatch.setattr(cycles.SOURCE, "kernels", kernels)
    monkeypatch.setattr(cycles, "scan_into", scan)
    monkeypatch.setattr(cycles, "first_places", first_places)
    monkeypatch.setattr(cycles, "expand_rows", rows_of_entries)
    monkeypatch.setattr(cycles.gpu, "empty", lambda n, kind, what: beyond_on_host.empty(n, kind))
    monkeypatch.setattr(cycles.gpu, "multiprocessors", lambda: 1)
    monkeypatch.setattr(cycles.gpu, "capture", lambda run: SimpleNamespace(launch=run))
    monkeypatch.setattr(engines, "cupy", HostCupy)


def host_cycle(M: Any) -> cycles.Cycle:
    """The cycle of the GPU engine, with the levels of the CPU's."""
    levels = [host_level(level) for level in M.levels]
    for level in levels:
        if isinstance(level.made, SimpleNamespace):
            level.made.bounds, level.made.longest = np.array([0, level.rows], np.int32), level.rows
    labels = [hierarchy._whole(one.passes) if one.passes else None for one in levels]
    return cycles.Cycle(levels, labels, M.symmetric, M.refresh.keywords["options"], M.exponent)


@pytest.mark.slow
@pytest.mark.skipif(not beyond_on_host.available, reason="there is no g++")
@pytest.mark.parametrize("kernels", ["one a step", "tail"])
def test_cycles_on_the_host(kernels: str, on_host: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cycles, "ALONE_STEPS", 1 if kernels == "one a step" else 1 << 60)
    monkeypatch.setattr(cycles, "ONCE_ROWS", 20)
    for name in ("cube", "stretched"):
        A = SMALL[name]()
        r = np.random.default_rng(0).standard_normal((2, A.shape[0]))
        for smoother in ("jacobi", "algebraic_tridiagonal"):
            for options in (
                {"cycle": "V", "sweeps": 2}, {"cycle": "V", "interpolation": "smoothed"},
                {"cycle": "W"}, {"cycle": "K"},
            ):  # fmt: skip
                if options["cycle"] == "K" and kernels == "one a step":
                    continue  # its sums take more warps than the host has
                M = multilevel(A, coarsest=8, smoother=smoother, **options)
                expected, found = (M @ r.T).T, host_cycle(M)(there(r))
                assert np.allclose(found, expected, rtol=0, atol=1e-11 * abs(expected).max())


@pytest.mark.slow
@pytest.mark.skipif(not beyond_on_host.available, reason="there is no g++")
def test_a_cycle_on_the_host_keeps_its_numbers_and_can_be_forgotten(
    on_host: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[Any] = []

    class Stream(beyond_on_host.Stream):
        def wait_event(self, event: Any) -> None:
            said.append(("waits", event))

    class Event(beyond_on_host.Event):
        def record(self, stream: Any = None) -> None:
            said.append(("is done", self))

    def capture(run: Any) -> Any:
        return SimpleNamespace(launch=lambda: (said.append(("runs", None)), run()))

    monkeypatch.setattr(HostCupy.cuda, "Event", Event)
    monkeypatch.setattr(HostCupy.cuda, "get_current_stream", Stream)
    monkeypatch.setattr(cycles.gpu, "capture", capture)
    M = multilevel(sp.csr_array(laplacian((6, 6, 6))), coarsest=8, cycle="V")
    first = M.levels[0]
    arrays = [np.array(array) for array in first.matrix]
    changed = dataclasses.replace(first, matrix=hierarchy.Matrix(*arrays))
    cycle = host_cycle(SimpleNamespace(**{**M._extra, "levels": (changed, *M.levels[1:])}))
    r = there(np.random.default_rng(0).standard_normal((1, first.rows)))
    before = cycle(r)
    for array in arrays:  # as their owner may
        array[:] = 0
    assert np.array_equal(cycle(r), before)
    event = said[0][1]  # for calls on other streams
    assert said == [("waits", event), ("runs", None), ("is done", event)] * 2
    forgotten = weakref.ref(cycle)
    del cycle
    assert forgotten() is None  # at once: it has most of a GPU's memory


# On the GPU


def sorted_rows(matrix: Any) -> tuple[Any, ...]:
    indptr, indices, data, inner = (engines.moved(array, "cpu") for array in matrix)
    order = np.lexsort((indices, np.repeat(np.arange(inner.size), np.diff(indptr))))
    return indptr, indices[order], data[order], inner


def same_levels(M: Any, D: Any, ordered: bool) -> None:
    """Bit for bit; not `ordered`: entries of a row in any order, which are equal to rounding."""
    assert len(M.levels) == len(D.levels)
    for one, other in zip(M.levels, D.levels, strict=True):
        for name in ("rows", "entries", "smoother", "left_out", "note"):
            assert getattr(one, name) == getattr(other, name)
        assert np.isclose(one.coverage, other.coverage)
        for (label, count), (found, number) in zip(one.passes, other.passes, strict=True):
            assert count == number
            assert np.array_equal(label, found.get())
        for array, found in zip(sorted_rows(one.matrix), sorted_rows(other.matrix), strict=True):
            assert np.allclose(array, found, rtol=0 if ordered else 1e-12, atol=0)
        for array, found in zip(one.matrix, other.matrix, strict=True):
            assert not ordered or np.array_equal(array, found.get())


def on_both(A: sp.csr_array, exact: bool = True, ordered: bool = True, **options: Any) -> None:
    """Vectors agree to 1e-10 of the largest number, in float32 to 1e-3."""
    import cupy
    from cupyx.scipy.sparse import csr_matrix

    M, D = multilevel(A, **options), multilevel(csr_matrix(sp.csr_matrix(A)), **options)
    if exact:
        same_levels(M, D, ordered)
    r = np.random.default_rng(0).standard_normal((A.shape[0], 2)).astype(A.dtype)
    expected, found = M @ r, D @ cupy.asarray(r)
    single = A.dtype == np.float32 or options.get("precision") == "float32"
    assert found.dtype == A.dtype
    assert abs(expected - found.get()).max() <= (1e-3 if single else 1e-10) * abs(expected).max()
    assert bool((D @ cupy.asarray(r) == found).all())
    check_multilevel(A, D)


@pytest.mark.gpu
@looped("name", SMALL)
def test_cycles_are_those_of_the_cpu(name: str) -> None:
    A, ordered = SMALL[name](), name != "random"  # which has groups with more than 80 neighbours
    for smoother in ("jacobi", "tridiagonal", "algebraic_tridiagonal"):
        for cycle in "VWK":
            on_both(A, ordered=ordered, coarsest=8, smoother=smoother, cycle=cycle)
    on_both(A, ordered=ordered, coarsest=8, smoother="l1_jacobi", sweeps=3)
    if name != "unsymmetric":
        on_both(A, exact=False, coarsest=8, interpolation="smoothed")


@pytest.mark.gpu
@pytest.mark.parametrize("kernels", ["one a step", "tail"])
def test_large_and_small_levels(kernels: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cycles, "ALONE_STEPS", 1 if kernels == "one a step" else 1 << 60)
    A = sp.csr_array(matchwood.generators.aniso(2, (90, 91)))
    stars = sp.block_diag((definite(matchwood.generators.star(5000)), laplacian((40, 41))))
    for cycle in "VWK":
        on_both(A, cycle=cycle)
        on_both(laplacian((90, 91)), cycle=cycle, precision="float32")
    on_both(sp.csr_array(A.astype(np.float32)))
    on_both(laplacian((20000,)), smoother="tridiagonal")  # segments of one path
    on_both(sp.csr_array(stars), exact=False)
    on_both(definite(matchwood.generators.rmat(9, 8)), exact=False)


@pytest.mark.gpu
def test_refresh_and_extreme_numbers() -> None:
    import cupy
    from cupyx.scipy.sparse import csr_matrix

    A = laplacian((60, 61), 3.0)
    D = csr_matrix(sp.csr_matrix(A))
    M, b = multilevel(D), cupy.ones(A.shape[0])
    assert bool((M.refresh(D) @ b == M @ b).all())
    assert bool((M.refresh(D * 4) @ b == (M @ b) / 4).all())
    with pytest.raises(ValueError, match="refresh: A must have entries at the same places"):
        M.refresh(csr_matrix(sp.csr_matrix(laplacian((61, 60)))))
    for power in (990, -990, 100, -100):
        scaled = multilevel(D * 2.0**power, precision="float32")
        plain = multilevel(D, precision="float32")
        assert bool((scaled @ (b * 2.0**power) == plain @ b).all())
    assert not (M @ (0 * b)).any()
    M @ (b * np.nan)
    assert bool((M @ b == multilevel(D) @ b).all())
    with pytest.raises(ValueError, match="diagonal must be positive, got -4 at row 0"):
        multilevel(D * -0.5)


@pytest.mark.gpu
def test_what_solve_takes() -> None:
    import cupy
    from cupyx.scipy.sparse import csr_matrix

    for A in (laplacian((80, 81)), sp.csr_array(matchwood.generators.aniso(2, (80, 81)))):
        b = np.random.default_rng(0).standard_normal(A.shape[0])
        D = csr_matrix(sp.csr_matrix(A))
        expected = matchwood.solve(A, b)
        for history in (True, False):
            found = matchwood.solve(D, cupy.asarray(b), history=history)
            assert (found.method, found.tried) == ("fcg", (("multilevel", "used"),))
            assert found.converged
            assert abs(found.iterations - expected.iterations) <= 1
            assert np.allclose(found.x.get(), expected.x, atol=1e-5 * abs(expected.x).max())
        moved = matchwood.solve(A, b, engine="gpu")
        assert isinstance(moved.x, np.ndarray)
        assert moved.converged
    columns = matchwood.solve(D, cupy.stack((cupy.asarray(b), cupy.ones(b.size)), axis=1))
    assert columns.converged


@pytest.mark.gpu
def test_laplacians() -> None:
    import cupy
    from cupyx.scipy.sparse import csr_matrix

    two = sp.csr_array(sp.block_diag([matchwood.generators.grid((30, 31))] * 2))
    for A in (matchwood.generators.grid((60, 61)), two, matchwood.generators.rmat(11)):
        b = np.random.default_rng(0).standard_normal((A.shape[0], 2))
        expected = solve_laplacian(A, b, rtol=1e-11)
        found = solve_laplacian(csr_matrix(sp.csr_matrix(A)), cupy.asarray(b), rtol=1e-11)
        assert found.converged
        assert np.allclose(found.x.get(), expected.x, atol=1e-7 * abs(expected.x).max())
    with pytest.raises(TypeError, match="solve_laplacian: b must lie where A does"):
        solve_laplacian(csr_matrix(sp.csr_matrix(A)), b)
