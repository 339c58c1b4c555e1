"""The levels of a hierarchy: set up one after the other, then laid out for the cycles."""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from matchwood import engines
from matchwood.forests import linear_forest
from matchwood.gate import graph as csr
from matchwood.gate.views import sparse_matrix
from matchwood.preconditioners.multilevel import candidates
from matchwood.preconditioners.multilevel.cpu import cycles, fours, pairs
from matchwood.preconditioners.multilevel.cpu.candidates import neighbourhoods
from matchwood.preconditioners.multilevel.reference import DAMPING, pseudoinverse, visited_twice
from matchwood.primitives.contract import trusted_contract_values
from matchwood.primitives.tally.cpu import unsigned
from matchwood.primitives.transpose.cpu import transpose

Array = np.ndarray[Any, Any]

# A smoother along paths is multiplied by a number, so that the largest eigenvalue of it times A is
# at most LARGEST; the estimate of that eigenvalue is made larger by the factor SAFE.  With half the
# sum of what is left out on the diagonal instead, as for Jacobi, finite elements that are stretched
# 1000:1 along the grid took 62 iterations, not 14.  1.7 instead of 4/3 saves up to a tenth of the
# iterations: bench/preconditioners/multilevel.py.
LARGEST, SAFE = 1.7, 1.1
STALLED = 0.9  # fraction of the rows; a level that keeps more is not worth its work
MOST_DENSE = 1000  # rows of a coarsest matrix that is inverted
NOTHING = 1e-12  # of the terms of a diagonal entry: what is below that is their rounding errors
# Fractions of the weight off the diagonal in positive entries, from which smoothed aggregates pay,
# and from which paths pay with them: bench/preconditioners/multilevel.py, rotated diffusion.
MIXED, MIXED_PATHS = 0.08, 0.12
ALONG_PATHS = 0.8  # fraction of a row's couplings in its two strongest from which paths pay
# With candidates: the two strongest couplings of a node over twice the mean, from which paths pay.
# It is 1.2 and 1.7 for elastic squares and cubes, 1.9 and 2.9 where their elements are half as high
# as long; paths then save a third of the iterations (bench/preconditioners/near_nullspace.py).
UNEVEN = 1.8
# Sums of floats depend on threads and engine, in their last digits.  Where a sum is such a fraction
# exactly, as on a torus stretched 4:1, these must not decide.
ROUNDING = 1e-6


def _on(array: Any) -> Any:
    """The steps of the setup where the array lives."""
    return engines.load(__package__, engines.location(array))


class Matrix(NamedTuple):
    """CSR arrays, and a diagonal beside them that is added to what the arrays have of it."""

    indptr: Array
    indices: Array
    data: Array
    inner: Array


@dataclass(frozen=True)
class Options:
    """What `multilevel` was asked for."""

    passes: int
    cycle: str
    smoother: str
    sweeps: int
    interpolation: str
    max_levels: int | None
    coarsest: int
    precision: Any
    threads: int | None
    near: candidates.Near | None = None  # with it, 0 passes stand for nodes and their neighbours
    scale: Any = None  # a single candidate of single rows: A is scaled so that it is 1 everywhere

    def with_candidates(self, near: candidates.Near | None) -> Options:
        """With what `near_nullspace` says, and the number of passes for it."""
        scale = None
        if near is not None and near.is_scaling:
            scale, near = near.values[:, 0], None
        passes = self.passes or (2 if near is None else 0)
        return dataclasses.replace(self, passes=passes, near=near, scale=scale)


@dataclass(frozen=True)
class Level:
    """One level, as `M.levels` lists it.

    Attributes
    ----------
    rows, entries : int
        Of its matrix; entries with the diagonal.
    smoother : str
        ``"algebraic_tridiagonal"``, ...; on the last level ``"dense"`` where it is solved.
    coverage : float
        Fraction of the weight off the diagonal that the smoother contains.
    left_out : int
        Rows that have no coarse vertex: they are left to the smoother.
    seconds : float
        Time of its setup.
    note : str
        Why the hierarchy ends here, if not because few rows are left.
    """

    rows: int
    entries: int
    smoother: str
    coverage: float
    left_out: int
    seconds: float
    note: str = ""
    matrix: Matrix = field(repr=False, default=None)  # type: ignore[assignment]
    made: Any = field(repr=False, default=None)  # Lines, or the inverse diagonal
    passes: tuple[tuple[Array, int], ...] = field(repr=False, default=())
    interpolation: Any = field(repr=False, default=None)  # a SciPy matrix, unless it is 0 and 1
    restriction: Any = field(repr=False, default=None)  # its transpose
    path: Any = field(repr=False, default=None)  # the linear forest, where there is one
    near: Any = field(repr=False, default=None)  # nodes, which are what is aggregated; candidates
    tentative: Any = field(repr=False, default=None)  # interpolation of candidates, not smoothed

    @property
    def smoothed(self) -> bool:
        """Is the interpolation smoothed?"""
        return self.interpolation is not None and self.interpolation is not self.tentative


