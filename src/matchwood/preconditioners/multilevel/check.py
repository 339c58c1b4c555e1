"""Are these levels a hierarchy of that matrix?  From the definition, without computing one."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from matchwood import calls, engines
from matchwood.errors import CheckFailed
from matchwood.preconditioners.check import check_preconditioner

JACOBI_STEP = 1.55  # of a smoothed interpolation, over the sum of |entries| of a row
BASIS = 1e-9  # of a candidate: what a basis of the candidates on an aggregate may lack
ROUNDING = {"float32": 1e-4, "float64": 1e-12}  # of an entry, relative to the sum of its terms


def check_multilevel(A: Any, M: Any) -> None:
    """Raise `CheckFailed` unless `M` is a multilevel preconditioner of `A`.

    The first level must have the matrix itself; labels must be in range and no aggregate empty; the
    matrix of each level must be ``P.T @ A @ P`` of the one before, with P as it is smoothed, where
    it is; rows that are merged must be neighbours; complexities must be those of the levels.  Of
    `near_nullspace`: the columns of the interpolation before it is smoothed must be orthonormal,
    each on one aggregate; that matrix times the candidates of the next level must be those of this
    level; and P must be that matrix, or follow from it by a Jacobi step.  `check_preconditioner`
    applies it then: a cycle that is said to be symmetric is its own adjoint.

    Parameters
    ----------
    A : (n, n) sparse matrix, or anything `graph` takes
    M : LinearOperator
        From `multilevel`.

    Examples
    --------
    >>> import matchwood
    >>> A = matchwood.generators.aniso(2, (40, 40))
    >>> matchwood.check.check_multilevel(A, matchwood.preconditioners.multilevel(A))
    """
    import scipy.sparse as sp

    caller = "check_multilevel"
    G = calls.enter(A, caller, "cpu").graph
    levels = getattr(M, "levels", None)
    if not levels:
        raise TypeError(f"{caller}: M must be from multilevel, got {type(M).__name__}")
    levels = [_on_host(level) for level in levels]
    expected, size = _csr(G.sparse_weights()), None
    if M.scale is not None:
        expected = sp.csr_array(sp.diags_array(M.scale) @ expected @ sp.diags_array(M.scale))
    expected.data = np.ldexp(expected.data, -M.exponent)
    for k, level in enumerate(levels):
        _check_matrix(level, expected, size, f"multilevel: level {k}")
        if k + 1 < len(levels):
            expected, size = _next(level, f"multilevel: level {k}")
            if level.near is not None:
                _check_candidates(level, levels[k + 1], f"multilevel: level {k}")
    if levels[-1].passes:
        raise CheckFailed("multilevel: the last level has aggregates")
    for name, count in (("operator_complexity", "entries"), ("grid_complexity", "rows")):
        whole = sum(getattr(level, count) for level in levels) / max(getattr(levels[0], count), 1)
        if not np.isclose(getattr(M, name), whole):
            raise CheckFailed(f"multilevel: {name} is {getattr(M, name)}, not {whole}")
    check_preconditioner(A, M)


def _on_host(level: Any) -> Any:
    if engines.location(level.matrix.data) == "cpu":
        return level
    P = level.interpolation
    return dataclasses.replace(
        level,
        matrix=type(level.matrix)(*(array.get() for array in level.matrix)),
        passes=tuple((label.get(), count) for label, count in level.passes),
        interpolation=None if P is None else P.get(),
    )


def _csr(matrix: Any) -> Any:
    import scipy.sparse as sp

    return sp.csr_array(matrix).astype(np.float64)


def _check_matrix(level: Any, expected: Any, size: Any, where: str) -> None:
    """The matrix of a level must be the one expected, to the rounding errors of `size` terms."""
    import scipy.sparse as sp

    matrix = level.matrix
    n = matrix.inner.size
    if (level.rows, n) != (expected.shape[0],) * 2:
        raise CheckFailed(f"{where} has {level.rows} rows, not {expected.shape[0]}")
    own = sp.csr_array((matrix.data, matrix.indices, matrix.indptr), shape=(n, n))
    own = _csr(own) + sp.diags_array(matrix.inner.astype(np.float64))
    limit = ROUNDING[matrix.data.dtype.name] * (abs(expected) if size is None else size)
    wrong = abs(own - expected) - limit
    if wrong.nnz and float(wrong.max()) > 0:
        raise CheckFailed(f"{where}: its matrix is not that of the aggregates")


def _next(level: Any, where: str) -> tuple[Any, Any]:
    """(P.T A P, the same of |A|) for the aggregates of a level."""
    import scipy.sparse as sp

    matrix = level.matrix
    n = level.rows
    A = sp.csr_array((matrix.data, matrix.indices, matrix.indptr), shape=(n, n))
    A = _csr(A) + sp.diags_array(matrix.inner.astype(np.float64))
    whole, size = A, abs(A)
    if level.near is not None:
        _check_nodes(level.near.nodes, n, where)
        ones = sp.csr_array((np.ones(n), (np.arange(n), level.near.nodes)))
        A = size = sp.csr_array(ones.T @ size @ ones)
    for k, (label, count) in enumerate(level.passes):
        label = np.asarray(label)
        if label.shape != (A.shape[0],) or (
            label.size and not 0 <= label.min() <= label.max() <= count
        ):
            raise CheckFailed(f"{where}: labels of pass {k} must be 0 .. {count}")
        if (np.bincount(label, minlength=count)[:count] == 0).any():
            raise CheckFailed(f"{where}: an aggregate of pass {k} is empty")
        _check_neighbours(A, label, count, f"{where}: pass {k}")
        taken = np.flatnonzero(label < count)
        P = sp.csr_array((np.ones(taken.size), (taken, label[taken])), shape=(A.shape[0], count))
        A, size = sp.csr_array(P.T @ A @ P), sp.csr_array(P.T @ size @ P)
    if level.interpolation is None:
        return A, size
    P = level.interpolation
    if level.near is None and P.shape != (n, A.shape[0]):
        raise CheckFailed(f"{where}: the interpolation must have shape {(n, A.shape[0])}")
    return sp.csr_array(P.T @ whole @ P), sp.csr_array(abs(P).T @ abs(whole) @ abs(P))


def _check_nodes(nodes: Any, n: int, where: str) -> None:
    """Rows of a node must stand together, and nodes be numbered 0, 1, ..."""
    steps = np.diff(np.asarray(nodes), prepend=0)
    if steps.shape != (n,) or not (0 <= steps.min(initial=0) <= steps.max(initial=0) <= 1):
        raise CheckFailed(f"{where}: nodes must be 0, 1, ..., each once or several times in turn")


def _check_candidates(level: Any, below: Any, where: str) -> None:
    """The interpolation must contain the candidates, and each of its columns one aggregate."""
    import scipy.sparse as sp

    nodes, values = level.near
    T, P, next_nodes = level.tentative, level.interpolation, below.near.nodes
    label, count = level.passes[0]
    for after, fewer in level.passes[1:]:
        label, count = np.append(after, fewer)[label], fewer
    group = label[nodes]
    rows = np.repeat(np.arange(level.rows), np.diff(T.indptr))
    if T.shape != (level.rows, below.rows) or (group[rows] != next_nodes[T.indices]).any():
        raise CheckFailed(f"{where}: a column of the interpolation is not on its aggregate")
    product = abs(T.T @ T - sp.eye_array(T.shape[1]))
    if product.nnz and product.max() > BASIS:
        raise CheckFailed(f"{where}: the columns of the interpolation are not orthonormal")
    # an aggregate's largest value, of each candidate: what is left out of a basis is small there
    largest = np.zeros((count + 1, values.shape[1]))
    np.maximum.at(largest, group, abs(values))
    wrong = (
        abs(T @ below.near.values - values)
        > BASIS * (1 + np.bincount(group)[group, None]) * (largest[group])
    )
    wrong[group == count] = False
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise CheckFailed(f"{where}: candidate {column} is not interpolated at row {row}")
    if P is T:
        return
    matrix = level.matrix
    A = _csr(sp.csr_array((matrix.data, matrix.indices, matrix.indptr), shape=(level.rows,) * 2))
    A = sp.csr_array(A + sp.diags_array(matrix.inner.astype(np.float64)))
    sizes = abs(A).sum(axis=1)
    step = np.where(sizes > 0, JACOBI_STEP / np.where(sizes > 0, sizes, 1), 0)
    if abs(P - (T - sp.diags_array(step) @ (A @ T))).max() > 10 * ROUNDING[matrix.data.dtype.name]:
        raise CheckFailed(f"{where}: the interpolation is not what a Jacobi step makes")


def _check_neighbours(A: Any, label: Any, count: int, where: str) -> None:
    """Every row of an aggregate of several must be a neighbour of another one in it."""
    rows = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    same = (label[rows] == label[A.indices]) & (rows != A.indices)
    near = np.zeros(A.shape[0], bool)
    near[rows[same]] = near[A.indices[same]] = True
    several = np.bincount(label, minlength=count + 1)[label] > 1
    lonely = several & (label < count) & ~near
    if lonely.any():
        raise CheckFailed(f"{where}: row {int(lonely.argmax())} has no neighbour in its aggregate")