def levels_of(G: Any, matrix: Matrix, options: Options, old: Any = None) -> list[Level]:
    """All levels of `G`; with `old` ones, their aggregates and paths are used again."""
    symmetric = bool(G.has_symmetric_values)
    found: list[Level] = []
    smoother, interpolation, near = options.smoother, options.interpolation, options.near
    while True:
        start = time.perf_counter()
        before = None if old is None else old[len(found)]
        n = matrix.inner.size
        m, sums = _on(matrix.data).measure(*matrix, 0, options.threads)
        if found:
            matrix, m = _without_noise(matrix, m, found, options.threads)
        else:
            _refuse_diagonal(m.diagonal)
            smoother = _chosen(sums) if smoother == "auto" else smoother
            if interpolation == "auto":
                pays = _above(sums[1], MIXED * sums[0]) if near is None else options.cycle == "V"
                interpolation = "smoothed" if symmetric and pays else "plain"
        last = n <= options.coarsest or len(found) + 1 == options.max_levels
        passes: list[tuple[Array, int]] = []
        note, P, R, T, below = "", None, None, None, None
        coarse = matrix
        if before is not None and not before.passes:
            last, note = True, before.note
        elif last:
            note = "" if n <= options.coarsest else "max_levels"
        elif near is not None:
            T, below, even = _aggregated(matrix, near, symmetric, options, passes, before)
            if even and not found and options.smoother == "auto":
                smoother = "jacobi"
            sizes, P = m.diagonal + m.others, T
            if interpolation == "smoothed":
                P = candidates.smooth(matrix, sizes, T, options.threads)
            coarse, R = _coarse(matrix, P, options.threads)
        else:
            coarse = _coarsened(
                matrix, m, symmetric, options, passes, before, interpolation == "smoothed",
                smoother == "algebraic_tridiagonal" and interpolation == "plain",
            )  # fmt: skip
            if interpolation == "smoothed" and passes[-1][1]:
                label, count = _whole(passes)
                P = _on(label).interpolation(matrix, label, count, options.threads)
                P = _sparse(P, n, count)
                coarse, R = _coarse(matrix, P, options.threads)
        if not last:
            if coarse.inner.size == 0 or passes[-1][1] == 0:  # smoothed: then `coarse` is no level
                note, passes = "every row is diagonally dominant", []
            elif coarse.inner.size > STALLED * n:
                note, passes = f"coarsening stalled at {coarse.inner.size} of {n} rows", []
        made, path, coverage, kind = None, None, 1.0, "dense"
        small = (
            n <= max(MOST_DENSE, options.coarsest) and note != "every row is diagonally dominant"
        )
        if passes or not small:
            made, path, coverage = _smoother(G, matrix, m, sums[1] == 0, smoother, options, before)
            kind = smoother
        left_out = 0
        if passes:
            out = passes[0][0] == passes[0][1]
            left_out = int((out if near is None else out[near.nodes]).sum())
        entries = matrix.indices.size + (n if found else 0)
        seconds = time.perf_counter() - start
        P, R, T = (P, R, T) if passes else (None, None, None)
        made_of = matrix, made, tuple(passes), P, R, path, near, T
        found.append(Level(n, entries, kind, coverage, left_out, seconds, note, *made_of))
        if not passes:
            return found
        matrix, near, G = coarse, below, None
        if interpolation == "smoothed" and smoother == "algebraic_tridiagonal":
            smoother = "jacobi"  # paths of coarser levels saved no iteration, or one


def _aggregated(
    matrix: Matrix, near: candidates.Near, symmetric: bool, options: Options, passes: Any,
    before: Any,
) -> tuple[Any, candidates.Near, bool]:  # fmt: skip
    """(T, the candidates below it: `candidates.basis`; whether all couplings are about as strong).

    On aggregates of nodes; `passes` gets their labels.
    """
    even = False
    if before is not None:
        passes.extend(before.passes)
    else:
        nodes = Matrix(*candidates.node_graph(matrix, near.nodes, symmetric, options.threads))
        m, sums = pairs.measure(*nodes, 0, options.threads)
        even = not _above(sums[2] / 2 * nodes.data.size, UNEVEN * sums[0] * nodes.inner.size)
        if options.passes:
            _coarsened(nodes, m, symmetric, options, passes, None, True, False)
        else:
            rows: Any = nodes[:3] if symmetric else _both_directions(nodes)
            passes.append(neighbourhoods(rows[0], rows[1], rows[2], m, options.threads))
    return *candidates.basis(near, *_whole(passes), options.threads), even


def _coarse(matrix: Matrix, P: Any, threads: int | None) -> tuple[Matrix, Any]:
    """(P.T A P, P.T)"""
    n, count = P.shape
    csr_of_P = P.indptr, P.indices, P.data
    arrays, inner, R = _on(P.data).coarse(matrix, csr_of_P, count, threads)
    kind = matrix.data.dtype
    data, inner = (array.astype(kind, copy=False) for array in (arrays[2], inner))
    made = Matrix(arrays[0], arrays[1], data, inner)
    return made, _sparse(R, count, n)


def _without_noise(matrix: Matrix, m: Any, levels: list[Level], threads: int | None) -> Any:
    """(matrix, m) with 0 on the diagonal where a row is that of a whole component.

    There are only rounding errors then.  Rows are held against their own terms, since components
    may be on very different scales.
    """
    full, xp = m.diagonal + m.others, engines.xp(m.diagonal)
    if not full.size or float(full.min()) > NOTHING * float(full.max()):
        return matrix, m
    terms = _on(matrix.data).measure(*levels[0].matrix, 0, threads)[0].diagonal
    for level in levels:
        if level.interpolation is None:
            label, count = _whole(level.passes)
            terms = xp.bincount(label, terms, count + 1)[:count]
        else:
            terms = level.interpolation.multiply(level.interpolation).T @ terms
    there = full > NOTHING * terms
    m = m._replace(diagonal=m.diagonal * there, scale=m.scale * there)
    return matrix._replace(inner=matrix.inner * there.astype(matrix.inner.dtype)), m


def _refuse_diagonal(diagonal: Array) -> None:
    bad = ~(diagonal > 0)
    if bad.any():
        row = int(bad.argmax())
        raise ValueError(
            f"multilevel: the diagonal must be positive, got {float(diagonal[row]):g} at row {row}"
        )


def _chosen(sums: Array) -> str:
    """Paths where rows have two strong neighbours, or positive entries spoil the aggregates."""
    along = _above(sums[2], ALONG_PATHS * sums[0]) or _above(sums[1], MIXED_PATHS * sums[0])
    return "algebraic_tridiagonal" if along else "jacobi"


def _above(total: float, limit: float) -> bool:
    """Whether a sum is larger than that by more than rounding."""
    return bool(total > (1 + ROUNDING) * limit)


def _coarsened(
    matrix: Matrix, m: Any, symmetric: bool, options: Options, passes: Any, before: Any,
    smoothed: bool, paths: bool,
) -> Matrix:  # fmt: skip
    """The coarse matrix where it is not `smoothed`; `passes` gets the labels of each pass.

    Its rows are sorted where the smoother looks for `paths` in it.
    """
    n = matrix.inner.size
    for k in range(options.passes):
        if before is not None:
            if k == len(before.passes):
                break
            label, count = before.passes[k]
        else:
            if k:
                m, _ = _on(matrix.data).measure(*matrix, k, options.threads)
            rows: Any = matrix[:3] if symmetric else _both_directions(matrix)
            last = k == options.passes - 1
            label, count = _on(matrix.data).pair(*rows, m, last, options.threads)
        passes.append((label, count))
        if smoothed and k == options.passes - 1:
            return matrix  # its coarse matrix is another one
        matrix = _contracted(
            matrix, label, count, symmetric, not symmetric or paths, options.threads
        )
        if count == 0 or n == 0:
            break
    return matrix


def _both_directions(matrix: Matrix) -> Any:
    view = csr.as_graph(matrix[:3], "multilevel").undirected_weights()
    return view.indptr, view.indices, view.data


def _contracted(
    matrix: Matrix, label: Array, count: int, symmetric: bool, ordered: bool, threads: int | None
) -> Matrix:
    """The matrix of the groups; that of rows left out, label `count`, is cut off."""
    xp = engines.xp(label)
    if engines.location(label) == "gpu":
        found = _on(label).contract(matrix, label, count, symmetric, ordered)
        if found is not None:
            return Matrix._make(found)
    spare = bool((label == count).any())
    groups = count + spare
    made = trusted_contract_values(
        *matrix, label, groups, symmetric=symmetric, ordered=ordered, threads=threads
    )
    if not spare:
        return Matrix(*made)
    indptr, indices, data, inner = made
    kept = indices != count
    kept[int(indptr[count]) :] = False
    places = xp.concatenate((xp.zeros(1, indptr.dtype), xp.cumsum(kept, dtype=indptr.dtype)))
    return Matrix(places[indptr[: count + 1]], indices[kept], data[kept], inner[:count])


def _sparse(arrays: Any, rows: int, columns: int) -> Any:
    indptr, indices, data = arrays
    if engines.location(data) == "gpu":
        return sparse_matrix(indptr, indices, data, (rows, columns))
    return sp.csr_array((data, indices, indptr), shape=(rows, columns))


def _smoother(
    G: Any, matrix: Matrix, m: Any, regular: bool, kind: str, options: Options, before: Any
) -> Any:  # fmt: skip
    """(Lines, or the inverse of a diagonal; the forest; coverage)."""
    damping, n, xp = DAMPING[kind], matrix.inner.size, engines.xp(matrix.data)
    if kind in ("jacobi", "l1_jacobi"):
        full = m.diagonal + damping * m.others
        there = full > 0
        return xp.where(there, 1 / xp.where(there, full, 1), 0), None, 0.0
    path = None if before is None else before.path
    if path is None and kind == "algebraic_tridiagonal":
        G = csr.as_graph(matrix[:3], "multilevel") if G is None else G
        forest = linear_forest(G, threads=options.threads)
        path = forest.perm, forest.position
    elif path is None:
        path = xp.arange(n), xp.arange(1, n + 1)
    made, kept = _on(matrix.data).lines(*matrix[:3], m, path, damping, options.threads)
    # without positive entries A = T - N is a regular splitting: eigenvalues of T^-1 A are below 2
    most = 2.0 if regular else SAFE * _on(matrix.data).largest(matrix, m, made, options.threads)
    if most > LARGEST:
        made = made._replace(inverse=made.inverse * (LARGEST / most))
    total = float(m.others.sum())
    return made, path, kept / total if total > 0 else 0.0


CYCLES = {"V": cycles.VCYCLE, "W": cycles.WCYCLE, "K": cycles.KCYCLE}


class Layout:
    """Arrays one after the other, and where each begins."""

    def __init__(self, dtype: Any) -> None:
        self.dtype, self._size = dtype, 0
        self._arrays: list[tuple[int, Array]] = []

    def add(self, array: Array) -> int:
        """Where the array will begin."""
        self._arrays.append((self._size, array.reshape(-1)))
        return self.room(array.size)

    def room(self, size: int) -> int:
        """Where there will be room for that number of elements."""
        self._size += size
        return self._size - size

    def whole(self) -> Array:
        together = np.empty(self._size, self.dtype)
        for at, array in self._arrays:
            try:
                with np.errstate(over="raise"):
                    together[at : at + array.size] = array  # converted on the way
            except FloatingPointError:
                name = np.dtype(self.dtype).name
                raise ValueError(f"multilevel: the smoother has numbers beyond {name}") from None
        return together


def laid_out(levels: tuple[Level, ...], symmetric: bool, options: Options, exponent: int) -> Any:
    """The levels as the kernels of the cycles read them."""
    if engines.location(levels[0].matrix.data) == "gpu":
        labels = [_whole(level.passes) if level.passes else None for level in levels]
        return _on(levels[0].matrix.data).cycle_of(levels, labels, symmetric, options, exponent)
    kind = np.dtype(options.precision or levels[0].matrix.data.dtype)
    index = levels[0].matrix.indices.dtype
    whole, real, blocks = Layout(unsigned(index)), Layout(kind), Layout(np.int64)
    table = np.full((len(levels), cycles.COLUMNS), cycles.NONE, np.int64)
    work, alone, at = 0, len(levels), 0
    parts: list[Any] = []  # matrices to be written where they will be read
    for k, level in enumerate(levels):
        n, matrix, row = level.rows, level.matrix, table[k]
        steps = matrix.indices.size + n
        work += steps << min(k, 4)
        if k and steps < cycles.ALONE_STEPS:
            alone = min(alone, k)
        row[cycles.N], row[cycles.ROW] = n, at
        at += n + 1
        bounds = cycles.blocks_of(matrix.indptr)
        row[cycles.BLOCK], row[cycles.BLOCKS] = blocks.add(bounds), bounds.size - 1

        def place(first: int, arrays: Any, inner: Any = None, row: Array = row) -> None:
            made = fours.in_windows(arrays, inner is not None, kind, options.threads)
            size = 4 * int(made.ptr[-1])
            places = whole.room(size), real.room(size)
            row[first : first + 4] = whole.add(made.order), whole.add(made.ptr), *places
            parts.append((arrays, inner, made, size, places))

        if level.made is not None:
            inner = matrix.inner if matrix.inner.any() else None
            place(cycles.MATRIX, matrix[:3], inner)
            row[cycles.INNER] = real.add(matrix.inner) if k else cycles.NONE
        if isinstance(level.made, pairs.Lines):
            row[cycles.ORDER] = whole.add(level.made.order)
            row[cycles.LOWER], row[cycles.UPPER] = (
                real.add(level.made.lower),
                real.add(level.made.upper),
            )
            row[cycles.INVERSE] = real.add(level.made.inverse)
        elif level.made is not None:
            row[cycles.INVERSE] = real.add(np.append(level.made, 0))
        else:
            row[cycles.DENSE] = real.add(_inverted(matrix, symmetric).T)
        if level.passes:
            label, count = _whole(level.passes)
            row[cycles.COARSE] = count
            if level.interpolation is None:
                rows = np.arange(n + 1, dtype=index)
                starts, members, _ = transpose(
                    rows, label, None, count + 1, threads=options.threads
                )
                row[cycles.LABEL] = whole.add(label)
                last = starts[count]
                ones = np.ones(last, kind)
                place(cycles.RESTRICTION, (starts[: count + 1], members[:last], ones))
            else:
                P, R = level.interpolation, level.restriction
                row[cycles.COARSE] = P.shape[1]
                place(cycles.INTERPOLATION, (P.indptr, P.indices, P.data))
                place(cycles.RESTRICTION, (R.indptr, R.indices, R.data))
    made = cycles.Levels(table, blocks.whole(), whole.whole(), real.whole())
    for arrays, inner, part, size, (i, k) in parts:
        part = part._replace(indices=made.whole[i : i + size], data=made.real[k : k + size])
        fours.fill(arrays, inner, part, options.threads)
    noise = cycles.NOISE * float(np.finfo(kind).eps)
    noise = noise if symmetric else noise**2
    twice = visited_twice([level.rows for level in levels])
    plan = cycles.Plan(
        CYCLES[options.cycle], symmetric, options.sweeps, twice, alone, exponent, noise
    )
    return cycles.Cycle(made, plan, kind, work, options.threads)


def _whole(passes: Any) -> tuple[Array, int]:
    """The labels of all passes in one; rows left out have the number of groups."""
    label, count = passes[0]
    for after, fewer in passes[1:]:
        label = engines.xp(label).append(after, fewer).astype(label.dtype)[label]
        count = fewer
    return label, count


def dense(matrix: Matrix) -> Array:
    n = matrix.inner.size
    rows = np.repeat(np.arange(n), np.diff(matrix.indptr))
    whole = np.diag(matrix.inner.astype(np.float64))
    np.add.at(whole, (rows, matrix.indices), matrix.data)
    return whole


def _inverted(matrix: Matrix, symmetric: bool) -> Array:
    """The inverse; of a singular matrix the pseudoinverse."""
    whole = dense(matrix)
    found: Any = pairs.inverse(whole) if symmetric else None
    with np.errstate(all="ignore"):
        try:
            found = np.linalg.inv(whole) if found is None else found
            error = abs((whole * found.sum(axis=1)).sum(axis=1) - 1).max() if whole.size else 0.0
        except np.linalg.LinAlgError:
            error = np.inf
    return found if error < 1e-6 else pseudoinverse(whole, symmetric)
